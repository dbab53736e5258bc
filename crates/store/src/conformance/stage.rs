//! The acts that rules are made of: accept, claim, commit, settle, look.

use std::{future::Future, time::Duration};

use futures::FutureExt;
use postway_domain::{
    LeaseToken, MessageState, MessageStatus, MessageUid, RecipientStatus, Tenant, Time,
    message::{AttemptOutcome, TransitionInput},
};

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at},
};
use crate::record::{
    Acceptance, AccountKey, AccountWant, AttemptEnd, ChangeResult, ClaimRequest, ClaimedMessage,
    DirectoryChange, MessageChange, MessageKey, MessageRecord, NodeBeat, SuspensionRecord, SuspensionScope,
    WireCommit, WriteFence,
};

/// A wait longer than this means that what is waited for will not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Awaits, with a bound.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it comes before patience ends")
}

/// Looks until something is so, with a bound.
pub async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let looks = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, looks).await.is_ok(), "it never came that {what}");
}

/// Creates the tenants and accounts that samples belong to, and drains the hints that this gave.
pub async fn open(store: &Shared) {
    for tenant in [TENANT, OTHER_TENANT] {
        let tenant = Tenant::new(tenant.parse().unwrap(), tenant, at(0));
        assert!(store.create_tenant(tenant).await.unwrap());
    }
    for tenant in [TENANT, OTHER_TENANT] {
        for account in [ACCOUNT, OTHER_ACCOUNT] {
            assert!(store.create_account(sample::account(tenant, account)).await.unwrap());
        }
    }
    woken(store, 4).await;
}

/// What the n-th process says of itself.
pub fn beat_of(n: u8) -> NodeBeat {
    NodeBeat {
        incarnation: sample::incarnation(n),
        identity: [n; 16],
        name: format!("host-{n}"),
        address: format!("127.0.0.1:{n}"),
        version: "1.2.3".to_owned(),
        started_at: at(i64::from(n)),
        at: at(0),
    }
}

/// Collects hints until this many different accounts were named.
pub async fn woken(store: &Shared, accounts: usize) -> Vec<AccountKey> {
    let mut keys = Vec::new();
    while keys.len() < accounts {
        keys.extend(within(store.woken()).await);
        keys.sort();
        keys.dedup();
    }
    keys
}

/// Accepts one message that must be new.
pub async fn accept(store: &Shared, sample: Sample) -> MessageUid {
    let message = sample.build();
    let uid = message.uid;
    let answers = store.accept(vec![message]).await.unwrap();
    assert!(answers.len() == 1 && answers[0].is_accepted(), "{answers:?}");
    uid
}

