//! The notifications of a message, and when it was completely reported.

use postway_domain::{MessageEvent, Subscriber, SubscriberKind, Time, subscriber::event_name};
use postway_store::{
    hears_of,
    record::{MessageRecord, MessageSummary, NotificationProgress, NotificationView, SubscriberProgress},
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
    fn from(notification: NotificationView) -> Self {
        Self {
            event: notified_event(&notification),
            subscriber: notification.key.subscriber.to_string(),
            sequence: notification.key.seq,
            status: notification.state.as_str(),
            tries: notification.tries,
            next_at: notification.due_at,
            last_status: notification.last_call.and_then(|call| call.status),
            settled_at: notification.settled_at,
        }
    }
}

/// The name of the event in a notification.
pub(crate) fn notified_event(notification: &NotificationView) -> &'static str {
    event_name(notification.kind, notification.deferred).unwrap_or(notification.kind.as_str())
}

/// When a message was completely reported, by its complete record.
pub(crate) fn reported_at(
    record: &MessageRecord,
    notifications: &[NotificationView],
    subscribers: &[Subscriber],
) -> Option<Time> {
    let latest_for =
        |subscriber: &Subscriber| record.events.iter().rev().find(|event| is_subscribed(subscriber, event));
    since_when(&record.summary, latest_for, &SubscriberProgress::gather(notifications), subscribers)
}

/// When a message was completely reported: it has ended, and no notification is pending. `latest_for` returns
/// its latest event that a subscriber gets, if known.
pub(crate) fn since_when<'e>(
    message: &MessageSummary,
    latest_for: impl Fn(&Subscriber) -> Option<&'e MessageEvent>,
    notified: &[SubscriberProgress],
    subscribers: &[Subscriber],
) -> Option<Time> {
    // An archive is no receiver of reports: a message is reported while its copy still waits.
    let called = notified.iter().filter(|one| one.subscriber.as_str() != Subscriber::ARCHIVE);
    let all = called.map(|one| one.all).max().unwrap_or_default();
    if !message.state.status().is_final() || all == NotificationProgress::Open {
        return None;
    }
    let will_be =
        |one: &Subscriber| latest_for(one).is_some_and(|latest| will_be_notified(one, latest, notified));
    if subscribers.iter().any(will_be) {
        return None;
    }
    all.settled_at().or(message.sent_at).or(message.failed_at).or(Some(message.updated_at))
}

/// Whether a notification of the event is still to be created. Notifications are created a moment after the
/// event; the subscriber existed before the event, and is still active.
fn will_be_notified(subscriber: &Subscriber, event: &MessageEvent, notified: &[SubscriberProgress]) -> bool {
    subscriber.active
        && subscriber.kind != SubscriberKind::Archive
        && subscriber.updated_at <= event.at
        && is_subscribed(subscriber, event)
        && !notified.iter().any(|one| one.subscriber == subscriber.id && one.seq >= event.seq)
}

/// Whether the subscriber gets this event of a message that has ended: a delay notice, for example, means
/// nothing to a client sync.
fn is_subscribed(subscriber: &Subscriber, event: &MessageEvent) -> bool {
    hears_of(subscriber.kind, event.kind, true)
        && event_name(event.kind, false).is_some_and(|name| subscriber.events.takes(name))
}
