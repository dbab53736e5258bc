//! The table of applied migrations that every database has, and decisions made from it.

use std::{future::Future, time::Duration};

use tokio::time::sleep;

use super::{Migration, MigrationState, missing, newest, states};
use crate::error::StoreError;

/// A connection to a database with a table of applied migrations.
pub(crate) trait SchemaRecord: Send {
    /// Every migration this program knows, in order.
    const KNOWN: &'static [Migration];

    /// Whether the database has this table.
    fn has_table(&mut self, name: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// The newest version on record; 0 if there is none.
    fn newest(&mut self) -> impl Future<Output = Result<i64, StoreError>> + Send;

    /// The newest version on record, and the oldest version that a program must know to write.
    fn writable(&mut self) -> impl Future<Output = Result<(i64, i64), StoreError>> + Send;
}

/// The schema's version; 0 for an empty database. Refuses a schema that is too new for this program.
async fn version<C: SchemaRecord>(conn: &mut C) -> Result<i64, StoreError> {
    if !conn.has_table("schema_migration").await? {
        return Ok(0);
    }
    let found = conn.newest().await?;
    if found > newest(C::KNOWN) {
        check_writable(conn).await?;
    }
    Ok(found)
}

/// Refuses a schema that is too new for this program.
pub(crate) async fn check_writable<C: SchemaRecord>(conn: &mut C) -> Result<(), StoreError> {
    let (found, writable_from) = conn.writable().await?;
    super::check(C::KNOWN, found, writable_from)
}

/// Refuses a database into which a transfer is under way.
pub(crate) async fn check_whole<C: SchemaRecord>(conn: &mut C) -> Result<(), StoreError> {
    if conn.has_table("copy_progress").await? { Err(StoreError::HalfCopied) } else { Ok(()) }
}

/// Whether the database is up to date.
pub(crate) async fn is_current<C: SchemaRecord>(conn: &mut C) -> Result<bool, StoreError> {
    Ok(version(conn).await? >= newest(C::KNOWN))
}

/// Which migrations the database has.
pub(crate) async fn status<C: SchemaRecord>(conn: &mut C) -> Result<Vec<MigrationState>, StoreError> {
    Ok(states(C::KNOWN, version(conn).await?))
}

/// The migrations to apply, in order.
pub(crate) struct MissingSteps {
    pub steps: Vec<Migration>,
    /// Whether the database is empty.
    pub is_new: bool,
}

/// The migrations that the database lacks.
pub(crate) async fn lacks<C: SchemaRecord>(conn: &mut C) -> Result<MissingSteps, StoreError> {
    let found = version(conn).await?;
    Ok(MissingSteps { steps: missing(C::KNOWN, found), is_new: found == 0 })
}

/// The pause before a step is tried again, in which other transactions have their turn.
const PAUSE: Duration = Duration::from_secs(2);

/// The bounded retries of a step that needs tables in use.
pub(crate) struct StepPatience {
    tries: u32,
    tries_max: u32,
}

impl StepPatience {
    /// Allows this many tries.
    pub fn new(tries_max: u32) -> Self {
        Self { tries: 1, tries_max }
    }

    /// Waits until the step may be tried again; false when it was tried often enough.
    pub async fn is_left(&mut self, migration: &Migration, reason: &(dyn std::fmt::Display + Sync)) -> bool {
        if self.tries == self.tries_max {
            return false;
        }
        if self.tries % 10 == 1 {
            tracing::warn!(
                migration = migration.name,
                %reason,
                "a migration waits for somebody who uses the tables for long, such as a dump; it is tried again"
            );
        }
        self.tries += 1;
        sleep(PAUSE).await;
        true
    }
}
