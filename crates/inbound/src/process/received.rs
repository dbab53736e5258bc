//! The event of a mail that was received: what subscribers and the feed learn of it.
//!
//! The event is small and is stored with the mail's outcome. The mail's text, html, header and files are
//! added by whoever delivers the event, from the mail itself.

use postway_domain::mailbox::MailboxSettings;
use postway_store::record::MailToProcess;
use serde_json::{Map, Value, json};

use crate::mail::{MailSummary, ParsedMail, TrustedAuthentication, bounded};

/// The most attachment names in an event.
const NAMES_MAX: usize = 50;
/// The most addresses of one field in an event.
const ADDRESSES_MAX: usize = 100;
/// The longest header value in an event, in characters.
const VALUE_CHARS_MAX: usize = 500;
/// What the header says about spam and machines. The sender, or any server on the way, may have written it.
const SPAM_FIELDS: [(&str, &str); 6] = [
    ("flag", "X-Spam-Flag"),
    ("status", "X-Spam-Status"),
    ("score", "X-Spam-Score"),
    ("auto_submitted", "Auto-Submitted"),
    ("precedence", "Precedence"),
    ("list_id", "List-Id"),
];

/// The data of the event.
pub(super) fn event_data(
    job: &MailToProcess,
    mail: &ParsedMail<'_>,
    tags: &[String],
    settings: &MailboxSettings,
    infected: Option<&str>,
) -> String {
    let MailSummary { sender, recipients, subject, message_id, dated_at } = MailSummary::from_mail(mail);
    let attachments: Vec<&String> = mail.attached().names.iter().take(NAMES_MAX).collect();
    let authentication = match &settings.authserv_id {
        // The reception writes its own field above all others.
        _ if settings.is_received() => TrustedAuthentication::read_topmost(mail),
        Some(by) => TrustedAuthentication::read(mail, by),
        None => None,
    };
    json!({
        "id": job.uid,
        "mailbox": job.key.mailbox,
        "from": sender,
        "to": recipients,
        "subject": subject,
        "message_id": message_id,
        "in_reply_to": first(mail, "In-Reply-To"),
        "date": dated_at,
        "received_at": job.arrived_at.unwrap_or(job.created_at),
        "size": mail.raw().len(),
        "tags": tags,
        "attachments": attachments,
        "envelope": { "from": first(mail, "Return-Path").map(|path| bare(&path)), "to": delivered_to(mail) },
        "authentication": authentication,
        "spam": spam(mail),
        "infected": infected,
    })
    .to_string()
}

fn first(mail: &ParsedMail<'_>, name: &str) -> Option<String> {
    let value = mail.plain(name).next()?;
    Some(bounded(value.trim(), VALUE_CHARS_MAX))
}

fn bare(path: &str) -> String {
    path.trim().trim_start_matches('<').trim_end_matches('>').to_owned()
}

/// The addresses that the mail was delivered to, as the last server wrote them.
fn delivered_to(mail: &ParsedMail<'_>) -> Vec<String> {
    let named = ["Delivered-To", "X-Original-To"];
    let found = named.into_iter().map(|name| mail.people(name)).find(|people| !people.is_empty());
    let people = found.unwrap_or_default();
    people.into_iter().take(ADDRESSES_MAX).map(|person| bounded(&person.address, VALUE_CHARS_MAX)).collect()
}

fn spam(mail: &ParsedMail<'_>) -> Map<String, Value> {
    let fact = |(ours, theirs): &(&str, &str)| Some(((*ours).to_owned(), Value::from(first(mail, theirs)?)));
    SPAM_FIELDS.iter().filter_map(fact).collect()
}
