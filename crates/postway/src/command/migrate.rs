//! `postway migrate`: the database's schema, and the move to another database, without a running server.
//!
//! A server migrates on its own at start; `status` and `up` are for operators who want to check first, or to
//! migrate separately. `copy` shows its progress on standard error, as a bar on a terminal and as a line
//! every few seconds elsewhere. It fails (exit code 1) if the two databases differ in the end, and can be run
//! again after it failed.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use postway_store::copy::{
    self, DatabaseAddress, TableReport, TransferError, TransferProgress, TransferReport, TransferRole,
};
use postway_store::schema::MigrationState;
use postway_store::{mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore};
use serde_json::json;
use tokio::time::Instant;

use super::CommandContext;
use crate::cli::failure::CommandFailure;
use crate::cli::output::CommandOutput;
use crate::config::{ConfigSecret, DatabaseConfig};

/// How often a line is printed if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Show which migrations are applied, and what those that are missing lock: none, short, or by table size
    Status,
    /// Apply the migrations that are missing
    Up,
    /// Rewrite a SQLite file without its free pages; stop the server first
    #[command(after_help = super::examples::COMPACT)]
    Compact,
    /// Copy everything to another database; a second run continues the first
    #[command(after_help = super::examples::COPY)]
    Copy(MigrateCopyArgs),
}

#[derive(Args, Debug)]
pub struct MigrateCopyArgs {
    /// The database to copy: sqlite:// and a path, postgres://… or mysql://…; stop the servers on it first
    #[arg(long, value_name = "URL", value_parser = secret)]
    from: ConfigSecret,
    /// An empty database
    #[arg(long, value_name = "URL", value_parser = secret)]
    to: ConfigSecret,
}

/// The URL may contain a password.
fn secret(text: &str) -> Result<ConfigSecret, Infallible> {
    Ok(ConfigSecret::new(text))
}

pub async fn run(context: &CommandContext, command: MigrateCommand) -> Result<(), CommandFailure> {
    let report = match command {
        MigrateCommand::Status => status(&context.load()?.config.database).await?,
        MigrateCommand::Up => up(&context.load()?.config.database).await?,
        MigrateCommand::Compact => compact(&context.load()?.config.database).await?,
        MigrateCommand::Copy(args) => return Box::pin(copy(context, &args)).await,
    };
    context.output.text(&report)
}

async fn status(database: &DatabaseConfig) -> anyhow::Result<String> {
    let states = match database {
        DatabaseConfig::Sqlite { path } => SqliteStore::migration_status(path).await?,
        DatabaseConfig::Postgres { url } => PostgresStore::migration_status(url.expose()).await?,
        DatabaseConfig::Mysql { url } => MysqlStore::migration_status(url.expose()).await?,
    };
    let line = |state: &MigrationState| {
        let standing = match state.applied {
            true => "applied".to_owned(),
            false => format!("missing, locks: {}", state.migration.locks().as_str()),
        };
        format!("{:04}  {:<24}  {standing}", state.migration.version, state.migration.name)
    };
    Ok(states.iter().map(line).collect::<Vec<_>>().join("\n"))
}

async fn up(database: &DatabaseConfig) -> anyhow::Result<String> {
    let applied = match database {
        DatabaseConfig::Sqlite { path } => SqliteStore::migrate(path).await?,
        DatabaseConfig::Postgres { url } => PostgresStore::migrate(url.expose()).await?,
        DatabaseConfig::Mysql { url } => MysqlStore::migrate(url.expose()).await?,
    };
    let line = |migration: &postway_store::sqlite::Migration| {
        format!("applied {:04} {}", migration.version, migration.name)
    };
    if applied.is_empty() {
        return Ok("the schema is up to date".to_owned());
    }
    Ok(applied.iter().map(line).collect::<Vec<_>>().join("\n"))
}

