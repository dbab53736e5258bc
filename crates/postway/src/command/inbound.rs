//! `postway inbound`: mail that came into watched mailboxes, and what was done with it.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::Value;

use super::Session;
use super::pages::{self, PageArgs, row};
use crate::client::Body;
use crate::failure::Failure;
use crate::output::{Output, field, list};

#[derive(Debug, Subcommand)]
pub enum InboundCommand {
    /// List mail that came in, newest first
    List(ListArgs),
    /// Show one mail: what was found in it, what was done, and what became of that
    Show(InboundRef),
    /// Print a mail as it came
    Raw(InboundRef),
    /// Have a mail looked at again, with the rules of now
    Replay(InboundRef),
    /// Say that what a mail asked for is done: no more reminders
    Resolve(InboundRef),
}

#[derive(Args, Debug)]
pub struct InboundRef {
    /// The mail's id
    id: String,
}

#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only those of this mailbox
    #[arg(long)]
    mailbox: Option<String>,
    /// Only those that stand so
    #[arg(long, value_parser = ["received", "routing", "routed", "no_match", "gone", "waiting", "dead"])]
    status: Option<String>,
    /// Only those of this kind
    #[arg(long, value_parser = ["bounce", "delay", "success", "complaint", "pec", "auto_reply", "ordinary"])]
    kind: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

pub async fn run(session: &Session, command: InboundCommand) -> Result<(), Failure> {
    let (client, output) = (session.client()?, session.output);
    match command {
        InboundCommand::List(ListArgs { mailbox, status, kind, page }) => {
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
            output.bytes(&client.call_for_bytes(Method::GET, &path, &[], Body::Empty).await?)
        }
        InboundCommand::Replay(InboundRef { id }) => {
            let path = ["v1", "inbound", &id, "replay"];
            output.show(&client.call(Method::POST, &path, &[], Body::Empty).await?, render)
        }
        InboundCommand::Resolve(InboundRef { id }) => {
            let path = ["v1", "inbound", &id, "resolve"];
            output.show(&client.call(Method::POST, &path, &[], Body::Empty).await?, render)
        }
    }
}

fn render(output: Output, mail: &Value) -> String {
    const FIELDS: [&str; 18] = [
        "id",
        "mailbox",
        "status",
        "kind",
        "from",
        "to",
        "subject",
        "message_id",
        "size",
        "arrived_at",
        "settled_at",
        "due_at",
        "tries",
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
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_sent_on_is_shown_with_its_status() {
        let mail = json!({"id": "m", "status": "routed", "messages": [{"rule": "r", "uid": "u-1", "status": "sent"}]});
        let text = render(Output::new(false), &mail);
        assert!(text.contains("u-1") && text.contains("sent"), "{text}");
    }
}
