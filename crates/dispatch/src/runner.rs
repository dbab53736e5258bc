//! The runner: keeps every account supplied.
//!
//! It claims for accounts with room, and parks the room it cannot fill, so that new mail is handed over as it is
//! accepted. Hints wake it; a poll every second is the guarantee. At most one claim is under way, so what is freed
//! meanwhile is claimed together.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use postway_domain::LeaseToken;
use postway_store::{
    StoreError,
    record::{AccountKey, AccountWant, ClaimRequest, Claimed, Lease},
};
use tokio::time::Instant;

use crate::{
    Shared,
    account::{Plan, Post},
    courier, outcome, settle,
};

/// How often the queue is polled.
const POLL: Duration = Duration::from_secs(1);
/// Bodies up to this size come with their claim.
const INLINE_BYTES_MAX: u32 = 64 * 1024;
/// Leases lost in a row after which a message is sent with nothing else in hand.
const SUSPECT_AFTER: i64 = 3;
/// Beyond the longest transaction: time for the connection, the commits and a slow machine.
const LEASE_MARGIN: Duration = Duration::from_secs(5 * 60);

struct Slot {
    post: Arc<Post>,
    /// Room left standing with the store at the last claim, less what came of it.
    parked: usize,
    /// Whether there may be due work.
    dirty: bool,
}

struct Runner {
    shared: Arc<Shared>,
    slots: HashMap<AccountKey, Slot>,
    /// A message whose lease was lost several times in a row: it may be what kills the process. It goes when nothing
    /// else is in hand, so that the next crash tells.
    suspect: Option<Claimed>,
    /// While suspects are about, one message is claimed at a time.
    careful: bool,
}

type Claiming = BoxFuture<'static, (Vec<AccountWant>, Result<Vec<Claimed>, StoreError>)>;

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut runner = Runner::new(shared.clone());
    let mut claiming: Option<Claiming> = None;
    let mut poll_at = Instant::now();
    while !shared.stop.is_cancelled() {
        if Instant::now() >= poll_at {
            poll_at = runner.poll().await;
        }
        runner.start_suspect();
        if claiming.is_none() {
            claiming = runner.start_claim();
        }
        let claimed = async {
            match &mut claiming {
                Some(claim) => claim.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.stop.cancelled() => {}
            handed_over = shared.store.handed_over() => runner.hand_out(handed_over, true).await,
            woken = shared.store.woken() => runner.wake(woken).await,
            (wants, claimed) = claimed => {
                claiming = None;
                runner.finish_claim(wants, claimed).await;
            }
            () = shared.freed.notified() => {}
            () = tokio::time::sleep_until(poll_at) => {}
        }
    }
    // A claim under way must be awaited, or its messages would stay leased until the backstop.
    if let Some(claim) = claiming {
        let (wants, claimed) = claim.await;
        runner.finish_claim(wants, claimed).await;
    }
    runner.give_back().await;
}

