//! Subscribers: webhooks, callbacks and client syncs that are notified of events.

pub mod webhook_form;

use serde::{Deserialize, Serialize};

use crate::{
    identity::{
        id::{SubscriberId, TenantId},
        secret::SealedSecret,
    },
    message::event::EventKind,
    time::Time,
};

/// How a subscriber is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubscriberKind {
    /// One signed call for each event.
    Webhook = 1,
    /// One call for each outcome, in the words of an outbox: `TRAVELING` or `DISPATCH-ERROR`.
    Callback = 2,
    /// One call for many outcomes, whose answer says which of them were accepted.
    Sync = 3,
    /// One signed call for each event, in the words of Resend.
    ResendWebhook = 4,
    /// One signed call for each event, in the words of Postmark.
    PostmarkWebhook = 5,
    /// No call: a copy of each message that was sent.
    Archive = 6,
}

impl SubscriberKind {
    /// Every value.
    pub const ALL: [Self; 6] = [
        Self::Webhook,
        Self::Callback,
        Self::Sync,
        Self::ResendWebhook,
        Self::PostmarkWebhook,
        Self::Archive,
    ];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook | Self::ResendWebhook | Self::PostmarkWebhook => "webhook",
            Self::Callback => "callback",
            Self::Sync => "sync",
            Self::Archive => "archive",
        }
    }

    /// The code that a store keeps.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The value of a code that a store keeps.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// A receiver of notifications. A tenant's `client_sync` is one too, under the id [`Subscriber::CLIENT`]; its
/// address and credentials are in the tenant's settings. So is its archive, [`Subscriber::ARCHIVE`]: a copy waits for
/// it, and holds its message back from retention, as a call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// The tenant whose messages it is notified of.
    pub tenant: TenantId,
    /// Its id.
    pub id: SubscriberId,
    /// How it is notified.
    pub kind: SubscriberKind,
    /// The URL; empty for a client sync.
    pub url: String,
    /// The events it is notified of.
    pub events: EventFilter,
    /// The signing secrets, the newest first: a JSON list, encrypted.
    pub secrets: Option<SealedSecret>,
    /// Whether it is active.
    pub active: bool,
    /// Why it was disabled automatically, if it was.
    pub disabled_reason: Option<String>,
    /// A description for people.
    pub description: Option<String>,
    /// Not to be called before this time.
    pub quiet_until: Option<Time>,
    /// The version, which increases with each change.
    pub version: i64,
    /// When it was created. It is notified of events from then on.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

impl Subscriber {
    /// The id of a tenant's `client_sync`.
    pub const CLIENT: &'static str = "client_sync";
    /// The id of a tenant's archive.
    pub const ARCHIVE: &'static str = "archive";

    /// The context that its secrets are sealed for.
    pub fn sealing_context(tenant: &TenantId, id: &SubscriberId) -> String {
        format!("subscriber/{tenant}/{id}")
    }
}

/// The names of events, as users know them. Empty means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventFilter(pub Vec<String>);

impl EventFilter {
    /// Whether it includes this event.
    pub fn takes(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|wanted| wanted == name)
    }
}

/// The public name of an event; `None` if subscribers are not notified of it. `deferred` says that a
/// scheduled message waits because an attempt failed.
pub fn event_name(kind: EventKind, deferred: bool) -> Option<&'static str> {
    Some(match kind {
        EventKind::Accepted => "email.accepted",
        EventKind::Scheduled if deferred => "email.deferred",
        EventKind::Sent => "email.sent",
        EventKind::Captured => "email.captured",
        EventKind::Failed => "email.failed",
        EventKind::RecipientFailed => "email.recipient_failed",
        EventKind::Invalid => "email.invalid",
        EventKind::InDoubt => "email.in_doubt",
        EventKind::Resent => "email.resent",
        EventKind::Resolved => "email.resolved",
        EventKind::Replayed => "email.replayed",
        EventKind::Cancelled => "email.cancelled",
        EventKind::Expired => "email.expired",
        EventKind::Suppressed => "email.suppressed",
        EventKind::Delivered => "email.delivered",
        EventKind::Delayed => "email.delayed",
        EventKind::Bounced => "email.bounced",
        EventKind::Complained => "email.complained",
        EventKind::AutoReplied => "email.auto_replied",
        EventKind::PecAccepted => "email.pec.accepted",
        EventKind::PecTakenOver => "email.pec.taken_over",
        EventKind::PecDelivered => "email.pec.delivered",
        EventKind::PecFailed => "email.pec.failed",
        EventKind::PecTimeout => "email.pec.timeout",
        EventKind::Received => "email.received",
        EventKind::UnprovenReport => "email.unproven_report",
        EventKind::Unsubscribed => "email.unsubscribed",
        EventKind::Resubscribed => "email.resubscribed",
        EventKind::Replied => "email.replied",
        EventKind::Opened => "email.opened",
        EventKind::Clicked => "email.clicked",
        EventKind::SuppressionCreated => "suppression.created",
        EventKind::SuppressionDeleted => "suppression.deleted",
        EventKind::Validating
        | EventKind::Validated
        | EventKind::Ready
        | EventKind::Scheduled
        | EventKind::Sending
        | EventKind::Notifying
        | EventKind::Notified => return None,
    })
}

/// Every name, for filters and documentation.
pub fn event_names() -> impl Iterator<Item = &'static str> {
    EventKind::ALL.iter().filter_map(|kind| event_name(*kind, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_filter_takes_all_and_another_what_it_names() {
        assert!(EventFilter::default().takes("email.sent"));
        let filter = EventFilter(vec!["email.sent".to_owned()]);
        assert!(filter.takes("email.sent") && !filter.takes("email.failed"));
    }

    #[test]
    fn names_are_unique_and_only_what_happens_inside_has_none() {
        let names: Vec<_> = event_names().collect();
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
        assert_eq!(event_name(EventKind::Scheduled, false), None);
        assert_eq!(EventKind::ALL.len() - names.len(), 6);
    }
}
