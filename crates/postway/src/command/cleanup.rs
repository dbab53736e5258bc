//! `postway cleanup` and `postway erase`: remove old messages, and remove an address.

use std::ops::ControlFlow;

use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

use super::CommandContext;
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::output::CommandOutput;
use crate::cli::progress::SpinnerProgress;

#[derive(Args, Debug)]
pub struct CleanupArgs {
    /// Remove messages that ended and were reported at least this long ago; 0 for all [default: the tenant's
    /// setting]
    #[arg(long, value_name = "SECONDS")]
    older_than_seconds: Option<u64>,
}

#[derive(Args, Debug)]
pub struct EraseArgs {
    /// The address to remove
    address: String,
}

/// Removes messages until none is left to remove.
pub async fn cleanup(context: &CommandContext, args: CleanupArgs) -> Result<(), CommandFailure> {
    let query: Vec<_> = args
        .older_than_seconds
        .map(|seconds| ("older_than_seconds", seconds.to_string()))
        .into_iter()
        .collect();
    to_the_end(&context.client()?, context.output, "cleanup", &query, None, &["deleted"]).await
}

/// Removes the address until nothing about it is left.
pub async fn erase(context: &CommandContext, EraseArgs { address }: EraseArgs) -> Result<(), CommandFailure> {
    let body = json!({"address": address});
    let counts = ["removed", "redacted", "waiting"];
    to_the_end(&context.client()?, context.output, "erase", &[], Some(&body), &counts).await
}

/// Calls the server until nothing is left, and prints the sums.
async fn to_the_end(
    client: &ApiClient,
    output: CommandOutput,
    call: &str,
    query: &[(&str, String)],
    body: Option<&Value>,
    counts: &[&'static str],
) -> Result<(), CommandFailure> {
    let mut sums = RemovedCounts::new(counts);
    let mut rounds = SpinnerProgress::start();
    loop {
        let body = body.map_or(RequestBody::Empty, RequestBody::Json);
        let answer = client.call(Method::POST, &["v1", call], query, body).await?;
        if sums.add(&answer).is_break() {
            break;
        }
        rounds.show_progress(sums.summary());
    }
    drop(rounds);
    match output.is_json() {
        true => output.json(&sums.json()),
        false => output.text(&sums.summary()),
    }
}

struct RemovedCounts(Vec<(&'static str, i64)>);

impl RemovedCounts {
    fn new(names: &[&'static str]) -> Self {
        Self(names.iter().map(|name| (*name, 0)).collect())
    }

    /// Adds the counts of one answer, and says whether it was the last.
    fn add(&mut self, answer: &Value) -> ControlFlow<()> {
        for (name, sum) in &mut self.0 {
            let count = answer.get(*name).and_then(Value::as_i64).unwrap_or(0);
            // Each answer counts anew what is still waiting, so this one is not summed.
            *sum = if *name == "waiting" { count } else { *sum + count };
        }
        match answer.get("more").and_then(Value::as_bool) {
            Some(true) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    fn summary(&self) -> String {
        let counts: Vec<String> = self.0.iter().map(|(name, sum)| format!("{sum} {name}")).collect();
        counts.join(", ")
    }

    fn json(&self) -> Value {
        self.0.iter().map(|(name, sum)| ((*name).to_owned(), Value::from(*sum))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_summed_until_the_last() {
        let mut sums = RemovedCounts::new(&["removed", "waiting"]);
        assert!(sums.add(&json!({"removed": 200, "waiting": 3, "more": true})).is_continue());
        assert!(sums.add(&json!({"removed": 5, "waiting": 2, "more": false})).is_break());
        assert_eq!(sums.summary(), "205 removed, 2 waiting");
        assert_eq!(sums.json(), json!({"removed": 205, "waiting": 2}));
    }
}
