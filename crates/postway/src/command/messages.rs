//! `postway messages`: list, show and steer messages.

use clap::{Args, Subcommand, ValueEnum, builder::PossibleValuesParser};
use postway_domain::Status;
use reqwest::Method;
use serde_json::{Value, json};

use super::Session;
use super::pages::{self, PageArgs, row};
use crate::client::{Body, Client};
use crate::failure::Failure;
use crate::output::{Output, field, list};

#[derive(Debug, Subcommand)]
pub enum MessagesCommand {
    /// List messages, newest first
    List(Box<ListArgs>),
    /// Show one message with its recipients, attempts, events and who was told
    Show(MessageRef),
    /// Send a message now: one that failed, or that waits for its time or its next attempt
    Retry(MessageRef),
    /// Stop a message that is not on the wire yet
    Cancel(MessageRef),
    /// Give a message that waits for its time another one
    Reschedule(RescheduleArgs),
    /// Say what holds a message and when it goes
    Explain(MessageRef),
    /// Settle a message in doubt
    Resolve(ResolveArgs),
    /// Print the mail itself (RFC 5322)
    Raw(MessageRef),
    /// Print the request that brought a message
    Payload(MessageRef),
}

/// The words of all states, also for completion.
fn states() -> PossibleValuesParser {
    Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().into()
}

#[derive(Args, Debug)]
pub struct MessageRef {
    /// The message's id or uid
    id: String,
}

#[derive(Args, Debug)]
pub struct RescheduleArgs {
    /// The message's id or uid
    id: String,
    /// Not before this time (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    send_at: String,
}

