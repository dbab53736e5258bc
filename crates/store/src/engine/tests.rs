//! Writers on engines that follow a script.

use std::{
    collections::VecDeque,
    sync::{Mutex, atomic::AtomicBool},
};

use async_trait::async_trait;
use postway_domain::{LeaseToken, MessageStatus, TenantId};
use tokio::sync::Semaphore;

use super::*;
use crate::{
    conformance::sample::{Sample, at},
    queue::{lease_conditions::LeaseConditions, packing::Packing, transaction::CommitEffects},
    record::NewMessage,
    sql::{Row, SqlSession, SqlText, Value},
};

/// Generous: it only passes where something waits that must not.
const PATIENCE: Duration = Duration::from_secs(60);

/// Shut at first.
struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

/// What the engines of a test do, and what was done to them.
#[derive(Default)]
struct Script {
    /// How transactions begin, one after the other; then they begin well.
    begins: Mutex<VecDeque<StoreError>>,
    /// How transactions that began well are committed, one after the other; then they are committed well.
    commits: Mutex<VecDeque<StoreError>>,
    /// How accepts fail that have a message with this subject.
    fails: Option<(&'static str, StoreError)>,
    /// Whether accepting waits for `gate`.
    is_slow: AtomicBool,
    gate: Gate,
    begun: AtomicU64,
    /// What each transaction accepted, by subject, and how many permissions it gave.
    done: Mutex<Vec<(Vec<String>, usize)>>,
}

struct Stub {
    script: Arc<Script>,
    after: CommitEffects,
    doing: (Vec<String>, usize),
}

/// Nothing in these tests speaks SQL.
struct NoSql;

#[async_trait]
impl SqlSession for NoSql {
    async fn execute(&mut self, _: SqlText, _: Vec<Value>) -> Result<u64, StoreError> {
        Ok(0)
    }
    async fn insert(&mut self, _: SqlText, _: Vec<Value>) -> Result<bool, StoreError> {
        Ok(true)
    }
    async fn rows(&mut self, _: SqlText, _: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl WriteTransaction for Stub {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.doing = Default::default();
        self.script.begun.fetch_add(1, Ordering::Relaxed);
        self.script.begins.lock().unwrap().pop_front().map_or(Ok(()), Err)
    }
    async fn accept(
        &mut self,
        messages: &[&PackedMessage],
        _: &mut LeaseConditions,
    ) -> Result<Vec<Acceptance>, StoreError> {
        let subjects = || messages.iter().map(|message| message.content.subject.clone());
        if let Some((subject, error)) = &self.script.fails
            && subjects().any(|one| one == *subject)
        {
            return Err(error.clone());
        }
        if !messages.is_empty() && self.script.is_slow.load(Ordering::Relaxed) {
            self.script.gate.0.acquire().await.unwrap().forget();
        }
        self.doing.0.extend(subjects());
        Ok(vec![Acceptance::Accepted { handed_over: false }; messages.len()])
    }
    async fn wire_commit(&mut self, commits: &[&WireCommit]) -> Result<Vec<bool>, StoreError> {
        self.doing.1 += commits.len();
        Ok(vec![true; commits.len()])
    }
    async fn apply(&mut self, changes: &[&MessageChange]) -> Result<Vec<bool>, StoreError> {
        Ok(vec![true; changes.len()])
    }
    async fn claim(
        &mut self,
        _: &ClaimRequest,
        _: &mut LeaseConditions,
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        Ok(Vec::new())
    }
    fn count(&mut self, _: &TenantId, _: Option<MessageStatus>, _: MessageStatus) {}
    fn count_out(&mut self, _: &TenantId, _: MessageStatus) {}
    fn session(&mut self) -> Result<Box<dyn SqlSession + '_>, StoreError> {
        Ok(Box::new(NoSql))
    }
    fn after(&mut self) -> &mut CommitEffects {
        &mut self.after
    }
    async fn commit(&mut self) -> Result<CommitEffects, StoreError> {
        if let Some(error) = self.script.commits.lock().unwrap().pop_front() {
            return Err(error);
        }
        self.script.done.lock().unwrap().push(std::mem::take(&mut self.doing));
        Ok(CommitEffects::default())
    }
    async fn rollback(&mut self) {}
    async fn close(self) {}
}

/// The given number of writers, all following one script.
fn writers(count: usize, script: &Arc<Script>) -> Arc<Writers> {
    let stub = || Stub { script: script.clone(), after: CommitEffects::default(), doing: Default::default() };
    Arc::new(Writers::start((0..count).map(|_| stub()).collect(), &Arc::default()))
}

fn plain(messages: Vec<NewMessage>) -> Vec<PackedMessage> {
    messages.into_iter().map(|message| PackedMessage::new(message, Packing::Plain)).collect()
}

fn messages(tenant: &str, subject: &str, count: u32) -> Vec<NewMessage> {
    let one =
        |n| Sample::new(n).from(tenant, "relay").content(|content| content.subject = subject.to_owned());
    (0..count).map(|n| one(n).build()).collect()
}

fn wire_commit() -> WireCommit {
    let message = Sample::new(1).build();
    WireCommit {
        uid: message.uid,
        lane: message.lane,
        via: None,
        token: LeaseToken::from_i64(1),
        version: 1,
        at: at(0),
        recipients: Vec::new(),
        resend: None,
    }
}

/// How a call ends, and how many transactions it took.
async fn apply_with(begins: Vec<StoreError>) -> (Result<Vec<bool>, StoreError>, u64) {
    let script = Arc::new(Script { begins: Mutex::new(begins.into()), ..Script::default() });
    let writers = writers(1, &script);
    let applied = writers.apply(Vec::new(), Packing::Plain).await;
    writers.close().await;
    (applied, script.begun.load(Ordering::Relaxed))
}

fn conflicts(count: usize) -> Vec<StoreError> {
    vec![StoreError::Conflict("deadlock".into()); count]
}

#[tokio::test]
async fn a_transaction_in_conflict_is_tried_again() {
    let (applied, begun) = apply_with(conflicts(2)).await;
    assert!(applied.is_ok());
    assert_eq!(begun, 3);
}

#[tokio::test]
async fn a_conflict_that_stays_is_told_after_eight_tries() {
    let (applied, begun) = apply_with(conflicts(20)).await;
    assert!(matches!(applied, Err(StoreError::Conflict(_))));
    assert_eq!(begun, 8);
}

#[tokio::test]
async fn a_database_that_is_away_is_told_at_once() {
    let (applied, begun) = apply_with(vec![StoreError::Unavailable("gone".into())]).await;
    assert!(matches!(applied, Err(StoreError::Unavailable(_))));
    assert_eq!(begun, 1);
}

/// A statement that takes too long is its job's fault: those that shared its transaction are done without it.
#[tokio::test]
async fn a_slow_statement_fails_nobody_else() {
    let slow = StoreError::TooSlow("canceling statement due to statement timeout".into());
    let script = Arc::new(Script { fails: Some(("slow", slow)), ..Script::default() });
    let writers = writers(1, &script);
    let accept = |subject| writers.accept(messages("acme", subject, 1), Packing::Plain);
    let (before, slow, after, given) = tokio::join!(
        accept("before"),
        accept("slow"),
        accept("after"),
        writers.wire_commit(vec![wire_commit()])
    );
    assert!(matches!(slow, Err(StoreError::TooSlow(_))));
    assert!(before.is_ok() && after.is_ok(), "{before:?} {after:?}");
    assert_eq!(given.unwrap(), [true]);
}

/// A commit that may be durable is not repeated: each request of the group would meet its own rows and get an
/// error although nothing is wrong.
#[tokio::test]
async fn a_commit_that_may_be_durable_is_not_done_again() {
    let unknown = StoreError::Unsettled("the answer was lost".into());
    let script = Arc::new(Script { commits: Mutex::new(vec![unknown].into()), ..Script::default() });
    let writers = writers(1, &script);
    let accept = |subject| writers.accept(messages("acme", subject, 1), Packing::Plain);
    let (one, two, given) =
        tokio::join!(accept("one"), accept("two"), writers.wire_commit(vec![wire_commit()]));
    for told in [one.map(drop), two.map(drop), given.map(drop)] {
        assert!(matches!(&told, Err(error @ StoreError::Unsettled(_)) if error.is_transient()), "{told:?}");
    }
    assert_eq!(script.begun.load(Ordering::Relaxed), 1);
}

/// Whoever asks for the final dot has an SMTP connection open.
#[tokio::test]
async fn a_burst_of_accepts_leaves_a_wire_commit_to_the_writer_that_is_idle() {
    let script = Arc::new(Script { is_slow: true.into(), ..Script::default() });
    let writers = writers(2, &script);
    let accepts: Vec<_> = (0..100)
        .map(|_| {
            let writers = writers.clone();
            tokio::spawn(async move { writers.accept(messages("acme", "slow", 1), Packing::Plain).await })
        })
        .collect();
    let burst = tokio::spawn({
        let writers = writers.clone();
        async move { writers.wire_commit(vec![wire_commit()]).await }
    });
    let given = tokio::time::timeout(PATIENCE, burst).await;
    script.gate.0.add_permits(1_000);
    assert_eq!(given.expect("it waits for the accepts").unwrap().unwrap(), [true]);
    for accept in accepts {
        assert!(accept.await.unwrap().is_ok());
    }
}

/// What a writer did, transaction by transaction, while this waited for it: the first one was under way.
async fn transactions(script: &Arc<Script>, burst: Vec<Job>) -> Vec<(Vec<String>, usize)> {
    script.is_slow.store(true, Ordering::Relaxed);
    let inbox = Arc::new(Inbox::new(1));
    let writers = writers_of(inbox.clone(), script);
    let under_way = Job::Accept(plain(messages("acme", "under way", 1)));
    let mut answers = Vec::new();
    for job in [under_way].into_iter().chain(burst) {
        let (answer, answered) = oneshot::channel();
        assert!(inbox.push(Request::new(job, answer)).await.is_ok());
        if answers.is_empty() {
            while !inbox.is_empty() {
                tokio::task::yield_now().await;
            }
        }
        answers.push(answered);
    }
    script.gate.0.add_permits(10_000);
    for answered in answers {
        assert!(answered.await.unwrap().is_ok());
    }
    inbox.close();
    writers.await.unwrap();
    let done = std::mem::take(&mut *script.done.lock().unwrap());
    done.into_iter().skip(1).collect()
}

fn writers_of(inbox: Arc<Inbox>, script: &Arc<Script>) -> tokio::task::JoinHandle<()> {
    let engine = Stub { script: script.clone(), after: CommitEffects::default(), doing: Default::default() };
    let writer =
        Writer { engine, handover: Arc::default(), commits: Arc::default(), generation: Arc::default() };
    tokio::spawn(writer.run(inbox))
}

fn batch(tenant: &str, count: u32) -> Job {
    Job::Accept(plain(messages(tenant, tenant, count)))
}

/// Which of a list of transactions accepted something with this subject first.
fn place_of(subject: &str, transactions: &[(Vec<String>, usize)]) -> usize {
    transactions.iter().position(|(accepted, _)| accepted.iter().any(|one| one == subject)).unwrap()
}

#[tokio::test]
async fn a_wire_commit_goes_before_the_batches_that_came_earlier() {
    let batches = (0..20).map(|_| batch("acme", 1_000));
    let burst = batches.chain([Job::WireCommit(vec![wire_commit()])]).collect();
    let done = transactions(&Arc::default(), burst).await;
    assert_eq!(done.len(), 21);
    assert_eq!(done[0], (Vec::new(), 1), "it is alone: a batch would take it as long as itself");
}

#[tokio::test]
async fn new_mail_is_not_starved_by_wire_commits() {
    let urgent = (0..20).map(|_| Job::WireCommit(vec![wire_commit(); 1_000]));
    let burst = urgent.chain([batch("acme", 1_000), batch("globex", 1_000)]).collect();
    let done = transactions(&Arc::default(), burst).await;
    assert!(place_of("acme", &done) <= 1 && place_of("globex", &done) <= 3, "every second one is for mail");
}

#[tokio::test]
async fn one_tenants_batches_do_not_delay_the_mail_of_others() {
    let greedy = (0..20).flat_map(|n| (0..5).map(move |_| batch(&format!("greedy-{n}"), 1_000)));
    let burst = greedy.chain([batch("modest", 1), batch("other", 3)]).collect();
    let done = transactions(&Arc::default(), burst).await;
    assert_eq!((place_of("modest", &done), place_of("other", &done)), (0, 0));
    // And each of the greedy has its first before any of them has its second.
    let firsts = (0..20).map(|n| place_of(&format!("greedy-{n}"), &done)).max().unwrap();
    assert!(firsts <= 20, "{firsts}");
}

#[tokio::test]
async fn a_transaction_is_bounded_in_bytes_too() {
    const MIB: usize = 1024 * 1024;
    let large = |n: u32, bytes: usize| {
        let body = || crate::record::StoredBody::Inline(vec![b'x'; bytes].into());
        Job::Accept(plain(vec![Sample::new(n).content(|content| content.raw = body()).build()]))
    };
    let burst = (0..40).map(|n| large(n, MIB)).chain([large(40, 40 * MIB), large(41, 1)]).collect();
    let done = transactions(&Arc::default(), burst).await;
    let sizes: Vec<usize> = done.iter().map(|(accepted, _)| accepted.len()).collect();
    assert_eq!(sizes, [16, 16, 8, 1, 1], "what is larger than a transaction may be goes alone");
}

/// A writer that panics must not leave those hanging who wait for it.
#[tokio::test]
async fn whoever_waits_is_told_when_the_last_writer_is_gone() {
    let inbox = Inbox::new(2);
    let (answer, answered) = oneshot::channel();
    assert!(inbox.push(Request::new(Job::Ping, answer)).await.is_ok());
    inbox.leave();
    assert!(!inbox.is_empty());
    inbox.leave();
    assert!(answered.await.is_err());
    let (answer, _) = oneshot::channel();
    assert!(inbox.push(Request::new(Job::Ping, answer)).await.is_err());
}

/// Places outside the queue are given to those who come first, so one tenant must not have them all.
#[tokio::test]
async fn a_tenant_that_fills_its_places_leaves_others_theirs() {
    let inbox = Inbox::new(1);
    let push = |tenant: &'static str| {
        let (answer, _) = oneshot::channel();
        inbox.push(Request::new(batch(tenant, 1), answer))
    };
    for _ in 0..1_024 {
        assert!(push("greedy").await.is_ok());
    }
    let mut waits = std::pin::pin!(push("greedy"));
    assert!(futures::poll!(waits.as_mut()).is_pending());
    assert!(push("modest").await.is_ok());
    drop(inbox.take().await);
    assert!(waits.await.is_ok());
}

#[test]
fn pauses_double_up_to_a_second_and_are_random_below() {
    let longest = |tries| (0..2_000).map(|dice| conflict_pause(tries, dice)).max().unwrap();
    let bounds = (1..=8).map(|tries| longest(tries).as_millis()).collect::<Vec<_>>();
    assert_eq!(bounds, [30, 60, 120, 240, 480, 960, 1_000, 1_000]);
    assert_eq!(conflict_pause(8, 0), Duration::ZERO);
}