async fn compact(database: &DatabaseConfig) -> Result<String, CommandFailure> {
    let DatabaseConfig::Sqlite { path } = database else {
        return Err(CommandFailure::Usage(
            "only a SQLite file is compacted; servers do that themselves".to_owned(),
        ));
    };
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    let before = bytes(path);
    if before == 0 {
        return Err(CommandFailure::NotFound(format!("there is no database at {}", path.display())));
    }
    SqliteStore::compact(path).await.map_err(anyhow::Error::from)?;
    Ok(format!("compacted: {} before, {} now", HumanBytes(before), HumanBytes(bytes(path))))
}

async fn copy(context: &CommandContext, args: &MigrateCopyArgs) -> Result<(), CommandFailure> {
    let from = DatabaseAddress::parse(args.from.expose(), TransferRole::Source).map_err(failure)?;
    let to = DatabaseAddress::parse(args.to.expose(), TransferRole::Target).map_err(failure)?;
    let mut display = CopyProgress::new();
    let copied = copy::copy(&from, &to, &mut |progress| display.show(progress)).await;
    display.bar.finish_and_clear();
    let report = copied.map_err(failure)?;
    let json = json!({
        "from": from.identity(),
        "to": to.identity(),
        "rows_copied": report.rows_copied,
        "rows_found": report.rows_found,
        "complete": report.differing().next().is_none(),
        "tables": report.tables.iter().map(|table| json!({
            "name": table.name,
            "source": table.source.rows,
            "target": table.target.rows,
            "equal": table.source == table.target,
        })).collect::<Vec<_>>(),
    });
    context.output.show(&json, |output, _| render(output, &report))?;
    let differing: Vec<&str> = report.differing().map(|table| table.name).collect();
    match differing[..] {
        [] => Ok(()),
        _ => Err(anyhow::anyhow!(
            "source and target differ in {}: stop what uses either of them, empty the target and copy again",
            differing.join(", ")
        )
        .into()),
    }
}

fn failure(error: TransferError) -> CommandFailure {
    match error {
        TransferError::Address(_) | TransferError::Same => CommandFailure::Usage(error.to_string()),
        TransferError::NoSource(_) => CommandFailure::NotFound(error.to_string()),
        TransferError::Open { .. }
        | TransferError::InUse { .. }
        | TransferError::Failed { .. }
        | TransferError::Filled(_)
        | TransferError::OtherSource(_)
        | TransferError::Changed(_)
        | TransferError::Overtaken => CommandFailure::Failed(error.into()),
    }
}

fn render(output: CommandOutput, report: &TransferReport) -> String {
    let row = |table: &TableReport| {
        let check = if table.source == table.target { "equal" } else { "DIFFERENT" };
        vec![table.name.to_owned(), count(table.source.rows), count(table.target.rows), check.to_owned()]
    };
    let table = output.table(&["table", "source", "target", "check"], report.tables.iter().map(row));
    let found = match report.rows_found {
        0 => String::new(),
        rows => format!(", after {} that were there", HumanCount(rows)),
    };
    format!("{table}\n\ncopied {} rows{found}", HumanCount(report.rows_copied))
}

fn count(rows: i64) -> String {
    HumanCount(rows.unsigned_abs()).to_string()
}

/// Shows the progress of the copy: a bar on a terminal, else a line every few seconds.
struct CopyProgress {
    bar: ProgressBar,
    line_at: Instant,
}

impl CopyProgress {
    fn new() -> Self {
        let bar = ProgressBar::new(0);
        let template = "{prefix:>10} {bar:40} {human_pos}/{human_len} rows, {per_sec}, {eta} left";
        let bar = match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Self { bar, line_at: Instant::now() }
    }

    fn show(&mut self, TransferProgress { table, rows_done, rows_total }: TransferProgress) {
        if self.bar.length() != Some(rows_total) {
            self.bar.set_length(rows_total);
            // Rows of an earlier run say nothing about the speed of this one.
            self.bar.set_position(rows_done);
            self.bar.reset_eta();
        }
        self.bar.set_prefix(table);
        self.bar.set_position(rows_done);
        if self.bar.is_hidden() && self.line_at.elapsed() >= LINE_EVERY {
            self.line_at = Instant::now();
            let (done, total) = (HumanCount(rows_done), HumanCount(rows_total));
            eprintln!("copied {done} of {total} rows, now {table}");
        }
    }
}
