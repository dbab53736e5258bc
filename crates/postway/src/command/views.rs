//! `postway views`: the tables of the reference systems, as read-only views in the database, without a running server.
//!
//! Both commands speak to the database itself, the configured one unless another is named, and may be run again.

use std::convert::Infallible;

use clap::{Args, Subcommand};
use postway_store::views::{self, Database, Plan, ViewsError};
use serde_json::json;

use super::Session;
use crate::cli::failure::Failure;
use crate::config::{self, Secret};

#[derive(Debug, Subcommand)]
pub enum ViewsCommand {
    /// Put the views into the database; run again, it brings them up to date
    Install(InstallArgs),
    /// Take the views and their index out of the database
    Remove(PlaceArgs),
}

#[derive(Args, Debug)]
pub struct InstallArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Also index messages by the ids that the views show; on SQLite stop the server first
    #[arg(long)]
    index: bool,
    /// Print the statements instead of running them
    #[arg(long)]
    print: bool,
}

#[derive(Args, Debug)]
pub struct PlaceArgs {
    /// The server's database: sqlite:// and a path, postgres://… or mysql://… [default: as configured]
    #[arg(long, value_name = "URL", value_parser = secret)]
    database: Option<Secret>,
    /// The schema of the views, on MySQL their database, on SQLite what their names begin with [default: postway_views, on
    /// MySQL the database's name and _views]
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
}

/// A URL may hold a password.
fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text))
}

pub async fn run(session: &Session, command: ViewsCommand) -> Result<(), Failure> {
    match command {
        ViewsCommand::Install(args) => Box::pin(install(session, args)).await,
        ViewsCommand::Remove(args) => {
            let database = database(session, args.database.as_ref())?;
            let plan = Plan { schema: args.schema, index: false };
            let schema = views::schema(&database, &plan).map_err(failure)?;
            Box::pin(views::remove(&database, &plan)).await.map_err(failure)?;
            let done = json!({"schema": schema});
            session.output.show(&done, |_, _| format!("no views are left in {schema}"))
        }
    }
}

async fn install(session: &Session, args: InstallArgs) -> Result<(), Failure> {
    let database = database(session, args.place.database.as_ref())?;
    let plan = Plan { schema: args.place.schema, index: args.index };
    if args.print {
        return session.output.text(&views::script(&database, &plan).map_err(failure)?);
    }
    let schema = views::install(&database, &plan).await.map_err(failure)?;
    // What is accepted once this has ended can be seen whole.
    tokio::time::sleep(views::NOTICED_AFTER).await;
    views::spread_events(&database).await.map_err(failure)?;
    let done = json!({"schema": schema, "index": plan.index});
    session.output.show(&done, |_, _| match database {
        Database::Sqlite(_) => format!("the views are installed; their names begin with {schema}_"),
        Database::Postgres(_) | Database::Mysql(_) => {
            format!("the views are installed in {schema}; grant SELECT on them to whoever shall read")
        }
    })
}

/// The database that was named, or else the server's.
fn database(session: &Session, named: Option<&Secret>) -> Result<Database, Failure> {
    if let Some(url) = named {
        return Database::parse(url.expose()).map_err(failure);
    }
    let configured = match session.load()?.config.database {
        config::Database::Sqlite { path } => Ok(Database::Sqlite(path)),
        config::Database::Postgres { url } | config::Database::Mysql { url } => Database::parse(url.expose()),
    };
    configured.map_err(failure)
}

fn failure(error: ViewsError) -> Failure {
    match error {
        ViewsError::Address | ViewsError::Name(_) => Failure::Usage(error.to_string()),
        error => Failure::Failed(error.into()),
    }
}
