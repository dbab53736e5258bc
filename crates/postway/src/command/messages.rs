//! `postway messages`: list and show messages, and decide about them.

use std::io::Read as _;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use postway_domain::MessageStatus;
use reqwest::Method;
use serde_json::{Value, json};

use super::CommandContext;
use super::message_filter::MessageFilterArgs;
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list, printable};
use crate::cli::pages::{self, PageArgs, row};

/// How often a watched list is refreshed.
const WATCHED_EVERY: Duration = Duration::from_secs(2);
/// The most bytes of ids that are read from standard input.
const IDS_BYTES_MAX: u64 = 16 * 1024 * 1024;
const SUBJECT_CHARS_MAX: usize = 40;
const WHY_CHARS_MAX: usize = 60;

#[derive(Debug, Subcommand)]
pub enum MessagesCommand {
    /// List messages, newest first
    List(Box<MessageListArgs>),
    /// Show one message with its recipients, attempts, events and notifications
    Show(MessageRef),
    /// Send messages now: those that failed, or that wait for their time or their next attempt
    Retry(MessageRefs),
    /// Stop messages that are not on the wire yet
    Cancel(MessageRefs),
    /// Give a scheduled message another time
    Reschedule(MessageRescheduleArgs),
    /// Explain what a message waits for and when it is sent
    Explain(MessageRef),
    /// Settle a message in doubt
    Resolve(MessageResolveArgs),
    /// Print the mail itself (RFC 5322)
    Raw(MessageRef),
    /// Print the request that brought a message
    Payload(MessageRef),
}

#[derive(Args, Debug)]
pub struct MessageRef {
    /// The message's id or uid
    id: String,
}

#[derive(Args, Debug)]
pub struct MessageRefs {
    /// Their ids or uids, or - for ids on standard input, one a line
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

#[derive(Args, Debug)]
pub struct MessageRescheduleArgs {
    /// The message's id or uid
    id: String,
    /// Not before this time (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    send_at: String,
}

#[derive(Args, Debug)]
pub struct MessageResolveArgs {
    #[command(flatten)]
    messages: MessageRefs,
    /// What happened to it, or what to do
    #[arg(long)]
    outcome: ResolveOutcome,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ResolveOutcome {
    /// It was delivered
    Sent,
    /// It was not delivered, and will not be
    Failed,
    /// Send it again, at the risk of sending it twice
    Resend,
}

impl ResolveOutcome {
    /// The word of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Resend => "resend",
        }
    }
}

#[derive(Args, Debug)]
pub struct MessageListArgs {
    #[command(flatten)]
    filter: MessageFilterArgs,
    /// Refresh the list every two seconds until interrupted
    #[arg(long, conflicts_with = "all")]
    watch: bool,
    #[command(flatten)]
    page: PageArgs,
}

pub async fn run(context: &CommandContext, command: MessagesCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    match command {
        MessagesCommand::List(args) => {
            let MessageListArgs { filter, watch, page } = *args;
            let filters = filter.conditions();
            loop {
                if watch && !output.is_json() {
                    // Moves to the top of the screen and clears it.
                    output.bytes(b"\x1b[H\x1b[2J")?;
                }
                let (filters, page) = (filters.clone(), page.clone());
                let path = ["v1", "messages"];
                pages::print_rows(&client, output, &path, filters, page, (&LISTED, &listed), "no messages")
                    .await?;
                if !watch {
                    return Ok(());
                }
                tokio::time::sleep(WATCHED_EVERY).await;
            }
        }
        MessagesCommand::Show(MessageRef { id }) => {
            output.show(&client.get(&["v1", "messages", &id], &[]).await?, render_message)
        }
        MessagesCommand::Retry(messages) => steer_all(&client, output, messages, "retry", None).await,
        MessagesCommand::Cancel(messages) => steer_all(&client, output, messages, "cancel", None).await,
        MessagesCommand::Reschedule(MessageRescheduleArgs { id, send_at }) => {
            steer(&client, output, &id, "reschedule", RequestBody::Json(&json!({"send_at": send_at}))).await
        }
        MessagesCommand::Resolve(MessageResolveArgs { messages, outcome }) => {
            let outcome = outcome.as_str();
            let body = json!({"outcome": outcome});
            steer_all(&client, output, messages, "resolve", Some(&body)).await
        }
        MessagesCommand::Explain(MessageRef { id }) => {
            output.show(&client.get(&["v1", "messages", &id, "explain"], &[]).await?, render_explanation)
        }
        MessagesCommand::Raw(MessageRef { id }) => {
            let path = ["v1", "messages", &id, "raw"];
            output.bytes(&client.call_for_bytes(Method::GET, &path, &[], RequestBody::Empty).await?)
        }
        MessagesCommand::Payload(MessageRef { id }) => {
            let path = ["v1", "messages", &id, "payload"];
            output.bytes(&client.call_for_bytes(Method::GET, &path, &[], RequestBody::Empty).await?)
        }
    }
}

