//! The versions of the schema, the same for every database.
//!
//! Migrations first expand the schema, and contract it only once no program needs the old form. Each says
//! from which version on a program may still write: older nodes continue while newer ones come up, and stop
//! by themselves when a migration removes what they need.
//!
//! A large table must not be locked for long. So a step may begin with statements that run one by one, each
//! in its own transaction, beside concurrent writes (`-- online` in its file, until `-- at once`). Each can
//! be run again, because a step that died in between starts anew. Every file says in its first line what the
//! step locks (`-- locks: …`).

mod version_table;

pub(crate) use self::version_table::{
    MissingSteps, SchemaRecord, StepPatience, check_whole, check_writable, is_current, lacks, status,
};
use crate::error::StoreError;

/// One step of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number; each is higher than the one before.
    pub version: i64,
    /// A short description.
    pub name: &'static str,
    /// The oldest schema version that a program must know to write after this step.
    pub writable_from: i64,
    pub(crate) sql: &'static str,
}

/// What other transactions wait for while a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationLocks {
    /// Nothing is locked.
    None,
    /// Some tables are locked for a moment, however large they are.
    Short,
    /// Some tables are locked for a time that grows with their size.
    TableSize,
}

impl MigrationLocks {
    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Short => "short",
            Self::TableSize => "by table size",
        }
    }
}

/// The beginning of the line that says what a step locks.
const LOCKS: &str = "-- locks: ";
/// The lines around the statements that run by themselves.
const ONLINE: &str = "-- online\n";
const AT_ONCE: &str = "-- at once\n";

impl Migration {
    /// What it locks. A step that does not say counts as the worst.
    pub fn locks(&self) -> MigrationLocks {
        match self.sql.lines().find_map(|line| line.strip_prefix(LOCKS)) {
            Some("none") => MigrationLocks::None,
            Some("short") => MigrationLocks::Short,
            _ => MigrationLocks::TableSize,
        }
    }

    /// The statements to run first, one by one and each in its own transaction.
    pub(crate) fn online(&self) -> Vec<&'static str> {
        let part = self.sql.split_once(ONLINE).and_then(|(_, rest)| rest.split_once(AT_ONCE));
        let statements = part.map_or("", |(part, _)| part).split(';').map(str::trim);
        statements.filter(|statement| !statement.is_empty()).collect()
    }

    /// The statements of the step's transaction.
    pub(crate) fn at_once(&self) -> &'static str {
        self.sql.split_once(AT_ONCE).map_or(self.sql, |(_, rest)| rest)
    }

    /// Whether programs that do not know it may continue to write. Only then is `writable_from` recorded.
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
                $crate::sql::schema::Migration {
                    version: $version,
                    name: $name,
                    writable_from: $from,
                    sql: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/", $folder, "/", $zeros, $version, "_", $name, ".sql")),
                }
            };
        }
        // Why a step shuts out older programs. Programs that know version 1 only consider every foreign lease
        // lost, and must not write beside other nodes. Version 2 knows no suspensions, 3 no bodies outside
        // the database, 4 writes no journal, 5 would treat the bytes of inbound mail as unreferenced. Step 7
        // only helps readers. Before 8, unproven reports are unknown, and a page with one cannot be read.
        // Before 9, rules and tenants that say what to do in doubt cannot be read. Step 10 adds what older
        // programs leave empty, 11 what they leave at 0, and 12 a table that they do not know: accounts that
        // sign in by tokens wait with them. Before 13, a packed mail would be sent as it is stored. Steps 14
        // and 16 are indexes. Before 15, only the first of the events that share a row is visible. Before 17,
        // mail would go to readers who left a stream, and the events about it cannot be read. Before 18, a
        // key could send from and to addresses it may not. Step 19 adds what older programs leave empty; mail
        // that they accept is moved to lanes that newer ones find. Step 20 adds what older programs leave empty;
        // they may move mail out of lanes of destinations, which costs it a turn. Before 21, a list of events
        // with phrases as marks cannot be read. Before 22, `opened` and `clicked` and webhooks in Postmark's form
        // are unknown, and a history with one cannot be read. Before 23, mail would leave by the default account
        // whatever the routes say, and dialogues would outlive their messages. Before 24, a tenant with a daily
        // quota cannot be read. Before 25, bodies that a tenant guards would be shown, and lines of the audit log
        // would stand outside its chain. Step 26 adds tables that older programs do not know: bulk actions wait
        // with them. Step 27 adds what older programs leave empty. Before 28, a mailbox with the role of domain
        // reports cannot be read, and neither can a tenant with an archive; mail would be removed that the
        // archive still waits for. Before 29, a template would be rendered without its layout, and a
        // tenant with a language or a history with changes of suppressions cannot be read. Before 30,
        // texts of mail that is removed or erased would stay in text blocks.
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
            step!("00", 12, "oauth", writable from 9),
            step!("00", 13, "packing", writable from 13),
            step!("00", 14, "spent_bucket", writable from 9),
            step!("00", 15, "shared_rows", writable from 15),
            step!("00", 16, "outcome", writable from 9),
            step!("00", 17, "streams", writable from 17),
            step!("00", 18, "key_restrictions", writable from 18),
            step!("00", 19, "idle_lanes", writable from 18),
            step!("00", 20, "destination_lanes", writable from 18),
            step!("00", 21, "event_phrases", writable from 21),
            step!("00", 22, "provider_events", writable from 22),
            step!("00", 23, "routes", writable from 23),
            step!("00", 24, "quota", writable from 24),
            step!("00", 25, "people", writable from 25),
            step!("00", 26, "bulk_actions", writable from 25),
            step!("00", 27, "trace", writable from 25),
            step!("00", 28, "reports_and_archive", writable from 28),
            step!("00", 29, "locales", writable from 29),
            step!("00", 30, "text_block", writable from 30),
        ]
    }};
}
pub(crate) use migrations;

