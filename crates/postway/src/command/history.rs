//! `postway history`: how many messages were accepted, sent and bounced, by hour or day.

use clap::Args;
use serde_json::Value;

use super::CommandContext;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, list};
use crate::cli::pages::row;

#[derive(Args, Debug)]
pub struct HistoryArgs {
    /// The length of one row's time [default: hour]
    #[arg(long, value_parser = ["hour", "day"])]
    by: Option<String>,
    /// From this time on (RFC 3339 or Unix seconds) [default: a day back by hour, 30 days back by day]
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before this time [default: now]
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only this account
    #[arg(long)]
    account: Option<String>,
}

pub async fn run(context: &CommandContext, args: HistoryArgs) -> Result<(), CommandFailure> {
    let query = [("by", args.by), ("since", args.since), ("until", args.until), ("account", args.account)];
    let query: Vec<_> = query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    context.output.show(&context.client()?.get(&["v1", "statistics"], &query).await?, render)
}

fn render(output: CommandOutput, statistics: &Value) -> String {
    let columns = [
        "at",
        "account",
        "accepted",
        "sent",
        "failed",
        "invalid",
        "deferred",
        "bounced",
        "complained",
        "suppressed",
        "average_queue_ms",
    ];
    output.table(&columns, list(statistics, "data").iter().map(|counts| row(counts, &columns)))
}
