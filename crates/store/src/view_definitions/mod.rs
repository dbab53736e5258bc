//! The views that show our tables as the tables of the reference systems: their texts, and how each database
//! creates, replaces and removes them. Migrations put them aside; [`crate::tools::views`] installs them.

mod fragments;
pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod status_words;
pub(crate) mod template;

use std::time::Duration;

use crate::{
    error::StoreError,
    sql::{SqlSession, SqlText, values},
};

/// The longest wait for a connection, or for a lock on a view in use.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(10);

/// Why views could not be installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum ViewsError {
    /// The database URL cannot be parsed.
    #[error("the database URL must be sqlite:// and a path, postgres://… or mysql://…/database")]
    Address,
    /// The name cannot be used for a schema.
    #[error("`{0}` cannot name the views' schema: use up to 63 letters, digits, _ and -")]
    Name(String),
    /// The database lacks tables that the views show.
    #[error(
        "the database has not all the tables of this program: start the server on it, or run `postway migrate up`, first"
    )]
    NotMigrated,
    /// The user lacks a privilege.
    #[error(
        "the database refuses: {error}; have an administrator make `{schema}` and let this user create views in it, or \
         name another place with --schema"
    )]
    Denied {
        /// The schema of the views.
        schema: String,
        /// The text of the database.
        error: String,
    },
    /// A foreign view has the name of one of ours.
    #[error(
        "`{schema}` has a view `{view}` that postway did not make: rename it, or name another place with --schema"
    )]
    Taken {
        /// The schema of the views.
        schema: String,
        /// Its name.
        view: String,
    },
    /// Foreign views depend on ours, which have to be dropped for a moment or permanently.
    #[error(
        "other views are made of those in `{schema}`: {error}; drop them first, and make them again afterwards"
    )]
    InUse {
        /// The schema of the views.
        schema: String,
        /// The text of the database.
        error: String,
    },
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Any other error of the database.
    #[error(
        "the database answered: {0}; what was there is as it was, unless this is MySQL, where it can be run again"
    )]
    Failed(String),
    /// The database did not answer.
    #[error("the database did not answer within 10 seconds; check the database URL")]
    Silent,
}

impl From<::sqlx::Error> for ViewsError {
    fn from(error: ::sqlx::Error) -> Self {
        Self::Failed(error_text(&error))
    }
}

/// The error text of the database, or of the driver.
pub(crate) fn error_text(error: &::sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

/// Finds our views by their mark, or by the tables they show. The mark is bound once in each text.
const INSTALLED: SqlText = SqlText::of_each(
    "SELECT 1 FROM sqlite_schema WHERE type = 'view' AND instr(sql, ?) > 0 LIMIT 1",
    "SELECT CAST(1 AS BIGINT) FROM pg_class WHERE relkind = 'v' AND relname = 'monitored_emails_tasks' \
     AND obj_description(oid, 'pg_class') = ? LIMIT 1",
    "SELECT CAST(1 AS SIGNED) FROM information_schema.views WHERE table_name = 'monitored_emails_tasks' AND ? <> '' \
     AND LOCATE(CAST(CONCAT('`', DATABASE(), '`.`inbound_message`') AS BINARY), CAST(view_definition AS BINARY)) > 0 LIMIT 1",
);

/// Whether the database has views of ours, in whatever schema.
pub(crate) async fn find_installed(session: &mut dyn SqlSession) -> Result<bool, StoreError> {
    Ok(!session.rows(INSTALLED, values![template::MARK]).await?.is_empty())
}

/// Connects within the time limit.
async fn connected<C>(
    connecting: impl Future<Output = Result<C, ::sqlx::Error>> + Send,
) -> Result<C, ViewsError> {
    Ok(tokio::time::timeout(WAIT_MAX, connecting).await.map_err(|_| ViewsError::Silent)??)
}