/// The version of an up-to-date database.
fn newest(known: &[Migration]) -> i64 {
    known.last().map_or(0, |migration| migration.version)
}

/// The migrations that a database lacks, in order.
fn missing(known: &'static [Migration], found: i64) -> Vec<Migration> {
    known.iter().copied().filter(|migration| migration.version > found).collect()
}

/// All migrations, and whether the database has them.
fn states(known: &'static [Migration], found: i64) -> Vec<MigrationState> {
    known.iter().map(|&migration| MigrationState { migration, applied: migration.version <= found }).collect()
}

/// Refuses a schema that is too new for this program. `writable_from` is the highest that the applied
/// migrations require.
fn check(known: &[Migration], found: i64, writable_from: i64) -> Result<(), StoreError> {
    let newest = newest(known);
    if writable_from > newest {
        return Err(StoreError::SchemaTooNew { found, known: newest });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_says_what_it_locks_and_what_is_run_by_itself() {
        let step = |sql| Migration { version: 1, name: "one", writable_from: 1, sql };
        let plain = step("-- Why.\nCREATE TABLE a (b INT);\n");
        assert_eq!(plain.locks(), MigrationLocks::TableSize);
        assert!(plain.online().is_empty() && plain.at_once() == plain.sql);
        let parted = step(
            "-- locks: none\n-- online\nCREATE INDEX a ON b (c);\nDROP INDEX d;\n-- at once\nCREATE TABLE e (f INT);\n",
        );
        assert_eq!(parted.locks(), MigrationLocks::None);
        assert_eq!(parted.online(), ["CREATE INDEX a ON b (c)", "DROP INDEX d"]);
        assert_eq!(parted.at_once(), "CREATE TABLE e (f INT);\n");
    }

    /// Migrations before the seventh did not record `writable_from`.
    #[test]
    fn every_later_step_says_what_it_locks_and_only_postgres_runs_some_by_itself() {
        for (database, known) in [
            ("sqlite", migrations!("sqlite") as &[Migration]),
            ("postgres", migrations!("postgres")),
            ("mysql", migrations!("mysql")),
        ] {
            for step in known.iter().filter(|step| step.version >= 7) {
                let says = step.sql.lines().next().unwrap_or_default();
                let words = ["-- locks: none", "-- locks: short", "-- locks: by table size"];
                assert!(words.contains(&says), "{database} {}: {says}", step.version);
                assert!(database == "postgres" || step.online().is_empty());
                for statement in step.online() {
                    assert!(statement.contains(" CONCURRENTLY IF "), "it can be run again: {statement}");
                }
                assert!(!step.at_once().contains("CONCURRENTLY"), "{}", step.version);
            }
        }
    }

    /// The index that a statement drops, if it drops one.
    fn dropped_index(statement: &str) -> Option<&str> {
        let (_, rest) = statement.split_once("DROP INDEX ").or_else(|| statement.split_once("DROP KEY "))?;
        let name = rest.trim_start_matches("CONCURRENTLY ").trim_start_matches("IF EXISTS ");
        name.split([',', ' ', ';', '\n']).next()
    }

    /// A program that goes on writing beside a step finds everything it uses: a step that takes something
    /// away shuts it out. An index may be replaced by another of its name in the same step.
    #[test]
    fn a_step_takes_nothing_away_from_programs_that_go_on_beside_it() {
        for (database, known) in [
            ("sqlite", migrations!("sqlite") as &[Migration]),
            ("postgres", migrations!("postgres")),
            ("mysql", migrations!("mysql")),
        ] {
            for step in known.iter().filter(|step| step.version >= 7 && step.is_compatible()) {
                for gone in ["DROP TABLE", "DROP COLUMN", "RENAME COLUMN", "ALTER COLUMN", "MODIFY "] {
                    assert!(!step.sql.contains(gone), "{database} {}: {gone}", step.version);
                }
                for name in step.sql.split(';').filter_map(dropped_index) {
                    let again = ["INDEX", "KEY"].map(|word| format!("{word} {name} "));
                    let renamed = format!("RENAME TO {name};");
                    let is_replaced = again.iter().any(|text| {
                        step.sql
                            .split(text.as_str())
                            .skip(1)
                            .any(|rest| rest.starts_with("ON ") || rest.starts_with('('))
                    });
                    assert!(
                        is_replaced || step.sql.contains(&renamed),
                        "{database} {} drops {name}",
                        step.version
                    );
                }
            }
        }
    }
}
