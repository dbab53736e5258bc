//! The views that show our tables as the tables of the reference systems: their texts, and how each database makes, replaces
//! and removes them. Migrations let them stand aside; [`crate::tools::views`] installs them.

mod fragments;
pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod status_words;
pub(crate) mod template;

use std::time::Duration;

use crate::{
    error::StoreError,
    sql::{Session, Sql, values},
};

/// How long it may take to connect, or to get a lock on a view that somebody reads.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(10);

/// Why views could not be installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum ViewsError {
    /// No address of a database.
    #[error("the database URL must be sqlite:// and a path, postgres://… or mysql://…/database")]
    Address,
    /// No name for a schema.
    #[error("`{0}` cannot name the views' schema: use up to 63 letters, digits, _ and -")]
    Name(String),
    /// Views show what this program's tables have.
    #[error(
        "the database has not all the tables of this program: start the server on it, or run `postway migrate up`, first"
    )]
    NotMigrated,
    /// Its user may not do it.
    #[error(
        "the database refuses: {error}; have an administrator make `{schema}` and let this user create views in it, or \
         name another place with --schema"
    )]
    Denied {
        /// Where the views were to be.
        schema: String,
        /// The database's words.
        error: String,
    },
    /// Somebody else's view has the name of one of ours.
    #[error(
        "`{schema}` has a view `{view}` that postway did not make: rename it, or name another place with --schema"
    )]
    Taken {
        /// Where the views were to be.
        schema: String,
        /// Its name.
        view: String,
    },
    /// Somebody else's views show ours, which have to go for a moment, or for good.
    #[error(
        "other views are made of those in `{schema}`: {error}; drop them first, and make them again afterwards"
    )]
    InUse {
        /// Where the views are.
        schema: String,
        /// The database's words.
        error: String,
    },
    /// The store's own fault.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Anything else.
    #[error(
        "the database answered: {0}; what was there is as it was, unless this is MySQL, where it can be run again"
    )]
    Failed(String),
    /// No answer.
    #[error("the database did not answer within 10 seconds; check the database URL")]
    Silent,
}

impl From<::sqlx::Error> for ViewsError {
    fn from(error: ::sqlx::Error) -> Self {
        Self::Failed(said(&error))
    }
}

/// The database's own words, or the driver's.
pub(crate) fn said(error: &::sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

/// Ours, by their mark, or by what they show. Each text has the mark bound to it once.
const INSTALLED: Sql = Sql::of_each(
    "SELECT 1 FROM sqlite_schema WHERE type = 'view' AND instr(sql, ?) > 0 LIMIT 1",
    "SELECT CAST(1 AS BIGINT) FROM pg_class WHERE relkind = 'v' AND relname = 'monitored_emails_tasks' \
     AND obj_description(oid, 'pg_class') = ? LIMIT 1",
    "SELECT CAST(1 AS SIGNED) FROM information_schema.views WHERE table_name = 'monitored_emails_tasks' AND ? <> '' \
     AND LOCATE(CAST(CONCAT('`', DATABASE(), '`.`inbound_message`') AS BINARY), CAST(view_definition AS BINARY)) > 0 LIMIT 1",
);

/// Whether the database has views of ours, wherever they are in it.
pub(crate) async fn find_installed(session: &mut dyn Session) -> Result<bool, StoreError> {
    Ok(!session.rows(INSTALLED, values![template::MARK]).await?.is_empty())
}

/// Connects, with a bound.
async fn connected<C>(
    connecting: impl Future<Output = Result<C, ::sqlx::Error>> + Send,
) -> Result<C, ViewsError> {
    Ok(tokio::time::timeout(WAIT_MAX, connecting).await.map_err(|_| ViewsError::Silent)??)
}
