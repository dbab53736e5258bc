//! `postway stats`: the queue now, by state.

use serde_json::Value;

use super::CommandContext;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field};

pub async fn run(context: &CommandContext) -> Result<(), CommandFailure> {
    let stats = context.client()?.get(&["v1", "stats"], &[]).await?;
    context.output.show(&stats, render)
}

fn render(output: CommandOutput, stats: &Value) -> String {
    let counts = |name: &str| stats.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let states = counts("by_status").into_iter().map(|(status, count)| vec![status, count.to_string()]);
    let mut text = output.table(&["status", "messages"], states);
    let rates =
        counts("rates").into_iter().map(|(name, rate)| vec![name, rate.to_string()]).collect::<Vec<_>>();
    if !rates.is_empty() {
        text.push_str(&format!("\n\n{}", output.table(&["rate", "value"], rates)));
    }
    let rest = [
        ("oldest due (s)", field(stats, "oldest_due_seconds")),
        ("held", field(stats, "held")),
        ("oldest held (s)", field(stats, "oldest_held_seconds")),
        ("in doubt, waiting for your word", field(stats, "in_doubt_held")),
    ];
    format!("{text}\n\n{}", output.fields(rest))
}
