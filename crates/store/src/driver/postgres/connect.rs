//! Connections: how this process reaches the database.
//!
//! A connection says at once how long a statement may run and how its statements shall be planned. A queue's
//! tables are empty one minute and large the next, so their statistics are always late: a plan made for the
//! empty table would scan the large one. Every statement here has its index; the settings keep the planner on
//! it.

use std::{future::Future, time::Duration};

use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};

use super::{code_of, failed};
use crate::error::StoreError;

/// The longest wait for a connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest wait for a step of a transaction: more than the server allows a statement, for servers that
/// are gone.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// Prepared statements to keep: a writer with webhooks meets more than three hundred texts.
const STATEMENTS: usize = 512;
/// Names the migrators' lock among the advisory locks of a database.
const LOCK: i64 = i64::from_be_bytes(*b"postway\x01");

/// For every connection. A dead peer is noticed within a minute. What is acknowledged is durable, whatever
/// the server's default. Cost limits of the planner are meaningless with `enable_seqscan` off, and so is
/// compiling by them.
pub(super) const SETTINGS: &str = "SET statement_timeout = '30s'; SET lock_timeout = '5s'; \
     SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3; SET tcp_user_timeout = 30000; \
     SET jit = off; SET enable_seqscan = off; \
     SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// For writers: look-ups by index in the order of the arrays given, planned once.
pub(super) const WRITER_SETTINGS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_bitmapscan = off; \
     SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_sort = off";

const MIGRATOR_SETTINGS: &str = "SET statement_timeout = 0; SET lock_timeout = '1s'; SET enable_seqscan = on";

/// Reads the URL; its password never gets into an error.
pub(super) fn options(url: &str) -> Result<PgConnectOptions, StoreError> {
    let wrong = |reason: &str| {
        StoreError::Unexpected(format!(
            "the database URL is not one of PostgreSQL ({reason}): write it as postgres://user:password@host/database"
        ))
    };
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(wrong("it does not begin with postgres://"));
    }
    let options: PgConnectOptions = url.parse().map_err(|error: sqlx::Error| wrong(&error.to_string()))?;
    let options = options.application_name("postway").statement_cache_capacity(STATEMENTS);
    Ok(options.disable_statement_logging())
}

/// A connection with these settings.
pub(super) async fn connect(
    options: &PgConnectOptions,
    settings: &'static str,
) -> Result<PgConnection, StoreError> {
    let connected = async {
        let mut conn = PgConnection::connect_with(options).await?;
        sqlx::raw_sql(SETTINGS).execute(&mut conn).await?;
        sqlx::raw_sql(settings).execute(&mut conn).await?;
        Ok(conn)
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, connected).await {
        Ok(connected) => connected.map_err(|error| unreachable(options, error)),
        Err(_) => Err(StoreError::Unavailable(format!("{} does not answer", place(options)))),
    }
}

fn place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    format!("PostgreSQL at {}:{}, database {database},", options.get_host(), options.get_port())
}

/// Errors that pass with time are distinguished from those that an operator must correct.
pub(super) fn unreachable(options: &PgConnectOptions, error: sqlx::Error) -> StoreError {
    let place = place(options);
    let refused =
        code_of(&error).is_some_and(|code| code.starts_with("28") || code == "3D000" || code == "42501");
    if refused || matches!(error, sqlx::Error::Configuration(_) | sqlx::Error::Tls(_)) {
        return StoreError::Unexpected(format!("{place} refuses: {error}; check the database URL"));
    }
    match failed(error) {
        StoreError::Unavailable(text) => {
            StoreError::Unavailable(format!("{place} cannot be reached: {text}"))
        }
        error => error,
    }
}

/// Bounds a step of a transaction.
pub(super) async fn within<T>(step: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = |_| StoreError::Unavailable("the database did not answer in time".into());
    tokio::time::timeout(STEP_TIMEOUT, step).await.map_err(late)?
}

/// A connection for migrating: under a lock, and without a time limit. Other starting processes wait for it.
pub(super) async fn migrator(options: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    let mut conn = connect(options, MIGRATOR_SETTINGS).await?;
    match sqlx::query("SELECT pg_advisory_lock($1)").bind(LOCK).execute(&mut conn).await {
        Ok(_) => {}
        Err(error) if code_of(&error).as_deref() == Some("55P03") => {
            let place = place(options);
            return Err(StoreError::Locked(format!("{place} is being migrated by another postway")));
        }
        Err(error) => return Err(unreachable(options, error)),
    }
    Ok(conn)
}
