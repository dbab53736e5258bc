//! The form of webhook calls: our own, or that of a service whose users already have receivers.

use crate::{
    message::event::EventKind,
    subscriber::{SubscriberKind, event_name, event_names},
};

/// The form of a webhook's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebhookForm {
    /// Postway's own.
    Postway,
    /// Resend's.
    Resend,
    /// Postmark's.
    Postmark,
}

impl WebhookForm {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Postway, Self::Resend, Self::Postmark];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Postway => "postway",
            Self::Resend => "resend",
            Self::Postmark => "postmark",
        }
    }

    /// The form with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.as_str() == word)
    }

    /// The kind of a subscriber with this form.
    pub fn kind(self) -> SubscriberKind {
        match self {
            Self::Postway => SubscriberKind::Webhook,
            Self::Resend => SubscriberKind::ResendWebhook,
            Self::Postmark => SubscriberKind::PostmarkWebhook,
        }
    }

    /// The name of an event in this form; `None` if the form has no name for it.
    pub fn event_name(self, kind: EventKind, deferred: bool) -> Option<&'static str> {
        match self {
            Self::Postway => event_name(kind, deferred),
            Self::Resend => resend_name(kind, deferred),
            Self::Postmark => postmark_name(kind),
        }
    }

    /// Our names of the events that this form calls `theirs`.
    pub fn ours(self, theirs: &str) -> impl Iterator<Item = &'static str> {
        let kinds = EventKind::ALL.iter().filter(move |kind| self.event_name(**kind, true) == Some(theirs));
        kinds.filter_map(|kind| event_name(*kind, true))
    }

    /// This form's name of the event that we call `ours`.
    pub fn theirs(self, ours: &str) -> Option<&'static str> {
        let kind = EventKind::ALL.iter().find(|kind| event_name(**kind, true) == Some(ours))?;
        self.event_name(*kind, true)
    }

    /// Every name of this form.
    pub fn names(self) -> Vec<&'static str> {
        let mut names: Vec<_> = event_names().filter_map(|ours| self.theirs(ours)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl SubscriberKind {
    /// The form of its calls, if it is a webhook.
    pub fn form(self) -> Option<WebhookForm> {
        WebhookForm::ALL.into_iter().find(|form| form.kind() == self)
    }
}

/// The name of an event in Resend's form. `email.scheduled` is only for accepted mail that waits for its
/// time, which the caller must check.
fn resend_name(kind: EventKind, deferred: bool) -> Option<&'static str> {
    Some(match kind {
        EventKind::Accepted => "email.scheduled",
        EventKind::Sent => "email.sent",
        EventKind::Delivered | EventKind::PecDelivered => "email.delivered",
        EventKind::Scheduled if deferred => "email.delivery_delayed",
        EventKind::Delayed => "email.delivery_delayed",
        EventKind::Bounced | EventKind::RecipientFailed | EventKind::PecFailed => "email.bounced",
        EventKind::Complained => "email.complained",
        // It has no word for mail that never left, and its door says `failed` of it too.
        EventKind::Failed | EventKind::Invalid | EventKind::Expired | EventKind::Captured => "email.failed",
        EventKind::Suppressed => "email.suppressed",
        EventKind::Received => "email.received",
        EventKind::Opened => "email.opened",
        EventKind::Clicked => "email.clicked",
        EventKind::Validated
        | EventKind::Ready
        | EventKind::Scheduled
        | EventKind::Sending
        | EventKind::InDoubt
        | EventKind::Resent
        | EventKind::Resolved
        | EventKind::Cancelled
        | EventKind::Replayed
        | EventKind::AutoReplied
        | EventKind::PecAccepted
        | EventKind::PecTakenOver
        | EventKind::PecTimeout
        | EventKind::Notifying
        | EventKind::Notified
        | EventKind::UnprovenReport
        | EventKind::Validating
        | EventKind::Unsubscribed
        | EventKind::Resubscribed
        | EventKind::SuppressionCreated
        | EventKind::SuppressionDeleted
        | EventKind::Replied => return None,
    })
}

/// The type of record of an event in Postmark's form.
fn postmark_name(kind: EventKind) -> Option<&'static str> {
    Some(match kind {
        EventKind::Delivered | EventKind::PecDelivered => "Delivery",
        EventKind::Bounced | EventKind::RecipientFailed | EventKind::PecFailed | EventKind::Failed => {
            "Bounce"
        }
        EventKind::Complained => "SpamComplaint",
        EventKind::Opened => "Open",
        EventKind::Clicked => "Click",
        EventKind::Unsubscribed | EventKind::Resubscribed => "SubscriptionChange",
        EventKind::Received => "Inbound",
        EventKind::Accepted
        | EventKind::Validated
        | EventKind::Invalid
        | EventKind::Ready
        | EventKind::Scheduled
        | EventKind::Sending
        | EventKind::Sent
        | EventKind::InDoubt
        | EventKind::Resent
        | EventKind::Resolved
        | EventKind::Cancelled
        | EventKind::Expired
        | EventKind::Suppressed
        | EventKind::Replayed
        | EventKind::Delayed
        | EventKind::AutoReplied
        | EventKind::PecAccepted
        | EventKind::PecTakenOver
        | EventKind::PecTimeout
        | EventKind::Notifying
        | EventKind::Notified
        | EventKind::UnprovenReport
        | EventKind::Captured
        | EventKind::Validating
        | EventKind::SuppressionCreated
        | EventKind::SuppressionDeleted
        | EventKind::Replied => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_kept_under_a_kind_of_its_own() {
        for form in WebhookForm::ALL {
            assert_eq!(form.kind().form(), Some(form));
            assert_eq!(WebhookForm::from_word(form.as_str()), Some(form));
        }
        assert_eq!(SubscriberKind::Sync.form(), None);
        assert_eq!(WebhookForm::from_word("Resend"), None);
    }

    #[test]
    fn the_names_of_a_form_lead_to_ours_and_back() {
        let delayed: Vec<_> = WebhookForm::Resend.ours("email.delivery_delayed").collect();
        assert_eq!(delayed, ["email.deferred", "email.delayed"]);
        assert_eq!(WebhookForm::Resend.ours("email.queued").count(), 0);
        assert_eq!(WebhookForm::Resend.theirs("email.invalid"), Some("email.failed"));
        assert_eq!(WebhookForm::Resend.theirs("email.captured"), Some("email.failed"), "never sent");
        assert_eq!(WebhookForm::Postmark.theirs("email.captured"), None);
        for name in WebhookForm::Resend.names() {
            assert!(WebhookForm::Resend.ours(name).count() > 0, "{name}");
        }
        assert_eq!(
            WebhookForm::Postmark.names(),
            ["Bounce", "Click", "Delivery", "Inbound", "Open", "SpamComplaint", "SubscriptionChange"]
        );
        assert_eq!(WebhookForm::Postmark.theirs("email.sent"), None);
        assert_eq!(WebhookForm::Postway.names().len(), event_names().count());
    }
}
