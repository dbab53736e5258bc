//! `postway migrate`: the database's schema, without a running server.
//!
//! A server migrates on its own at start; this is for those who want to look first, or to migrate apart.

use clap::Subcommand;
use postway_store::{mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore};

use super::Session;
use crate::config::Database;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Show which migrations are applied
    Status,
    /// Apply the migrations that are missing
    Up,
}

pub async fn run(session: &Session, command: MigrateCommand) -> Result<(), Failure> {
    let config = session.load()?.config;
    let report = migrate(&config.database, &command).await?;
    session.output.text(&report)
}

async fn migrate(database: &Database, command: &MigrateCommand) -> anyhow::Result<String> {
    match command {
        MigrateCommand::Status => {
            let states = match database {
                Database::Sqlite { path } => SqliteStore::migration_status(path).await?,
                Database::Postgres { url } => PostgresStore::migration_status(url.expose()).await?,
                Database::Mysql { url } => MysqlStore::migration_status(url.expose()).await?,
            };
            let line = |state: &postway_store::sqlite::MigrationState| {
                let applied = if state.applied { "applied" } else { "missing" };
                format!("{:04}  {:<24}  {applied}", state.migration.version, state.migration.name)
            };
            Ok(states.iter().map(line).collect::<Vec<_>>().join("\n"))
        }
        MigrateCommand::Up => {
            let applied = match database {
                Database::Sqlite { path } => SqliteStore::migrate(path).await?,
                Database::Postgres { url } => PostgresStore::migrate(url.expose()).await?,
                Database::Mysql { url } => MysqlStore::migrate(url.expose()).await?,
            };
            let line = |migration: &postway_store::sqlite::Migration| {
                format!("applied {:04} {}", migration.version, migration.name)
            };
            if applied.is_empty() {
                return Ok("the schema is up to date".to_owned());
            }
            Ok(applied.iter().map(line).collect::<Vec<_>>().join("\n"))
        }
    }
}
