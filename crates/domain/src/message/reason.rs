//! Why a message is where it is, in words for people. Whoever tells it takes them from here, so that an answer, a report
//! and a page say the same.

use super::State;

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

#[cfg(test)]
mod tests {
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
}
