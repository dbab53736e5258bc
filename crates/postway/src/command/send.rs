//! `postway send`: hands over one mail, written on the command line or ready-made (`--eml`).

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use postway_domain::MessageStatus;
use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::CommandContext;
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::input::{attachment, pair, read_input, read_text};
use crate::cli::output::{field, list, printable};

const POLL_MAX: Duration = Duration::from_secs(1);
/// When the interval between two requests has grown to this, the message has waited long enough to be
/// explained.
const EXPLAINED_AFTER: Duration = Duration::from_millis(160);

#[derive(Args, Debug, Default)]
pub struct SendArgs {
    /// The sender: ada@example.com or "Ada <ada@example.com>" (with --eml: the envelope's alone)
    #[arg(long, value_name = "ADDRESS", required_unless_present = "eml")]
    from: Option<String>,
    /// A recipient; may be repeated (with --eml: replaces those in the mail)
    #[arg(long, value_name = "ADDRESS")]
    to: Vec<String>,
    /// A recipient of a copy; may be repeated
    #[arg(long, value_name = "ADDRESS", conflicts_with = "eml")]
    cc: Vec<String>,
    /// A recipient that the others do not see; may be repeated
    #[arg(long, value_name = "ADDRESS", conflicts_with = "eml")]
    bcc: Vec<String>,
    /// The subject
    #[arg(long, conflicts_with = "eml")]
    subject: Option<String>,
    /// The text, or @FILE, or - for standard input (@@ for a text that begins with @)
    #[arg(long, conflicts_with = "eml")]
    text: Option<String>,
    /// The HTML, or @FILE, or - for standard input
    #[arg(long, conflicts_with = "eml")]
    html: Option<String>,
    /// A file to attach; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "eml")]
    attach: Vec<PathBuf>,
    /// A further header; may be repeated
    #[arg(long, value_name = "NAME: VALUE", conflicts_with = "eml")]
    header: Vec<String>,
    /// The template that makes subject and texts
    #[arg(long, value_name = "NAME", conflicts_with = "eml")]
    template: Option<String>,
    /// A variable of the template; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE", requires = "template")]
    vars: Vec<String>,
    /// The language of the template, such as de-AT [default: the tenant's]
    #[arg(long, requires = "template")]
    locale: Option<String>,
    /// Hide its content from everybody, and erase its bodies once it is sent
    #[arg(long)]
    sensitive: bool,
    /// A ready-made mail (RFC 5322) to send as it is, or - for standard input
    #[arg(long, value_name = "FILE")]
    eml: Option<PathBuf>,
    /// The account to send by [default: the tenant's]
    #[arg(long)]
    account: Option<String>,
    /// Your own id for the message; handing it over twice sends it once
    #[arg(long)]
    id: Option<String>,
    /// 0 to 3, or immediate, high, normal, low
    #[arg(long)]
    priority: Option<String>,
    /// The batch it belongs to
    #[arg(long, value_name = "CODE")]
    batch: Option<String>,
    /// A tag; may be repeated
    #[arg(long)]
    tag: Vec<String>,
    /// Not before this time (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    send_at: Option<String>,
    /// Not after this time (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
    /// Wait until the message is sent or has failed (exit code 1 unless it is sent, or captured by the
    /// sandbox)
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "wait")]
    wait_seconds: u64,
}

pub async fn run(context: &CommandContext, args: SendArgs) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let answer = match &args.eml {
        Some(path) => {
            let mail = read_input(path)?;
            client
                .call(Method::POST, &["v1", "messages", "raw"], &args.raw_query(), RequestBody::Mail(mail))
                .await?
        }
        None => {
            client.call(Method::POST, &["v1", "messages"], &[], RequestBody::Json(&args.message()?)).await?
        }
    };
    if !args.wait {
        return output.show(&answer, |output, answer| {
            output.fields(["id", "uid", "status"].map(|name| (name, field(answer, name))))
        });
    }
    let uid = field(&answer, "uid");
    eprintln!("{} {}", field(&answer, "status"), [field(&answer, "id"), uid.clone()].join(" ").trim());
    let message = wait_for_end(&client, &uid, Duration::from_secs(args.wait_seconds)).await?;
    let status = field(&message, "status");
    output.show(&message, |output, message| {
        output.fields(["id", "uid", "status", "reason"].map(|name| (name, field(message, name))))
    })?;
    match status.as_str() {
        // A message that the sandbox captured has reached its goal.
        "sent" | "captured" => Ok(()),
        status => Err(anyhow::anyhow!("the message is `{status}`").into()),
    }
}

