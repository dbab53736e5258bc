//! In whose words a webhook is called: ours, or those of a service whose users have receivers already.

use crate::{
    message::event::EventKind,
    subscriber::{SubscriberKind, event_name, event_names},
};

/// The words of a webhook's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebhookForm {
    /// Ours.
    Postway,
    /// Those of Resend.
    Resend,
}

impl WebhookForm {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Postway, Self::Resend];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Postway => "postway",
            Self::Resend => "resend",
        }
    }

    /// From its word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.as_str() == word)
    }

    /// How a subscriber of this form is told.
    pub fn kind(self) -> SubscriberKind {
        match self {
            Self::Postway => SubscriberKind::Webhook,
            Self::Resend => SubscriberKind::ResendWebhook,
        }
    }

    /// Under which name an event is told; none where this form has no word for it.
    pub fn event_name(self, kind: EventKind, deferred: bool) -> Option<&'static str> {
        match self {
            Self::Postway => event_name(kind, deferred),
            Self::Resend => resend_name(kind, deferred),
        }
    }

    /// Our names of the events that this form tells under a name of its own.
    pub fn ours(self, theirs: &str) -> impl Iterator<Item = &'static str> {
        let kinds = EventKind::ALL.iter().filter(move |kind| self.event_name(**kind, true) == Some(theirs));
        kinds.filter_map(|kind| event_name(*kind, true))
    }

    /// Its name of an event that is ours by this name.
    pub fn theirs(self, ours: &str) -> Option<&'static str> {
        let kind = EventKind::ALL.iter().find(|kind| event_name(**kind, true) == Some(ours))?;
        self.event_name(*kind, true)
    }

    /// Every name of its own.
    pub fn names(self) -> Vec<&'static str> {
        let mut names: Vec<_> = event_names().filter_map(|ours| self.theirs(ours)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl SubscriberKind {
    /// In whose words it is called, if it is a webhook.
    pub fn form(self) -> Option<WebhookForm> {
        WebhookForm::ALL.into_iter().find(|form| form.kind() == self)
    }
}

/// What was accepted has a word there only if it waits for its time, which whoever tells it must look at.
fn resend_name(kind: EventKind, deferred: bool) -> Option<&'static str> {
    Some(match kind {
        EventKind::Accepted => "email.scheduled",
        EventKind::Sent => "email.sent",
        EventKind::Delivered | EventKind::PecDelivered => "email.delivered",
        EventKind::Scheduled if deferred => "email.delivery_delayed",
        EventKind::Delayed => "email.delivery_delayed",
        EventKind::Bounced | EventKind::RecipientFailed | EventKind::PecFailed => "email.bounced",
        EventKind::Complained => "email.complained",
        EventKind::Failed | EventKind::Invalid | EventKind::Expired => "email.failed",
        EventKind::Suppressed => "email.suppressed",
        EventKind::Received => "email.received",
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
        | EventKind::Captured
        | EventKind::Validating
        | EventKind::Unsubscribed
        | EventKind::Resubscribed
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
        assert_eq!(WebhookForm::Resend.ours("email.opened").count(), 0);
        assert_eq!(WebhookForm::Resend.theirs("email.invalid"), Some("email.failed"));
        assert_eq!(WebhookForm::Resend.theirs("email.captured"), None);
        for name in WebhookForm::Resend.names() {
            assert!(WebhookForm::Resend.ours(name).count() > 0, "{name}");
        }
        assert_eq!(WebhookForm::Postway.names().len(), event_names().count());
    }
}
