//! `postway bulk`: one action on all messages of a filter, which the server does step by step.
//!
//! It first says how many messages are meant, and asks for that number on a terminal; elsewhere `--yes` is
//! needed. While it runs, the progress is shown; interrupting the command does not stop the server.

use std::io::{BufRead as _, IsTerminal as _};
use std::time::Duration;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::CommandContext;
use super::message_filter::MessageFilterArgs;
use super::messages::ResolveOutcome;
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::{self, PageArgs};

/// How often the progress is asked for.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
const COLUMNS: [&str; 7] = ["id", "state", "action", "expected", "changed", "skipped", "created_at"];
const FIELDS: [&str; 14] = [
    "id",
    "state",
    "action",
    "outcome",
    "send_at",
    "note",
    "filter",
    "selected",
    "expected",
    "changed",
    "skipped",
    "actor",
    "created_at",
    "ended_at",
];

#[derive(Debug, Subcommand)]
pub enum BulkCommand {
    /// Stop all matching messages that are not on the wire yet
    Cancel(BulkArgs),
    /// Send all matching messages now: those that failed, or that wait
    Retry(BulkArgs),
    /// Give all matching scheduled messages another time
    Reschedule(BulkRescheduleArgs),
    /// Settle all matching messages in doubt
    Resolve(BulkResolveArgs),
    /// Suppress the recipients of all matching messages; with --outcome, those that have it
    Suppress(BulkSuppressArgs),
    /// List bulk actions, the latest first
    List(PageArgs),
    /// Show how far one is
    Show(BulkRef),
    /// Stop one; what it has done stays
    Stop(BulkRef),
}

#[derive(Args, Debug)]
pub struct BulkRef {
    /// The bulk action's id
    id: String,
}

#[derive(Args, Debug)]
pub struct BulkArgs {
    #[command(flatten)]
    filter: MessageFilterArgs,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Do not wait until it is done
    #[arg(long)]
    no_wait: bool,
}

#[derive(Args, Debug)]
pub struct BulkRescheduleArgs {
    #[command(flatten)]
    bulk: BulkArgs,
    /// Not before this time (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    send_at: String,
}

#[derive(Args, Debug)]
pub struct BulkResolveArgs {
    #[command(flatten)]
    bulk: BulkArgs,
    /// What happened to them, or what to do
    #[arg(long = "as", value_name = "OUTCOME")]
    decision: ResolveOutcome,
}

#[derive(Args, Debug)]
pub struct BulkSuppressArgs {
    #[command(flatten)]
    bulk: BulkArgs,
    /// A note for the list
    #[arg(long)]
    note: Option<String>,
}

pub async fn run(context: &CommandContext, command: BulkCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "bulk-actions"];
    match command {
        BulkCommand::Cancel(args) => begin(&client, output, args, "cancel", json!({})).await,
        BulkCommand::Retry(args) => begin(&client, output, args, "retry", json!({})).await,
        BulkCommand::Reschedule(BulkRescheduleArgs { bulk, send_at }) => {
            begin(&client, output, bulk, "reschedule", json!({"send_at": time(&send_at)})).await
        }
        BulkCommand::Resolve(BulkResolveArgs { bulk, decision }) => {
            begin(&client, output, bulk, "resolve", json!({"outcome": decision.as_str()})).await
        }
        BulkCommand::Suppress(BulkSuppressArgs { bulk, note }) => {
            begin(&client, output, bulk, "suppress", json!({"note": note})).await
        }
        BulkCommand::List(page) => {
            pages::print(&client, output, &all, Vec::new(), page, &COLUMNS, "no bulk actions").await
        }
        BulkCommand::Show(BulkRef { id }) => {
            output.show(&client.get(&["v1", "bulk-actions", &id], &[]).await?, render)
        }
        BulkCommand::Stop(BulkRef { id }) => {
            let path = ["v1", "bulk-actions", &id, "stop"];
            output.show(&client.call(Method::POST, &path, &[], RequestBody::Empty).await?, render)
        }
    }
}

/// Unix seconds are a number in JSON.
fn time(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| json!(text), |seconds| json!(seconds))
}