impl SendArgs {
    /// The message as the API takes it.
    fn message(&self) -> Result<Value, CommandFailure> {
        if [&self.text, &self.html].iter().all(|part| part.as_deref() == Some("-")) {
            return Err(CommandFailure::Usage(
                "standard input can be the text or the html, not both".to_owned(),
            ));
        }
        let mut message = Map::new();
        let mut set = |name: &str, value: Value| message.insert(name.to_owned(), value);
        for (name, value) in [
            ("id", &self.id),
            ("account", &self.account),
            ("from", &self.from),
            ("subject", &self.subject),
            ("batch", &self.batch),
            ("locale", &self.locale),
        ] {
            if let Some(value) = value {
                set(name, json!(value));
            }
        }
        for (name, values) in [("to", &self.to), ("cc", &self.cc), ("bcc", &self.bcc), ("tags", &self.tag)] {
            if !values.is_empty() {
                set(name, json!(values));
            }
        }
        for (name, value) in
            [("priority", &self.priority), ("send_at", &self.send_at), ("expires_at", &self.expires_at)]
        {
            if let Some(value) = value {
                // The priority is a number or a word.
                set(name, value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number)));
            }
        }
        for (name, part) in [("text", &self.text), ("html", &self.html)] {
            if let Some(part) = part {
                set(name, json!(read_text(part)?));
            }
        }
        if let Some(name) = &self.template {
            let pairs: Result<Vec<(String, String)>, CommandFailure> =
                self.vars.iter().map(|var| pair(var)).collect();
            let variables: Map<String, Value> =
                pairs?.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
            set("template", json!({"name": name, "variables": variables}));
        }
        if self.sensitive {
            set("sensitive", json!(true));
        }
        if !self.header.is_empty() {
            let headers: Result<Map<String, Value>, CommandFailure> =
                self.header.iter().map(|line| header(line)).collect();
            set("headers", Value::Object(headers?));
        }
        if !self.attach.is_empty() {
            let attachments: Result<Vec<Value>, CommandFailure> =
                self.attach.iter().map(|path| attachment(path)).collect();
            set("attachments", Value::Array(attachments?));
        }
        Ok(Value::Object(message))
    }

    /// The query parameters of a ready-made mail.
    fn raw_query(&self) -> Vec<(&'static str, String)> {
        let one = [
            ("from", &self.from),
            ("account", &self.account),
            ("priority", &self.priority),
            ("batch", &self.batch),
            ("id", &self.id),
            ("send_at", &self.send_at),
            ("expires_at", &self.expires_at),
        ];
        let many = self
            .to
            .iter()
            .map(|to| ("to", to.clone()))
            .chain(self.tag.iter().map(|tag| ("tag", tag.clone())));
        let sensitive = self.sensitive.then(|| ("sensitive", "true".to_owned()));
        let one = one.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        one.chain(many).chain(sensitive).collect()
    }
}

