//! Events in the format of Postmark, for receivers that were written for it.
//!
//! `{"RecordType", "MessageID", "Recipient" or "Email", "Tag", "Metadata", …}`, one call for each event. The
//! signature is ours; Postmark has none, and its basic authentication stands in the webhook's URL. Events
//! that Postmark does not have are not delivered.

use postway_domain::{EventKind, MessageEvent, Time, WebhookForm};
use serde_json::{Map, Value, json};

use super::payload::{HIDDEN, particulars, reason};
use crate::notification::message_state::MessageSnapshot;

/// Postmark's numbers of the types of a bounce.
const HARD_BOUNCE: (&str, i64, &str) = ("HardBounce", 1, "Hard bounce");
const SOFT_BOUNCE: (&str, i64, &str) = ("SoftBounce", 4_096, "Soft bounce");
const SPAM_COMPLAINT: (&str, i64, &str) = ("SpamComplaint", 512, "Spam complaint");

/// The body for an event of a message; `None` if Postmark has no such event.
pub(crate) fn message_body(snapshot: &MessageSnapshot, event: &MessageEvent) -> Option<Value> {
    let message = &snapshot.brief.summary;
    let record_type = WebhookForm::Postmark.event_name(event.kind, false)?;
    let said = particulars(event);
    // An event without a recipient is about the message's first.
    let first = snapshot.brief.recipients.first().map(|one| one.address.as_str()).unwrap_or_default();
    let recipient = said["recipient"].as_str().unwrap_or(first);
    let metadata: Option<Map<String, Value>> = message
        .metadata
        .as_deref()
        .filter(|_| !message.sensitive)
        .and_then(|text| serde_json::from_str(text).ok());
    let stream = message.lane.batch.as_ref().map_or("outbound", |batch| batch.as_str());
    let mut body = json!({
        "RecordType": record_type,
        "MessageStream": stream,
        "ServerID": 0,
        "MessageID": message.uid,
        "Tag": message.tags.first().cloned().unwrap_or_default(),
        "Metadata": metadata.unwrap_or_default(),
    });
    let mut set = |name: &str, value: Value| body[name] = value;
    match event.kind {
        EventKind::Bounced | EventKind::RecipientFailed | EventKind::PecFailed | EventKind::Failed => {
            // Receivers take a hard bounce for an address that does not exist.
            let is_hard = said["type"].as_str() == Some("hard");
            let details = reason(&snapshot.brief, event);
            bounce(&mut set, if is_hard { HARD_BOUNCE } else { SOFT_BOUNCE }, event, recipient, &details);
        }
        EventKind::Complained => bounce(&mut set, SPAM_COMPLAINT, event, recipient, "reported as spam"),
        EventKind::Opened | EventKind::Clicked => {
            set("Recipient", json!(recipient));
            set("ReceivedAt", json!(event.at));
            set("UserAgent", json!(said["user_agent"].as_str().unwrap_or_default()));
            if event.kind == EventKind::Clicked {
                set("OriginalLink", json!(said["url"].as_str().unwrap_or_default()));
            }
        }
        EventKind::Unsubscribed | EventKind::Resubscribed => {
            let leaves = event.kind == EventKind::Unsubscribed;
            set("Recipient", json!(recipient));
            set("ChangedAt", json!(event.at));
            set("Origin", json!("Recipient"));
            set("SuppressSending", json!(leaves));
            set("SuppressionReason", if leaves { json!("ManualSuppression") } else { Value::Null });
        }
        _ => {
            set("Recipient", json!(recipient));
            set("DeliveredAt", json!(event.at));
            set("Details", json!(said["diagnostic"].as_str().unwrap_or_default()));
        }
    }
    if matches!(record_type, "Bounce" | "SpamComplaint") {
        let subject = if message.sensitive { HIDDEN } else { &message.subject };
        body["Subject"] = json!(subject);
    }
    Some(body)
}

/// The fields of a bounce and of a complaint. Postmark numbers its bounces; here the number is made of the
/// event, and stays the same when the call is repeated.
fn bounce(
    set: &mut impl FnMut(&str, Value),
    (kind, code, name): (&str, i64, &str),
    event: &MessageEvent,
    recipient: &str,
    details: &str,
) {
    set("ID", json!(event.at.as_millis().wrapping_mul(1_000).wrapping_add(event.seq % 1_000)));
    set("Type", json!(kind));
    set("TypeCode", json!(code));
    set("Name", json!(name));
    set("Description", json!(name));
    set("Details", json!(details));
    set("Email", json!(recipient));
    set("BouncedAt", json!(event.at));
    set("DumpAvailable", json!(false));
    set("Inactive", json!(kind != SOFT_BOUNCE.0));
    set("CanActivate", json!(kind == HARD_BOUNCE.0));
}

/// The body of a test call: a delivery, which receivers know.
pub(crate) fn test_body(now: Time) -> Value {
    json!({
        "RecordType": "Delivery",
        "MessageStream": "outbound",
        "ServerID": 0,
        "MessageID": "00000000-0000-0000-0000-000000000000",
        "Recipient": "test@example.com",
        "DeliveredAt": now,
        "Details": "webhook.test",
        "Tag": "",
        "Metadata": {},
    })
}
