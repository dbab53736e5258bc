//! Why a message is where it is, in words for people. Whoever tells it takes them from here, so that an answer, a report
//! and a page say the same.

use serde_json::Value;

use super::State;
use crate::message::event::EventKind;

/// Of a message that was cancelled.
pub const WITHDRAWN: &str = "withdrawn before it was sent";
/// Of a message that was not sent in time.
pub const TOO_LATE: &str = "its expires_at passed before it was sent";
/// Of a message that nobody is left to get.
pub const NOBODY_LEFT: &str = "its recipients are on the suppression list";
/// Of a message of which nothing is open any more, and an earlier doubt remains.
pub const DOUBT_REMAINS: &str = "some of its recipients may have got it: an earlier attempt had no answer";
/// Of a message that the sandbox took.
pub const CAPTURED: &str = "the sandbox captured it: it was not sent to anybody";
/// Of a failure that nothing is known of.
pub const UNSAID: &str = "it failed without a word";
/// Of certified mail whose provider gave no receipt in its time.
pub const NO_RECEIPT: &str = "no receipt in time";
/// What certified mail's providers call a receipt without an error.
const NO_ERROR: &str = "nessuno";
/// The code of a message whose place a newer one with the same `collapse_key` took.
const SUPERSEDED: &str = "superseded";

/// Why it is there: its failure's words, or what it waits for, or who ended it; nothing while it is under way or sent.
/// `code` and `said` are its latest failure's.
pub fn reason<'a>(state: State, code: Option<&'a str>, said: Option<&'a str>) -> Option<&'a str> {
    match state {
        State::Scheduled(wait) => said.or(Some(wait.as_str())),
        State::Cancelled => said.filter(|_| code == Some(SUPERSEDED)).or(Some(WITHDRAWN)),
        State::Expired => Some(TOO_LATE),
        State::Captured => Some(CAPTURED),
        State::Suppressed => said.or(Some(NOBODY_LEFT)),
        // A dead letter says why, whatever is known of it.
        State::Failed => said.filter(|said| !said.is_empty()).or(code).or(Some(UNSAID)),
        State::Invalid | State::InDoubt => said,
        State::Accepted | State::Validating | State::Ready | State::Sending { .. } | State::Sent => None,
    }
}

/// Why certified mail did not arrive, by an event that says so: the provider's words, or its code, or what kind of receipt
/// came; one sentence where none came in time. The views say the same in SQL.
pub fn pec_error(kind: EventKind, particulars: &Value) -> Option<&str> {
    let said = |name: &str| particulars.get(name)?.as_str().filter(|text| !text.is_empty());
    match kind {
        EventKind::PecTimeout => Some(NO_RECEIPT),
        EventKind::PecFailed => {
            said("error_text").or(pec_error_code(kind, particulars)).or(said("receipt")).or(Some(UNSAID))
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
        | EventKind::Replied => None,
    }
}

/// The provider's code for the same, such as `no-dest`; none where it gave none.
pub fn pec_error_code(kind: EventKind, particulars: &Value) -> Option<&str> {
    let code = particulars.get("error")?.as_str()?;
    (kind == EventKind::PecFailed && !code.is_empty() && code != NO_ERROR).then_some(code)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::Wait;

    #[test]
    fn an_end_that_nobody_explained_is_explained_all_the_same() {
        assert_eq!(reason(State::Failed, Some("smtp_550"), Some("no such user")), Some("no such user"));
        assert_eq!(reason(State::Failed, Some("smtp_550"), Some("")), Some("smtp_550"));
        assert_eq!(reason(State::Failed, None, None), Some(UNSAID));
        assert_eq!(reason(State::Expired, Some("smtp_451"), Some("later")), Some(TOO_LATE));
        assert_eq!(reason(State::Suppressed, None, None), Some(NOBODY_LEFT));
        assert_eq!(reason(State::Scheduled(Wait::SendAt), None, None), Some(Wait::SendAt.as_str()));
        assert_eq!(reason(State::Sent, Some("smtp_550"), Some("of one recipient")), None);
    }

    #[test]
    fn a_message_that_a_newer_one_replaced_was_not_withdrawn_by_anybody() {
        let newer = Some("a newer message took its place");
        assert_eq!(reason(State::Cancelled, Some("superseded"), newer), newer);
        assert_eq!(reason(State::Cancelled, Some("smtp_451"), Some("later")), Some(WITHDRAWN));
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
        assert_eq!(failed(Value::Null), said(UNSAID, None));
        assert_eq!(pec_error(EventKind::PecTimeout, &Value::Null), Some(NO_RECEIPT));
        assert_eq!(pec_error(EventKind::Bounced, &json!({"error_text": "no"})), None);
    }
}
