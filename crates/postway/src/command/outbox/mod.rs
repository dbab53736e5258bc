//! `postway outbox`: installs the outbox into an application's database, and shows the status of sources.
//!
//! `install` connects to the application's database itself; it needs no server, and may be run again.
//! `status` asks a running server.

use std::convert::Infallible;
use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use postway_intake::outbox::{
    OutboxError, SourceUrl,
    install::{self, InstallPlan},
};
use serde_json::json;

use super::CommandContext;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, list};
use crate::cli::pages::row;
use crate::config::ConfigSecret;

#[derive(Debug, Subcommand)]
pub enum OutboxCommand {
    /// Install the outbox into an application's database; a second run adds what is missing
    Install(OutboxInstallArgs),
    /// Show the status of the configured sources
    Status,
}

#[derive(Args, Debug)]
pub struct OutboxInstallArgs {
    /// The application's database: postgres://…, mysql://… or sqlite:// and a path
    #[arg(long, value_name = "URL", value_parser = secret)]
    database: ConfigSecret,
    /// With accounts and their tokens (PostgreSQL)
    #[arg(long, value_enum)]
    preset: Option<OutboxPreset>,
    /// Print the statements instead of running them
    #[arg(long)]
    print: bool,
    /// The schema of the outbox (PostgreSQL)
    #[arg(long, value_name = "NAME", default_value = "postway")]
    schema: String,
    /// The schema of accounts and tokens
    #[arg(long, value_name = "NAME", default_value = "public")]
    accounts_schema: String,
    /// Leave secrets and codes in the rows of live tokens, for an application that looks them up itself
    #[arg(long)]
    keep_secrets: bool,
}

/// What is installed besides the outbox.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OutboxPreset {
    /// Accounts, their tokens, and the mails that activate them and recover passwords
    Accounts,
}

/// The URL may contain a password.
fn secret(text: &str) -> Result<ConfigSecret, Infallible> {
    Ok(ConfigSecret::new(text))
}

pub async fn run(context: &CommandContext, command: OutboxCommand) -> Result<(), CommandFailure> {
    match command {
        OutboxCommand::Install(args) => Box::pin(install_into(context.output, &args)).await,
        OutboxCommand::Status => {
            let found = context.client()?.get(&["v1", "outbox"], &[]).await?;
            context.output.show(&found, |output, found| {
                let columns = [
                    "name",
                    "kind",
                    "tenant",
                    "database",
                    "status",
                    "waiting",
                    "lag_seconds",
                    "accepted",
                    "invalid",
                    "error",
                ];
                output.table(&columns, list(found, "data").iter().map(|source| row(source, &columns)))
            })
        }
    }
}

async fn install_into(output: CommandOutput, args: &OutboxInstallArgs) -> Result<(), CommandFailure> {
    let url = SourceUrl::parse(args.database.expose())
        .map_err(|error| CommandFailure::Usage(format!("--database {error}")))?;
    let plan = InstallPlan {
        schema: args.schema.clone(),
        accounts_schema: args.preset.map(|OutboxPreset::Accounts| args.accounts_schema.clone()),
        keep_secrets: args.keep_secrets,
    };
    if args.print {
        return output.text(&install::script(&url, &plan).map_err(failure)?);
    }
    if let Some(path) = sqlite_path(args.database.expose()).filter(|path| !path.exists()) {
        return Err(CommandFailure::Usage(format!(
            "there is no SQLite file {}: name the one that the application uses, or have the application make it first",
            path.display()
        )));
    }
    install::install(&url, &plan).await.map_err(failure)?;
    let accounts = plan.accounts_schema.is_some();
    let done = json!({"database": url.to_string(), "schema": plan.schema, "accounts": accounts});
    output.show(&done, |_, _| {
        let what = if accounts { "the outbox, accounts and tokens are" } else { "the outbox is" };
        format!("{what} installed in {url}; name it in postway.toml under [outbox.NAME] to have it served")
    })
}

/// The file of a SQLite URL.
fn sqlite_path(url: &str) -> Option<&Path> {
    let rest = url.trim().strip_prefix("sqlite:")?;
    Some(Path::new(rest.strip_prefix("//").unwrap_or(rest)))
}

fn failure(error: OutboxError) -> CommandFailure {
    match error {
        OutboxError::Unsuited(_) | OutboxError::Address(_) => CommandFailure::Usage(error.to_string()),
        // The error's text already includes its source, so only its own text is used.
        OutboxError::Source(_) => CommandFailure::Failed(anyhow::anyhow!(
            "{error}; check the address, and that the database takes connections from this machine"
        )),
        error => CommandFailure::Failed(anyhow::anyhow!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(path: &Path) -> CommandFailure {
        let args = OutboxInstallArgs {
            database: ConfigSecret::new(format!("sqlite://{}", path.display())),
            preset: None,
            print: false,
            schema: "postway".to_owned(),
            accounts_schema: "public".to_owned(),
            keep_secrets: false,
        };
        install_into(CommandOutput::new(false), &args).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_sqlite_file_that_is_not_there_is_told_once_and_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let error = refused(&path).await;
        assert!(matches!(error, CommandFailure::Usage(_)), "{error}");
        assert_eq!(error.to_string().matches("SQLite file").count(), 1, "{error}");
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_the_database_said_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = refused(folder.path()).await.to_string();
        assert_eq!(refusal.matches("unable to open").count(), 1, "{refusal}");
        assert!(refusal.contains("check the address"), "{refusal}");
    }
}
