//! What each of our states and events is called in the reference systems: one place for the doors and the views that speak
//! as they do.
//!
//! Total by construction: every function here matches on all states or kinds, so that a new one does not compile before it
//! has its words.

use serde_json::Value;

use crate::{
    event::{Event, EventKind},
    inbound::InboundState,
    message::{State, Wait},
};

/// Whether those who asked to hear of a message's end have heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nobody asked, or somebody is still to hear.
    No = 0,
    /// Somebody is being called.
    Calling = 1,
    /// Everybody said so.
    Acknowledged = 2,
}

/// What a message of reference 001 is called by, beside its own state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing else.
    Plain = 0,
    /// Its tenant or batch is suspended.
    Suspended = 1,
    /// A bounce came.
    Bounced = 2,
    /// Everybody was told of its end.
    Reported = 3,
    /// The time it waited for has passed.
    Due = 4,
}

/// What an event led to, where its kind does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// Its kind says it, or it led to neither of these.
    Plain = 0,
    /// The message is sent.
    Sent = 1,
    /// The message has ended otherwise.
    Failed = 2,
    /// The message is tried again after an attempt.
    Retry = 3,
    /// The message waits to be prepared.
    Intake = 4,
}

/// Whether a message of reference 004 is to be tried again after an attempt, where its state does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Its state says it, or no attempt was made.
    Plain = 0,
    /// An attempt was made and took no retry: the account is held, or the answer is missing and the mail is sent again.
    Again = 1,
}

impl Trial {
    /// Of a message in this state after so many attempts. `is_due` says whether it goes on by itself. The views say the
    /// same in SQL.
    pub fn of(state: State, attempts: i64, is_due: bool) -> Self {
        match state {
            State::Ready if attempts > 0 => Self::Again,
            State::InDoubt if is_due => Self::Again,
            _ => Self::Plain,
        }
    }
}

/// What became of the messages by which a mail was passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// There is none.
    Nothing = 0,
    /// All are sent.
    Sent = 1,
    /// One is on its way.
    Open = 2,
    /// One has ended otherwise.
    Failed = 3,
}

/// What `emails.status` of reference 000 says.
pub fn status_000(state: State, told: Told) -> &'static str {
    match (state, told) {
        (State::Accepted | State::Scheduled(Wait::Fetch), _) => "ACCEPTED",
        (State::Validating, _) => "INTAKING",
        (State::Ready | State::Scheduled(Wait::SendAt | Wait::Retry), _) => "READY",
        (State::Sending { .. } | State::InDoubt, _) => "PROCESSING",
        (State::Invalid, _) => "INVALID",
        (State::Sent, Told::No) => "SENT",
        (State::Sent, Told::Calling) => "CALLING-SENT-CALLBACK",
        (State::Sent, Told::Acknowledged) => "SENT-ACKNOWLEDGED",
        // Whoever is called is told that it was not sent.
        (State::Captured, Told::No) => "CAPTURED",
        (State::Failed | State::Suppressed | State::Cancelled | State::Expired | State::Captured, told) => {
            match told {
                Told::No => "FAILED",
                Told::Calling => "CALLING-FAILED-CALLBACK",
                Told::Acknowledged => "FAILED-ACKNOWLEDGED",
            }
        }
    }
}

/// How it stands with the callback about a message's end: what its history said last. `is_open` says that somebody is still to
/// be told; where a callback was given up, nobody is being called.
pub fn told_000(events: &[Event], state: State, is_open: bool) -> Told {
    if !state.status().is_final() {
        return Told::No;
    }
    let says = |event: &Event| is_told_of(event.kind).then_some(event.kind).or_else(|| move_before(event));
    match events.iter().rev().find_map(says) {
        Some(EventKind::Notified) => Told::Acknowledged,
        Some(EventKind::Notifying) if is_open => Told::Calling,
        _ => Told::No,
    }
}

/// Whether an event tells of a callback. Each is a change of a mail of reference 000, and none of a message of ours.
pub fn is_told_of(kind: EventKind) -> bool {
    matches!(kind, EventKind::Notifying | EventKind::Notified)
}

/// The kinds of events by which a message came to stand where it does, for [`told_000`] in other languages.
pub fn moves() -> impl Iterator<Item = EventKind> {
    EventKind::ALL.iter().copied().filter(|kind| is_move(*kind))
}

