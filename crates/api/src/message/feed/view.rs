//! The feed as JSON.

use std::collections::HashMap;

use postway_domain::{EventKind, MessageEvent, MessageUid, Time, subscriber::event_name};
use postway_store::record::FeedEvent;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{FeedCursor, FeedPage};
use crate::message::view::object_or_empty;

/// An event of a message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FeedEntry)]
pub(crate) struct FeedEntry {
    /// Pass this as `after` to read what follows.
    #[schema(example = "MTIuMw")]
    pub(super) cursor: String,
    /// The event's position in the message's history; null if the message was removed.
    sequence: Option<i64>,
    /// When it happened; null if the message was removed.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<Time>,
    /// The event's name, as webhooks use it.
    #[serde(rename = "type")]
    #[schema(example = "email.sent")]
    name: &'static str,
    /// The event's name, as the message's history uses it.
    #[schema(value_type = String, example = "sent")]
    event: EventKind,
    /// The message; null for inbound mail.
    message: Option<FeedMessage>,
    /// The inbound mail, for `email.received`: its id in `/v1/inbound`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    inbound: Option<MessageUid>,
    /// Further data; an empty object if absent.
    #[serde(serialize_with = "object_or_empty")]
    #[schema(value_type = Object)]
    data: Option<Box<RawValue>>,
}

/// A message by its ids.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NamedMessage)]
pub(crate) struct FeedMessage {
    /// Your id of the message, or its uid; null if it was removed.
    #[schema(example = "order-1")]
    id: Option<String>,
    /// The message's own id.
    #[schema(value_type = String, format = "uuid")]
    uid: MessageUid,
}

/// The entries that follow.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Feed)]
pub(crate) struct FeedAnswer {
    /// The entries, oldest first.
    data: Vec<FeedEntry>,
    /// Pass this as `after` to continue; it is always present.
    #[schema(example = "MTIuMw")]
    next_cursor: String,
}

impl FeedAnswer {
    pub(super) fn new(FeedPage { entries, position }: FeedPage) -> Self {
        Self { data: entries, next_cursor: FeedCursor(position).write() }
    }
}

impl FeedEntry {
    /// The entry of an event; `None` for internal events, which subscribers do not get.
    pub(super) fn new(found: FeedEvent, ids: &HashMap<MessageUid, String>) -> Option<Self> {
        let name = event_name(found.kind, found.deferred)?;
        let (sequence, at, data) = match found.event {
            Some(MessageEvent { seq, at, data, .. }) => (Some(seq), Some(at), data),
            None => (None, None, None),
        };
        let is_inbound = found.kind == EventKind::Received;
        Some(Self {
            cursor: FeedCursor(found.position).write(),
            sequence,
            at,
            name,
            event: found.kind,
            message: found
                .kind
                .is_of_message()
                .then(|| FeedMessage { id: ids.get(&found.uid).cloned(), uid: found.uid }),
            inbound: is_inbound.then_some(found.uid),
            data: data.and_then(|text| RawValue::from_string(text).ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use postway_store::record::FeedPosition;
    use serde_json::{Value, json};

    use super::*;

    fn shown(kind: EventKind, deferred: bool, data: Option<&str>) -> Option<Value> {
        let uid = MessageUid::from_bytes([7; 16]);
        let event = data.map(|data| MessageEvent {
            seq: 3,
            at: Time::from_millis(0),
            kind,
            data: Some(data.to_owned()),
        });
        let found = FeedEvent { position: FeedPosition { page: 1, entry: 0 }, uid, kind, deferred, event };
        let ids = HashMap::from([(uid, "order-1".to_owned())]);
        FeedEntry::new(found, &ids).map(|entry| serde_json::to_value(entry).unwrap())
    }

    #[test]
    fn an_entry_names_message_and_event() {
        let entry = shown(EventKind::Sent, false, Some(r#"{"attempt":1}"#)).unwrap();
        assert_eq!((&entry["type"], &entry["event"]), (&json!("email.sent"), &json!("sent")));
        assert_eq!((&entry["sequence"], &entry["data"]), (&json!(3), &json!({"attempt": 1})));
        assert_eq!(entry["message"]["id"], "order-1");
        let gone = shown(EventKind::Sent, false, None).unwrap();
        assert_eq!(
            (&gone["type"], &gone["sequence"], &gone["data"]),
            (&json!("email.sent"), &Value::Null, &json!({}))
        );
    }

    #[test]
    fn mail_that_came_in_is_no_message() {
        let entry = shown(EventKind::Received, false, Some(r#"{"subject":"x"}"#)).unwrap();
        assert_eq!((&entry["type"], &entry["message"]), (&json!("email.received"), &Value::Null));
        assert_eq!(entry["inbound"], MessageUid::from_bytes([7; 16]).to_string());
        assert_eq!(entry["data"]["subject"], "x");
    }

    #[test]
    fn a_message_is_deferred_by_a_failure_and_not_by_its_time() {
        assert_eq!(shown(EventKind::Scheduled, true, Some("{}")).unwrap()["type"], "email.deferred");
        assert!(shown(EventKind::Scheduled, false, Some("{}")).is_none());
        assert!(shown(EventKind::Ready, false, Some("{}")).is_none());
    }
}
