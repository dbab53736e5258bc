//! The tables of the reference systems, as views over ours, for programs that read them.
//!
//! Eight views with the columns and the words that their readers know: `emails` and `email_statuses` (000), `messages` (001),
//! `monitored_emails` and `monitored_emails_tasks` (002), `email_outbox`, `email_logs` and `email_events` (004). They live in
//! a schema of their own on PostgreSQL, in a database of their own on MySQL, and under a prefix on SQLite, and hold nothing:
//! what they show is what the queue is. [`crate::view_definitions::status_words`] says what each state is called there, [`crate::view_definitions::template`] has the texts.
//!
//! Promises: installing again is harmless, brings views of another version up to date and keeps what readers were granted;
//! nothing can be written through them; no body of a sensitive message, no
//! password and no key is shown; migrations are not held up by views, and bring them up to date. Fails where the database
//! lacks our tables or its user may not make views, and says what to do. It does not grant anything to anybody.

mod spread_events;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, time::Duration};

use ::sqlx::{mysql::MySqlConnectOptions, postgres::PgConnectOptions};

pub use self::spread_events::spread_events;
pub use crate::view_definitions::ViewsError;
use crate::{
    driver::{
        mysql::MysqlStore,
        postgres::PostgresStore,
        sqlite::{SqliteStore, take_lock},
    },
    queue::packing::LOOK_AGAIN_AFTER,
    sql::schema::MigrationState,
    view_definitions::{
        mysql, postgres, sqlite,
        template::{Dialect, Place},
    },
};

/// The schema on PostgreSQL, and on SQLite the beginning of names, where none is given.
const SCHEMA: &str = "postway_views";
/// What is added to the name of a database on MySQL.
const SUFFIX: &str = "_views";
/// The longest name that PostgreSQL and MySQL both take.
const NAME_BYTES_MAX: usize = 63;

/// Where our tables are.
#[derive(Clone, Debug)]
pub enum Database {
    /// In a file.
    Sqlite(PathBuf),
    /// On a PostgreSQL server, by its URL.
    Postgres(String),
    /// On a MySQL or MariaDB server, by its URL.
    Mysql(String),
}

impl Database {
    /// Reads a URL: `sqlite://` and a path, `postgres://…` or `mysql://…`.
    pub fn parse(url: &str) -> Result<Self, ViewsError> {
        let (scheme, rest) = url.split_once(':').ok_or(ViewsError::Address)?;
        match scheme {
            "sqlite" => match rest.strip_prefix("//").unwrap_or(rest) {
                "" => Err(ViewsError::Address),
                path => Ok(Self::Sqlite(path.into())),
            },
            "postgres" | "postgresql" => Ok(Self::Postgres(url.to_owned())),
            // The driver knows one scheme for both.
            "mysql" | "mariadb" => Ok(Self::Mysql(format!("mysql:{rest}"))),
            _ => Err(ViewsError::Address),
        }
    }

    /// Which migrations it has; none where there is no database yet.
    async fn migrations(&self) -> Result<Vec<MigrationState>, ViewsError> {
        Ok(match self {
            Self::Sqlite(path) if !path.is_file() => Vec::new(),
            Self::Sqlite(path) => SqliteStore::migration_status(path).await?,
            Self::Postgres(url) => PostgresStore::migration_status(url).await?,
            Self::Mysql(url) => MysqlStore::migration_status(url).await?,
        })
    }
}

/// What to install.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The schema, or on MySQL the database, of the views; on SQLite what their names begin with.
    pub schema: Option<String>,
    /// Whether messages are to be found quickly by the ids that views show: an index on our own table.
    pub index: bool,
}

/// After this time a running server knows that views were installed, and stores requests so that they can show them.
pub const NOTICED_AFTER: Duration = LOOK_AGAIN_AFTER.saturating_add(Duration::from_millis(500));

/// Where the views are or would be: the schema, the database, or the beginning of their names.
pub fn schema(database: &Database, plan: &Plan) -> Result<String, ViewsError> {
    Ok(place(database, plan)?.schema)
}

/// The statements that install the views.
pub fn script(database: &Database, plan: &Plan) -> Result<String, ViewsError> {
    let place = Place { has_column: plan.index, ..place(database, plan)? };
    let index = plan.index.then(|| place.make_index());
    Ok([place.make_schema(), index, Some(place.make_views())].into_iter().flatten().collect())
}

/// Installs the views, or brings them up to date; gives the schema they are in. A running server notices them after [`NOTICED_AFTER`]:
/// events of what it has accepted until then are shown after another [`spread_events`].
pub async fn install(database: &Database, plan: &Plan) -> Result<String, ViewsError> {
    let place = place(database, plan)?;
    let migrations = database.migrations().await?;
    if migrations.is_empty() || migrations.iter().any(|state| !state.applied) {
        return Err(ViewsError::NotMigrated);
    }
    let schema = place.schema.clone();
    match database {
        Database::Sqlite(path) => {
            let _lock = if plan.index { Some(take_lock(path)?) } else { None };
            sqlite::install(path, &place, plan.index).await?;
        }
        Database::Postgres(url) => postgres::install(url, &place, plan.index).await?,
        Database::Mysql(url) => mysql::install(url, place, plan.index).await?,
    }
    spread_events(database).await?;
    Ok(schema)
}

/// Removes the views and their index; what is not there is passed over. A schema goes only where the default name was used
/// and nothing else is in it.
pub async fn remove(database: &Database, plan: &Plan) -> Result<(), ViewsError> {
    let place = place(database, plan)?;
    let drops_schema = plan.schema.is_none();
    match database {
        Database::Sqlite(path) if !path.is_file() => Err(ViewsError::NotMigrated),
        Database::Sqlite(path) => sqlite::remove(path, &place).await,
        Database::Postgres(url) => postgres::remove(url, &place, drops_schema).await,
        Database::Mysql(url) => mysql::remove(url, &place, drops_schema).await,
    }
}

fn place(database: &Database, plan: &Plan) -> Result<Place, ViewsError> {
    let (dialect, ours, default) = match database {
        Database::Sqlite(_) => (Dialect::Sqlite, String::new(), SCHEMA.to_owned()),
        Database::Postgres(url) => {
            url.parse::<PgConnectOptions>().map_err(|_| ViewsError::Address)?;
            (Dialect::Postgres, String::new(), SCHEMA.to_owned())
        }
        Database::Mysql(url) => {
            let options: MySqlConnectOptions = url.parse().map_err(|_| ViewsError::Address)?;
            let ours = options.get_database().ok_or(ViewsError::Address)?.to_owned();
            let default = format!("{ours}{SUFFIX}");
            (Dialect::Mysql, ours, default)
        }
    };
    let schema = plan.schema.clone().unwrap_or(default);
    for name in [&schema, &ours].into_iter().filter(|name| !is_name(name)) {
        if dialect == Dialect::Mysql || name == &schema {
            return Err(ViewsError::Name(name.clone()));
        }
    }
    Ok(Place { dialect, schema, database: ours, has_column: false })
}

/// A name that can stand in quotes wherever it is written.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain) && !text.starts_with("pg_")
}
