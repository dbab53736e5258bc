//! Events in the format of Resend, for receivers that were written for it.
//!
//! `{"type", "created_at", "data": {"email_id", "created_at", "from", "to", "subject", "tags", …}}`. Events
//! and signatures are the same as in Postway's own format. Events that Resend does not have are not
//! delivered.

use futures::StreamExt;
use postway_domain::{
    EventKind, MessageEvent, NamedAddress, RecipientKind, Time, WebhookForm, message::ScheduleReason,
};
use postway_store::{StoreError, record::StoredBody};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    context::DeliveryContext,
    payload::{HIDDEN, particulars, reason},
    received_mail::{self, ReceivedFile, ReceivedLinks, ReceivedMail, ReceivedPerson, full},
};
use crate::notification::message_state::MessageSnapshot;

/// The most bytes of a mail that are searched for its author.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The body for an event of a message; `None` if Resend has no such event.
pub(crate) async fn message_body(
    context: &DeliveryContext,
    snapshot: &MessageSnapshot,
    event: &MessageEvent,
    deferred: bool,
) -> Result<Option<Value>, StoreError> {
    let message = &snapshot.brief.summary;
    let Some(name) = WebhookForm::Resend.event_name(event.kind, deferred) else { return Ok(None) };
    if event.kind == EventKind::Accepted && message.state.wait() != Some(ScheduleReason::SendAt) {
        return Ok(None);
    }
    let of_kind = |kind: RecipientKind| {
        let recipients = snapshot.brief.recipients.iter().filter(move |one| one.kind == kind);
        recipients.map(|one| one.address.as_str()).collect::<Vec<_>>()
    };
    let mut data = json!({
        "email_id": message.uid,
        "message_id": format!("<{}>", message.message_id),
        "created_at": message.created_at,
        "from": author(context, snapshot).await?,
        "to": of_kind(RecipientKind::To),
        "cc": of_kind(RecipientKind::Cc),
        "bcc": of_kind(RecipientKind::Bcc),
        "subject": if message.sensitive { HIDDEN } else { &message.subject },
        "tags": tags(&message.tags),
    });
    if let Some((name, particulars)) = event_details(snapshot, event) {
        data[name] = particulars;
    }
    Ok(Some(envelope(name, event.at, data)))
}

/// The body for inbound mail. Beside Resend's fields it has our own, and the texts, which Resend's receivers
/// fetch by another call.
pub(crate) fn received_body(
    event: &MessageEvent,
    mail: Option<&ReceivedMail>,
    links: &ReceivedLinks<'_>,
) -> Option<Value> {
    let name = WebhookForm::Resend.event_name(event.kind, false)?;
    let mut data = received_mail::own_data(event, mail, links);
    let fields = data.as_object_mut()?;
    for (theirs, ours) in [("email_id", "id"), ("created_at", "received_at")] {
        let value = fields.get(ours).cloned().unwrap_or_default();
        fields.insert(theirs.to_owned(), value);
    }
    if let Some(mail) = mail {
        let written = |people: &[ReceivedPerson]| people.iter().map(full).collect::<Vec<_>>();
        let file = |(place, file): (usize, &ReceivedFile)| {
            let is_inline = file.content_id.is_some();
            json!({
                "id": format!("att_{place}"),
                "filename": file.filename,
                "content_type": file.content_type,
                "content_disposition": if is_inline { "inline" } else { "attachment" },
                "content_id": file.content_id,
                "size": file.size,
                "download_url": links.file(place),
                "expires_at": links.until,
            })
        };
        let attachments: Vec<Value> = mail.files.iter().enumerate().map(file).collect();
        let people = [("to", written(&mail.to)), ("cc", written(&mail.cc)), ("bcc", written(&mail.bcc))];
        fields.extend(people.map(|(name, people)| (name.to_owned(), json!(people))));
        fields.insert("attachments".to_owned(), json!(attachments));
        if let Some(id) = fields.get("message_id").and_then(Value::as_str).map(|id| format!("<{id}>")) {
            fields.insert("message_id".to_owned(), id.into());
        }
    }
    Some(envelope(name, event.at, data))
}

/// The body of a test call.
pub(crate) fn test_body(data: Value, now: Time) -> Value {
    envelope("webhook.test", now, data)
}

fn envelope(name: &str, at: Time, data: Value) -> Value {
    json!({"type": name, "created_at": at, "data": data})
}