/// Applies one action to each message. A refused message does not stop the others; refusals are listed at the
/// end.
async fn steer_all(
    client: &ApiClient,
    output: CommandOutput,
    MessageRefs { ids }: MessageRefs,
    verb: &str,
    body: Option<&Value>,
) -> Result<(), CommandFailure> {
    let ids = if ids == ["-"] { read_lines()? } else { ids };
    let body = || body.map_or(RequestBody::Empty, RequestBody::Json);
    if let [id] = ids.as_slice() {
        return steer(client, output, id, verb, body()).await;
    }
    let mut refused = Vec::new();
    for id in &ids {
        match client.call(Method::POST, &["v1", "messages", id, verb], &[], body()).await {
            Ok(answer) if output.is_json() => output.json(&answer)?,
            Ok(answer) => output.text(&format!("{id}\t{}", field(&answer, "status")))?,
            Err(error @ (CommandFailure::Refused(_) | CommandFailure::NotFound(_))) => {
                refused.push(format!("{id}: {error}"))
            }
            Err(error) => return Err(error),
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(CommandFailure::Refused(format!(
            "{} of {} were left as they were:\n{}",
            refused.len(),
            ids.len(),
            refused.join("\n")
        ))),
    }
}

/// The ids on standard input: the first word of each line, so that a list can be piped in.
fn read_lines() -> Result<Vec<String>, CommandFailure> {
    let text = std::io::read_to_string(std::io::stdin().take(IDS_BYTES_MAX))
        .map_err(|error| anyhow::Error::new(error).context("cannot read ids from standard input"))?;
    let ids: Vec<String> =
        text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    match ids.is_empty() {
        true => Err(CommandFailure::Usage("there are no ids on standard input".to_owned())),
        false => Ok(ids),
    }
}

async fn steer(
    client: &ApiClient,
    output: CommandOutput,
    id: &str,
    verb: &str,
    body: RequestBody<'_>,
) -> Result<(), CommandFailure> {
    let answer = client.call(Method::POST, &["v1", "messages", id, verb], &[], body).await?;
    output.show(&answer, |output, answer| {
        output.fields([("id", id.to_owned()), ("status", field(answer, "status"))])
    })
}

/// The row of a message in a list: its recipient, the reason for its state, and when it is due.
const LISTED: [&str; 7] = ["id", "status", "to", "subject", "why", "due", "created_at"];

fn listed(message: &Value) -> Vec<String> {
    let others = message["recipient_count"].as_i64().unwrap_or(1) - 1;
    let to = match others {
        ..=0 => field(message, "to"),
        others => format!("{} +{others}", field(message, "to")),
    };
    let refused = message["refused_count"].as_i64().unwrap_or(0);
    let partial = (refused > 0).then(|| format!("{refused} of {} failed", others + 1));
    let why = [
        partial.unwrap_or_default(),
        field(message, "outcome"),
        field(message, "held_by"),
        field(message, "reason"),
    ];
    let why: Vec<String> = why.into_iter().filter(|part| !part.is_empty()).collect();
    vec![
        field(message, "id"),
        field(message, "status"),
        to,
        shortened(&field(message, "subject"), SUBJECT_CHARS_MAX),
        shortened(&why.join("; "), WHY_CHARS_MAX),
        field(message, "due_at"),
        field(message, "created_at"),
    ]
}

/// A text on one line of a table.
fn shortened(text: &str, chars_max: usize) -> String {
    match text.chars().count() <= chars_max {
        true => text.to_owned(),
        false => text.chars().take(chars_max - 1).chain(['…']).collect(),
    }
}

fn render_message(output: CommandOutput, message: &Value) -> String {
    const FIELDS: [&str; 25] = [
        "id",
        "uid",
        "tenant",
        "account",
        "status",
        "held_by",
        "priority",
        "batch",
        "subject",
        "sensitive",
        "recipient_id",
        "created_at",
        "due_at",
        "sent_at",
        "failed_at",
        "reported_at",
        "attempt",
        "exhausted",
        "reason",
        "outcome",
        "message_id",
        "provider_message_id",
        "request_id",
        "payload_file_path",
        "eml_file_path",
    ];
    let mut text = output.fields(FIELDS.map(|name| (name, field(message, name))));
    if let Some(route) = route_words(message) {
        text += &format!("\nroute  {route}");
    }
    if let Some(error) = message.get("error").filter(|error| error.is_object()) {
        let fields = ["code", "category", "phase", "smtp_code", "enhanced_code", "message"];
        text.push_str(&format!(
            "\n\nerror\n{}",
            output.fields(fields.map(|name| (name, field(error, name))))
        ));
    }
    let lists: [(&str, &[&str]); 4] = [
        ("recipients", &["address", "kind", "status", "smtp_code", "enhanced_code", "reply"]),
        ("attempts", &["number", "started_at", "duration_ms", "remote", "outcome", "smtp_code", "reply"]),
        ("events", &["seq", "at", "type", "actor"]),
        ("notifications", &["subscriber", "event", "sequence", "status", "tries", "next_at", "last_status"]),
    ];
    for (name, columns) in lists {
        let items = list(message, name);
        // Who acted is one of the particulars of an event.
        let cell = |item: &Value, column: &str| match column {
            "actor" => item.get("data").map(|data| field(data, column)).unwrap_or_default(),
            _ => field(item, column),
        };
        if !items.is_empty() {
            let rows =
                items.iter().map(|item| columns.iter().map(|column| cell(item, column)).collect::<Vec<_>>());
            let table = output.table(columns, rows);
            text.push_str(&format!("\n\n{name}\n{table}"));
        }
    }
    let dialogue = message.get("dialogue").filter(|dialogue| dialogue.is_object());
    if let Some(dialogue) = dialogue {
        text.push_str(&format!("\n\ndialogue of attempt {}", field(dialogue, "attempt")));
        for line in list(dialogue, "lines").iter().filter_map(Value::as_str) {
            text.push_str(&format!("\n  {}", printable(line)));
        }
    }
    text
}

fn render_explanation(output: CommandOutput, explanation: &Value) -> String {
    let mut text =
        output.fields(["status", "reason", "next_at"].map(|name| (name, field(explanation, name))));
    if let Some(act) = explanation.get("acted").filter(|act| act.is_object()) {
        text += &format!("\nacted  {} by {} at {}", field(act, "type"), who_acted(act), field(act, "at"));
    }
    let gates = list(explanation, "gates");
    if gates.is_empty() {
        // The state of a message that is being prepared, or has ended, explains itself.
        let status = field(explanation, "status");
        let has_ended = MessageStatus::ALL.iter().any(|state| state.is_final() && state.as_str() == status);
        let is_told = has_ended || !field(explanation, "reason").is_empty();
        return if is_told { text } else { format!("{text}\nnothing holds it") };
    }
    let columns = ["gate", "reason", "until"];
    format!("{text}\n\n{}", output.table(&columns, gates.iter().map(|gate| row(gate, &columns))))
}

/// Who an operator is, as far as it was noted.
fn who_acted(act: &Value) -> String {
    match field(act, "actor") {
        name if name.is_empty() => "an operator".to_owned(),
        name => name,
    }
}

/// How routes chose the account, in a line.
fn route_words(shown: &Value) -> Option<String> {
    let route = shown.get("route").filter(|route| route.is_object())?;
    let join = |name: &str| {
        list(route, name).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ").replace('_', " ")
    };
    let mut words = match route["id"].as_str() {
        Some(id) => vec![format!("{id} chose {}", field(route, "account"))],
        None => vec!["none".to_owned()],
    };
    for (name, said) in
        [("because", "by"), ("left_out", "left out"), ("passed_over", "passed over without accounts")]
    {
        let named = join(name);
        if !named.is_empty() {
            words.push(format!("{said} {named}"));
        }
    }
    if let Some(waits_for) = route["waits_for"].as_str() {
        words.push(format!("waits for {waits_for}"));
    }
    Some(words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_route_chose_is_one_line() {
        let shown = json!({"route": {"id": "news", "account": "b", "because": ["sender_domain"],
            "left_out": ["circuit:a"], "passed_over": [], "waits_for": null}});
        let words = route_words(&shown).unwrap();
        assert_eq!(words, "news chose b; by sender domain; left out circuit:a");
        assert_eq!(route_words(&json!({"route": null})), None);
    }

    #[test]
    fn a_message_is_shown_with_its_recipients_and_events() {
        let message = json!({
            "id": "order-1", "status": "failed", "batch": null, "held_by": [],
            "error": {"code": "smtp", "smtp_code": 550, "message": "no such user"},
            "recipients": [{"address": "a@example.net", "kind": "to", "status": "failed", "smtp_code": 550}],
            "events": [
                {"seq": 1, "at": "2026-01-01T00:00:00Z", "type": "accepted", "data": {}},
                {"seq": 2, "at": "2026-01-01T00:00:01Z", "type": "replayed",
                 "data": {"by": "operator", "actor": "user:ada"}},
            ],
        });
        let text = render_message(CommandOutput::new(false), &message);
        for part in ["order-1", "no such user", "a@example.net", "accepted", "user:ada"] {
            assert!(text.contains(part), "{part} is missing in:\n{text}");
        }
        assert!(!text.contains("batch") && !text.contains("attempts"), "{text}");
    }

    #[test]
    fn a_list_says_to_whom_and_why() {
        let message = json!({"id": "order-1", "status": "sent", "to": "a@example.net", "recipient_count": 6,
            "refused_count": 1, "outcome": "bounced", "held_by": [], "reason": null, "subject": "x".repeat(50),
            "due_at": null, "created_at": "2026-01-01T00:00:00Z"});
        let row = listed(&message);
        assert_eq!(row.len(), LISTED.len());
        assert_eq!((row[2].as_str(), row[4].as_str()), ("a@example.net +5", "1 of 6 failed; bounced"));
        assert!(row[3].ends_with('…') && row[3].chars().count() == SUBJECT_CHARS_MAX);
        let held = json!({"held_by": ["tenant", "circuit:relay"], "reason": "no answer"});
        assert_eq!(listed(&held)[4], "tenant, circuit:relay; no answer");
    }

    #[test]
    fn an_explanation_without_gates_says_so() {
        let text = render_explanation(
            CommandOutput::new(false),
            &json!({"status": "ready", "gates": [], "next_at": null}),
        );
        assert!(text.ends_with("nothing holds it"), "{text}");
    }

    #[test]
    fn an_explanation_of_what_has_ended_says_why() {
        let failed = json!({"status": "failed", "reason": "550 no such user", "gates": [], "next_at": null});
        let text = render_explanation(CommandOutput::new(false), &failed);
        assert!(text.contains("550 no such user") && !text.contains("holds"), "{text}");
        let acted = json!({"status": "cancelled", "reason": null, "gates": [], "next_at": null,
            "acted": {"actor": "user:ada", "at": "2026-01-01T00:00:00Z", "type": "cancelled"}});
        let text = render_explanation(CommandOutput::new(false), &acted);
        assert!(text.contains("cancelled by user:ada at 2026"), "{text}");
        let sent = json!({"status": "sent", "reason": null, "gates": [], "next_at": null});
        assert!(!render_explanation(CommandOutput::new(false), &sent).contains("holds"));
    }
}
