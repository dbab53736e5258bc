use super::*;
use crate::{
    message::event::{EventKind, MessageEvent},
    time::Time,
};

fn words(kinds: &[EventKind], state: MessageState) -> Vec<&'static str> {
    let event = |(seq, kind): (usize, &EventKind)| MessageEvent {
        seq: seq as i64,
        at: Time::from_millis(0),
        kind: *kind,
        data: None,
    };
    let events: Vec<MessageEvent> = kinds.iter().enumerate().map(event).collect();
    let word = |at: usize| history_000(events[at].kind, sense(&events, at, state));
    (0..events.len()).filter_map(word).collect()
}

#[test]
fn a_history_is_told_in_the_words_of_reference_000() {
    use EventKind::*;
    assert_eq!(
        words(
            &[Accepted, Ready, Sending, Scheduled, Sending, Sent, Notifying, Notified, Bounced],
            MessageState::Sent
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
        words(&[Sending, InDoubt, Resolved, Notifying], MessageState::Failed),
        ["PROCESSING", "PROCESSING", "FAILED", "CALLING-FAILED-CALLBACK"]
    );
    assert_eq!(words(&[InDoubt, Resolved], MessageState::Sent), ["PROCESSING", "SENT"]);
    assert_eq!(
        words(&[InDoubt, Resolved, Sending], MessageState::Sent),
        ["PROCESSING", "READY", "PROCESSING"]
    );
    assert_eq!(words(&[Accepted, Notifying], MessageState::Ready), ["ACCEPTED"], "the message has not ended");
    assert_eq!(
        words(
            &[Accepted, Validating, Scheduled, Validating, Invalid, Notifying, Replayed],
            MessageState::Accepted
        ),
        ["ACCEPTED", "INTAKING", "ACCEPTED", "INTAKING", "INVALID", "ACCEPTED"]
    );
    assert_eq!(words(&[Accepted, Validated, Ready], MessageState::Ready), ["ACCEPTED", "READY"], "no intake");
}

#[test]
fn the_history_says_how_far_a_callback_has_come() {
    use EventKind::*;
    let progress = |kinds: &[EventKind], state, is_open| {
        let event =
            |kind: &EventKind| MessageEvent { seq: 1, at: Time::from_millis(0), kind: *kind, data: None };
        callback_progress_000(&kinds.iter().map(event).collect::<Vec<_>>(), state, is_open)
    };
    assert_eq!(
        progress(&[Sent], MessageState::Sent, true),
        CallbackProgress::NotBegun,
        "no callback has begun"
    );
    assert_eq!(progress(&[Sent, Notifying, Delivered], MessageState::Sent, true), CallbackProgress::Calling);
    assert_eq!(
        progress(&[Sent, Notifying], MessageState::Sent, false),
        CallbackProgress::NotBegun,
        "it was given up"
    );
    assert_eq!(
        progress(&[Sent, Notifying, Notified], MessageState::Sent, false),
        CallbackProgress::Acknowledged
    );
    assert_eq!(
        progress(&[Failed, Notifying, Notified, Replayed], MessageState::Ready, false),
        CallbackProgress::NotBegun
    );
    assert_eq!(
        progress(&[Failed, Notified, Replayed, Sending, Sent], MessageState::Sent, false),
        CallbackProgress::NotBegun
    );
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
fn a_retry_differs_from_a_time_that_was_asked_for() {
    for kind in [EventKind::Scheduled, EventKind::Ready, EventKind::InDoubt] {
        let senses = [EventConsequence::Plain, EventConsequence::Retry].map(|sense| event_004(kind, sense));
        assert_eq!(senses, [None, Some("RETRY_SCHEDULED")]);
    }
}

#[test]
fn every_delay_after_an_attempt_is_a_retry_of_reference_004() {
    let event = |kind, data: Option<&str>| MessageEvent {
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
        // Returned because every recipient is suppressed by now.
        event(EventKind::Ready, Some(r#"{"will_retry":false,"reason":"suppressed"}"#)),
        event(EventKind::Suppressed, None),
    ];
    let words: Vec<_> = (0..events.len())
        .map(|at| event_004(events[at].kind, sense(&events, at, MessageState::Ready)))
        .collect();
    let retry = Some("RETRY_SCHEDULED");
    assert_eq!(words, [None, Some("SENT_ATTEMPT"), retry, retry, None, None, None, Some("FAILED")]);
    for (state, attempts, is_due, word) in [
        (MessageState::Ready, 0, true, "VALIDATED"),
        (MessageState::Ready, 8, true, "RETRY_SCHEDULED"),
        (MessageState::InDoubt, 1, true, "RETRY_SCHEDULED"),
        (MessageState::InDoubt, 1, false, "SENT_ATTEMPT"),
        (MessageState::Sent, 8, false, "SENT"),
    ] {
        assert_eq!(status_004(state, RetryExpectation::of(state, attempts, is_due)), word, "{state:?}");
    }
}

#[test]
fn every_state_has_a_word_of_each_system() {
    let callbacks = [CallbackProgress::NotBegun, CallbackProgress::Calling, CallbackProgress::Acknowledged];
    let standings = [
        Status001Basis::Plain,
        Status001Basis::Suspended,
        Status001Basis::Bounced,
        Status001Basis::Reported,
        Status001Basis::Due,
    ];
    for &state in MessageState::ALL {
        let words = callbacks.map(|callback| status_000(state, callback)).into_iter();
        let words = words.chain(standings.map(|standing| status_001(state, standing)));
        let is_word =
            |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase() || b"-_".contains(&byte));
        assert!(words.chain([status_004(state, RetryExpectation::Plain)]).all(is_word), "{state:?}");
    }
}