#[derive(Args, Debug)]
pub struct ResolveArgs {
    /// The message's id or uid
    id: String,
    /// What became of it, or what to do
    #[arg(long)]
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Outcome {
    /// It arrived
    Sent,
    /// It did not arrive, and shall not
    Failed,
    /// Send it again, at the risk of sending it twice
    Resend,
}

#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only messages in this state
    #[arg(long, value_parser = states())]
    status: Option<String>,
    /// Only messages of this account
    #[arg(long)]
    account: Option<String>,
    /// Only messages of this batch
    #[arg(long)]
    batch: Option<String>,
    /// Only messages to this address
    #[arg(long)]
    recipient: Option<String>,
    /// Only messages with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only messages that came with this request
    #[arg(long)]
    request_id: Option<String>,
    /// Only the message that the provider calls so
    #[arg(long)]
    provider_message_id: Option<String>,
    /// Only messages accepted at or after this time (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only messages accepted before this time (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

pub async fn run(session: &Session, command: MessagesCommand) -> Result<(), Failure> {
    let (client, output) = (session.client()?, session.output);
    match command {
        MessagesCommand::List(args) => {
            let columns = ["id", "status", "account", "subject", "created_at", "attempt"];
            let (filters, page) = args.split();
            pages::print(&client, output, &["v1", "messages"], filters, page, &columns, "no messages").await
        }
        MessagesCommand::Show(MessageRef { id }) => {
            output.show(&client.get(&["v1", "messages", &id], &[]).await?, render_message)
        }
        MessagesCommand::Retry(MessageRef { id }) => steer(&client, output, &id, "retry", Body::Empty).await,
        MessagesCommand::Cancel(MessageRef { id }) => {
            steer(&client, output, &id, "cancel", Body::Empty).await
        }
        MessagesCommand::Reschedule(RescheduleArgs { id, send_at }) => {
            steer(&client, output, &id, "reschedule", Body::Json(&json!({"send_at": send_at}))).await
        }
        MessagesCommand::Resolve(ResolveArgs { id, outcome }) => {
            let outcome = match outcome {
                Outcome::Sent => "sent",
                Outcome::Failed => "failed",
                Outcome::Resend => "resend",
            };
            steer(&client, output, &id, "resolve", Body::Json(&json!({"outcome": outcome}))).await
        }
        MessagesCommand::Explain(MessageRef { id }) => {
            output.show(&client.get(&["v1", "messages", &id, "explain"], &[]).await?, render_explanation)
        }
        MessagesCommand::Raw(MessageRef { id }) => {
            let path = ["v1", "messages", &id, "raw"];
            output.bytes(&client.call_for_bytes(Method::GET, &path, &[], Body::Empty).await?)
        }
        MessagesCommand::Payload(MessageRef { id }) => {
            let path = ["v1", "messages", &id, "payload"];
            output.bytes(&client.call_for_bytes(Method::GET, &path, &[], Body::Empty).await?)
        }
    }
}

async fn steer(client: &Client, output: Output, id: &str, verb: &str, body: Body<'_>) -> Result<(), Failure> {
    let answer = client.call(Method::POST, &["v1", "messages", id, verb], &[], body).await?;
    output.show(&answer, |output, answer| {
        output.fields([("id", id.to_owned()), ("status", field(answer, "status"))])
    })
}

impl ListArgs {
    fn split(self) -> (Vec<(&'static str, String)>, PageArgs) {
        let filters = [
            ("status", self.status),
            ("account", self.account),
            ("batch", self.batch),
            ("recipient", self.recipient),
            ("tag", self.tag),
            ("request_id", self.request_id),
            ("provider_message_id", self.provider_message_id),
            ("since", self.since),
            ("until", self.until),
        ];
        (filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(), self.page)
    }
}

fn render_message(output: Output, message: &Value) -> String {
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
        ("events", &["seq", "at", "type"]),
        ("notifications", &["subscriber", "event", "sequence", "status", "tries", "next_at", "last_status"]),
    ];
    for (name, columns) in lists {
        let items = list(message, name);
        if !items.is_empty() {
            let table = output.table(columns, items.iter().map(|item| row(item, columns)));
            text.push_str(&format!("\n\n{name}\n{table}"));
        }
    }
    text
}

fn render_explanation(output: Output, explanation: &Value) -> String {
    let text = output.fields(["status", "reason", "next_at"].map(|name| (name, field(explanation, name))));
    let gates = list(explanation, "gates");
    if gates.is_empty() {
        // What is being prepared, or has ended, says so itself.
        let status = field(explanation, "status");
        let has_ended = Status::ALL.iter().any(|state| state.is_final() && state.as_str() == status);
        let is_told = has_ended || !field(explanation, "reason").is_empty();
        return if is_told { text } else { format!("{text}\nnothing holds it") };
    }
    let columns = ["gate", "reason", "until"];
    format!("{text}\n\n{}", output.table(&columns, gates.iter().map(|gate| row(gate, &columns))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_shown_with_its_recipients_and_events() {
        let message = json!({
            "id": "order-1", "status": "failed", "batch": null, "held_by": [],
            "error": {"code": "smtp", "smtp_code": 550, "message": "no such user"},
            "recipients": [{"address": "a@example.net", "kind": "to", "status": "failed", "smtp_code": 550}],
            "events": [{"seq": 1, "at": "2026-01-01T00:00:00Z", "type": "accepted", "data": {}}],
        });
        let text = render_message(Output::new(false), &message);
        for part in ["order-1", "no such user", "a@example.net", "accepted"] {
            assert!(text.contains(part), "{part} is missing in:\n{text}");
        }
        assert!(!text.contains("batch") && !text.contains("attempts"), "{text}");
    }

    #[test]
    fn an_explanation_without_gates_says_so() {
        let text =
            render_explanation(Output::new(false), &json!({"status": "ready", "gates": [], "next_at": null}));
        assert!(text.ends_with("nothing holds it"), "{text}");
    }

    #[test]
    fn an_explanation_of_what_has_ended_says_why() {
        let failed = json!({"status": "failed", "reason": "550 no such user", "gates": [], "next_at": null});
        let text = render_explanation(Output::new(false), &failed);
        assert!(text.contains("550 no such user") && !text.contains("holds"), "{text}");
        let sent = json!({"status": "sent", "reason": null, "gates": [], "next_at": null});
        assert!(!render_explanation(Output::new(false), &sent).contains("holds"));
    }
}
