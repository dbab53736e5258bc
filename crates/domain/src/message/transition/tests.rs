use proptest::prelude::*;

use super::*;

#[test]
fn the_whole_table() {
    let mut table = String::new();
    for &state in State::ALL {
        for &input in Input::ALL {
            if let Ok((next, effects)) = transition(state, input) {
                let events: Vec<_> = effects.events().map(EventKind::as_str).collect();
                let event = if events.is_empty() { "-".to_owned() } else { events.join(" ") };
                table += &format!("{state:?} + {input:?} -> {next:?} [{event}, {:?}]\n", effects.lease);
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn what_ends_the_open_hides_neither_what_was_sent_nor_a_doubt() {
    for &state in State::ALL {
        for &rest in Rest::ALL {
            for (input, alone) in
                [(Input::Cancel(rest), State::Cancelled), (Input::Expire(rest), State::Expired)]
            {
                let Ok((next, effects)) = transition(state, input) else { continue };
                let (becomes, events) = match rest {
                    Rest::Nothing => (alone, 1),
                    Rest::Sent => (State::Sent, 2),
                    Rest::Doubt => (State::InDoubt, 2),
                    Rest::Open => panic!("{state:?}: the open are those that are ended"),
                };
                assert_eq!((next, effects.events().count()), (becomes, events), "{state:?} {input:?}");
                assert!(effects.ends_open_recipients.is_some());
            }
        }
    }
}

#[test]
fn an_operators_decision_on_a_doubt_leaves_open_recipients_to_be_sent_to() {
    for resolution in [Resolution::Sent, Resolution::Failed, Resolution::Resend] {
        let (next, effects) =
            transition(State::InDoubt, Input::Resolve(resolution, Rest::Open)).expect("a known step");
        assert!(matches!(next, State::Scheduled(Wait::Retry) | State::Ready), "{next:?}");
        assert_eq!(effects.ends_open_recipients, None);
    }
    let failed = transition(State::InDoubt, Input::Resolve(Resolution::Failed, Rest::Sent));
    assert_eq!(failed.map(|(next, _)| next), Ok(State::Sent), "others were sent to");
}

#[test]
fn a_doubt_ends_by_an_answer_or_an_operator_and_by_nothing_else() {
    for &input in Input::ALL {
        let Ok((next, effects)) = transition(State::InDoubt, input) else { continue };
        match input {
            Input::Claim => assert_eq!(next, State::Sending { wire_committed: false }),
            Input::Hold => assert_eq!((next, effects.lease), (State::InDoubt, LeaseEffect::Keep)),
            Input::Settle(_) | Input::Resolve(..) => assert_ne!(next, State::InDoubt),
            other => panic!("{other:?} moved a doubt to {next:?}"),
        }
    }
    assert!(
        State::ALL.iter().all(|&state| state == State::InDoubt || transition(state, Input::Hold).is_err())
    );
}

proptest! {
    #[test]
    fn any_walk_keeps_the_rules(inputs in prop::collection::vec(0..Input::ALL.len(), 0..60)) {
        let mut state = State::Accepted;
        let mut dot_allowed = false;
        let mut token = false;
        for index in inputs {
            let input = Input::ALL[index];
            // The store's fence lets an attempt settle only while its token is valid.
            if matches!(input, Input::Settle(_)) && !token {
                continue;
            }
            let Ok((next, effects)) = transition(state, input) else { continue };
            token = match effects.lease {
                LeaseEffect::Take => true,
                LeaseEffect::Keep => token,
                LeaseEffect::Drop => false,
            };
            if matches!(input, Input::CommitWire | Input::CommitResend) {
                dot_allowed = true;
            }
            if next == (State::Sending { wire_committed: false }) {
                dot_allowed = false;
            }
            // Sent by an attempt, or in doubt, only after a durable wire commit.
            if matches!(input, Input::Settle(Outcome::Sent | Outcome::Doubt) | Input::LoseLease)
                && matches!(next, State::Sent | State::InDoubt)
            {
                prop_assert!(dot_allowed);
            }
            // A lease is taken only by a claim, and stays only during an attempt or its doubt.
            if effects.lease == LeaseEffect::Keep {
                let lasts = matches!(next, State::Sending { .. } | State::InDoubt);
                prop_assert!(lasts, "{next:?}");
            }
            // A message on the wire is ended only by its attempt or the loss of its lease.
            if matches!(state, State::Sending { .. }) {
                let ends = matches!(input, Input::Cancel(_) | Input::Expire(_) | Input::Suppress);
                prop_assert!(!ends);
            }
            if state.status().is_final() {
                prop_assert!(matches!(state, State::Failed | State::Invalid) && input == Input::Replay);
            }
            state = next;
        }
    }
}
