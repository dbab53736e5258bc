//! `postway statistics`: what was done, by hour or day.

use clap::Args;
use serde_json::Value;

use super::Session;
use crate::cli::failure::Failure;
use crate::cli::output::{Output, list};
use crate::cli::pages::row;

#[derive(Args, Debug)]
pub struct StatisticsArgs {
    /// How finely [default: hour]
    #[arg(long, value_parser = ["hour", "day"])]
    by: Option<String>,
    /// From this time on (RFC 3339 or Unix seconds) [default: a day back by hour, 30 days back by day]
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Until before this time [default: now]
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only this account
    #[arg(long)]
    account: Option<String>,
}

pub async fn run(session: &Session, args: StatisticsArgs) -> Result<(), Failure> {
    let query = [("by", args.by), ("since", args.since), ("until", args.until), ("account", args.account)];
    let query: Vec<_> = query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    session.output.show(&session.client()?.get(&["v1", "statistics"], &query).await?, render)
}

fn render(output: Output, statistics: &Value) -> String {
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
