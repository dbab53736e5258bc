//! The notifications of a message, and when it was completely reported.

use postway_domain::{Event, Subscriber, Time, subscriber::event_name};
use postway_store::{
    hears_of,
    record::{MessageRecord, MessageSummary, NotificationView, Telling, Told},
};
use serde::Serialize;
use utoipa::ToSchema;

/// An event due to a subscriber, sent or not.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Notification)]
pub(crate) struct SubscriberNotification {
    /// The subscriber: the id of a webhook, or `client_sync`.
    subscriber: String,
    /// The event.
    #[schema(example = "email.sent")]
    event: &'static str,
    /// The event's position in the message's history.
    sequence: i64,
    /// `pending`, `calling`, `waiting`, `acknowledged` or `dead`.
    #[schema(example = "acknowledged")]
    status: &'static str,
    /// The number of calls so far.
    tries: i64,
    /// When the next call is due.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_at: Option<Time>,
    /// The HTTP status of the latest answer.
    #[schema(example = 200)]
    last_status: Option<u16>,
    /// When it was acknowledged or given up.
    #[schema(value_type = Option<String>, format = DateTime)]
    settled_at: Option<Time>,
}

impl From<NotificationView> for SubscriberNotification {
    fn from(told: NotificationView) -> Self {
        Self {
            event: notified_event(&told),
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

/// The name of the event in a notification.
pub(crate) fn notified_event(told: &NotificationView) -> &'static str {
    event_name(told.kind, told.deferred).unwrap_or(told.kind.as_str())
}

/// When a message was completely reported, by its complete record.
pub(crate) fn reported_at(
    record: &MessageRecord,
    told: &[NotificationView],
    subscribers: &[Subscriber],
) -> Option<Time> {
    let latest_for =
        |subscriber: &Subscriber| record.events.iter().rev().find(|event| is_subscribed(subscriber, event));
    since_when(&record.summary, latest_for, &Told::gather(told), subscribers)
}

/// When a message was completely reported: it has ended, and no notification is pending. `latest_for` returns
/// its latest event that a subscriber gets, if known.
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
    let will_be =
        |one: &Subscriber| latest_for(one).is_some_and(|latest| will_be_notified(one, latest, told));
    if subscribers.iter().any(will_be) {
        return None;
    }
    all.settled_at().or(message.sent_at).or(message.failed_at).or(Some(message.updated_at))
}

/// Whether a notification of the event is still to be created. Notifications are created a moment after the
/// event; the subscriber existed before the event, and is still active.
fn will_be_notified(subscriber: &Subscriber, event: &Event, told: &[Told]) -> bool {
    subscriber.active
        && subscriber.updated_at <= event.at
        && is_subscribed(subscriber, event)
        && !told.iter().any(|told| told.subscriber == subscriber.id && told.seq >= event.seq)
}

/// Whether the subscriber gets this event of a message that has ended: a delay notice, for example, means
/// nothing to a client sync.
fn is_subscribed(subscriber: &Subscriber, event: &Event) -> bool {
    hears_of(subscriber.kind, event.kind, true)
        && event_name(event.kind, false).is_some_and(|name| subscriber.events.takes(name))
}
