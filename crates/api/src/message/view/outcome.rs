//! The outcome of a message after it was sent, as far as it was reported.

use postway_domain::{EventKind, Time, inbound::outcome_rank};
use postway_store::record::{NotificationView, OutcomeView, RecipientRecord, SubscriberProgress};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A bounce.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[schema(as = Bounce)]
pub(crate) struct BounceView {
    /// `hard` if the address itself is bad, which suppresses it; `soft` otherwise.
    #[serde(rename = "type", default)]
    #[schema(example = "hard")]
    pub(crate) kind: Option<String>,
    /// The code of the bounce.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "5.1.1")]
    pub(crate) code: Option<Value>,
    /// The reason, in a word or more.
    #[serde(default)]
    #[schema(example = "user_unknown")]
    pub(crate) reason: Option<String>,
    /// When it arrived.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) at: Option<Time>,
    /// When every notification of it was acknowledged or given up.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) reported_at: Option<Time>,
}

impl BounceView {
    /// Reads the JSON object that the store keeps.
    fn read(text: &str) -> Self {
        serde_json::from_str(text)
            .unwrap_or_else(|_| Self { reason: Some(text.to_owned()), ..Self::default() })
    }
}

/// The outcome of one recipient.
pub(super) fn of_recipient(
    recipient: &RecipientRecord,
    reported_at: Option<Time>,
) -> (Option<EventKind>, Option<BounceView>) {
    let bounce = recipient.bounce.as_deref().map(BounceView::read);
    (recipient.outcome, bounce.map(|bounce| BounceView { reported_at, ..bounce }))
}

/// The outcome of the message: the worst one known of its recipients.
pub(crate) fn of_message(
    recipients: &[RecipientRecord],
    reported_at: Option<Time>,
) -> (Option<EventKind>, Option<BounceView>) {
    of_outcomes(&OutcomeView::gather(recipients), reported_at)
}

/// The worst outcome of the recipients, and the bounce of the worst one that has a bounce.
pub(crate) fn of_outcomes(
    outcomes: &[OutcomeView],
    reported_at: Option<Time>,
) -> (Option<EventKind>, Option<BounceView>) {
    let rank = |one: &&OutcomeView| outcome_rank(one.outcome);
    let worst = outcomes.iter().max_by_key(rank).map(|one| one.outcome);
    let bounced = outcomes.iter().filter(|one| one.bounce.is_some()).max_by_key(rank);
    let bounce = bounced.and_then(|one| one.bounce.as_deref()).map(BounceView::read);
    (worst, bounce.map(|bounce| BounceView { reported_at, ..bounce }))
}

/// When every notification of this message's bounces was settled; `None` while one is pending.
pub(crate) fn bounce_reported_at(notifications: &[NotificationView]) -> Option<Time> {
    bounces_notified_at(&SubscriberProgress::gather(notifications))
}

/// The same from notifications in short form.
pub(crate) fn bounces_notified_at(notified: &[SubscriberProgress]) -> Option<Time> {
    notified.iter().map(|one| one.bounces).max().unwrap_or_default().settled_at()
}

#[cfg(test)]
mod tests {
    use postway_domain::{RecipientKind, RecipientStatus};
    use serde_json::json;

    use super::*;

    fn recipient(outcome: Option<EventKind>, bounce: Option<&str>) -> RecipientRecord {
        RecipientRecord {
            address: "ada@example.net".to_owned(),
            kind: RecipientKind::To,
            status: RecipientStatus::Sent,
            reply: None,
            outcome,
            bounce: bounce.map(str::to_owned),
        }
    }

    #[test]
    fn a_message_shows_the_worst_of_its_recipients() {
        let bounce = r#"{"type":"hard","code":"5.1.1","reason":"user_unknown","at":"1970-01-01T00:00:01Z"}"#;
        let recipients = [
            recipient(Some(EventKind::Delivered), None),
            recipient(Some(EventKind::Bounced), Some(bounce)),
            recipient(None, None),
        ];
        let told_at = Some(Time::from_millis(2_000));
        let (outcome, bounce) = of_message(&recipients, told_at);
        assert_eq!(outcome, Some(EventKind::Bounced));
        let expected = json!({"type": "hard", "code": "5.1.1", "reason": "user_unknown",
            "at": "1970-01-01T00:00:01.000Z", "reported_at": "1970-01-01T00:00:02.000Z"});
        assert_eq!(serde_json::to_value(bounce).unwrap(), expected);
        assert_eq!(of_message(&recipients[..1], None), (Some(EventKind::Delivered), None));
        assert_eq!(of_message(&recipients[2..], None), (None, None));
    }

    #[test]
    fn a_bounce_stays_when_a_complaint_came_after_it() {
        let complained = recipient(Some(EventKind::Complained), Some(r#"{"type":"soft"}"#));
        let (outcome, bounce) = of_message(&[complained], None);
        assert_eq!((outcome, bounce.unwrap().kind), (Some(EventKind::Complained), Some("soft".to_owned())));
    }
}
