//! `postway events`: the feed, once or as it comes.

use clap::Args;
use serde_json::Value;

use super::CommandContext;
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};

/// How long the server waits for new events before it answers.
const WAIT_S: u64 = 25;

#[derive(Args, Debug)]
pub struct EventsArgs {
    /// Only what came after this cursor, or from `now` on [default: all that are stored]
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// How many at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Read to the end, then print new events until interrupted
    #[arg(long)]
    follow: bool,
}

pub async fn run(context: &CommandContext, args: EventsArgs) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let mut after = args.after;
    loop {
        let feed = page(&client, after.take(), args.limit, args.follow).await?;
        let entries = list(&feed, "data");
        for entry in entries {
            print(output, entry)?;
        }
        let next = feed.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
        if !args.follow {
            if let Some(next) = next.filter(|_| !output.is_json()) {
                eprintln!("what comes next: --after {next}");
            }
            return Ok(());
        }
        after = next;
    }
}

async fn page(
    client: &ApiClient,
    after: Option<String>,
    limit: Option<u32>,
    waits: bool,
) -> Result<Value, CommandFailure> {
    let query = [
        ("after", after),
        ("limit", limit.map(|limit| limit.to_string())),
        ("wait", waits.then(|| WAIT_S.to_string())),
    ];
    let query: Vec<_> = query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    client.get(&["v1", "events"], &query).await
}

/// One line for each event, so that lines can be filtered and counted.
fn print(output: CommandOutput, entry: &Value) -> Result<(), CommandFailure> {
    if output.is_json() {
        return output.json(entry);
    }
    let message = entry.get("message").cloned().unwrap_or_default();
    let names = [field(entry, "at"), field(entry, "type"), field(&message, "id"), field(&message, "uid")];
    output.text(&names.join("\t"))
}
