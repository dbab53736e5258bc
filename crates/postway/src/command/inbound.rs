//! `postway inbound`: mail from watched mailboxes, and how it was processed.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::{self, PageArgs, row};

#[derive(Debug, Subcommand)]
pub enum InboundCommand {
    /// List inbound mail, newest first
    List(InboundListArgs),
    /// Show one mail: what it says about messages, and what was done
    Show(InboundRef),
    /// Print a mail as it came
    Raw(InboundRef),
    /// Process a mail again with the current rules, or all mail that a filter selects
    Replay(InboundReplayArgs),
    /// Mark a mail as done, which ends its reminders
    Resolve(InboundRef),
}

#[derive(Args, Debug)]
pub struct InboundRef {
    /// The mail's id
    id: String,
}

#[derive(Args, Debug)]
pub struct InboundReplayArgs {
    /// The mail's id; without one, all mail that the filter selects
    #[arg(required_unless_present = "status", conflicts_with_all = ["status", "mailbox", "since", "until"])]
    id: Option<String>,
    /// Only mail in this state
    #[arg(long, value_parser = ["no_match", "dead", "routed"])]
    status: Option<String>,
    /// Only those of this mailbox
    #[arg(long, requires = "status")]
    mailbox: Option<String>,
    /// Only those that were registered at this time or later
    #[arg(long, value_name = "TIME", requires = "status")]
    since: Option<String>,
    /// Only those that were registered before this time
    #[arg(long, value_name = "TIME", requires = "status")]
    until: Option<String>,
}

#[derive(Args, Debug)]
pub struct InboundListArgs {
    /// Only those of this mailbox
    #[arg(long)]
    mailbox: Option<String>,
    /// Only mail in this state
    #[arg(long, value_parser = ["received", "routing", "routed", "no_match", "gone", "waiting", "dead"])]
    status: Option<String>,
    /// Only those of this kind
    #[arg(long, value_parser = ["bounce", "delay", "success", "complaint", "pec", "auto_reply", "domain_report", "ordinary"])]
    kind: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

pub async fn run(context: &CommandContext, command: InboundCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    match command {
        InboundCommand::List(InboundListArgs { mailbox, status, kind, page }) => {
            let filters = [("mailbox", mailbox), ("status", status), ("kind", kind)];
            let filters = filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            let columns = ["id", "mailbox", "status", "kind", "from", "subject", "created_at", "error"];
            pages::print(&client, output, &["v1", "inbound"], filters, page, &columns, "no mail came in")
                .await
        }
        InboundCommand::Show(InboundRef { id }) => {
            output.show(&client.get(&["v1", "inbound", &id], &[]).await?, render)
        }
        InboundCommand::Raw(InboundRef { id }) => {
            let path = ["v1", "inbound", &id, "raw"];
            output.bytes(&client.call_for_bytes(Method::GET, &path, &[], RequestBody::Empty).await?)
        }
        InboundCommand::Replay(InboundReplayArgs { id: None, status, mailbox, since, until }) => {
            let fields = [("status", status), ("mailbox", mailbox), ("since", since), ("until", until)];
            let fields =
                fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
            let mut body = Value::Object(fields.collect());
            let mut replayed = 0;
            loop {
                let path = ["v1", "inbound", "replay"];
                let answer = client.call(Method::POST, &path, &[], RequestBody::Json(&body)).await?;
                replayed += answer["replayed"].as_u64().unwrap_or_default();
                if answer["more"] != true {
                    break;
                }
                // Mail that was replayed and ended in the same state is not selected again.
                if body.get("settled_before").is_none() {
                    body["settled_before"] = answer["at"].clone();
                }
            }
            let shown = |_: CommandOutput, answer: &Value| {
                format!("{} mails are looked at again", answer["replayed"])
            };
            output.show(&json!({"replayed": replayed}), shown)
        }
        InboundCommand::Replay(InboundReplayArgs { id: Some(id), .. }) => {
            let path = ["v1", "inbound", &id, "replay"];
            output.show(&client.call(Method::POST, &path, &[], RequestBody::Empty).await?, render)
        }
        InboundCommand::Resolve(InboundRef { id }) => {
            let path = ["v1", "inbound", &id, "resolve"];
            output.show(&client.call(Method::POST, &path, &[], RequestBody::Empty).await?, render)
        }
    }
}

fn render(output: CommandOutput, mail: &Value) -> String {
    const FIELDS: [&str; 20] = [
        "id",
        "mailbox",
        "status",
        "kind",
        "from",
        "to",
        "subject",
        "message_id",
        "size",
        "date",
        "arrived_at",
        "settled_at",
        "due_at",
        "tries",
        "attempts",
        "error",
        "tags",
        "result",
        "reminders",
        "resolved_at",
    ];
    let fields = output.fields(FIELDS.map(|name| (name, field(mail, name))));
    let messages = list(mail, "messages");
    if messages.is_empty() {
        return fields;
    }
    let columns = ["rule", "uid", "status"];
    format!("{fields}\n\n{}", output.table(&columns, messages.iter().map(|message| row(message, &columns))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_on_is_shown_with_its_status() {
        let mail = json!({"id": "m", "status": "routed", "messages": [{"rule": "r", "uid": "u-1", "status": "sent"}]});
        let text = render(CommandOutput::new(false), &mail);
        assert!(text.contains("u-1") && text.contains("sent"), "{text}");
    }
}
