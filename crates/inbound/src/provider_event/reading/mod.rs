//! Reads the events of each provider: which mail they are about, and what they say. Pure.
//!
//! What a server did becomes a [`ReceivedReport`], as if it had come by mail, so that bounces, outcomes and
//! suppressions follow by the same code. Whether an address is bad is decided by the provider's own words
//! where it has any, and otherwise by the server's codes and text. What a provider says that has no meaning
//! here is ignored, and anything that is not of its form is an error.

mod generic;
mod mailgun;
mod postmark;
mod resend;
mod sendgrid;
mod ses;

use postway_domain::{EventKind, HookProvider, MessageUid, Time};
use postway_intake::{JsonBounds, read_object};
use postway_mime::received::{
    BounceType, OriginalMessage, ReceivedReport, ReportFinding, ReportKind, ReportedAction, diagnose,
};
use serde_json::Value;

/// The name of our id in what is sent along with a mail: a custom argument, variable, tag or metadata.
pub(super) const UID_FIELD: &str = "postway_id";
/// The header with our id.
const UID_HEADER: &str = "x-postway-id";
/// The most recipients of one event that are read.
const RECIPIENTS_MAX: usize = 1_000;
/// The longest text that is taken from an event.
const TEXT_CHARS_MAX: usize = 1_000;
/// What an event may be made of: a few bytes of JSON may take seventy times as much memory as values.
const BOUNDS: JsonBounds = JsonBounds { values_max: 20_000, text_bytes_max: 2 * 1024 * 1024 };
/// The longest id by which a message is searched for.
const PROVIDER_ID_BYTES_MAX: usize = 1_000;
/// The length of a uid in characters.
const UID_CHARS: usize = 36;

/// An event of a provider.
#[derive(Debug)]
pub(super) struct ReportedEvent {
    /// The ids by which the provider may have answered our call.
    pub provider_ids: Vec<String>,
    /// Our own id of the message, if the event has it.
    pub uid: Option<MessageUid>,
    /// When it happened.
    pub at: Option<Time>,
    pub content: EventContent,
}

/// What an event says.
#[derive(Debug)]
pub(super) enum EventContent {
    /// What a server did with the mail.
    Report(ReceivedReport),
    /// What a reader did.
    Act(ReaderAct),
    /// Nothing that is recorded, and why.
    Nothing(&'static str),
}

/// What a reader did.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReaderAct {
    /// `opened`, `clicked` or `unsubscribed`.
    pub kind: EventKind,
    pub recipient: Option<String>,
    pub url: Option<String>,
    pub user_agent: Option<String>,
}

/// Reads an event; the error says what is wrong with it.
pub(super) fn read(provider: HookProvider, raw: &[u8]) -> Result<ReportedEvent, String> {
    let event = read_object(raw, BOUNDS).map_err(|error| format!("the event {error}"))?;
    let event = Value::Object(event);
    let mut reported = match provider {
        HookProvider::Ses => ses::read(&event),
        HookProvider::Sendgrid => sendgrid::read(&event),
        HookProvider::Mailgun => mailgun::read(&event),
        HookProvider::Postmark => postmark::read(&event),
        HookProvider::Resend => resend::read(&event),
        HookProvider::Http => generic::read(&event),
    }?;
    reported.provider_ids.retain(|id| id.len() <= PROVIDER_ID_BYTES_MAX);
    Ok(reported)
}

/// A provider's statement that mail to an address ended in this way, with the server's words.
struct ServerStatement<'e> {
    address: &'e str,
    action: ReportedAction,
    status: Option<&'e str>,
    words: &'e str,
    /// Whether the address is bad, if the provider says so.
    verdict: Option<BounceType>,
}

impl ServerStatement<'_> {
    fn finding(&self) -> ReportFinding {
        let mut found = diagnose(&shortened(self.address), self.action, self.status, self.words);
        if self.action == ReportedAction::Failed {
            found.kind = self.verdict.or(found.kind);
        }
        found
    }
}

/// A report with these findings.
fn report(kind: ReportKind, findings: Vec<ReportFinding>, reporter: &str) -> EventContent {
    EventContent::Report(ReceivedReport {
        kind,
        recipients: findings,
        original: OriginalMessage::default(),
        feedback_type: None,
        reporter: Some(reporter.to_owned()),
    })
}

/// A complaint of this recipient, if the event names one.
fn complaint(address: Option<&str>, feedback_type: Option<&str>, reporter: &str) -> EventContent {
    let finding = |address: &str| diagnose(&shortened(address), ReportedAction::Delivered, None, "");
    let recipients = address.map(finding).into_iter().collect();
    EventContent::Report(ReceivedReport {
        kind: ReportKind::Complaint,
        recipients,
        original: OriginalMessage::default(),
        feedback_type: feedback_type.map(shortened),
        reporter: Some(reporter.to_owned()),
    })
}

/// A text at a JSON pointer, unless it is empty.
fn text<'e>(event: &'e Value, pointer: &str) -> Option<&'e str> {
    event.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}

/// A text at a JSON pointer, shortened, to store.
fn short(event: &Value, pointer: &str) -> Option<String> {
    text(event, pointer).map(shortened)
}

fn shortened(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// A text that must be there.
fn need<'e>(event: &'e Value, pointer: &str) -> Result<&'e str, String> {
    text(event, pointer).ok_or_else(|| format!("the event has no text at {pointer}"))
}

/// A time at a JSON pointer: RFC 3339, or seconds, perhaps with a fraction.
fn time(event: &Value, pointer: &str) -> Option<Time> {
    match event.pointer(pointer)? {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => {
            let seconds = number.as_f64().filter(|seconds| (0.0..1e11).contains(seconds))?;
            Some(Time::from_millis((seconds * 1000.0) as i64))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Our id, alone or in a Message-ID of ours.
fn uid_in(text: &str) -> Option<MessageUid> {
    let text = text.trim().trim_matches(['<', '>']);
    let local = text.split_once('@').map_or(text, |(local, _)| local);
    (local.len() == UID_CHARS).then(|| local.parse().ok())?
}

/// Our id in a list of header fields, each `{name, value}` in whatever case.
fn uid_in_headers(headers: Option<&Value>) -> Option<MessageUid> {
    let of = |wanted: &str| {
        let mut fields = headers?.as_array()?.iter();
        fields.find_map(|field| {
            let at =
                |name: &str| field.get(name).or_else(|| field.get(name[..1].to_uppercase() + &name[1..]));
            let name = at("name")?.as_str()?;
            name.eq_ignore_ascii_case(wanted).then(|| uid_in(at("value")?.as_str()?))?
        })
    };
    of(UID_HEADER).or_else(|| of("message-id"))
}

/// An act of a reader.
fn act(
    kind: EventKind,
    recipient: Option<&str>,
    url: Option<String>,
    user_agent: Option<String>,
) -> EventContent {
    EventContent::Act(ReaderAct { kind, recipient: recipient.map(shortened), url, user_agent })
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
