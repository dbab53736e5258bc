//! Who was told of a message, and since when everybody knows.

use postway_domain::{Event, Subscriber, Time, subscriber::event_name};
use postway_store::{
    hears_of,
    record::{MessageRecord, MessageSummary, NotificationView, Telling, Told},
};
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

/// Since when a message is reported, by all that is known of it.
pub(crate) fn reported_at(
    record: &MessageRecord,
    told: &[NotificationView],
    subscribers: &[Subscriber],
) -> Option<Time> {
    let latest_for =
        |subscriber: &Subscriber| record.events.iter().rev().find(|event| hears(subscriber, event));
    since_when(&record.summary, latest_for, &Told::gather(told), subscribers)
}

/// Since when a message is reported: it has ended, and nobody is still to be told. `latest_for` gives its latest event that a
/// subscriber is told of, as far as that is known.
pub(crate) fn since_when<'e>(
    message: &MessageSummary,
    latest_for: impl Fn(&Subscriber) -> Option<&'e Event>,
    told: &[Told],
    subscribers: &[Subscriber],
) -> Option<Time> {
    let all = told.iter().map(|told| told.all).max().unwrap_or_default();
    if !message.state.status().is_final() || all == Telling::Open {
        return None;
    }
    let will_be = |one: &Subscriber| latest_for(one).is_some_and(|latest| will_be_told(one, latest, told));
    if subscribers.iter().any(will_be) {
        return None;
    }
    all.settled_at().or(message.sent_at).or(message.failed_at).or(Some(message.updated_at))
}

/// Notifications are made a moment after the event. One that is to come is known by its subscriber: it was there before,
/// as it is now.
fn will_be_told(subscriber: &Subscriber, event: &Event, told: &[Told]) -> bool {
    subscriber.active
        && subscriber.updated_at <= event.at
        && hears(subscriber, event)
        && !told.iter().any(|told| told.subscriber == subscriber.id && told.seq >= event.seq)
}

/// Whether it is told of such an event, of a message that has ended: a notice of delay, say, is nothing to a client sync.
fn hears(subscriber: &Subscriber, event: &Event) -> bool {
    hears_of(subscriber.kind, event.kind, true)
        && event_name(event.kind, false).is_some_and(|name| subscriber.events.takes(name))
}
