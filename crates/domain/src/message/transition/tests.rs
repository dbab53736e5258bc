use proptest::prelude::*;

use super::*;

#[test]
fn the_whole_table() {
    let mut table = String::new();
    for &state in MessageState::ALL {
        for &input in TransitionInput::ALL {
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
    for &state in MessageState::ALL {
        for &rest in OtherRecipients::ALL {
            for (input, alone) in [
                (TransitionInput::Cancel(rest), MessageState::Cancelled),
                (TransitionInput::Expire(rest), MessageState::Expired),
            ] {
                let Ok((next, effects)) = transition(state, input) else { continue };
                let (becomes, events) = match rest {
                    OtherRecipients::Nothing => (alone, 1),
                    OtherRecipients::Sent => (MessageState::Sent, 2),
                    OtherRecipients::InDoubt => (MessageState::InDoubt, 2),
                    OtherRecipients::Open => panic!("{state:?}: the open are those that are ended"),
                };
                assert_eq!((next, effects.events().count()), (becomes, events), "{state:?} {input:?}");
                assert!(effects.ends_open_recipients.is_some());
            }
        }
    }
}

#[test]
fn an_operators_decision_on_a_doubt_leaves_open_recipients_to_be_sent_to() {
    for resolution in [DoubtResolution::Sent, DoubtResolution::Failed, DoubtResolution::Resend] {
        let (next, effects) =
            transition(MessageState::InDoubt, TransitionInput::Resolve(resolution, OtherRecipients::Open))
                .expect("a known step");
        assert!(
            matches!(next, MessageState::Scheduled(ScheduleReason::Retry) | MessageState::Ready),
            "{next:?}"
        );
        assert_eq!(effects.ends_open_recipients, None);
    }
    let failed = transition(
        MessageState::InDoubt,
        TransitionInput::Resolve(DoubtResolution::Failed, OtherRecipients::Sent),
    );
    assert_eq!(failed.map(|(next, _)| next), Ok(MessageState::Sent), "others were sent to");
}

#[test]
fn a_doubt_ends_by_an_answer_or_an_operator_and_by_nothing_else() {
    for &input in TransitionInput::ALL {
        let Ok((next, effects)) = transition(MessageState::InDoubt, input) else { continue };
        match input {
            TransitionInput::Claim => assert_eq!(next, MessageState::Sending { wire_committed: false }),
            TransitionInput::PutOnHold => {
                assert_eq!((next, effects.lease), (MessageState::InDoubt, LeaseEffect::Keep))
            }
            TransitionInput::Settle(_) | TransitionInput::Resolve(..) => {
                assert_ne!(next, MessageState::InDoubt)
            }
            other => panic!("{other:?} moved a doubt to {next:?}"),
        }
    }
    assert!(MessageState::ALL.iter().all(
        |&state| state == MessageState::InDoubt || transition(state, TransitionInput::PutOnHold).is_err()
    ));
}

proptest! {
    #[test]
    fn any_walk_keeps_the_rules(inputs in prop::collection::vec(0..TransitionInput::ALL.len(), 0..60)) {
        let mut state = MessageState::Accepted;
        let mut dot_allowed = false;
        let mut token = false;
        for index in inputs {
            let input = TransitionInput::ALL[index];
            // The store's fence lets an attempt settle only while its token is valid.
            if matches!(input, TransitionInput::Settle(_)) && !token {
                continue;
            }
            let Ok((next, effects)) = transition(state, input) else { continue };
            token = match effects.lease {
                LeaseEffect::Take => true,
                LeaseEffect::Keep => token,
                LeaseEffect::Drop => false,
            };
            if matches!(input, TransitionInput::CommitWire | TransitionInput::CommitResend) {
                dot_allowed = true;
            }
            if next == (MessageState::Sending { wire_committed: false }) {
                dot_allowed = false;
            }
            // Sent by an attempt, or in doubt, only after a durable wire commit.
            if matches!(input, TransitionInput::Settle(AttemptOutcome::Sent | AttemptOutcome::InDoubt) | TransitionInput::LoseLease)
                && matches!(next, MessageState::Sent | MessageState::InDoubt)
            {
                prop_assert!(dot_allowed);
            }
            // A lease is taken only by a claim, and stays only during an attempt or its doubt.
            if effects.lease == LeaseEffect::Keep {
                let lasts = matches!(next, MessageState::Sending { .. } | MessageState::InDoubt);
                prop_assert!(lasts, "{next:?}");
            }
            // A message on the wire is ended only by its attempt or the loss of its lease.
            if matches!(state, MessageState::Sending { .. }) {
                let ends = matches!(input, TransitionInput::Cancel(_) | TransitionInput::Expire(_) | TransitionInput::Suppress);
                prop_assert!(!ends);
            }
            if state.status().is_final() {
                prop_assert!(matches!(state, MessageState::Failed | MessageState::Invalid) && input == TransitionInput::Replay);
            }
            state = next;
        }
    }
}
