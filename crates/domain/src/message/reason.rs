//! Why a message is in its state, as a sentence for people. API, reports and dashboard take it from here, so
//! that they say the same.

use serde_json::Value;

use super::MessageState;
use crate::message::event::EventKind;

/// The reason of a cancelled message.
pub const CANCELLED_BY_SENDER: &str = "withdrawn before it was sent";
/// The reason of an expired message.
pub const EXPIRED: &str = "its expires_at passed before it was sent";
/// The reason of a message whose recipients are all suppressed.
pub const ALL_SUPPRESSED: &str = "its recipients are on the suppression list";
/// The reason of a message without open recipients whose earlier doubt remains.
pub const DOUBT_REMAINS: &str = "some of its recipients may have got it: an earlier attempt had no answer";
/// The reason of a captured message.
pub const CAPTURED: &str = "the sandbox captured it: it was not sent to anybody";
/// The reason of a failure without a message.
pub const NO_REASON: &str = "it failed without a word";
/// The reason of certified mail whose provider gave no receipt in time.
pub const NO_RECEIPT: &str = "no receipt in time";
/// The error field of a certified-mail receipt that reports no error.
const NO_ERROR: &str = "nessuno";
/// The code of a message that a newer one with the same `collapse_key` replaced.
const SUPERSEDED: &str = "superseded";

/// Why a message is in `state`: the message of its failure, what it waits for, or what ended it. `None` while
/// it is under way, and if it was sent. `code` and `said` belong to its latest failure.
pub fn reason<'a>(state: MessageState, code: Option<&'a str>, said: Option<&'a str>) -> Option<&'a str> {
    match state {
        MessageState::Scheduled(wait) => said.or(Some(wait.as_str())),
        MessageState::Cancelled => said.filter(|_| code == Some(SUPERSEDED)).or(Some(CANCELLED_BY_SENDER)),
        MessageState::Expired => Some(EXPIRED),
        MessageState::Captured => Some(CAPTURED),
        MessageState::Suppressed => said.or(Some(ALL_SUPPRESSED)),
        // A dead letter always has a reason, however little is known.
        MessageState::Failed => said.filter(|said| !said.is_empty()).or(code).or(Some(NO_REASON)),
        MessageState::Invalid | MessageState::InDoubt => said,
        MessageState::Accepted
        | MessageState::Validating
        | MessageState::Ready
        | MessageState::Sending { .. }
        | MessageState::Sent => None,
    }
}

/// Why certified mail did not arrive, from an event that reports it: the provider's text, its code, or the
/// kind of the receipt; a fixed sentence if no receipt came in time. The views compute the same in SQL.
pub fn pec_error(kind: EventKind, particulars: &Value) -> Option<&str> {
    let said = |name: &str| particulars.get(name)?.as_str().filter(|text| !text.is_empty());
    match kind {
        EventKind::PecTimeout => Some(NO_RECEIPT),
        EventKind::PecFailed => {
            said("error_text").or(pec_error_code(kind, particulars)).or(said("receipt")).or(Some(NO_REASON))
        }
        EventKind::Accepted
        | EventKind::Validated
        | EventKind::Invalid
        | EventKind::Ready
        | EventKind::Scheduled
        | EventKind::Sending
        | EventKind::Sent
        | EventKind::Failed
        | EventKind::RecipientFailed
        | EventKind::InDoubt
        | EventKind::Resent
        | EventKind::Resolved
        | EventKind::Cancelled
        | EventKind::Expired
        | EventKind::Suppressed
        | EventKind::Replayed
        | EventKind::Delivered
        | EventKind::Delayed
        | EventKind::Bounced
        | EventKind::Complained
        | EventKind::AutoReplied
        | EventKind::PecAccepted
        | EventKind::PecTakenOver
        | EventKind::PecDelivered
        | EventKind::Notifying
        | EventKind::Notified
        | EventKind::Received
        | EventKind::UnprovenReport
        | EventKind::Captured
        | EventKind::Validating
        | EventKind::Unsubscribed
        | EventKind::Resubscribed
        | EventKind::SuppressionCreated
        | EventKind::SuppressionDeleted
        | EventKind::Opened
        | EventKind::Clicked
        | EventKind::Replied => None,
    }
}

/// The provider's error code, such as `no-dest`, if it gave one.
pub fn pec_error_code(kind: EventKind, particulars: &Value) -> Option<&str> {
    let code = particulars.get("error")?.as_str()?;
    (kind == EventKind::PecFailed && !code.is_empty() && code != NO_ERROR).then_some(code)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::ScheduleReason;

    #[test]
    fn an_end_that_nobody_explained_is_explained_all_the_same() {
        assert_eq!(
            reason(MessageState::Failed, Some("smtp_550"), Some("no such user")),
            Some("no such user")
        );
        assert_eq!(reason(MessageState::Failed, Some("smtp_550"), Some("")), Some("smtp_550"));
        assert_eq!(reason(MessageState::Failed, None, None), Some(NO_REASON));
        assert_eq!(reason(MessageState::Expired, Some("smtp_451"), Some("later")), Some(EXPIRED));
        assert_eq!(reason(MessageState::Suppressed, None, None), Some(ALL_SUPPRESSED));
        assert_eq!(
            reason(MessageState::Scheduled(ScheduleReason::SendAt), None, None),
            Some(ScheduleReason::SendAt.as_str())
        );
        assert_eq!(reason(MessageState::Sent, Some("smtp_550"), Some("of one recipient")), None);
    }

    #[test]
    fn a_message_that_a_newer_one_replaced_was_not_withdrawn_by_anybody() {
        let newer = Some("a newer message took its place");
        assert_eq!(reason(MessageState::Cancelled, Some("superseded"), newer), newer);
        assert_eq!(
            reason(MessageState::Cancelled, Some("smtp_451"), Some("later")),
            Some(CANCELLED_BY_SENDER)
        );
    }

    #[test]
    fn certified_mail_that_failed_says_so_in_the_providers_words() {
        let failed = |particulars: Value| {
            let text = pec_error(EventKind::PecFailed, &particulars).map(str::to_owned);
            (text, pec_error_code(EventKind::PecFailed, &particulars).map(str::to_owned))
        };
        let said = |text: &str, code: Option<&str>| (Some(text.to_owned()), code.map(str::to_owned));
        let words = json!({"receipt": "errore-consegna", "error": "no-dest", "error_text": "5.1.1 - indirizzo non valido"});
        assert_eq!(failed(words), said("5.1.1 - indirizzo non valido", Some("no-dest")));
        assert_eq!(failed(json!({"error": "virus", "error_text": ""})), said("virus", Some("virus")));
        let late = json!({"receipt": "preavviso-errore-consegna", "error": "nessuno"});
        assert_eq!(failed(late), said("preavviso-errore-consegna", None));
        assert_eq!(failed(Value::Null), said(NO_REASON, None));
        assert_eq!(pec_error(EventKind::PecTimeout, &Value::Null), Some(NO_RECEIPT));
        assert_eq!(pec_error(EventKind::Bounced, &json!({"error_text": "no"})), None);
    }
}
