//! Who was told of a message, and since when everybody knows.

use postway_domain::{Subscriber, Time, subscriber::event_name};
use postway_store::record::{MessageRecord, NotificationView};
use serde::Serialize;
use utoipa::ToSchema;

/// Something a subscriber was, or is to be, told.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Notification {
    /// Who: the id of a webhook, or `client_sync`.
    subscriber: String,
    /// The event.
    #[schema(example = "email.sent")]
    event: &'static str,
    /// Its place in the message's history.
    sequence: i64,
    /// `pending`, `calling`, `waiting`, `acknowledged` or `dead`.
    #[schema(example = "acknowledged")]
    status: &'static str,
    /// Calls so far.
    tries: i64,
    /// When the next call is due.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_at: Option<Time>,
    /// The HTTP status of the latest answer.
    #[schema(example = 200)]
    last_status: Option<u16>,
    /// When it was acknowledged, or given up.
    #[schema(value_type = Option<String>, format = DateTime)]
    settled_at: Option<Time>,
}

impl From<NotificationView> for Notification {
    fn from(told: NotificationView) -> Self {
        Self {
            event: event_told(&told),
            subscriber: told.key.subscriber.to_string(),
            sequence: told.key.seq,
            status: told.state.as_str(),
            tries: told.tries,
            next_at: told.due_at,
            last_status: told.last_call.and_then(|call| call.status),
            settled_at: told.settled_at,
        }
    }
}

/// The name of the event that a notification tells of.
pub(crate) fn event_told(told: &NotificationView) -> &'static str {
    event_name(told.kind, told.deferred).unwrap_or(told.kind.as_str())
}

/// Since when a message is reported: it has ended, and nobody is still to be told.
pub(crate) fn reported_at(
    record: &MessageRecord,
    told: &[NotificationView],
    subscribers: &[Subscriber],
) -> Option<Time> {
    let message = &record.summary;
    if !message.state.status().is_final() || told.iter().any(|told| !told.state.is_settled()) {
        return None;
    }
    if subscribers.iter().any(|subscriber| will_be_told(subscriber, record, told)) {
        return None;
    }
    let settled = told.iter().filter_map(|told| told.settled_at).max();
    settled.or(message.sent_at).or(message.failed_at).or(Some(message.updated_at))
}

/// Notifications are made a moment after the event. One that is to come is known by its subscriber: it was there before,
/// as it is now.
fn will_be_told(subscriber: &Subscriber, record: &MessageRecord, told: &[NotificationView]) -> bool {
    let last = record.events.iter().rev().find_map(|event| Some((event, event_name(event.kind, false)?)));
    let Some((event, name)) = last else { return false };
    subscriber.active
        && subscriber.updated_at <= event.at
        && subscriber.events.takes(name)
        && !told.iter().any(|told| told.key.subscriber == subscriber.id && told.key.seq >= event.seq)
}
