//! Handing out due work.

use std::collections::BTreeMap;

use bytes::Bytes;
use postway_domain::{
    EventKind, MessagePriority, MessageState, RecipientStatus,
    dsn::DsnWishes,
    fairness::AGEING_MS,
    message::{AttemptOutcome, ScheduleReason},
};
use postway_trace::TraceContext;

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at},
    stage::{
        accept, accept_and_claim, all_at_once, apply, assert_gapless, claim, commit_wire, doubt, outcome,
        record, request, uids,
    },
};
use crate::record::{AccountWant, DueAccount, MessageChange, MessageContent, QueueState, RecipientChange};

/// Inside a lane: by due time, then by uid.
pub async fn due_messages_come_oldest_first(store: &Shared) {
    let late = accept(store, Sample::new(1).created(300)).await;
    let second = accept(store, Sample::new(9).created(100)).await;
    let first = accept(store, Sample::new(2).created(100)).await;
    let due_before_all =
        accept(store, Sample::new(3).created(200).state(MessageState::Ready, Some(at(50)))).await;
    assert_eq!(uids(&claim(store, 1, at(1_000), 10).await), [due_before_all, first, second, late]);
    assert!(claim(store, 2, at(1_000), 10).await.is_empty(), "what is claimed is gone from the queue");
}

/// Also at the next attempt, and nothing where nothing is wished.
pub async fn what_the_sender_wishes_to_be_told_comes_with_the_claim(store: &Shared) {
    let wishes = r#"{"ret":"HDRS","envid":"QQ314159","recipients":
        {"ann@example.org":{"notify":"SUCCESS,DELAY","orcpt":"rfc822;ann+40elsewhere.example"}}}"#;
    let wishes: DsnWishes = serde_json::from_str(wishes).unwrap();
    let wished = |content: &mut MessageContent| content.dsn = Some(wishes.clone());
    let first = accept(store, Sample::new(1).to("ann@example.org").content(wished)).await;
    let plain = accept(store, Sample::new(2).to("ann@example.org")).await;
    let claimed = claim(store, 1, at(1_000), 10).await;
    assert_eq!(uids(&claimed), [first, plain]);
    assert_eq!((claimed[0].dsn.as_ref(), claimed[1].dsn.as_ref()), (Some(&wishes), None));
    let retry = MessageChange {
        due_at: Some(at(2_000)),
        ..outcome(&claimed[0], false, AttemptOutcome::Retry, at(1_500))
    };
    assert!(apply(store, retry).await);
    assert_eq!(claim(store, 2, at(3_000), 10).await[0].dsn.as_ref(), Some(&wishes));
}

/// Whoever claims it, also again after a retry, and in what readers see. Other mail has no place.
pub async fn a_place_in_a_trace_comes_with_the_claim(store: &Shared) {
    const RECORDED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const PASSED_ON: &str = "00-00000000000000000000000000000001-0000000000000001-00";
    let recorded = accept(store, Sample::new(1).to("ann@example.org").traced(RECORDED)).await;
    let passed_on = accept(store, Sample::new(2).to("ann@example.org").traced(PASSED_ON)).await;
    let plain = accept(store, Sample::new(3).to("ann@example.org")).await;
    let claimed = claim(store, 1, at(1_000), 10).await;
    assert_eq!(uids(&claimed), [recorded, passed_on, plain]);
    let text = |trace: Option<TraceContext>| trace.map(|context| context.to_string());
    let expected = [Some(RECORDED.to_owned()), Some(PASSED_ON.to_owned()), None];
    assert_eq!([0, 1, 2].map(|at| text(claimed[at].trace)), expected);
    let retry = MessageChange {
        due_at: Some(at(2_000)),
        ..outcome(&claimed[0], false, AttemptOutcome::Retry, at(1_500))
    };
    assert!(apply(store, retry).await);
    assert_eq!(text(claim(store, 2, at(3_000), 10).await[0].trace), expected[0]);
    for (uid, expected) in [recorded, passed_on, plain].into_iter().zip(expected) {
        assert_eq!(text(record(store, uid).await.summary.trace), expected);
    }
}

/// Not due, expired, not claimable, of another account or tenant.
pub async fn what_cannot_go_now_is_left(store: &Shared) {
    let due = accept(store, Sample::new(1).send_at(1_000)).await;
    let lives = accept(store, Sample::new(2).expires(1_001)).await;
    accept(store, Sample::new(3).send_at(1_001)).await;
    accept(store, Sample::new(4).expires(1_000)).await;
    accept(store, Sample::new(5).state(MessageState::Accepted, None)).await;
    accept(store, Sample::new(6).state(MessageState::Scheduled(ScheduleReason::Fetch), Some(at(0)))).await;
    accept(store, Sample::new(7).from(TENANT, OTHER_ACCOUNT)).await;
    accept(store, Sample::new(8).from(OTHER_TENANT, ACCOUNT)).await;
    assert_eq!(uids(&claim(store, 1, at(1_000), 10).await), [lives, due]);
}