/// The additional object that Resend adds to some events.
fn event_details(snapshot: &MessageSnapshot, event: &MessageEvent) -> Option<(&'static str, Value)> {
    let why = || reason(&snapshot.brief, event);
    Some(match event.kind {
        EventKind::Bounced | EventKind::RecipientFailed | EventKind::PecFailed => {
            let is_soft = particulars(event)["type"].as_str().is_some_and(|kind| kind == "soft");
            let kind = if is_soft { "Transient" } else { "Permanent" };
            ("bounce", json!({"message": why(), "type": kind, "subType": "General"}))
        }
        EventKind::Failed | EventKind::Invalid | EventKind::Expired | EventKind::Captured => {
            ("failed", json!({"reason": why()}))
        }
        EventKind::Suppressed => {
            ("suppressed", json!({"message": why(), "type": "OnAccountSuppressionList"}))
        }
        EventKind::Opened => ("open", reader_details(event)),
        EventKind::Clicked => ("click", reader_details(event)),
        _ => return None,
    })
}

/// What a reader did, in Resend's names.
fn reader_details(event: &MessageEvent) -> Value {
    let said = particulars(event);
    json!({"timestamp": event.at, "link": said["url"], "userAgent": said["user_agent"]})
}

/// Tags of the form `name:value` as an object; a tag without a colon gets an empty value.
fn tags(labels: &[String]) -> Map<String, Value> {
    let tag = |label: &String| {
        let (name, value) = label.split_once(':').unwrap_or((label, ""));
        (name.to_owned(), Value::from(value))
    };
    labels.iter().map(tag).collect()
}

/// The author of a message, from the request or else from the mail; empty if the message is sensitive or its
/// mail is gone.
async fn author(context: &DeliveryContext, snapshot: &MessageSnapshot) -> Result<String, StoreError> {
    #[derive(Deserialize)]
    struct RequestAuthor {
        from: Option<String>,
    }

    let message = &snapshot.brief.summary;
    let (tenant, uid) = (&message.lane.tenant, message.uid);
    if message.sensitive {
        return Ok(String::new());
    }
    if let Some(StoredBody::Inline(json)) = context.store.payload(tenant, uid).await?
        && let Ok(RequestAuthor { from: Some(from) }) = serde_json::from_slice(&json)
    {
        return Ok(from);
    }
    let head = match context.store.raw(tenant, uid).await? {
        Some(StoredBody::Inline(bytes)) => bytes.to_vec(),
        Some(StoredBody::Blob(blob)) => {
            let mut head = Vec::new();
            // If the blob cannot be read, the event is delivered without an author rather than never.
            if let Ok(mut pieces) = context.depot.get_stream(tenant, &blob).await {
                while let Some(Ok(piece)) = pieces.next().await
                    && head.len() < HEAD_BYTES_MAX
                {
                    head.extend_from_slice(&piece[..piece.len().min(HEAD_BYTES_MAX - head.len())]);
                }
            }
            head
        }
        None => Vec::new(),
    };
    Ok(from_field(&head).unwrap_or_default())
}

/// The author in a mail's header, as written there; the address alone if the name is encoded.
fn from_field(mail: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&mail[..mail.len().min(HEAD_BYTES_MAX)]).into_owned();
    let head = head.split("\r\n\r\n").next()?.replace("\r\n ", " ").replace("\r\n\t", " ");
    let is_from = |line: &&str| line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case("from:"));
    let value = head.lines().find(is_from)?.get(5..)?.trim();
    let address =
        value.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(address, _)| address);
    match (value.contains("=?"), address) {
        (true, address) => Some(address?.to_owned()),
        (false, _) => {
            Some(value.parse::<NamedAddress>().map_or_else(|_| value.to_owned(), |one| one.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_author_is_read_from_the_header_alone() {
        let of = |mail: &str| from_field(mail.as_bytes());
        assert_eq!(
            of("To: a@x\r\nFrom: \"Shop\"\r\n <shop@example.com>\r\n\r\nFrom: no").as_deref(),
            Some("Shop <shop@example.com>")
        );
        assert_eq!(of("from: shop@example.com\r\n\r\n").as_deref(), Some("shop@example.com"));
        assert_eq!(
            of("From: =?utf-8?q?B=C3=A4r?= <shop@example.com>\r\n\r\n").as_deref(),
            Some("shop@example.com")
        );
        assert_eq!(of("To: a@x\r\n\r\nFrom: shop@example.com"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn labels_are_named_values() {
        let labels = ["kind:receipt".to_owned(), "plain".to_owned()];
        assert_eq!(Value::Object(tags(&labels)), json!({"kind": "receipt", "plain": ""}));
    }
}