/// The state that a message of reference 001 is in.
pub fn status_001(state: State, standing: Standing) -> &'static str {
    match (state, standing) {
        (_, Standing::Suspended) => "SUSPENDED",
        (_, Standing::Bounced) => "BOUNCED",
        (_, Standing::Reported) => "REPORTED",
        (_, Standing::Due) => "PENDING",
        (State::Accepted | State::Validating | State::Ready, Standing::Plain) => "PENDING",
        (State::Scheduled(_), Standing::Plain) => "DEFERRED",
        (State::Sending { .. } | State::InDoubt, Standing::Plain) => "SENDING",
        (State::Sent, Standing::Plain) => "SENT",
        (State::Captured, Standing::Plain) => "CAPTURED",
        (
            State::Failed | State::Invalid | State::Suppressed | State::Cancelled | State::Expired,
            Standing::Plain,
        ) => "ERROR",
    }
}

/// A bounce as reference 001 tells it, and the words of ours beside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounce001 {
    /// `hard` or `soft`.
    pub kind: String,
    /// The three digits of the server that refused it, or the enhanced code where it gave none.
    pub code: Option<String>,
    /// That server's words, or ours where it gave none.
    pub reason: String,
    /// The enhanced code.
    pub status: Option<String>,
    /// Our own word for it, such as `user_unknown`.
    pub word: Option<String>,
}

impl Bounce001 {
    /// As the particulars of a bounce tell it. The view says the same in SQL.
    pub fn of(particulars: &Value) -> Self {
        let text = |name: &str| match particulars.get(name)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let (status, word) = (text("status"), text("reason"));
        Self {
            kind: text("type").unwrap_or_else(|| "soft".to_owned()),
            code: text("smtp_code").or_else(|| status.clone()),
            reason: text("diagnostic").or_else(|| word.clone()).unwrap_or_else(|| BOUNCED.to_owned()),
            status,
            word,
        }
    }
}

/// Of a bounce that says nothing of why.
pub const BOUNCED: &str = "it bounced";

/// What `email_outbox.status` and `email_logs.status` of reference 004 say.
pub fn status_004(state: State, trial: Trial) -> &'static str {
    match state {
        State::Ready | State::InDoubt if trial == Trial::Again => "RETRY_SCHEDULED",
        State::Accepted | State::Validating | State::Scheduled(Wait::Fetch) => "RECEIVED",
        State::Ready | State::Scheduled(Wait::SendAt) => "VALIDATED",
        State::Scheduled(Wait::Retry) => "RETRY_SCHEDULED",
        State::Sending { .. } | State::InDoubt => "SENT_ATTEMPT",
        State::Sent => "SENT",
        State::Captured => "CAPTURED",
        State::Failed | State::Suppressed | State::Cancelled | State::Expired => "FAILED",
        State::Invalid => "VALIDATION_FAILED",
    }
}

/// What `monitored_emails_tasks.status` of reference 002 says.
pub fn status_002(state: InboundState, forwarded: Forwarded) -> &'static str {
    match (state, forwarded) {
        (InboundState::Received, _) => "received",
        (InboundState::Routing, _) | (InboundState::Routed, Forwarded::Open) => "in_progress",
        (InboundState::Routed, Forwarded::Sent) => "forwarded",
        (InboundState::Routed, Forwarded::Nothing) | (InboundState::NoMatch | InboundState::Gone, _) => {
            "skipped_no_match"
        }
        (InboundState::Routed, Forwarded::Failed) | (InboundState::Waiting | InboundState::Dead, _) => {
            "error"
        }
    }
}

