//! Who is told what became of messages.

pub mod webhook_form;

use serde::{Deserialize, Serialize};

use crate::{
    identity::{
        id::{SubscriberId, TenantId},
        secret::Sealed,
    },
    message::event::EventKind,
    time::Time,
};

/// How a subscriber is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubscriberKind {
    /// One signed call for each event.
    Webhook = 1,
    /// One call for each outcome, in the words of an outbox: `TRAVELING` or `DISPATCH-ERROR`.
    Callback = 2,
    /// One call for many outcomes, whose answer says which of them were taken.
    Sync = 3,
    /// One signed call for each event, in the words of Resend.
    ResendWebhook = 4,
}

impl SubscriberKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Webhook, Self::Callback, Self::Sync, Self::ResendWebhook];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook | Self::ResendWebhook => "webhook",
            Self::Callback => "callback",
            Self::Sync => "sync",
        }
    }

    /// As a store keeps it.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// From a store.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// Someone who is told. A tenant's `client_sync` is one too, under the id [`Subscriber::CLIENT`]; where it is and how to
/// sign in there are the tenant's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// Whose messages it is told of.
    pub tenant: TenantId,
    /// Its id.
    pub id: SubscriberId,
    /// How it is told.
    pub kind: SubscriberKind,
    /// Where it is; empty for a tenant's own.
    pub url: String,
    /// Of what it is told.
    pub events: EventFilter,
    /// What calls are signed with, the newest first: a JSON list, encrypted.
    pub secrets: Option<Sealed>,
    /// Whether it is told at all.
    pub active: bool,
    /// Why it is not, where nobody asked for that.
    pub disabled_reason: Option<String>,
    /// What it is for, in people's words.
    pub description: Option<String>,
    /// Not to be called before this time.
    pub quiet_until: Option<Time>,
    /// Rises with each change.
    pub version: i64,
    /// When it was made: it is told of what happens from then on.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

impl Subscriber {
    /// The id of a tenant's `client_sync`.
    pub const CLIENT: &'static str = "client_sync";

    /// The place for which its secrets are sealed.
    pub fn secret_place(tenant: &TenantId, id: &SubscriberId) -> String {
        format!("subscriber/{tenant}/{id}")
    }
}

/// Names of events, as users know them. Empty means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventFilter(pub Vec<String>);

impl EventFilter {
    /// Whether it lets this event through.
    pub fn takes(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|wanted| wanted == name)
    }
}

/// What is told of an event, and under which name. `deferred` says of a message that is scheduled that an attempt failed.
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