/// The worker that claims it can only put it on hold; otherwise it would stay due for ever.
pub async fn a_doubt_past_its_time_is_claimed(store: &Shared) {
    let mut doubtful = accept_and_claim(store, Sample::new(1).expires(1_000), 1).await;
    doubt(store, &mut doubtful, Some(at(900)), at(10)).await;
    let due = store.queue_state(at(2_000)).await.unwrap().due;
    assert_eq!(due.len(), 1, "a poll finds it, too: {due:?}");
    let claimed = claim(store, 2, at(2_000), 10).await;
    assert_eq!((uids(&claimed), claimed[0].resend), (vec![doubtful.uid], true));
}

/// What a claim cannot take does not use up its room.
pub async fn a_fetch_at_the_head_holds_nobody_back(store: &Shared) {
    accept(store, Sample::new(1).state(MessageState::Scheduled(ScheduleReason::Fetch), Some(at(0)))).await;
    accept(store, Sample::new(2).expires(50)).await;
    let behind = accept(store, Sample::new(3)).await;
    assert_eq!(uids(&claim(store, 1, at(100), 1).await), [behind]);
}

/// Room is the whole claim's, over all lanes of the account.
pub async fn a_claim_takes_no_more_than_its_room(store: &Shared) {
    for n in 0..6 {
        accept(store, Sample::new(n).batch(&format!("batch-{}", n % 3))).await;
    }
    assert!(claim(store, 1, at(0), 0).await.is_empty());
    assert_eq!(claim(store, 1, at(0), 4).await.len(), 4);
    assert_eq!(claim(store, 1, at(0), 4).await.len(), 2);
}

/// Forwarded mail of a mailbox leaves in order: the next is claimed once none is leased, and one that waits
/// for its retry blocks nothing.
pub async fn a_lane_in_order_gives_out_one_at_a_time(store: &Shared) {
    let mut forwards = Vec::new();
    for n in 1..=3 {
        forwards.push(accept(store, Sample::new(n).batch("mailbox:desk")).await);
    }
    let other = accept(store, Sample::new(4).batch("mailbox:other").created(1)).await;
    let first = claim(store, 1, at(1), 10).await;
    assert_eq!(uids(&first), [forwards[0], other]);
    assert!(claim(store, 2, at(1), 10).await.is_empty(), "each of the lanes has one on its way");
    let retry =
        MessageChange { due_at: Some(at(9_000)), ..outcome(&first[0], false, AttemptOutcome::Retry, at(2)) };
    assert!(apply(store, retry).await);
    let second = claim(store, 3, at(2), 10).await;
    assert_eq!(uids(&second), [forwards[1]]);
    assert!(apply(store, outcome(&second[0], false, AttemptOutcome::Failed, at(3))).await);
    assert_eq!(uids(&claim(store, 4, at(3), 10).await), [forwards[2]]);
}

/// Lanes are served in the order of `fairness::order`, each as far as it goes.
pub async fn urgent_lanes_go_first_and_old_ones_catch_up(store: &Shared) {
    let now_ms = 10 * AGEING_MS;
    let normal = accept(store, Sample::new(1).priority(MessagePriority::Normal).created(now_ms - 2)).await;
    let aged =
        accept(store, Sample::new(2).priority(MessagePriority::Low).created(now_ms - 3 * AGEING_MS)).await;
    let high = accept(store, Sample::new(3).priority(MessagePriority::High).created(now_ms - 9)).await;
    let urgent = accept(store, Sample::new(4).priority(MessagePriority::Immediate).created(now_ms)).await;
    let urgent_later =
        accept(store, Sample::new(5).priority(MessagePriority::Immediate).created(now_ms)).await;
    let claimed = uids(&claim(store, 1, at(now_ms), 10).await);
    assert_eq!(claimed, [urgent, urgent_later, aged, high, normal]);
}