async fn begin(
    client: &ApiClient,
    output: CommandOutput,
    args: BulkArgs,
    action: &str,
    rest: Value,
) -> Result<(), CommandFailure> {
    let filter: Map<String, Value> =
        args.filter.conditions().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let mut body = json!({"action": action, "filter": filter});
    for (name, value) in rest.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    let path = ["v1", "bulk-actions"];
    let dry = [("dry_run", "true".to_owned())];
    let plan = client.call(Method::POST, &path, &dry, RequestBody::Json(&body)).await?;
    if args.dry_run {
        return output.show(&plan, |output, plan| render_plan(output, action, plan));
    }
    let matching = plan["matching"].as_u64().unwrap_or(0);
    if !args.yes {
        confirm(output, action, &plan, matching)?;
    }
    // What has come to match since is not what was agreed to. Beyond what a dry run counts, the bound is only
    // that of the field.
    let is_all_counted = plan["or_more"] != json!(true);
    body["at_most"] = json!(if is_all_counted { matching } else { u64::from(u32::MAX) });
    let begun = client.call(Method::POST, &path, &[], RequestBody::Json(&body)).await?;
    if args.no_wait {
        return output.show(&begun, render);
    }
    let ended = wait(client, output, begun).await?;
    output.show(&ended, render)
}

/// Asks for the number of messages, which nobody types by accident.
fn confirm(output: CommandOutput, action: &str, plan: &Value, matching: u64) -> Result<(), CommandFailure> {
    eprintln!("{}", render_plan(output, action, plan));
    if !std::io::stdin().is_terminal() {
        return Err(CommandFailure::Usage("add --yes to do it, or --dry-run only to look".to_owned()));
    }
    eprint!("To {action} them, type {matching}: ");
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed).map_err(anyhow::Error::new)?;
    match typed.trim() == matching.to_string() {
        true => Ok(()),
        false => Err(CommandFailure::Usage("that was not the number; nothing was done".to_owned())),
    }
}

/// The bulk action when it has ended.
async fn wait(client: &ApiClient, output: CommandOutput, mut action: Value) -> Result<Value, CommandFailure> {
    let id = field(&action, "id");
    let is_shown = !output.is_json() && std::io::stderr().is_terminal();
    while action["state"] == "running" {
        if is_shown {
            eprint!("\r{} of {} done ", done(&action), field(&action, "expected"));
        }
        tokio::time::sleep(PROGRESS_EVERY).await;
        action = client.get(&["v1", "bulk-actions", &id], &[]).await?;
    }
    if is_shown {
        eprint!("\r\x1b[K");
    }
    Ok(action)
}

fn done(action: &Value) -> u64 {
    action["changed"].as_u64().unwrap_or(0) + action["skipped"].as_u64().unwrap_or(0)
}

fn render_plan(output: CommandOutput, action: &str, plan: &Value) -> String {
    let more = if plan["or_more"] == json!(true) { " or more" } else { "" };
    let head = format!(
        "{}{more} messages match; {action} applies to {} of them",
        field(plan, "matching"),
        field(plan, "changed")
    );
    let states = list(plan, "by_status");
    if states.is_empty() {
        return head;
    }
    let rows = states.iter().map(|one| {
        let what = if one["changed"] == json!(true) { action } else { "left as they are" };
        vec![field(one, "status"), field(one, "messages"), what.to_owned()]
    });
    format!("{head}\n{}", output.table(&["status", "messages", "what"], rows))
}

fn render(output: CommandOutput, action: &Value) -> String {
    output.fields(FIELDS.map(|name| (name, field(action, name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_how_many_and_which_are_left() {
        let plan = json!({"matching": 5, "changed": 3, "skipped": 2, "or_more": true, "by_status": [
            {"status": "ready", "changed": true, "messages": 3}, {"status": "sent", "changed": false, "messages": 2},
        ]});
        let text = render_plan(CommandOutput::new(false), "cancel", &plan);
        assert!(text.starts_with("5 or more messages match; cancel applies to 3 of them"), "{text}");
        let sent = text.lines().find(|line| line.contains("sent")).unwrap();
        assert!(sent.contains('2') && sent.contains("left as they are"), "{text}");
    }

    #[test]
    fn a_time_in_seconds_is_a_number() {
        assert_eq!(time("1700000000"), json!(1_700_000_000));
        assert_eq!(time("2030-01-01T00:00:00Z"), json!("2030-01-01T00:00:00Z"));
    }
}