/// Accepts one message and gives the answer.
pub async fn offer(store: &Shared, sample: Sample) -> Acceptance {
    let mut answers = store.accept(vec![sample.build()]).await.unwrap();
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

/// Asks for due work of one account.
pub fn request(key: &AccountKey, token: i64, now: Time, room: u32, park: bool) -> ClaimRequest {
    ClaimRequest {
        lease: sample::lease(token, now),
        now,
        wants: vec![AccountWant::unlimited(key.clone(), room, park)],
        inline_bytes_max: 1 << 20,
    }
}

/// Claims due work of the samples' account.
pub async fn claim(store: &Shared, token: i64, now: Time, room: u32) -> Vec<ClaimedMessage> {
    store.claim(request(&sample::relay(), token, now, room, false)).await.unwrap()
}

/// Accepts one message and claims it.
pub async fn accept_and_claim(store: &Shared, sample: Sample, token: i64) -> ClaimedMessage {
    let uid = accept(store, sample).await;
    let mut claimed = claim(store, token, at(0), 1).await;
    assert_eq!(claimed.len(), 1);
    let claimed = claimed.remove(0);
    assert_eq!(claimed.uid, uid);
    claimed
}

/// The permission for the dot of a claim.
pub fn permission(claimed: &ClaimedMessage, now: Time) -> WireCommit {
    WireCommit {
        uid: claimed.uid,
        lane: claimed.lane.clone(),
        via: claimed.via.clone(),
        token: claimed.token,
        version: claimed.version,
        at: now,
        recipients: Vec::new(),
        resend: claimed.resend.then_some(claimed.attempt),
    }
}

/// Asks for the permission for the dot; where it is given, the claim has its new version.
pub async fn commit_wire(store: &Shared, claimed: &mut ClaimedMessage, now: Time) -> bool {
    let held = store.wire_commit(vec![permission(claimed, now)]).await.unwrap();
    claimed.version += i64::from(held == [true]);
    held == [true]
}

/// A change of nothing but the state.
pub fn change(uid: MessageUid, fence: WriteFence, to: MessageState, now: Time) -> MessageChange {
    MessageChange {
        uid,
        fence,
        to,
        at: now,
        due_at: None,
        keep_token: false,
        retries: None,
        doubts: None,
        lost_leases: None,
        exhausted: false,
        error: None,
        events: Vec::new(),
        recipients: Vec::new(),
        ends_open_recipients: None,
        attempt: None,
        refund: None,
        preparation: None,
        erases_bodies: false,
        awaits_receipt: None,
    }
}

/// What the state machine writes when `input` meets `state`.
pub fn step(
    uid: MessageUid,
    fence: WriteFence,
    state: MessageState,
    input: TransitionInput,
    now: Time,
) -> MessageChange {
    MessageChange::step(uid, fence, state, input, now).expect("a step that the state machine knows")
}

/// The fence of a claim's holder.
pub fn fence(claimed: &ClaimedMessage) -> WriteFence {
    WriteFence { status: MessageStatus::Sending, token: Some(claimed.token), version: Some(claimed.version) }
}

/// The end of a claim's attempt, all its recipients alike.
pub fn outcome(
    claimed: &ClaimedMessage,
    wire_committed: bool,
    outcome: AttemptOutcome,
    now: Time,
) -> MessageChange {
    let state = MessageState::Sending { wire_committed };
    let becomes = match outcome {
        AttemptOutcome::Sent => Some(RecipientStatus::Sent),
        AttemptOutcome::Captured => Some(RecipientStatus::Captured),
        AttemptOutcome::InDoubt => Some(RecipientStatus::InDoubt),
        AttemptOutcome::Retry
        | AttemptOutcome::Failed
        | AttemptOutcome::Exhausted
        | AttemptOutcome::SentEarlier
        | AttemptOutcome::InDoubtEarlier
        | AttemptOutcome::Returned
        | AttemptOutcome::Quarantined => None,
    };
    let recipients = becomes.into_iter().flat_map(|status| {
        let of_attempt = claimed.recipients.iter();
        of_attempt.map(move |one| crate::record::RecipientChange {
            position: one.position,
            status,
            reply: None,
        })
    });
    MessageChange {
        recipients: recipients.collect(),
        attempt: Some(attempt(claimed, now)),
        ..step(claimed.uid, fence(claimed), state, TransitionInput::Settle(outcome), now)
    }
}

/// A claim's attempt, ended.
pub fn attempt(claimed: &ClaimedMessage, now: Time) -> AttemptEnd {
    AttemptEnd {
        number: claimed.attempt,
        started_at: claimed.claimed_at,
        duration_ms: now.since(claimed.claimed_at).as_millis() as i64,
        account: claimed.lane.account.clone(),
        remote: Some("relay.example.net:587".to_owned()),
        outcome: "ended",
        reply: Some(sample::reply(250, "ok")),
        provider_message_id: None,
        dialogue: None,
    }
}

/// Writes one change and gives the answer.
pub async fn apply(store: &Shared, change: MessageChange) -> bool {
    let held = store.apply(vec![change]).await.unwrap();
    assert_eq!(held.len(), 1);
    held[0]
}

/// Takes a claimed message to its doubt: the dot went out, no answer came. Gives the version it has then.
pub async fn doubt(store: &Shared, claimed: &mut ClaimedMessage, due_at: Option<Time>, now: Time) -> i64 {
    assert!(commit_wire(store, claimed, now).await);
    let change = MessageChange {
        due_at,
        doubts: Some(claimed.doubts + 1),
        ..outcome(claimed, true, AttemptOutcome::InDoubt, now)
    };
    assert!(apply(store, change).await);
    claimed.version + 1
}

/// What a late answer shows: the attempt's token, whatever happened to the version since.
pub fn late(token: LeaseToken) -> WriteFence {
    WriteFence { status: MessageStatus::InDoubt, token: Some(token), version: None }
}

/// A message of the samples' tenant that must exist.
pub async fn record(store: &Shared, uid: MessageUid) -> MessageRecord {
    let found = store.message(&sample::tenant(), &MessageKey::Uid(uid)).await.unwrap();
    found.expect("the message is stored")
}

/// Makes a change of the directory.
pub async fn direct(store: &Shared, change: DirectoryChange) -> ChangeResult {
    store.change(change, None).await.unwrap()
}

/// Suspends something of the samples' tenant.
pub async fn suspend(store: &Shared, scope: SuspensionScope) {
    let suspension = SuspensionRecord { tenant: sample::tenant(), scope, since: at(7) };
    assert_eq!(direct(store, DirectoryChange::Suspend(suspension)).await, ChangeResult::Done);
}

/// Lets it go on.
pub async fn activate(store: &Shared, scope: SuspensionScope) {
    assert_eq!(direct(store, DirectoryChange::Activate(sample::tenant(), scope)).await, ChangeResult::Done);
}

/// Collects hand-overs until there are this many, and makes sure that no more come.
pub async fn delivered(store: &Shared, count: usize) -> Vec<ClaimedMessage> {
    let mut claimed = Vec::new();
    while claimed.len() < count {
        claimed.extend(within(store.handed_over()).await);
    }
    assert_eq!(claimed.len(), count);
    assert!(store.handed_over().now_or_never().is_none());
    claimed
}

/// What was claimed, by id.
pub fn uids(claimed: &[ClaimedMessage]) -> Vec<MessageUid> {
    claimed.iter().map(|one| one.uid).collect()
}

/// Runs `calls` at once and gives their answers.
pub async fn all_at_once<T, F>(calls: impl IntoIterator<Item = F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    let mut answers = Vec::with_capacity(tasks.len());
    for task in tasks {
        answers.push(within(task).await.expect("no call panics"));
    }
    answers
}

/// Asserts that a message's history counts from one without a gap.
pub fn assert_gapless(record: &MessageRecord) {
    let seqs: Vec<i64> = record.events.iter().map(|event| event.seq).collect();
    let expected: Vec<i64> = (1..=seqs.len() as i64).collect();
    assert_eq!(seqs, expected, "the history of {}", record.summary.uid);
}