/// The lease, its event, its attempt and its version are one write.
pub async fn a_claim_is_written_with_lease_event_and_counters(store: &Shared) {
    let sample = Sample::new(1).expires(90_000).hold_in_doubt().content(|content| {
        content.request_id = Some("req".to_owned());
        content.eight_bit = true;
    });
    let message = sample.clone().build();
    let uid = accept(store, sample).await;
    let claimed = claim(store, 77, at(40), 1).await.remove(0);
    assert_eq!(claimed.lane, message.lane);
    assert_eq!((claimed.token.as_i64(), claimed.version, claimed.attempt), (77, 2, 1));
    assert_eq!((claimed.retries, claimed.doubts, claimed.lost_leases), (0, 0, 0));
    assert_eq!(claimed.on_doubt, message.on_doubt);
    assert_eq!((claimed.created_at, claimed.claimed_at), (at(0), at(40)));
    assert_eq!(claimed.expires_at, Some(at(90_000)));
    assert_eq!(claimed.request_id.as_deref(), Some("req"));
    assert_eq!(claimed.sender, message.content.sender);
    assert_eq!((claimed.eight_bit, claimed.smtputf8), (true, false));
    assert_eq!(
        (u64::from(claimed.size), claimed.raw.as_ref()),
        (message.content.raw.len(), message.content.raw.inline())
    );
    let recipients: Vec<_> =
        claimed.recipients.iter().map(|one| (one.position, &one.address, one.kind)).collect();
    assert_eq!(recipients, [(0, &message.recipients[0].address, message.recipients[0].kind)]);

    let found = record(store, uid).await;
    assert_eq!(found.summary.state, MessageState::Sending { wire_committed: false });
    assert_eq!((found.summary.version, found.summary.attempt), (2, 1));
    assert_eq!((found.summary.updated_at, found.summary.due_at), (at(40), None));
    let event = found.events.last().unwrap();
    assert_eq!((event.seq, event.at, event.kind), (3, at(40), EventKind::Sending));
    assert_eq!(event.data.as_deref(), Some(r#"{"attempt":1}"#));
}

/// Memory is spent on bodies that are asked for.
pub async fn a_large_body_stays_behind(store: &Shared) {
    let body = Bytes::from(vec![b'x'; 1_000]);
    let large = accept(store, Sample::new(1).content(|content| content.raw = body.clone().into())).await;
    let small = accept(store, Sample::new(2).content(|content| content.raw = body.slice(..999).into())).await;
    let mut request = request(&sample::relay(), 1, at(0), 10, false);
    request.inline_bytes_max = 999;
    let claimed = store.claim(request).await.unwrap();
    assert_eq!(uids(&claimed), [large, small]);
    assert_eq!((claimed[0].size, &claimed[0].raw), (1_000, &None));
    assert_eq!((claimed[1].size, &claimed[1].raw), (999, &Some(body.slice(..999))));
    assert_eq!(store.body(large).await.unwrap(), Some(body.into()));
}

/// One claim serves many accounts, and a busy one takes nothing from the others.
pub async fn each_account_is_served_by_its_own_room(store: &Shared) {
    for n in 0..5 {
        accept(store, Sample::new(n)).await;
        accept(store, Sample::new(10 + n).from(TENANT, OTHER_ACCOUNT)).await;
        accept(store, Sample::new(20 + n).from(OTHER_TENANT, ACCOUNT)).await;
    }
    let mut request = request(&sample::relay(), 1, at(0), 2, false);
    request.wants.push(AccountWant::unlimited(sample::key(TENANT, OTHER_ACCOUNT), 9, false));
    request.wants.push(AccountWant::unlimited(sample::key(OTHER_TENANT, ACCOUNT), 1, false));
    request.wants.push(AccountWant::unlimited(sample::key(OTHER_TENANT, OTHER_ACCOUNT), 9, false));
    let mut counts = BTreeMap::new();
    for claimed in store.claim(request).await.unwrap() {
        *counts.entry((claimed.lane.tenant.to_string(), claimed.lane.account.to_string())).or_insert(0) += 1;
    }
    let count = |tenant: &str, account: &str| counts.get(&(tenant.to_owned(), account.to_owned())).copied();
    assert_eq!(count(TENANT, ACCOUNT), Some(2));
    assert_eq!(count(TENANT, OTHER_ACCOUNT), Some(5));
    assert_eq!(count(OTHER_TENANT, ACCOUNT), Some(1));
    assert_eq!(count(OTHER_TENANT, OTHER_ACCOUNT), None);
}

/// Claimers that meet share the queue without overlap and without rest.
pub async fn no_message_is_claimed_twice_by_eight_claimers(store: &Shared) {
    store.accept((0..500).map(|n| Sample::new(n).build()).collect()).await.unwrap();
    let claimers = (1..=8).map(|token| {
        let store = store.clone();
        async move {
            let mut mine = Vec::new();
            loop {
                let claimed = claim(&store, token, at(0), 7).await;
                if claimed.is_empty() {
                    return (token, mine);
                }
                assert!(claimed.len() <= 7);
                assert!(claimed.iter().all(|one| one.token.as_i64() == token && one.attempt == 1));
                mine.extend(uids(&claimed));
            }
        }
    });
    let mut all = Vec::new();
    for (token, mine) in all_at_once(claimers).await {
        if let Some(&uid) = mine.first() {
            let found = record(store, uid).await;
            assert_eq!(found.summary.attempt, 1, "claimer {token}");
            assert_gapless(&found);
        }
        all.extend(mine);
    }
    assert_eq!(all.len(), 500);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 500, "each once");
}

/// A retry is for those who have not got it, and knows how the others fared.
pub async fn an_attempt_is_for_the_pending_recipients(store: &Shared) {
    let names = ["sent@example.org", "refused@example.org", "open@example.org", "doubtful@example.org"];
    let sample = names.into_iter().fold(Sample::new(1), Sample::to);
    let mut claimed = accept_and_claim(store, sample, 1).await;
    assert_eq!(claimed.recipients.len(), 4);
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    let recipients =
        [(0, RecipientStatus::Sent), (1, RecipientStatus::Failed), (3, RecipientStatus::InDoubt)];
    let recipients = recipients.map(|(position, status)| RecipientChange { position, status, reply: None });
    let retry = MessageChange {
        due_at: Some(at(5_000)),
        recipients: recipients.into(),
        ..outcome(&claimed, true, AttemptOutcome::Retry, at(2))
    };
    assert!(apply(store, retry).await);
    let again = claim(store, 2, at(5_000), 1).await.remove(0);
    let open: Vec<_> = again.recipients.iter().map(|one| (one.position, one.address.as_str())).collect();
    assert_eq!(open, [(2, "open@example.org")]);
    assert_eq!((again.attempt, again.sent_before, again.doubtful_before, again.resend), (2, 1, 1, false));
}

/// A message in doubt that may be resent goes to those in doubt. That it was taken for it is no resend yet.
pub async fn a_doubt_is_claimed_as_a_resend_to_the_doubtful(store: &Shared) {
    let sample = Sample::new(1).to("a@example.org").to("b@example.org");
    let mut claimed = accept_and_claim(store, sample, 1).await;
    doubt(store, &mut claimed, Some(at(5_000)), at(10)).await;
    assert_eq!(record(store, claimed.uid).await.summary.state, MessageState::InDoubt);
    assert!(claim(store, 2, at(4_999), 1).await.is_empty());
    let resend = claim(store, 2, at(5_000), 1).await.remove(0);
    assert_eq!(resend.uid, claimed.uid);
    assert_eq!((resend.attempt, resend.doubts, resend.doubtful_before, resend.sent_before), (2, 1, 0, 0));
    assert_eq!((resend.recipients.len(), resend.resend), (2, true));
    let found = record(store, claimed.uid).await;
    assert_eq!(found.summary.state, MessageState::Sending { wire_committed: false });
    let event = found.events.last().unwrap();
    assert_eq!((event.kind, event.data.as_deref()), (EventKind::Sending, Some(r#"{"attempt":2}"#)));
    assert_gapless(&found);

    let mut held = accept_and_claim(store, Sample::new(2), 3).await;
    doubt(store, &mut held, None, at(10)).await;
    assert!(claim(store, 4, at(1_000_000), 9).await.is_empty(), "a doubt without a due time is held");
}

/// Which accounts to serve, and when to look again.
pub async fn the_queue_state_names_due_accounts_and_the_next_time(store: &Shared) {
    assert_eq!(store.queue_state(at(0)).await.unwrap(), QueueState::default());
    accept(store, Sample::new(1).from(OTHER_TENANT, ACCOUNT)).await;
    accept(store, Sample::new(2).from(TENANT, OTHER_ACCOUNT).send_at(100)).await;
    accept(store, Sample::new(3).send_at(7_000)).await;
    accept(store, Sample::new(4).from(TENANT, OTHER_ACCOUNT).send_at(8_000)).await;
    accept(store, Sample::new(5).from(OTHER_TENANT, OTHER_ACCOUNT).expires(50)).await;
    accept(store, Sample::new(6).state(MessageState::Scheduled(ScheduleReason::Fetch), Some(at(0)))).await;
    let due = vec![sample::key(TENANT, OTHER_ACCOUNT), sample::key(OTHER_TENANT, ACCOUNT)];
    let due = due.into_iter().map(|key| DueAccount { key, version: 1, weight: 100 }).collect();
    let expected = QueueState { due, next_due_at: Some(at(7_000)) };
    assert_eq!(store.queue_state(at(100)).await.unwrap(), expected);
    claim(store, 1, at(7_000), 9).await;
    assert_eq!(store.queue_state(at(7_000)).await.unwrap().next_due_at, Some(at(8_000)));
}
