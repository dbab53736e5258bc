//! The words of the reference systems as rows that views join: nothing of [`postway_domain::reference`] is
//! written a second time in SQL.

use postway_domain::{
    EventKind, InboundState, MessageState,
    message::ScheduleReason,
    reference::{
        CallbackProgress, EventConsequence, ForwardOutcome, RetryExpectation, Status001Basis, event_004,
        history_000, status_000, status_001, status_002, status_004,
    },
};

/// A row of words: the codes it applies to, and the word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusWordRow {
    pub code: i64,
    pub wait: i64,
    pub mark: i64,
    pub word: &'static str,
}

/// What can accompany a state: every distinction that the views make.
fn told_of(state: MessageState) -> &'static [CallbackProgress] {
    match state.status().is_final() {
        true => &[CallbackProgress::NotBegun, CallbackProgress::Calling, CallbackProgress::Acknowledged],
        false => &[CallbackProgress::NotBegun],
    }
}

fn standings_of(state: MessageState) -> &'static [Status001Basis] {
    match state {
        MessageState::Ready => &[Status001Basis::Plain, Status001Basis::Suspended],
        MessageState::Scheduled(_) => {
            &[Status001Basis::Plain, Status001Basis::Suspended, Status001Basis::Due]
        }
        MessageState::Sent => &[Status001Basis::Plain, Status001Basis::Bounced, Status001Basis::Reported],
        state if state.status().is_final() => &[Status001Basis::Plain, Status001Basis::Reported],
        _ => &[Status001Basis::Plain],
    }
}

fn trials_of(state: MessageState) -> &'static [RetryExpectation] {
    match state {
        MessageState::Ready | MessageState::InDoubt => &[RetryExpectation::Plain, RetryExpectation::Again],
        _ => &[RetryExpectation::Plain],
    }
}

fn forwarded_of(state: InboundState) -> &'static [ForwardOutcome] {
    match state {
        InboundState::Routed => &[
            ForwardOutcome::Nothing,
            ForwardOutcome::Sent,
            ForwardOutcome::Unknown,
            ForwardOutcome::Open,
            ForwardOutcome::Failed,
        ],
        _ => &[ForwardOutcome::Nothing],
    }
}

fn senses_of(kind: EventKind) -> &'static [EventConsequence] {
    match kind {
        EventKind::Resolved | EventKind::Notifying | EventKind::Notified => {
            &[EventConsequence::Plain, EventConsequence::Sent, EventConsequence::Failed]
        }
        EventKind::Scheduled => &[EventConsequence::Plain, EventConsequence::Retry, EventConsequence::Intake],
        EventKind::Ready | EventKind::InDoubt => &[EventConsequence::Plain, EventConsequence::Retry],
        EventKind::Replayed => &[EventConsequence::Plain, EventConsequence::Intake],
        _ => &[EventConsequence::Plain],
    }
}

/// The rows that a view joins to find its words.
pub(crate) fn rows(view: &str) -> Vec<StatusWordRow> {
    // A message in `sending` has one code, whether its dot is allowed or not.
    let states =
        MessageState::ALL.iter().filter(|state| **state != MessageState::Sending { wire_committed: true });
    let of_state = |state: MessageState, mark: i64, word| {
        let wait = state.wait().map_or(0, ScheduleReason::code);
        StatusWordRow { code: state.status().code(), wait, mark, word }
    };
    let of_event = |words: fn(EventKind, EventConsequence) -> Option<&'static str>| {
        let kinds =
            EventKind::ALL.iter().flat_map(|kind| senses_of(*kind).iter().map(move |it| (*kind, *it)));
        let row = |(kind, sense): (EventKind, EventConsequence)| {
            words(kind, sense).map(|word| StatusWordRow {
                code: kind.code(),
                wait: 0,
                mark: sense as i64,
                word,
            })
        };
        kinds.filter_map(row).collect()
    };
    match view {
        "emails" => states
            .flat_map(|state| told_of(*state).iter().map(move |callback| (*state, *callback)))
            .map(|(state, callback)| of_state(state, callback as i64, status_000(state, callback)))
            .collect(),
        "messages" => states
            .flat_map(|state| standings_of(*state).iter().map(move |standing| (*state, *standing)))
            .map(|(state, standing)| of_state(state, standing as i64, status_001(state, standing)))
            .collect(),
        "monitored_emails_tasks" => InboundState::ALL
            .iter()
            .flat_map(|state| forwarded_of(*state).iter().map(move |forwarded| (*state, *forwarded)))
            .map(|(state, forwarded)| {
                let word = status_002(state, forwarded);
                StatusWordRow { code: state.code(), wait: 0, mark: forwarded as i64, word }
            })
            .collect(),
        "email_statuses" => of_event(history_000),
        "email_events" => of_event(event_004),
        _ => states
            .flat_map(|state| trials_of(*state).iter().map(move |trial| (*state, *trial)))
            .map(|(state, trial)| of_state(state, trial as i64, status_004(state, trial)))
            .collect(),
    }
}
