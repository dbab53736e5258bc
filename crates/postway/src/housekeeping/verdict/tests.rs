use postway_domain::{EventKind, MessageUid, message::OnDoubt, message::ScheduleReason};
use postway_store::record::AccountKey;

use super::*;

const NOW: i64 = 1_000_000;

/// A message on the wire, all of whose recipients the relay had accepted.
pub(in super::super) fn sample(n: u8) -> StalledMessage {
    StalledMessage {
        uid: MessageUid::from_bytes([n; 16]),
        state: MessageState::Sending { wire_committed: true },
        version: 3,
        attempt: 1,
        doubts: 0,
        lost_leases: 0,
        on_doubt: OnDoubt::Hold,
        expires_at: None,
        retries: 0,
        has_open: true,
        has_doubtful: false,
        has_sent: false,
        sensitive: false,
        key: AccountKey { tenant: "default".parse().unwrap(), account: "relay".parse().unwrap() },
        holder: None,
    }
}

fn now() -> Time {
    Time::from_millis(NOW)
}

fn kinds(change: &MessageChange) -> Vec<EventKind> {
    change.events.iter().map(|event| event.kind).collect()
}

fn policy(delays_s: &[u32]) -> RetryPolicy {
    RetryPolicy { delays_s: delays_s.to_vec(), jitter: 0.0 }
}

#[test]
fn all_that_the_relay_accepted_are_in_doubt() {
    let held = lost_lease_change(&sample(1), None, now()).unwrap();
    assert_eq!((held.to, held.due_at, held.doubts), (MessageState::InDoubt, None, Some(1)));
    assert_eq!(held.ends_open_recipients, Some(RecipientStatus::InDoubt));
    assert!(held.keep_token, "a late answer settles it");
    let resent = StalledMessage { on_doubt: OnDoubt::Resend, ..sample(1) };
    let resent = lost_lease_change(&resent, Some(&policy(&[7])), now()).unwrap();
    assert_eq!((resent.to, resent.due_at), (MessageState::InDoubt, Some(Time::from_millis(NOW + 7_000))));
}

/// The event has the same keys as that of an attempt that ended by itself.
#[test]
fn a_lost_attempt_tells_what_is_known_of_it() {
    let event_data = |one: &StalledMessage| -> Value {
        let change = lost_lease_change(one, Some(&policy(&[7])), now()).unwrap();
        serde_json::from_str(change.events[0].data.as_deref().unwrap()).unwrap()
    };
    let holder = Some(postway_domain::Incarnation::from_bytes([7; 16]));
    let resent = StalledMessage { on_doubt: OnDoubt::Resend, holder, ..sample(1) };
    let node = holder.map(|node| node.to_string());
    assert_eq!(
        event_data(&resent),
        json!({"attempt": 1, "duration_ms": null, "code": "in_doubt", "category": "unknown", "original_code": null,
            "will_retry": true, "next_attempt": 2, "backoff_ms": 7_000, "due_at": Time::from_millis(NOW + 7_000),
            "reason": "lease lost", "account": "relay", "node": node})
    );
    let held = event_data(&sample(1));
    assert_eq!(
        (&held["will_retry"], &held["next_attempt"], &held["backoff_ms"]),
        (&json!(false), &json!(null), &json!(null))
    );
    let before =
        event_data(&StalledMessage { state: MessageState::Sending { wire_committed: false }, ..sample(1) });
    assert_eq!((&before["code"], &before["backoff_ms"]), (&json!(null), &json!(0)), "nothing failed");
}

#[test]
fn those_refused_for_now_are_tried_again_whatever_the_others_doubt() {
    for on_doubt in [OnDoubt::Hold, OnDoubt::Resend] {
        let one = StalledMessage { has_doubtful: true, retries: 1, on_doubt, ..sample(1) };
        let change = lost_lease_change(&one, Some(&policy(&[5, 9])), now()).unwrap();
        assert_eq!(change.to, MessageState::Scheduled(ScheduleReason::Retry));
        assert_eq!((change.due_at, change.retries), (Some(Time::from_millis(NOW + 9_000)), Some(2)));
        assert_eq!((change.ends_open_recipients, change.doubts), (None, None));
        assert_eq!((kinds(&change), change.lost_leases), (vec![EventKind::Scheduled], Some(1)));
    }
}

#[test]
fn those_refused_for_now_fail_where_no_retry_is_left() {
    let one = StalledMessage { has_doubtful: true, retries: 2, ..sample(1) };
    let change = lost_lease_change(&one, Some(&policy(&[5, 9])), now()).unwrap();
    assert_eq!((change.to, change.due_at), (MessageState::InDoubt, None));
    assert_eq!(change.ends_open_recipients, Some(RecipientStatus::Failed), "and the others stay in doubt");
}

#[test]
fn before_the_dot_it_goes_back_to_the_queue() {
    let one = StalledMessage {
        state: MessageState::Sending { wire_committed: false },
        has_doubtful: true,
        ..sample(1)
    };
    let change = lost_lease_change(&one, None, now()).unwrap();
    assert_eq!((change.to, change.due_at), (MessageState::Ready, Some(now())));
    assert_eq!(change.ends_open_recipients, None);
}

#[test]
fn what_kills_its_workers_is_set_aside_and_hides_nothing() {
    let state = MessageState::Sending { wire_committed: false };
    let suspect =
        StalledMessage { state, lost_leases: LOST_LEASES_MAX - 1, on_doubt: OnDoubt::Resend, ..sample(1) };
    for (has_doubtful, has_sent, to) in [
        (false, false, MessageState::Failed),
        (false, true, MessageState::Sent),
        (true, true, MessageState::InDoubt),
    ] {
        let one = StalledMessage { has_doubtful, has_sent, sensitive: true, ..suspect.clone() };
        let change = lost_lease_change(&one, None, now()).unwrap();
        assert_eq!((change.to, change.due_at), (to, None));
        assert_eq!(change.ends_open_recipients, Some(RecipientStatus::Failed));
        assert_eq!(
            (change.error.is_some(), change.erases_bodies),
            (to != MessageState::Sent, to == MessageState::Sent)
        );
        assert!(change.events.iter().all(|event| event.data.as_deref().unwrap().contains("quarantined")));
    }
}

#[test]
fn an_expiry_ends_those_still_open_and_hides_nothing() {
    let waits = StalledMessage { state: MessageState::Scheduled(ScheduleReason::Retry), ..sample(1) };
    let cases = [
        (false, false, MessageState::Expired, vec![EventKind::Expired]),
        (false, true, MessageState::Sent, vec![EventKind::Expired, EventKind::Sent]),
        (true, true, MessageState::InDoubt, vec![EventKind::Expired, EventKind::InDoubt]),
    ];
    for (has_doubtful, has_sent, to, event_data) in cases {
        let one = StalledMessage { has_doubtful, has_sent, on_doubt: OnDoubt::Resend, ..waits.clone() };
        let change = expiry_change(&one, now()).unwrap();
        assert_eq!((change.to, change.due_at, kinds(&change)), (to, None, event_data));
        assert_eq!(change.ends_open_recipients, Some(RecipientStatus::Expired));
        let code = change.error.as_deref().map(|error| error.contains("\"in_doubt\""));
        assert_eq!(code, (to != MessageState::Sent).then_some(to == MessageState::InDoubt));
    }
}