impl Runner {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, slots: HashMap::new(), suspect: None, careful: false }
    }

    fn in_hand(&self) -> usize {
        self.slots.values().map(|slot| slot.post.queue.in_hand()).sum()
    }

    /// Sends the suspect once nothing else is in hand.
    fn start_suspect(&mut self) {
        if self.in_hand() > 0 {
            return;
        }
        if let Some(suspect) = self.suspect.take() {
            tracing::warn!(uid = %suspect.uid, lost = suspect.lost_leases, "sending a suspect message alone");
            self.start(suspect);
        }
    }

    /// Keeps one suspect and gives the others back before it goes: what is leased when it kills the process loses a
    /// lease with it.
    async fn examine(&mut self, mut suspects: Vec<Claimed>) {
        self.careful = true;
        self.shared.store.unpark();
        for slot in self.slots.values_mut() {
            slot.parked = 0;
            slot.dirty = true;
        }
        if self.suspect.is_none() {
            self.suspect = Some(suspects.remove(0));
        }
        let now = self.shared.clock.now();
        for job in suspects {
            settle::write(&self.shared, outcome::give_back(&job, now)).await;
            self.shared.in_hand.put_down(job.uid);
        }
    }

    /// Reads which accounts exist and which have due work; returns when to look again.
    async fn poll(&mut self) -> Instant {
        let now = self.shared.clock.now();
        let looked_at = Instant::now();
        if let Err(error) = self.refresh().await {
            tracing::warn!(%error, "accounts could not be read");
            return looked_at + POLL;
        }
        match self.shared.store.queue_state(now).await {
            Ok(queue) => {
                for key in queue.due {
                    if let Some(slot) = self.slots.get_mut(&key) {
                        slot.dirty = true;
                    }
                }
                let next_due = queue.next_due_at.map_or(POLL, |due| due.since(now));
                looked_at + next_due.clamp(Duration::from_millis(1), POLL)
            }
            Err(error) => {
                tracing::warn!(%error, "the queue could not be read");
                looked_at + POLL
            }
        }
    }

    async fn refresh(&mut self) -> Result<(), StoreError> {
        let accounts = self.shared.store.accounts(None).await?;
        let mut gone: std::collections::HashSet<AccountKey> = self.slots.keys().cloned().collect();
        for account in accounts {
            let key = AccountKey { tenant: account.tenant.clone(), account: account.id.clone() };
            gone.remove(&key);
            match self.slots.get_mut(&key) {
                Some(slot) if slot.post.plan().version == account.version => {}
                Some(slot) => {
                    slot.post.replace_plan(Plan::make(&account, &self.shared));
                    slot.dirty = true;
                }
                None => {
                    let post = Arc::new(Post::new(key.clone(), Plan::make(&account, &self.shared)));
                    self.slots.insert(key, Slot { post, parked: 0, dirty: true });
                }
            }
        }
        for key in gone {
            self.slots.remove(&key);
        }
        Ok(())
    }

    async fn wake(&mut self, keys: Vec<AccountKey>) {
        if keys.iter().any(|key| !self.slots.contains_key(key))
            && let Err(error) = self.refresh().await
        {
            tracing::warn!(%error, "accounts could not be read");
        }
        for key in keys {
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.dirty = true;
            }
        }
    }

    /// Claims for every account that has room and may have work, or whose parked room has run low.
    fn start_claim(&mut self) -> Option<Claiming> {
        let now = Instant::now();
        let in_hand = self.in_hand();
        if self.careful && (in_hand > 0 || self.suspect.is_some()) {
            return None;
        }
        let in_flight_max = self.shared.config.in_flight_max;
        let mut free = in_flight_max.saturating_sub(in_hand);
        // Room left standing counts too, or many accounts together would exceed the bound.
        let mut standing = in_hand + self.slots.values().map(|slot| slot.parked).sum::<usize>();
        let mut wants = Vec::new();
        for slot in self.slots.values() {
            let plan = slot.post.plan();
            // Twice the connections, so that each finds its next message waiting.
            let capacity = slot.post.circuit().room(plan.connections_max * 2, now);
            let in_hand = slot.post.queue.in_hand();
            let room = capacity.saturating_sub(in_hand).min(free);
            let low = slot.parked + in_hand <= capacity / 2;
            let fills = if slot.dirty { room > 0 } else { low && room > slot.parked };
            // An open circuit takes its standing claim back.
            let withdraws = capacity == 0 && slot.parked > 0;
            if fills || withdraws {
                free -= room;
                standing = standing - slot.parked + room;
                let park = standing <= in_flight_max || withdraws;
                wants.push(AccountWant::unlimited(slot.post.key.clone(), room as u32, park));
            }
        }
        if self.careful {
            wants.truncate(1);
            wants.iter_mut().for_each(|want| (want.room, want.park) = (1, false));
        }
        if wants.is_empty() {
            return None;
        }
        let now = self.shared.clock.now();
        let lasts = self.shared.config.deadlines.transaction_max() + LEASE_MARGIN;
        let lease = Lease {
            incarnation: self.shared.config.incarnation,
            token: LeaseToken::new(&mut rand::rng()),
            until: now.plus(lasts),
        };
        let request = ClaimRequest { lease, now, wants: wants.clone(), inline_bytes_max: INLINE_BYTES_MAX };
        let store = self.shared.store.clone();
        // Spawned, so that it goes on while the runner hands out other work.
        let claim = tokio::spawn(async move { store.claim(request).await });
        Some(
            async move {
                let claimed =
                    claim.await.unwrap_or_else(|error| Err(StoreError::Unexpected(error.to_string())));
                (wants, claimed)
            }
            .boxed(),
        )
    }

    async fn finish_claim(&mut self, wants: Vec<AccountWant>, claimed: Result<Vec<Claimed>, StoreError>) {
        let claimed = match claimed {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "a claim failed");
                tokio::time::sleep(Duration::from_millis(200)).await;
                return;
            }
        };
        let mut filled: HashMap<AccountKey, u32> = HashMap::new();
        for one in &claimed {
            *filled.entry(key_of(one)).or_default() += 1;
        }
        for want in wants {
            if let Some(slot) = self.slots.get_mut(&want.key) {
                let filled = filled.get(&want.key).copied().unwrap_or(0);
                slot.parked = if want.park { (want.room - filled) as usize } else { 0 };
                // A claim that came back full may have left more behind.
                slot.dirty = filled == want.room;
            }
        }
        // Nothing suspicious at the head of the queue: back to full speed.
        self.careful &= claimed.iter().any(is_suspect);
        self.hand_out(claimed, false).await;
    }

    async fn hand_out(&mut self, claimed: Vec<Claimed>, handed_over: bool) {
        claimed.iter().for_each(|job| self.shared.in_hand.take(job.uid));
        let (suspects, jobs): (Vec<_>, Vec<_>) = claimed.into_iter().partition(is_suspect);
        if !suspects.is_empty() {
            self.examine(suspects).await;
        }
        for job in jobs {
            if handed_over && let Some(slot) = self.slots.get_mut(&key_of(&job)) {
                slot.parked = slot.parked.saturating_sub(1);
            }
            self.start(job);
        }
    }

    fn start(&mut self, job: Claimed) {
        let Some(slot) = self.slots.get_mut(&key_of(&job)) else {
            // The account went away in between: the mail goes back and waits for it.
            let (shared, change) = (self.shared.clone(), outcome::give_back(&job, self.shared.clock.now()));
            self.shared.tasks.spawn(async move {
                let uid = change.uid;
                settle::write(&shared, change).await;
                shared.in_hand.put_down(uid);
            });
            return;
        };
        metrics::counter!("postway_state_transitions_total", "state" => "sending").increment(1);
        if slot.post.queue.push(job, slot.post.plan().connections_max) {
            self.shared.tasks.spawn(courier::run(self.shared.clone(), slot.post.clone()));
        }
    }

    /// Returns what has not been started, so that a drain leaves nothing leased behind.
    async fn give_back(&mut self) {
        self.shared.store.unpark();
        let mut left: Vec<Claimed> = self.slots.values().flat_map(|slot| slot.post.queue.clear()).collect();
        left.extend(self.suspect.take());
        if let Some(handed_over) = self.shared.store.handed_over().now_or_never() {
            left.extend(handed_over);
        }
        if left.is_empty() {
            return;
        }
        let now = self.shared.clock.now();
        let changes = left.iter().map(|job| outcome::give_back(job, now)).collect();
        if let Err(error) = self.shared.store.apply(changes).await {
            tracing::warn!(messages = left.len(), %error, "unsent mail could not be given back; it returns at the next start");
        }
    }
}

fn is_suspect(job: &Claimed) -> bool {
    job.lost_leases >= SUSPECT_AFTER
}

fn key_of(job: &Claimed) -> AccountKey {
    AccountKey { tenant: job.lane.tenant.clone(), account: job.lane.account.clone() }
}
