//! The feed as JSON.

use std::collections::HashMap;

use postway_domain::{Event, EventKind, MessageUid, Time, subscriber::event_name};
use postway_store::record::FeedEvent;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Cursor, Found};
use crate::message::view::object_or_empty;

/// Something that happened to a message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FeedEntry)]
pub(crate) struct Entry {
    /// Give this as `after` for what comes next.
    #[schema(example = "MTIuMw")]
    pub(super) cursor: String,
    /// Its place in the message's history; null where the message was removed.
    sequence: Option<i64>,
    /// When; null where the message was removed.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<Time>,
    /// What, as webhooks name it.
    #[serde(rename = "type")]
    #[schema(example = "email.sent")]
    name: &'static str,
    /// What, as the message's history names it.
    #[schema(value_type = String, example = "sent")]
    event: EventKind,
    /// To which message; null where it is mail that came in.
    message: Option<Named>,
    /// Which mail came in, for `email.received`: its id in `/v1/inbound`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    inbound: Option<MessageUid>,
    /// Particulars; empty where there are none.
    #[serde(serialize_with = "object_or_empty")]
    #[schema(value_type = Object)]
    data: Option<Box<RawValue>>,
}

/// A message by its names.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NamedMessage)]
pub(crate) struct Named {
    /// Your id of it, or its uid; null where it was removed.
    #[schema(example = "order-1")]
    id: Option<String>,
    /// Its own id.
    #[schema(value_type = String, format = "uuid")]
    uid: MessageUid,
}

/// What came next.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Feed {
    /// In order, oldest first.
    data: Vec<Entry>,
    /// Give this as `after` for the next; there is always one.
    #[schema(example = "MTIuMw")]
    next_cursor: String,
}

impl Feed {
    pub(super) fn new(Found { entries, position }: Found) -> Self {
        Self { data: entries, next_cursor: Cursor(position).write() }
    }
}

impl Entry {
    /// An entry, unless it is of what happens inside and nobody is told.
    pub(super) fn new(found: FeedEvent, ids: &HashMap<MessageUid, String>) -> Option<Self> {
        let name = event_name(found.kind, found.deferred)?;
        let (sequence, at, data) = match found.event {
            Some(Event { seq, at, data, .. }) => (Some(seq), Some(at), data),
            None => (None, None, None),
        };
        let is_inbound = found.kind == EventKind::Received;
        Some(Self {
            cursor: Cursor(found.position).write(),
            sequence,
            at,
            name,
            event: found.kind,
            message: (!is_inbound).then(|| Named { id: ids.get(&found.uid).cloned(), uid: found.uid }),
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
        let event =
            data.map(|data| Event { seq: 3, at: Time::from_millis(0), kind, data: Some(data.to_owned()) });
        let found = FeedEvent { position: FeedPosition { page: 1, entry: 0 }, uid, kind, deferred, event };
        let ids = HashMap::from([(uid, "order-1".to_owned())]);
        Entry::new(found, &ids).map(|entry| serde_json::to_value(entry).unwrap())
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
