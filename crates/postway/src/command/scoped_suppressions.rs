//! `postway suppressions scoped`: suppressions of one stream, of a pattern, or of all tenants.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::field;
use crate::cli::pages::{self, PageArgs};

const COLUMNS: [&str; 6] = ["pattern", "stream", "installation", "reason", "note", "expires_at"];

#[derive(Debug, Subcommand)]
pub enum ScopedSuppressionsCommand {
    /// List scoped suppressions
    List(ScopedSuppressionListArgs),
    /// Create a scoped suppression
    #[command(alias = "add")]
    Create(ScopedSuppressionCreateArgs),
    /// Delete a scoped suppression
    #[command(alias = "remove")]
    Delete(SuppressionScopeArgs),
}

#[derive(Args, Debug)]
pub struct ScopedSuppressionListArgs {
    /// Only those of this stream
    #[arg(long)]
    stream: Option<String>,
    /// Those of every tenant (admin key)
    #[arg(long)]
    installation: bool,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Args, Debug)]
pub struct SuppressionScopeArgs {
    /// An address, *@example.net, *@*.example.net or postmaster@*
    pattern: String,
    /// Only mail of this stream
    #[arg(long)]
    stream: Option<String>,
    /// Mail of every tenant (admin key)
    #[arg(long)]
    installation: bool,
}

#[derive(Args, Debug)]
pub struct ScopedSuppressionCreateArgs {
    #[command(flatten)]
    scope: SuppressionScopeArgs,
    /// The reason
    #[arg(long, value_parser = ["manual", "hard_bounce", "complaint", "unsubscribe"])]
    reason: Option<String>,
    /// A note
    #[arg(long)]
    note: Option<String>,
    /// When it expires (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
}

pub async fn run(context: &CommandContext, command: ScopedSuppressionsCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "scoped-suppressions"];
    match command {
        ScopedSuppressionsCommand::List(ScopedSuppressionListArgs { stream, installation, page }) => {
            let filters = query(stream, installation);
            pages::print(&client, output, &all, filters, page, &COLUMNS, "no scoped suppressions").await
        }
        ScopedSuppressionsCommand::Create(ScopedSuppressionCreateArgs {
            scope,
            reason,
            note,
            expires_at,
        }) => {
            let body = json!({
                "pattern": scope.pattern, "stream": scope.stream, "installation": scope.installation,
                "reason": reason, "note": note, "expires_at": expires_at,
            });
            let added = client.call(Method::POST, &all, &[], RequestBody::Json(&body)).await?;
            output.show(&added, |output, one| output.fields(COLUMNS.map(|name| (name, field(one, name)))))
        }
        ScopedSuppressionsCommand::Delete(SuppressionScopeArgs { pattern, stream, installation }) => {
            let path = ["v1", "scoped-suppressions", &pattern];
            let query = query(stream, installation);
            let answer = client.call(Method::DELETE, &path, &query, RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("{pattern} is not suppressed any more")),
            }
        }
    }
}

fn query(stream: Option<String>, installation: bool) -> Vec<(&'static str, String)> {
    let stream = stream.map(|stream| ("stream", stream));
    stream.into_iter().chain(installation.then(|| ("installation", "true".to_owned()))).collect()
}
