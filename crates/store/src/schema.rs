//! The schema's versions, the same for every database.
//!
//! Migrations first expand the schema, and contract it only once no program needs the old form. So each says from which
//! version on a program may still write: older nodes go on working while newer ones come up, and stop by themselves
//! when a migration takes away what they need.

use crate::error::StoreError;

/// One step of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number; each is higher than the one before.
    pub version: i64,
    /// What it does, in a word or two.
    pub name: &'static str,
    /// Programs that know this version of the schema, or a later one, may write to it.
    pub writable_from: i64,
    pub(crate) sql: &'static str,
}

impl Migration {
    /// Whether programs that do not know it may go on writing. Only then is `writable_from` recorded.
    pub(crate) fn is_compatible(&self) -> bool {
        self.writable_from < self.version
    }
}

/// A migration and whether the database has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationState {
    /// The migration.
    pub migration: Migration,
    /// Whether it has been applied.
    pub applied: bool,
}

/// The migrations of one database, from its folder.
macro_rules! migrations {
    ($folder:literal) => {{
        macro_rules! step {
            ($version:literal, $name:literal, writable from $from:literal) => {
                step!("000", $version, $name, writable from $from)
            };
            ($zeros:literal, $version:literal, $name:literal, writable from $from:literal) => {
                $crate::schema::Migration {
                    version: $version,
                    name: $name,
                    writable_from: $from,
                    sql: include_str!(concat!("../../migrations/", $folder, "/", $zeros, $version, "_", $name, ".sql")),
                }
            };
        }
        // The first programs took every lease but their own for lost: they must not write beside other nodes. Those
        // of the second know no suspensions, those of the third no bodies outside the database, those of the fourth
        // write no journal, those of the fifth would take the bytes of mail that came in for nobody's. The seventh only
        // helps readers. Those before the eighth do not know reports without proof, and could read no page that has one. Those before the
        // ninth cannot read rules and tenants that say what to do in doubt. The tenth adds what older programs leave empty, the eleventh
        // what they leave at 0.
        &[
            step!(1, "ground", writable from 1),
            step!(2, "nodes", writable from 2),
            step!(3, "tenants", writable from 3),
            step!(4, "content", writable from 4),
            step!(5, "reports", writable from 5),
            step!(6, "inbound", writable from 6),
            step!(7, "reading", writable from 6),
            step!(8, "guards", writable from 8),
            step!(9, "moving", writable from 9),
            step!("00", 10, "submission", writable from 9),
            step!("00", 11, "mailbox_port", writable from 9),
        ]
    }};
}
pub(crate) use migrations;

/// The version of a database that lacks nothing.
pub(crate) fn newest(known: &[Migration]) -> i64 {
    known.last().map_or(0, |migration| migration.version)
}

/// What a database lacks, in order.
pub(crate) fn missing(known: &'static [Migration], found: i64) -> Vec<Migration> {
    known.iter().copied().filter(|migration| migration.version > found).collect()
}

/// What a database has and lacks.
pub(crate) fn states(known: &'static [Migration], found: i64) -> Vec<MigrationState> {
    known.iter().map(|&migration| MigrationState { migration, applied: migration.version <= found }).collect()
}

/// Refuses a schema that has gone on without this program. `writable_from` is the most that the found migrations ask.
pub(crate) fn check(known: &[Migration], found: i64, writable_from: i64) -> Result<(), StoreError> {
    let newest = newest(known);
    if writable_from > newest {
        return Err(StoreError::SchemaTooNew { found, known: newest });
    }
    Ok(())
}
