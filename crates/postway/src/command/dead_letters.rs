//! `postway dead-letters`: messages whose retries ran out, and their replay.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{field, list};
use crate::cli::pages::{self, PageArgs};

/// The most ids of one call.
const IDS_AT_ONCE: usize = 1_000;

#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// List messages whose retries ran out, newest first
    List(DeadLetterArgs),
    /// Put them back in the queue with all their retries
    Replay(DeadLetterReplayArgs),
}

#[derive(Args, Debug)]
pub struct DeadLetterArgs {
    /// Only those of this account
    #[arg(long)]
    account: Option<String>,
    /// Only those whose failure has this code, such as smtp_450
    #[arg(long, value_name = "CODE")]
    error_code: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Args, Debug)]
pub struct DeadLetterReplayArgs {
    /// Their ids or uids
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// All of the tenant's; with --account or --error-code, all of those
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// With --all: only those of this account
    #[arg(long, requires = "all")]
    account: Option<String>,
    /// With --all: only those whose failure has this code
    #[arg(long, value_name = "CODE", requires = "all")]
    error_code: Option<String>,
}

fn filters(account: Option<String>, error_code: Option<String>) -> Vec<(&'static str, String)> {
    let given = [("account", account), ("error_code", error_code)];
    given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

pub async fn run(context: &CommandContext, command: DeadLettersCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    match command {
        DeadLettersCommand::List(DeadLetterArgs { account, error_code, page }) => {
            let columns = ["id", "to", "account", "subject", "reason", "attempt", "failed_at"];
            let filters = filters(account, error_code);
            pages::print(&client, output, &["v1", "dead-letters"], filters, page, &columns, "no dead letters")
                .await
        }
        DeadLettersCommand::Replay(args) => replay(context, args).await,
    }
}

async fn replay(context: &CommandContext, args: DeadLetterReplayArgs) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let ids = match args.all {
        true => all_ids(context, filters(args.account, args.error_code)).await?,
        false => args.ids,
    };
    let (mut replayed, mut refused) = (0, Vec::new());
    for run in ids.chunks(IDS_AT_ONCE) {
        let body = json!({"ids": run});
        let path = ["v1", "dead-letters", "replay"];
        let answer = client.call(Method::POST, &path, &[], RequestBody::Json(&body)).await?;
        if output.is_json() {
            output.json(&answer)?;
        }
        replayed += answer["replayed"].as_u64().unwrap_or(0);
        let left = list(&answer, "results").iter().filter(|one| one.get("error").is_some());
        refused
            .extend(left.map(|one| format!("  {}: {}", field(one, "id"), field(&one["error"], "message"))));
    }
    if !output.is_json() {
        output
            .text(&format!("{replayed} are in the queue again, {} were left as they were", refused.len()))?;
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(CommandFailure::Refused(format!("not replayed:\n{}", refused.join("\n")))),
    }
}

/// Every dead letter there is now. Replayed messages leave the list, so the list is read to its end first.
async fn all_ids(
    context: &CommandContext,
    filters: Vec<(&'static str, String)>,
) -> Result<Vec<String>, CommandFailure> {
    let client = context.client()?;
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let mut query = filters.clone();
        query.push(("limit", "500".to_owned()));
        query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
        let page = client.get(&["v1", "dead-letters"], &query).await?;
        ids.extend(list(&page, "data").iter().map(|message| field(message, "uid")));
        match page.get("next_cursor").and_then(Value::as_str) {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(ids),
        }
    }
}