/// Polls until the message is in a final state, and returns it; it is an error if that takes too long.
/// Whenever the reason for waiting changes, it is printed on standard error.
async fn wait_for_end(client: &ApiClient, uid: &str, limit: Duration) -> Result<Value, CommandFailure> {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_millis(20);
    let mut printed = String::new();
    loop {
        let message = client.get(&["v1", "messages", uid], &[]).await?;
        let status = field(&message, "status");
        if status.parse::<MessageStatus>().is_ok_and(MessageStatus::is_final) {
            return Ok(message);
        }
        // A message that is sent at once needs no explanation.
        if pause >= EXPLAINED_AFTER {
            let explanation = client.get(&["v1", "messages", uid, "explain"], &[]).await?;
            let words = waits_for(&explanation);
            if words != printed {
                eprintln!("{words}");
                printed = words;
            }
        }
        if Instant::now() + pause > deadline {
            let waited = limit.as_secs();
            return Err(anyhow::anyhow!(
                "message {uid} is still `{status}` after {waited} s; it is kept and goes on: \
                 `postway messages explain {uid}` says what it waits for"
            )
            .into());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(POLL_MAX);
    }
}

/// An explanation on one line: the state, and what blocks the message.
fn waits_for(explanation: &Value) -> String {
    let gate = |gate: &Value| match field(gate, "until") {
        until if until.is_empty() => field(gate, "reason"),
        until => format!("{} (until {until})", field(gate, "reason")),
    };
    let mut words: Vec<String> = list(explanation, "gates").iter().map(gate).collect();
    words.extend(Some(field(explanation, "reason")).filter(|reason| !reason.is_empty()));
    match words.is_empty() {
        true => field(explanation, "status"),
        false => printable(&format!("{}: {}", field(explanation, "status"), words.join("; "))),
    }
}

fn header(line: &str) -> Result<(String, Value), CommandFailure> {
    match line.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), json!(value.trim()))),
        _ => Err(CommandFailure::Usage(format!("`{line}` is not a header; write it like 'X-Order: 17'"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_the_message_of_the_api() {
        let folder = tempfile::tempdir().unwrap();
        let (text, file) = (folder.path().join("body.txt"), folder.path().join("a.pdf"));
        std::fs::write(&text, "hello\n").unwrap();
        std::fs::write(&file, "%PDF").unwrap();
        let args = SendArgs {
            from: Some("a@example.com".into()),
            to: vec!["b@example.net".into(), "c@example.net".into()],
            subject: Some("hi".into()),
            text: Some(format!("@{}", text.display())),
            html: Some("@@home".into()),
            header: vec!["X-Order: 17".into()],
            attach: vec![file],
            priority: Some("0".into()),
            send_at: Some("2026-01-01T00:00:00Z".into()),
            tag: vec!["receipt".into()],
            ..SendArgs::default()
        };
        let expected = json!({
            "from": "a@example.com", "to": ["b@example.net", "c@example.net"], "subject": "hi", "text": "hello\n",
            "html": "@home", "headers": {"X-Order": "17"}, "priority": 0, "send_at": "2026-01-01T00:00:00Z",
            "attachments": [{"filename": "a.pdf", "content_type": "application/pdf", "content": "JVBERg=="}],
            "tags": ["receipt"],
        });
        assert_eq!(args.message().unwrap(), expected);
    }

    #[test]
    fn what_a_message_waits_for_is_one_line() {
        let held = json!({"status": "ready", "reason": null, "gates": [
            {"gate": "tenant", "reason": "its tenant is suspended", "until": null},
            {"gate": "circuit", "reason": "relay-1 is at fault", "until": "2026-11-15T21:10:08Z"},
        ]});
        assert_eq!(
            waits_for(&held),
            "ready: its tenant is suspended; relay-1 is at fault (until 2026-11-15T21:10:08Z)"
        );
        assert_eq!(waits_for(&json!({"status": "sending", "reason": null, "gates": []})), "sending");
    }

    #[test]
    fn a_template_is_named_with_its_variables() {
        let args = SendArgs {
            from: Some("a@example.com".into()),
            to: vec!["b@example.net".into()],
            template: Some("welcome".into()),
            vars: vec!["name=Ada".into(), "sum=1=1".into()],
            sensitive: true,
            ..SendArgs::default()
        };
        let expected = json!({
            "from": "a@example.com", "to": ["b@example.net"], "sensitive": true,
            "template": {"name": "welcome", "variables": {"name": "Ada", "sum": "1=1"}},
        });
        assert_eq!(args.message().unwrap(), expected);
    }

    #[test]
    fn a_ready_made_mail_is_sent_with_what_overrides_it() {
        let args = SendArgs {
            to: vec!["b@example.net".into(), "c@example.net".into()],
            id: Some("m-1".into()),
            send_at: Some("1900000000".into()),
            ..SendArgs::default()
        };
        let expected =
            [("id", "m-1"), ("send_at", "1900000000"), ("to", "b@example.net"), ("to", "c@example.net")];
        assert_eq!(args.raw_query(), expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn what_cannot_be_read_is_a_usage_error() {
        let missing = SendArgs { text: Some("@/nonexistent/file".into()), ..SendArgs::default() };
        let no_header = SendArgs { header: vec!["nonsense".into()], ..SendArgs::default() };
        let twice = SendArgs { text: Some("-".into()), html: Some("-".into()), ..SendArgs::default() };
        for args in [missing, no_header, twice] {
            assert!(matches!(args.message(), Err(CommandFailure::Usage(_))), "{args:?}");
        }
    }
}
