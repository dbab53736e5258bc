//! The runner: keeps every account supplied.
//!
//! It claims for accounts with room, tenant by tenant in their turns, and parks the room it cannot fill, so that new
//! mail is handed over as it is accepted. It knows the accounts that have had work, not all there are, and looks only
//! at those of which it has heard. Hints wake it; polling is the guarantee. At most one claim is under way, so what is
//! freed meanwhile is claimed together.

mod account_state;
mod scheduler;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use postway_domain::{Account, LeaseToken, Status, TenantId};
use postway_store::{
    StoreError,
    record::{AccountKey, AccountWant, ClaimRequest, Claimed, DueAccount, Lease},
};
use tokio::time::Instant;

use self::{
    account_state::{Slot, day_used_up, key_of, sender_of},
    scheduler::{Appetite, CLAIM_ACCOUNTS_MAX, Demand, Given},
};
use crate::{
    account::{Plan, Post},
    context::Shared,
    courier,
    outcome::{self, attempt_metrics::count_entered, settle},
};

/// How often the queue is polled, where polling is cheap.
const POLL: Duration = Duration::from_secs(1);
/// How often at least.
const POLL_MAX: Duration = Duration::from_secs(10);
/// Polling may take one part in so many of the time.
const POLL_SHARE: u32 = 20;
/// An account that was read so recently is not read again for a hint.
const FRESH_FOR: Duration = Duration::from_millis(20);
/// Accounts with a standing claim that are read again by one poll.
const REREAD_MAX: usize = 64;
/// Bodies up to this size come with their claim.
const INLINE_BYTES_MAX: u32 = 64 * 1024;
/// Leases lost in a row after which a message is sent with nothing else in hand.
const SUSPECT_AFTER: i64 = 3;
/// Beyond the longest transaction: time for the connection, the commits and a slow machine.
const LEASE_MARGIN: Duration = Duration::from_secs(5 * 60);