/// What an event adds to `email_statuses` of reference 000, if anything.
pub fn history_000(kind: EventKind, sense: Sense) -> Option<&'static str> {
    Some(match kind {
        EventKind::Accepted => "ACCEPTED",
        EventKind::Validating => "INTAKING",
        EventKind::Invalid => "INVALID",
        EventKind::Ready => "READY",
        EventKind::Scheduled | EventKind::Replayed => match sense {
            Sense::Intake => "ACCEPTED",
            Sense::Plain | Sense::Sent | Sense::Failed | Sense::Retry => "READY",
        },
        EventKind::Sending | EventKind::InDoubt => "PROCESSING",
        EventKind::Sent => "SENT",
        EventKind::Captured => "CAPTURED",
        EventKind::Failed | EventKind::Cancelled | EventKind::Expired | EventKind::Suppressed => "FAILED",
        EventKind::Resolved => match sense {
            Sense::Sent => "SENT",
            Sense::Failed => "FAILED",
            Sense::Plain | Sense::Retry | Sense::Intake => "READY",
        },
        EventKind::Notifying => match sense {
            Sense::Sent => "CALLING-SENT-CALLBACK",
            Sense::Failed => "CALLING-FAILED-CALLBACK",
            Sense::Plain | Sense::Retry | Sense::Intake => return None,
        },
        EventKind::Notified => match sense {
            Sense::Sent => "SENT-ACKNOWLEDGED",
            Sense::Failed => "FAILED-ACKNOWLEDGED",
            Sense::Plain | Sense::Retry | Sense::Intake => return None,
        },
        // What passed its checks is `ready`, and an attempt began with `sending`.
        EventKind::Validated
        | EventKind::Resent
        | EventKind::RecipientFailed
        | EventKind::Delivered
        | EventKind::Delayed
        | EventKind::Bounced
        | EventKind::Complained
        | EventKind::AutoReplied
        | EventKind::PecAccepted
        | EventKind::PecTakenOver
        | EventKind::PecDelivered
        | EventKind::PecFailed
        | EventKind::PecTimeout
        | EventKind::Received
        | EventKind::UnprovenReport => return None,
    })
}

/// What an event adds to `email_events` of reference 004, if anything.
pub fn event_004(kind: EventKind, sense: Sense) -> Option<&'static str> {
    Some(match kind {
        EventKind::Accepted => "RECEIVED",
        EventKind::Validated => "VALIDATED",
        EventKind::Replayed => match sense {
            Sense::Intake => "RECEIVED",
            Sense::Plain | Sense::Sent | Sense::Failed | Sense::Retry => "VALIDATED",
        },
        EventKind::Invalid => "VALIDATION_FAILED",
        EventKind::Sending => "SENT_ATTEMPT",
        EventKind::Sent => "SENT",
        EventKind::Captured => "CAPTURED",
        EventKind::Failed | EventKind::Cancelled | EventKind::Expired | EventKind::Suppressed => "FAILED",
        // The first `ready` says no more than `validated`, and a doubt that is not sent again no more than `sending`.
        EventKind::Scheduled | EventKind::Ready | EventKind::InDoubt => match sense {
            Sense::Retry => "RETRY_SCHEDULED",
            Sense::Plain | Sense::Sent | Sense::Failed | Sense::Intake => return None,
        },
        EventKind::Resolved => match sense {
            Sense::Sent => "SENT",
            Sense::Failed => "FAILED",
            Sense::Plain | Sense::Retry | Sense::Intake => "VALIDATED",
        },
        // `sending` has said that an attempt was made.
        EventKind::Validating
        | EventKind::Resent
        | EventKind::RecipientFailed
        | EventKind::Delivered
        | EventKind::Delayed
        | EventKind::Bounced
        | EventKind::Complained
        | EventKind::AutoReplied
        | EventKind::PecAccepted
        | EventKind::PecTakenOver
        | EventKind::PecDelivered
        | EventKind::PecFailed
        | EventKind::PecTimeout
        | EventKind::Notifying
        | EventKind::Notified
        | EventKind::Received
        | EventKind::UnprovenReport => return None,
    })
}

/// What the event at a place of a message's history led to; `state` is the message's now. The views say the same in SQL.
pub fn sense(events: &[Event], at: usize, state: State) -> Sense {
    let Some(event) = events.get(at) else { return Sense::Plain };
    let begins_attempt = |event: &&Event| matches!(event.kind, EventKind::Sending | EventKind::Resent);
    match event.kind {
        EventKind::Scheduled if is_after(events, at, EventKind::Validating) => Sense::Intake,
        EventKind::Scheduled if events[..at].iter().any(|event| begins_attempt(&event)) => Sense::Retry,
        // What is given back only to be ended is not tried again.
        EventKind::Ready if will_retry(event) && events[..at].iter().any(|event| begins_attempt(&event)) => {
            Sense::Retry
        }
        EventKind::InDoubt if will_retry(event) => Sense::Retry,
        EventKind::Replayed
            if events[..at].iter().rev().find_map(move_before) == Some(EventKind::Invalid) =>
        {
            Sense::Intake
        }
        EventKind::Resolved => match (events[at + 1..].iter().find_map(move_after), state) {
            (None, State::Sent) => Sense::Sent,
            (None, State::Failed) | (Some(EventKind::Replayed), _) => Sense::Failed,
            _ => Sense::Plain,
        },
        EventKind::Notifying | EventKind::Notified => {
            match (events[..at].iter().rev().find_map(move_before), state) {
                (Some(EventKind::Sent), _) | (Some(EventKind::Resolved), State::Sent) => Sense::Sent,
                (
                    Some(
                        EventKind::Failed
                        | EventKind::Resolved
                        | EventKind::Cancelled
                        | EventKind::Expired
                        | EventKind::Suppressed
                        | EventKind::Captured,
                    ),
                    _,
                ) => Sense::Failed,
                _ => Sense::Plain,
            }
        }
        _ => Sense::Plain,
    }
}

