//! `postway archive`: stored copies of what was sent.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use postway_domain::sealed_copy::open_copy;
use reqwest::Method;
use serde_json::Value;

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::input::read_input;
use crate::cli::output::{CommandOutput, field};
use crate::cli::pages::{self, PageArgs};
use crate::server::keys;

const COLUMNS: [&str; 5] = ["id", "archived_at", "expires_at", "encrypted", "size"];

#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// List stored copies, those of the latest messages first
    List(ArchiveListArgs),
    /// Show where a copy is stored, and until when
    Show(ArchiveRef),
    /// Print an archived mail
    Raw(ArchiveRef),
    /// Open an encrypted copy from a file, without a server, with the secret key of the configuration
    Open(ArchiveOpenArgs),
    /// Delete a copy before its time; this cannot be undone
    Delete(ArchiveRef),
}

#[derive(Args, Debug)]
pub struct ArchiveRef {
    /// The uid of the message
    id: String,
}

#[derive(Args, Debug)]
pub struct ArchiveOpenArgs {
    /// The file, as it was fetched from the storage; - for standard input
    file: PathBuf,
}

#[derive(Args, Debug)]
pub struct ArchiveListArgs {
    /// Only those of messages accepted at or after this time
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those of messages accepted before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

pub async fn run(context: &CommandContext, command: ArchiveCommand) -> Result<(), CommandFailure> {
    let output = context.output;
    match command {
        ArchiveCommand::List(ArchiveListArgs { since, until, page }) => {
            let filters = [("since", since), ("until", until)];
            let filters = filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            let nothing = "nothing is archived; give a tenant an archive with `postway tenants update`";
            pages::print(&context.client()?, output, &["v1", "archive"], filters, page, &COLUMNS, nothing)
                .await
        }
        ArchiveCommand::Show(ArchiveRef { id }) => {
            output.show(&context.client()?.get(&["v1", "archive", &id], &[]).await?, render)
        }
        ArchiveCommand::Raw(ArchiveRef { id }) => {
            let path = ["v1", "archive", &id, "raw"];
            let client = context.client()?;
            output.bytes(&client.call_for_bytes(Method::GET, &path, &[], RequestBody::Empty).await?)
        }
        ArchiveCommand::Open(ArchiveOpenArgs { file }) => {
            let key = keys::existing_secret_key(&context.load()?.config)?;
            let opened = open_copy(&key, &read_input(&file)?);
            output.bytes(&opened.map_err(|error| CommandFailure::Failed(error.into()))?)
        }
        ArchiveCommand::Delete(ArchiveRef { id }) => {
            let path = ["v1", "archive", &id];
            let answer = context.client()?.call(Method::DELETE, &path, &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("the copy of {id} is deleted")),
            }
        }
    }
}

fn render(output: CommandOutput, copy: &Value) -> String {
    const FIELDS: [&str; 7] = ["id", "object", "size", "sha256", "encrypted", "archived_at", "expires_at"];
    output.fields(FIELDS.map(|name| (name, field(copy, name))))
}