struct Runner {
    shared: Arc<Shared>,
    slots: BTreeMap<AccountKey, Slot>,
    demand: Demand,
    /// What each tenant has in hand, by all of its accounts.
    in_hand_by_tenant: HashMap<TenantId, Arc<AtomicUsize>>,
    /// Accounts to be read before anything is claimed for them: new to this node, or changed.
    unread: BTreeSet<AccountKey>,
    /// Room left standing, over all accounts.
    standing: usize,
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
        runner.withdraw_if_isolated();
        if Instant::now() >= poll_at {
            poll_at = runner.poll().await;
        }
        runner.read_accounts().await;
        runner.start_suspect();
        if let Some(freed) = shared.freed.next().now_or_never() {
            runner.note_freed(freed);
        }
        if claiming.is_none() {
            // Counted before more is asked for: the hint of what was left behind may overtake it.
            if let Some(handed_over) = shared.store.handed_over().now_or_never() {
                runner.hand_out(handed_over, true).await;
            }
            claiming = runner.start_claim();
        }
        let claimed = async {
            match &mut claiming {
                Some(claim) => claim.await,
                None => std::future::pending().await,
            }
        };
        // In order, so that the same events are met the same way. None starves: a claim answers once, hints come as a set
        // that is taken whole, and the rest is also looked at on the way here.
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => {}
            (wants, claimed) = claimed => {
                claiming = None;
                runner.finish_claim(wants, claimed).await;
            }
            woken = shared.store.woken() => runner.wake(woken),
            handed_over = shared.store.handed_over() => runner.hand_out(handed_over, true).await,
            freed = shared.freed.next() => runner.note_freed(freed),
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
        Self {
            shared,
            slots: BTreeMap::new(),
            demand: Demand::default(),
            in_hand_by_tenant: HashMap::new(),
            unread: BTreeSet::new(),
            standing: 0,
            suspect: None,
            careful: false,
        }
    }

    /// Messages in hand, but for a suspect that has not started.
    fn in_hand(&self) -> usize {
        self.shared.in_hand.len().saturating_sub(usize::from(self.suspect.is_some()))
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
        self.withdraw();
        if self.suspect.is_none() {
            self.suspect = Some(suspects.remove(0));
        }
        let now = self.shared.clock.now();
        for job in suspects {
            settle::give_back(&self.shared, outcome::give_back(&job, now)).await;
            self.shared.in_hand.put_down(job.uid);
        }
    }

    /// Takes every standing claim back; what there is for them is claimed anew.
    fn withdraw(&mut self) {
        self.shared.store.unpark();
        self.standing = 0;
        for (key, slot) in &mut self.slots {
            slot.parked = 0;
            slot.dirty = true;
            self.demand.add(key);
        }
    }

    /// While others may take over what is leased to this process, nothing new is leased to it: new mail is for whoever is
    /// there.
    fn withdraw_if_isolated(&mut self) {
        if self.standing > 0 && self.shared.config.roster.is_isolated() {
            self.withdraw();
        }
    }

    /// Reads which accounts have due work; returns when to look again.
    async fn poll(&mut self) -> Instant {
        let now = self.shared.clock.now();
        let looked_at = Instant::now();
        let next_due = match self.shared.store.queue_state(now).await {
            Ok(queue) => {
                for due in queue.due {
                    self.note_due(due);
                }
                queue.next_due_at.map_or(POLL, |due| due.since(now))
            }
            Err(error) => {
                tracing::warn!(%error, "the queue could not be read");
                POLL
            }
        };
        self.note_idle();
        self.note_standing();
        let pause = (looked_at.elapsed() * POLL_SHARE).clamp(POLL, POLL_MAX);
        looked_at + next_due.clamp(Duration::from_millis(1), pause)
    }

    /// Accounts have room again, and some have their next message due with it.
    fn note_freed(&mut self, freed: BTreeMap<AccountKey, bool>) {
        for (key, has_next) in freed {
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.dirty |= has_next;
            }
            self.demand.add(&key);
        }
    }

    fn note_due(&mut self, due: DueAccount) {
        self.demand.weigh(&due.key.tenant, due.weight);
        match self.slots.get_mut(&due.key) {
            Some(slot) if slot.post.plan().version == due.version => {
                slot.dirty = true;
                self.demand.add(&due.key);
            }
            Some(_) | None => {
                self.unread.insert(due.key);
            }
        }
    }

    /// Where room has become scarce, standing claims that nobody uses are taken back.
    fn note_idle(&mut self) {
        if self.standing <= self.shared.config.in_flight_max / 2 {
            return;
        }
        for (key, slot) in &self.slots {
            if slot.stands_idle() {
                self.demand.add(key);
            }
        }
    }

    /// Reads accounts that are new here or have changed, some at a time.
    async fn read_accounts(&mut self) {
        for _ in 0..CLAIM_ACCOUNTS_MAX {
            let Some(key) = self.unread.pop_first() else { return };
            // Before it is read: what changes meanwhile looks changed.
            let generation = self.shared.store.generation();
            match self.shared.store.account(&key.tenant, &key.account).await {
                Ok(Some(account)) => self.take_in(key, account, generation).await,
                Ok(None) => self.forget(&key),
                Err(error) => {
                    tracing::warn!(%error, "an account could not be read");
                    // The next poll finds it again.
                    return;
                }
            }
        }
    }

    async fn take_in(&mut self, key: AccountKey, account: Account, generation: u64) {
        let plan = Plan::make(&account, &self.shared);
        if let Some(fallback) = &plan.fallback {
            let fallback = AccountKey { tenant: key.tenant.clone(), account: fallback.clone() };
            if !self.slots.contains_key(&fallback) {
                self.unread.insert(fallback);
            }
        }
        match self.slots.get_mut(&key) {
            Some(slot) => {
                (slot.read_at, slot.generation) = (Instant::now(), generation);
                if slot.post.plan().version != account.version {
                    slot.post.replace_plan(plan);
                    slot.dirty = true;
                }
            }
            None => {
                let of_tenant = self.in_hand_by_tenant.entry(key.tenant.clone()).or_default().clone();
                let post = Arc::new(Post::open(key.clone(), plan, of_tenant, &self.shared).await);
                self.slots.insert(key.clone(), Slot::new(post, generation));
            }
        }
        self.demand.add(&key);
    }

    fn forget(&mut self, key: &AccountKey) {
        if let Some(slot) = self.slots.remove(key) {
            self.standing -= slot.parked;
        }
    }

    /// Hints may be of new work as well as of new settings, so an account is read again unless it just was, and nothing has
    /// changed since.
    fn wake(&mut self, keys: Vec<AccountKey>) {
        let generation = self.shared.store.generation();
        for key in keys {
            let fresh = match self.slots.get_mut(&key) {
                Some(slot) => {
                    slot.dirty = true;
                    self.demand.add(&key);
                    slot.read_at.elapsed() < FRESH_FOR && slot.generation == generation
                }
                None => false,
            };
            if !fresh {
                self.unread.insert(key);
            }
        }
    }

    /// Accounts that stand ready for new mail are read again by each poll, the longest unread first: what another node
    /// changed must hold for mail that is handed over, too.
    fn note_standing(&mut self) {
        let mut standing: Vec<(Instant, &AccountKey)> = self
            .slots
            .iter()
            .filter(|(_, slot)| slot.parked > 0 && slot.read_at.elapsed() >= POLL / 2)
            .map(|(key, slot)| (slot.read_at, key))
            .collect();
        standing.sort_by_key(|(read_at, _)| *read_at);
        self.unread.extend(standing.into_iter().take(REREAD_MAX).map(|(_, key)| key.clone()));
    }

    /// Claims for accounts that have room and may have work, or whose standing claim has run low.
    fn start_claim(&mut self) -> Option<Claiming> {
        let in_hand = self.in_hand();
        let must_wait = self.careful && (in_hand > 0 || self.suspect.is_some());
        if self.demand.is_empty() || must_wait || self.shared.config.roster.is_isolated() {
            return None;
        }
        let in_flight_max = self.shared.config.in_flight_max;
        let now = self.shared.clock.now();
        let (slots, crowded) = (&self.slots, self.standing > in_flight_max / 2);
        let tenants = &self.in_hand_by_tenant;
        let held = |tenant: &TenantId| tenants.get(tenant).map_or(0, |count| count.load(Ordering::Relaxed));
        let given = self.demand.serve(in_flight_max.saturating_sub(in_hand), &held, |key| {
            let Some(slot) = slots.get(key) else { return Appetite::default() };
            slot.appetite(slot.carrier(slots, now), crowded)
        });
        let mut wants = Vec::with_capacity(given.len());
        // Room left standing counts too, or many accounts together would exceed the bound.
        let mut standing = in_hand + self.standing;
        for Given { key, room, .. } in given {
            let Some(slot) = slots.get(&key) else { continue };
            let carrier = slot.carrier(slots, now);
            let stands_in = carrier.post.key != key;
            standing = standing + room - slot.parked.min(standing);
            let park = (standing <= in_flight_max && !stands_in) || room == 0;
            let limits = carrier.post.plan().limits(now);
            let via = stands_in.then(|| carrier.post.key.account.clone());
            wants.push(AccountWant { key, room: room as u32, park, limits, via });
        }
        if self.careful {
            wants.truncate(1);
            wants.iter_mut().for_each(|want| (want.room, want.park) = (1, false));
        }
        if wants.is_empty() {
            return None;
        }
        let lasts = self.shared.config.deadlines.transaction_max() + LEASE_MARGIN;
        let lease = Lease {
            incarnation: self.shared.config.roster.me(),
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
                wants.iter().for_each(|want| self.demand.add(&want.key));
                tokio::time::sleep(Duration::from_millis(200)).await;
                return;
            }
        };
        let mut filled: HashMap<AccountKey, u32> = HashMap::new();
        for one in &claimed {
            *filled.entry(key_of(one)).or_default() += 1;
        }
        for want in wants {
            let filled = filled.get(&want.key).copied().unwrap_or(0);
            self.note_filled(&want, filled).await;
        }
        // Nothing suspicious at the head of the queue: back to full speed.
        self.careful &= claimed.iter().any(is_suspect);
        self.hand_out(claimed, false).await;
    }

    async fn note_filled(&mut self, want: &AccountWant, filled: u32) {
        let Some(slot) = self.slots.get_mut(&want.key) else { return };
        let parked = if want.park { (want.room - filled) as usize } else { 0 };
        self.standing = self.standing + parked - slot.parked.min(self.standing + parked);
        slot.parked = parked;
        // A claim that came back full may have left more behind.
        slot.dirty = want.room > 0 && filled == want.room;
        if filled > 0 {
            slot.used_at = Instant::now();
        }
        if slot.dirty {
            self.demand.add(&want.key);
        }
        let may_stand_in = slot.post.plan().fallback.is_some() && want.via.is_none();
        if filled < want.room && may_stand_in && want.limits.per_day > 0 {
            let now = self.shared.clock.now();
            match self.shared.store.used(&want.key, &want.limits, now).await {
                Ok(used) => slot.spent_until = day_used_up(&used, want.limits.per_day),
                Err(error) => tracing::warn!(%error, "what an account has used could not be read"),
            }
        }
    }

    async fn hand_out(&mut self, claimed: Vec<Claimed>, handed_over: bool) {
        for job in &claimed {
            self.shared.in_hand.take(job.uid);
            count_entered(Status::Sending);
        }
        let (suspects, jobs): (Vec<_>, Vec<_>) = claimed.into_iter().partition(is_suspect);
        if !suspects.is_empty() {
            self.examine(suspects).await;
        }
        for job in jobs {
            if handed_over {
                self.note_handed_over(&key_of(&job));
            }
            self.start(job);
        }
    }

    fn note_handed_over(&mut self, key: &AccountKey) {
        if let Some(slot) = self.slots.get_mut(key)
            && slot.parked > 0
        {
            slot.parked -= 1;
            self.standing -= 1;
            slot.used_at = Instant::now();
            self.demand.add(key);
        }
    }

    fn start(&mut self, job: Claimed) {
        let Some(slot) = self.slots.get_mut(&sender_of(&job)) else {
            // The account went away in between: the mail goes back and waits for it.
            let (shared, change) = (self.shared.clone(), outcome::give_back(&job, self.shared.clock.now()));
            self.shared.tasks.spawn(async move {
                let uid = change.uid;
                settle::give_back(&shared, change).await;
                shared.in_hand.put_down(uid);
            });
            return;
        };
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
            handed_over.iter().for_each(|_| count_entered(Status::Sending));
            left.extend(handed_over);
        }
        if left.is_empty() {
            return;
        }
        let now = self.shared.clock.now();
        let changes: Vec<_> = left.iter().map(|job| outcome::give_back(job, now)).collect();
        let states: Vec<_> = changes.iter().map(|change| change.to.status()).collect();
        match self.shared.store.apply(changes).await {
            Ok(held) => {
                let given_back =
                    states.into_iter().zip(held).filter_map(|(state, held)| held.then_some(state));
                given_back.for_each(count_entered);
            }
            Err(error) => {
                tracing::warn!(messages = left.len(), %error, "unsent mail could not be given back; it returns at the next start");
            }
        }
    }
}

fn is_suspect(job: &Claimed) -> bool {
    job.lost_leases >= SUSPECT_AFTER
}