/// Whether the event at a place comes right after one of this kind.
fn is_after(events: &[Event], at: usize, kind: EventKind) -> bool {
    at.checked_sub(1).is_some_and(|before| events[before].kind == kind)
}

/// Whether the particulars of an event say that the message is tried again.
fn will_retry(event: &Event) -> bool {
    #[derive(serde::Deserialize)]
    struct Particulars {
        #[serde(default)]
        will_retry: bool,
    }
    let data = event.data.as_deref().and_then(|data| serde_json::from_str::<Particulars>(data).ok());
    data.is_some_and(|data| data.will_retry)
}

/// What may become of a message that was resolved.
fn move_after(event: &Event) -> Option<EventKind> {
    let moves = matches!(
        event.kind,
        EventKind::Sending
            | EventKind::Resent
            | EventKind::Cancelled
            | EventKind::Expired
            | EventKind::Suppressed
            | EventKind::Replayed
    );
    moves.then_some(event.kind)
}

/// How a message had come to stand where it did.
fn move_before(event: &Event) -> Option<EventKind> {
    is_move(event.kind).then_some(event.kind)
}

fn is_move(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Invalid
            | EventKind::Sending
            | EventKind::Sent
            | EventKind::Failed
            | EventKind::Resent
            | EventKind::Resolved
            | EventKind::Cancelled
            | EventKind::Expired
            | EventKind::Suppressed
            | EventKind::Captured
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    fn words(kinds: &[EventKind], state: State) -> Vec<&'static str> {
        let event = |(seq, kind): (usize, &EventKind)| Event {
            seq: seq as i64,
            at: Time::from_millis(0),
            kind: *kind,
            data: None,
        };
        let events: Vec<Event> = kinds.iter().enumerate().map(event).collect();
        let word = |at: usize| history_000(events[at].kind, sense(&events, at, state));
        (0..events.len()).filter_map(word).collect()
    }

    #[test]
    fn a_history_is_told_in_the_words_of_reference_000() {
        use EventKind::*;
        assert_eq!(
            words(
                &[Accepted, Ready, Sending, Scheduled, Sending, Sent, Notifying, Notified, Bounced],
                State::Sent
            ),
            [
                "ACCEPTED",
                "READY",
                "PROCESSING",
                "READY",
                "PROCESSING",
                "SENT",
                "CALLING-SENT-CALLBACK",
                "SENT-ACKNOWLEDGED"
            ]
        );
        assert_eq!(
            words(&[Sending, InDoubt, Resolved, Notifying], State::Failed),
            ["PROCESSING", "PROCESSING", "FAILED", "CALLING-FAILED-CALLBACK"]
        );
        assert_eq!(words(&[InDoubt, Resolved], State::Sent), ["PROCESSING", "SENT"]);
        assert_eq!(words(&[InDoubt, Resolved, Sending], State::Sent), ["PROCESSING", "READY", "PROCESSING"]);
        assert_eq!(words(&[Accepted, Notifying], State::Ready), ["ACCEPTED"], "nothing of an end was told");
        assert_eq!(
            words(
                &[Accepted, Validating, Scheduled, Validating, Invalid, Notifying, Replayed],
                State::Accepted
            ),
            ["ACCEPTED", "INTAKING", "ACCEPTED", "INTAKING", "INVALID", "ACCEPTED"]
        );
        assert_eq!(words(&[Accepted, Validated, Ready], State::Ready), ["ACCEPTED", "READY"], "no intake");
    }

    #[test]
    fn a_callback_stands_where_the_history_says() {
        use EventKind::*;
        let told = |kinds: &[EventKind], state, is_open| {
            let event =
                |kind: &EventKind| Event { seq: 1, at: Time::from_millis(0), kind: *kind, data: None };
            told_000(&kinds.iter().map(event).collect::<Vec<_>>(), state, is_open)
        };
        assert_eq!(told(&[Sent], State::Sent, true), Told::No, "nobody was called yet");
        assert_eq!(told(&[Sent, Notifying, Delivered], State::Sent, true), Told::Calling);
        assert_eq!(told(&[Sent, Notifying], State::Sent, false), Told::No, "it was given up");
        assert_eq!(told(&[Sent, Notifying, Notified], State::Sent, false), Told::Acknowledged);
        assert_eq!(told(&[Failed, Notifying, Notified, Replayed], State::Ready, false), Told::No);
        assert_eq!(told(&[Failed, Notified, Replayed, Sending, Sent], State::Sent, false), Told::No);
    }

    #[test]
    fn a_bounce_has_the_code_and_the_words_of_the_server_that_refused_it() {
        use serde_json::json;
        let said = json!({"type": "hard", "status": "5.1.1", "smtp_code": 550, "reason": "user_unknown",
            "diagnostic": "550 5.1.1 <x@y.example> user unknown"});
        let bounce = Bounce001::of(&said);
        assert_eq!((bounce.kind.as_str(), bounce.code.as_deref()), ("hard", Some("550")));
        assert_eq!(bounce.reason, "550 5.1.1 <x@y.example> user unknown");
        assert_eq!((bounce.status.as_deref(), bounce.word.as_deref()), (Some("5.1.1"), Some("user_unknown")));
        let short = Bounce001::of(&json!({"status": "4.4.7", "reason": "expired", "diagnostic": ""}));
        assert_eq!(
            (short.kind.as_str(), short.code.as_deref(), short.reason.as_str()),
            ("soft", Some("4.4.7"), "expired")
        );
        assert_eq!(Bounce001::of(&Value::Null).reason, BOUNCED);
    }

    #[test]
    fn a_retry_is_told_from_a_time_that_was_asked_for() {
        for kind in [EventKind::Scheduled, EventKind::Ready, EventKind::InDoubt] {
            let senses = [Sense::Plain, Sense::Retry].map(|sense| event_004(kind, sense));
            assert_eq!(senses, [None, Some("RETRY_SCHEDULED")]);
        }
    }

    #[test]
    fn every_delay_after_an_attempt_is_a_retry_of_reference_004() {
        let event = |kind, data: Option<&str>| Event {
            seq: 1,
            at: Time::from_millis(0),
            kind,
            data: data.map(str::to_owned),
        };
        let again = Some(r#"{"attempt":1,"will_retry":true}"#);
        let events = [
            event(EventKind::Ready, None),
            event(EventKind::Sending, None),
            event(EventKind::Ready, again),
            event(EventKind::InDoubt, again),
            event(EventKind::InDoubt, Some(r#"{"will_retry":false}"#)),
            event(EventKind::InDoubt, None),
            // Given back because every recipient is suppressed by now.
            event(EventKind::Ready, Some(r#"{"will_retry":false,"reason":"suppressed"}"#)),
            event(EventKind::Suppressed, None),
        ];
        let words: Vec<_> = (0..events.len())
            .map(|at| event_004(events[at].kind, sense(&events, at, State::Ready)))
            .collect();
        let retry = Some("RETRY_SCHEDULED");
        assert_eq!(words, [None, Some("SENT_ATTEMPT"), retry, retry, None, None, None, Some("FAILED")]);
        for (state, attempts, is_due, word) in [
            (State::Ready, 0, true, "VALIDATED"),
            (State::Ready, 8, true, "RETRY_SCHEDULED"),
            (State::InDoubt, 1, true, "RETRY_SCHEDULED"),
            (State::InDoubt, 1, false, "SENT_ATTEMPT"),
            (State::Sent, 8, false, "SENT"),
        ] {
            assert_eq!(status_004(state, Trial::of(state, attempts, is_due)), word, "{state:?}");
        }
    }

    #[test]
    fn every_state_has_a_word_of_each_system() {
        let told = [Told::No, Told::Calling, Told::Acknowledged];
        let standings =
            [Standing::Plain, Standing::Suspended, Standing::Bounced, Standing::Reported, Standing::Due];
        for &state in State::ALL {
            let words = told.map(|told| status_000(state, told)).into_iter();
            let words = words.chain(standings.map(|standing| status_001(state, standing)));
            let is_word =
                |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase() || b"-_".contains(&byte));
            assert!(words.chain([status_004(state, Trial::Plain)]).all(is_word), "{state:?}");
        }
    }
}
