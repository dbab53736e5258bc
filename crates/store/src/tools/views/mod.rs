//! The tables of the reference systems, as views over ours, for programs that read them.
//!
//! Eight views with the columns and the words that their readers know: `emails` and `email_statuses` (000),
//! `messages` (001), `monitored_emails` and `monitored_emails_tasks` (002), `email_outbox`, `email_logs` and
//! `email_events` (004). They are in a separate schema on PostgreSQL, in a separate database on MySQL, and
//! under a prefix on SQLite, and store nothing: they show the queue itself.
//! [`crate::view_definitions::status_words`] has the words of each state,
//! [`crate::view_definitions::template`] the texts.
//!
//! Promises: installing again is harmless, updates views of another version and keeps the grants of readers;
//! nothing can be written through the views; no body of a sensitive message, no password and no key is shown;
//! migrations are not blocked by views, and update them. Installing fails if the database lacks our tables or
//! its user may not create views, and says what to do. It grants nothing to anybody.

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
        template::{ViewsDialect, ViewsLocation},
    },
};

/// The default schema on PostgreSQL, and the default prefix on SQLite.
const SCHEMA: &str = "postway_views";
/// The suffix of the default database name on MySQL.
const SUFFIX: &str = "_views";
/// The longest name that PostgreSQL and MySQL both accept.
const NAME_BYTES_MAX: usize = 63;

/// The database that has our tables.
#[derive(Clone, Debug)]
pub enum ViewsDatabase {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// The URL of a PostgreSQL server.
    Postgres(String),
    /// The URL of a MySQL or MariaDB server.
    Mysql(String),
}

impl ViewsDatabase {
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

    /// Its migrations; empty if there is no database yet.
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
pub struct ViewsPlan {
    /// The schema of the views, the database on MySQL, the prefix on SQLite.
    pub schema: Option<String>,
    /// Whether to add an index to our own table, so that messages are found quickly by the ids that views
    /// show.
    pub index: bool,
}

/// After this time a running server has noticed that views were installed, and stores requests so that they
/// can show them.
pub const NOTICED_AFTER: Duration = LOOK_AGAIN_AFTER.saturating_add(Duration::from_millis(500));

/// The location of the views: the schema, the database, or the prefix.
pub fn schema(database: &ViewsDatabase, plan: &ViewsPlan) -> Result<String, ViewsError> {
    Ok(place(database, plan)?.schema)
}

/// The statements that install the views.
pub fn script(database: &ViewsDatabase, plan: &ViewsPlan) -> Result<String, ViewsError> {
    let place = ViewsLocation { has_column: plan.index, ..place(database, plan)? };
    let index = plan.index.then(|| place.make_index());
    Ok([place.make_schema(), index, Some(place.make_views())].into_iter().flatten().collect())
}

/// Installs or updates the views and returns their schema. A running server notices them after
/// [`NOTICED_AFTER`]: events of messages accepted until then are shown after another [`spread_events`].
pub async fn install(database: &ViewsDatabase, plan: &ViewsPlan) -> Result<String, ViewsError> {
    let place = place(database, plan)?;
    let migrations = database.migrations().await?;
    if migrations.is_empty() || migrations.iter().any(|state| !state.applied) {
        return Err(ViewsError::NotMigrated);
    }
    let schema = place.schema.clone();
    match database {
        ViewsDatabase::Sqlite(path) => {
            let _lock = if plan.index { Some(take_lock(path)?) } else { None };
            sqlite::install(path, &place, plan.index).await?;
        }
        ViewsDatabase::Postgres(url) => postgres::install(url, &place, plan.index).await?,
        ViewsDatabase::Mysql(url) => mysql::install(url, place, plan.index).await?,
    }
    spread_events(database).await?;
    Ok(schema)
}

/// Removes the views and their index, as far as they exist. The schema is removed only if the default name
/// was used and it is empty.
pub async fn remove(database: &ViewsDatabase, plan: &ViewsPlan) -> Result<(), ViewsError> {
    let place = place(database, plan)?;
    let drops_schema = plan.schema.is_none();
    match database {
        ViewsDatabase::Sqlite(path) if !path.is_file() => Err(ViewsError::NotMigrated),
        ViewsDatabase::Sqlite(path) => sqlite::remove(path, &place).await,
        ViewsDatabase::Postgres(url) => postgres::remove(url, &place, drops_schema).await,
        ViewsDatabase::Mysql(url) => mysql::remove(url, &place, drops_schema).await,
    }
}

fn place(database: &ViewsDatabase, plan: &ViewsPlan) -> Result<ViewsLocation, ViewsError> {
    let (dialect, ours, default) = match database {
        ViewsDatabase::Sqlite(_) => (ViewsDialect::Sqlite, String::new(), SCHEMA.to_owned()),
        ViewsDatabase::Postgres(url) => {
            url.parse::<PgConnectOptions>().map_err(|_| ViewsError::Address)?;
            (ViewsDialect::Postgres, String::new(), SCHEMA.to_owned())
        }
        ViewsDatabase::Mysql(url) => {
            let options: MySqlConnectOptions = url.parse().map_err(|_| ViewsError::Address)?;
            let ours = options.get_database().ok_or(ViewsError::Address)?.to_owned();
            let default = format!("{ours}{SUFFIX}");
            (ViewsDialect::Mysql, ours, default)
        }
    };
    let schema = plan.schema.clone().unwrap_or(default);
    for name in [&schema, &ours].into_iter().filter(|name| !is_name(name)) {
        if dialect == ViewsDialect::Mysql || name == &schema {
            return Err(ViewsError::Name(name.clone()));
        }
    }
    Ok(ViewsLocation { dialect, schema, database: ours, has_column: false })
}

/// Whether a name is safe inside quotes wherever it is written.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain) && !text.starts_with("pg_")
}
