//! The words of the reference systems as rows that views join: nothing of [`postway_domain::reference`] is
//! written a second time in SQL.

use postway_domain::{
    EventKind, InboundState, State,
    message::Wait,
    reference::{
        Forwarded, Sense, Standing, Told, Trial, event_004, history_000, status_000, status_001, status_002,
        status_004,
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
fn told_of(state: State) -> &'static [Told] {
    match state.status().is_final() {
        true => &[Told::No, Told::Calling, Told::Acknowledged],
        false => &[Told::No],
    }
}

fn standings_of(state: State) -> &'static [Standing] {
    match state {
        State::Ready => &[Standing::Plain, Standing::Suspended],
        State::Scheduled(_) => &[Standing::Plain, Standing::Suspended, Standing::Due],
        State::Sent => &[Standing::Plain, Standing::Bounced, Standing::Reported],
        state if state.status().is_final() => &[Standing::Plain, Standing::Reported],
        _ => &[Standing::Plain],
    }
}

fn trials_of(state: State) -> &'static [Trial] {
    match state {
        State::Ready | State::InDoubt => &[Trial::Plain, Trial::Again],
        _ => &[Trial::Plain],
    }
}

fn forwarded_of(state: InboundState) -> &'static [Forwarded] {
    match state {
        InboundState::Routed => {
            &[Forwarded::Nothing, Forwarded::Sent, Forwarded::Unknown, Forwarded::Open, Forwarded::Failed]
        }
        _ => &[Forwarded::Nothing],
    }
}

fn senses_of(kind: EventKind) -> &'static [Sense] {
    match kind {
        EventKind::Resolved | EventKind::Notifying | EventKind::Notified => {
            &[Sense::Plain, Sense::Sent, Sense::Failed]
        }
        EventKind::Scheduled => &[Sense::Plain, Sense::Retry, Sense::Intake],
        EventKind::Ready | EventKind::InDoubt => &[Sense::Plain, Sense::Retry],
        EventKind::Replayed => &[Sense::Plain, Sense::Intake],
        _ => &[Sense::Plain],
    }
}

/// The rows that a view joins to find its words.
pub(crate) fn rows(view: &str) -> Vec<StatusWordRow> {
    // A message in `sending` has one code, whether its dot is allowed or not.
    let states = State::ALL.iter().filter(|state| **state != State::Sending { wire_committed: true });
    let of_state = |state: State, mark: i64, word| {
        let wait = state.wait().map_or(0, Wait::code);
        StatusWordRow { code: state.status().code(), wait, mark, word }
    };
    let of_event = |words: fn(EventKind, Sense) -> Option<&'static str>| {
        let kinds =
            EventKind::ALL.iter().flat_map(|kind| senses_of(*kind).iter().map(move |it| (*kind, *it)));
        let row = |(kind, sense): (EventKind, Sense)| {
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
