//! `postway views`: the tables of the reference systems, as read-only views in the database, without a
//! running server.
//!
//! Both commands connect to the database itself, the configured one unless another is named, and may be run
//! again.

use std::convert::Infallible;

use clap::{Args, Subcommand};
use postway_store::views::{self, ViewsDatabase, ViewsError, ViewsPlan};
use serde_json::json;

use super::CommandContext;
use crate::cli::failure::CommandFailure;
use crate::config::{self, ConfigSecret};

#[derive(Debug, Subcommand)]
pub enum ViewsCommand {
    /// Install the views into the database; a second run updates them
    Install(ViewsInstallArgs),
    /// Remove the views and their index from the database
    Remove(ViewsDatabaseArgs),
}

#[derive(Args, Debug)]
pub struct ViewsInstallArgs {
    #[command(flatten)]
    place: ViewsDatabaseArgs,
    /// Also index messages by the ids that the views show; on SQLite stop the server first
    #[arg(long)]
    index: bool,
    /// Print the statements instead of running them
    #[arg(long)]
    print: bool,
}

#[derive(Args, Debug)]
pub struct ViewsDatabaseArgs {
    /// The server's database: sqlite:// and a path, postgres://… or mysql://… [default: as configured]
    #[arg(long, value_name = "URL", value_parser = secret)]
    database: Option<ConfigSecret>,
    /// The schema of the views, on MySQL their database, on SQLite what their names begin with [default:
    /// postway_views, on MySQL the database's name and _views]
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
}

/// The URL may contain a password.
fn secret(text: &str) -> Result<ConfigSecret, Infallible> {
    Ok(ConfigSecret::new(text))
}

pub async fn run(context: &CommandContext, command: ViewsCommand) -> Result<(), CommandFailure> {
    match command {
        ViewsCommand::Install(args) => Box::pin(install(context, args)).await,
        ViewsCommand::Remove(args) => {
            let database = database(context, args.database.as_ref())?;
            let plan = ViewsPlan { schema: args.schema, index: false };
            let schema = views::schema(&database, &plan).map_err(failure)?;
            Box::pin(views::remove(&database, &plan)).await.map_err(failure)?;
            let done = json!({"schema": schema});
            context.output.show(&done, |_, _| format!("no views are left in {schema}"))
        }
    }
}

async fn install(context: &CommandContext, args: ViewsInstallArgs) -> Result<(), CommandFailure> {
    let database = database(context, args.place.database.as_ref())?;
    let plan = ViewsPlan { schema: args.place.schema, index: args.index };
    if args.print {
        return context.output.text(&views::script(&database, &plan).map_err(failure)?);
    }
    let schema = views::install(&database, &plan).await.map_err(failure)?;
    // Messages accepted from now on are complete in the views.
    tokio::time::sleep(views::NOTICED_AFTER).await;
    views::spread_events(&database).await.map_err(failure)?;
    let done = json!({"schema": schema, "index": plan.index});
    context.output.show(&done, |_, _| match database {
        ViewsDatabase::Sqlite(_) => format!("the views are installed; their names begin with {schema}_"),
        ViewsDatabase::Postgres(_) | ViewsDatabase::Mysql(_) => {
            format!("the views are installed in {schema}; grant SELECT on them to whoever shall read")
        }
    })
}

/// The named database, or else the configured one.
fn database(context: &CommandContext, named: Option<&ConfigSecret>) -> Result<ViewsDatabase, CommandFailure> {
    if let Some(url) = named {
        return ViewsDatabase::parse(url.expose()).map_err(failure);
    }
    let configured = match context.load()?.config.database {
        config::DatabaseConfig::Sqlite { path } => Ok(ViewsDatabase::Sqlite(path)),
        config::DatabaseConfig::Postgres { url } | config::DatabaseConfig::Mysql { url } => {
            ViewsDatabase::parse(url.expose())
        }
    };
    configured.map_err(failure)
}

fn failure(error: ViewsError) -> CommandFailure {
    match error {
        ViewsError::Address | ViewsError::Name(_) => CommandFailure::Usage(error.to_string()),
        error => CommandFailure::Failed(error.into()),
    }
}
