//! The runner: one loop that keeps every account supplied with work.
//!
//! It claims for accounts with free capacity, tenant by tenant in their turns (`scheduler.rs`). Capacity that
//! a claim could not fill stays registered with the store as a standing claim, so that new mail is handed
//! over in the transaction that accepts it. The runner knows only accounts that have had work, and visits
//! only those that a hint, a poll or a courier has named. Hints make it fast; polling makes it correct. At
//! most one claim is under way, so capacity that becomes free meanwhile is claimed together.
//!
//! A message whose lease was lost several times in a row is a *suspect*: it may be what kills the process. It
//! is sent alone, so that a further crash can only be its own.

mod account_state;
mod claim;
mod destination_waits;
mod scheduler;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use futures::FutureExt;
use postway_domain::{Account, MessageStatus, TenantId};
use postway_store::record::{AccountKey, ClaimedMessage, DueAccount};
use tokio::time::Instant;

use self::{
    account_state::{AccountState, accepting_account, sending_account},
    claim::ClaimInFlight,
    destination_waits::DestinationWaits,
    scheduler::{CLAIM_ACCOUNTS_MAX, ClaimScheduler},
};
use crate::{
    account::{AccountSender, config::AccountConfig, destinations::domains_of, job_queue::QueuedJob},
    context::DispatchContext,
    courier,
    outcome::{self, attempt_metrics::count_entered, settle},
};

/// How often the queue is polled when polling is cheap.
const POLL: Duration = Duration::from_secs(1);
/// The longest time between two polls.
const POLL_MAX: Duration = Duration::from_secs(10);
/// Polling may use at most 1/POLL_SHARE of the time.
const POLL_SHARE: u32 = 20;
/// A hint does not make the runner read an account again that it read less than this ago.
const FRESH_FOR: Duration = Duration::from_millis(20);
/// How many accounts with a standing claim one poll reads again.
const REREAD_MAX: usize = 64;
/// After this many leases lost in a row a message is sent with nothing else in flight.
const SUSPECT_AFTER: i64 = 3;

struct DispatchRunner {
    context: Arc<DispatchContext>,
    accounts: BTreeMap<AccountKey, AccountState>,
    scheduler: ClaimScheduler,
    /// Messages in flight by tenant, over all of its accounts.
    in_flight_by_tenant: HashMap<TenantId, Arc<AtomicUsize>>,
    /// Accounts to read before anything is claimed for them, because they are new to this node or have
    /// changed.
    unread: BTreeSet<AccountKey>,
    /// The capacity in standing claims, over all accounts.
    standing_total: usize,
    /// A suspect that waits until nothing else is in flight.
    suspect: Option<ClaimedMessage>,
    /// While there may be suspects in the queue, one message is claimed at a time.
    one_at_a_time: bool,
    /// Accounts whose mail waits for a receiving domain.
    destination_waits: DestinationWaits,
}

pub(crate) async fn run(context: Arc<DispatchContext>) {
    let mut runner = DispatchRunner::new(context.clone());
    let mut claiming: Option<ClaimInFlight> = None;
    let mut poll_at = Instant::now();
    while !context.stop.is_cancelled() {
        runner.withdraw_if_isolated();
        if Instant::now() >= poll_at {
            poll_at = runner.poll().await;
        }
        runner.end_destination_waits();
        runner.read_accounts().await;
        runner.start_suspect();
        if let Some(freed) = context.capacity_events.next_batch().now_or_never() {
            runner.note_freed(freed);
        }
        if claiming.is_none() {
            // Counted before more is claimed, because the hint about remaining work may arrive before the
            // hand-over.
            if let Some(handed_over) = context.store.handed_over().now_or_never() {
                runner.start_jobs(handed_over, true).await;
            }
            claiming = runner.start_claim();
        }
        let claimed = async {
            match &mut claiming {
                Some(claim) => claim.await,
                None => std::future::pending().await,
            }
        };
        // Biased, so that a simulation meets the same events in the same order. No branch starves: a claim
        // answers once, hints are taken as a set, and the other sources are also polled at the top of the
        // loop.
        let look_at = runner.destination_waits.next_at().map_or(poll_at, |at| at.min(poll_at));
        tokio::select! {
            biased;
            () = context.stop.cancelled() => {}
            (wants, claimed) = claimed => {
                claiming = None;
                runner.finish_claim(wants, claimed).await;
            }
            woken = context.store.woken() => runner.wake(woken),
            handed_over = context.store.handed_over() => runner.start_jobs(handed_over, true).await,
            freed = context.capacity_events.next_batch() => runner.note_freed(freed),
            () = tokio::time::sleep_until(look_at) => {}
        }
    }
    // A claim under way must be awaited, or its messages would stay leased until their leases expire.
    if let Some(claim) = claiming {
        let (wants, claimed) = claim.await;
        runner.finish_claim(wants, claimed).await;
    }
    runner.return_unstarted().await;
}

impl DispatchRunner {
    fn new(context: Arc<DispatchContext>) -> Self {
        Self {
            context,
            accounts: BTreeMap::new(),
            scheduler: ClaimScheduler::default(),
            in_flight_by_tenant: HashMap::new(),
            unread: BTreeSet::new(),
            standing_total: 0,
            suspect: None,
            one_at_a_time: false,
            destination_waits: DestinationWaits::default(),
        }
    }

    /// Messages in flight, without a suspect that has not started.
    fn in_flight(&self) -> usize {
        self.context.in_flight.len().saturating_sub(usize::from(self.suspect.is_some()))
    }

    /// Sends the suspect once nothing else is in flight.
    fn start_suspect(&mut self) {
        if self.in_flight() > 0 {
            return;
        }
        if let Some(suspect) = self.suspect.take() {
            tracing::warn!(uid = %suspect.uid, lost = suspect.lost_leases, "sending a suspect message alone");
            self.start_job(suspect);
        }
    }

    /// Keeps one suspect and returns the others before it is sent: every message that is leased when the
    /// process dies loses a lease, and would become a suspect too.
    async fn set_suspect_aside(&mut self, mut suspects: Vec<ClaimedMessage>) {
        self.one_at_a_time = true;
        self.withdraw_standing_claims();
        if self.suspect.is_none() {
            self.suspect = Some(suspects.remove(0));
        }
        let now = self.context.clock.now();
        for job in suspects {
            settle::write_return(&self.context, outcome::return_unstarted(&job, now)).await;
            self.context.in_flight.remove(job.uid);
        }
    }

    /// Withdraws every standing claim; the accounts are claimed for anew.
    fn withdraw_standing_claims(&mut self) {
        self.context.store.unpark();
        self.standing_total = 0;
        for (key, account_state) in &mut self.accounts {
            account_state.standing = 0;
            account_state.may_have_work = true;
            self.scheduler.add(key);
        }
    }

    /// Withdraws the standing claims while other nodes may take over the leases of this process, so that new
    /// mail goes to a node that can send it.
    fn withdraw_if_isolated(&mut self) {
        if self.standing_total > 0 && self.context.config.roster.is_isolated() {
            self.withdraw_standing_claims();
        }
    }

    /// Reads which accounts have due work. Returns when to poll again.
    async fn poll(&mut self) -> Instant {
        let now = self.context.clock.now();
        let looked_at = Instant::now();
        let next_due = match self.context.store.queue_state(now).await {
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

    /// Looks again at accounts whose mail has waited for a receiving domain.
    fn end_destination_waits(&mut self) {
        while let Some(key) = self.destination_waits.take_over() {
            if let Some(account_state) = self.accounts.get_mut(&key) {
                account_state.may_have_work = true;
                self.scheduler.add(&key);
            }
        }
    }

    /// Notes accounts with free capacity; the flag says whether their next message is due.
    fn note_freed(&mut self, freed: BTreeMap<AccountKey, bool>) {
        for (key, has_next) in freed {
            if let Some(account_state) = self.accounts.get_mut(&key) {
                account_state.may_have_work |= has_next;
            }
            self.scheduler.add(&key);
        }
    }

    fn note_due(&mut self, due: DueAccount) {
        self.scheduler.set_weight(&due.key.tenant, due.weight);
        match self.accounts.get_mut(&due.key) {
            Some(account_state) if account_state.sender.config().version == due.version => {
                account_state.may_have_work = true;
                self.scheduler.add(&due.key);
            }
            Some(_) | None => {
                self.unread.insert(due.key);
            }
        }
    }

    /// Reconsiders standing claims that have brought nothing for long, once they take up half of the
    /// capacity.
    fn note_idle(&mut self) {
        if self.standing_total <= self.context.config.in_flight_max / 2 {
            return;
        }
        for (key, account_state) in &self.accounts {
            if account_state.has_idle_claim() {
                self.scheduler.add(key);
            }
        }
    }

    /// Reads accounts that are new to this node or have changed, a bounded number at a time.
    async fn read_accounts(&mut self) {
        for _ in 0..CLAIM_ACCOUNTS_MAX {
            let Some(key) = self.unread.pop_first() else { return };
            // Taken before the read, so that a change during the read makes this copy look old.
            let generation = self.context.store.generation();
            match self.context.store.account(&key.tenant, &key.account).await {
                Ok(Some(account)) => self.register_account(key, account, generation).await,
                Ok(None) => self.drop_account(&key),
                Err(error) => {
                    tracing::warn!(%error, "an account could not be read");
                    // The next poll names it again.
                    return;
                }
            }
        }
    }

    async fn register_account(&mut self, key: AccountKey, account: Account, generation: u64) {
        let config = AccountConfig::new(&account, &self.context);
        if let Some(fallback) = &config.fallback {
            let fallback = AccountKey { tenant: key.tenant.clone(), account: fallback.clone() };
            if !self.accounts.contains_key(&fallback) {
                self.unread.insert(fallback);
            }
        }
        match self.accounts.get_mut(&key) {
            Some(account_state) => {
                (account_state.read_at, account_state.generation) = (Instant::now(), generation);
                if account_state.sender.config().version != account.version {
                    account_state.sender.replace_config(config);
                    account_state.may_have_work = true;
                }
            }
            None => {
                let tenant_in_flight =
                    self.in_flight_by_tenant.entry(key.tenant.clone()).or_default().clone();
                let sender =
                    Arc::new(AccountSender::open(key.clone(), config, tenant_in_flight, &self.context).await);
                self.accounts.insert(key.clone(), AccountState::new(sender, generation));
            }
        }
        self.scheduler.add(&key);
    }

    fn drop_account(&mut self, key: &AccountKey) {
        if let Some(account_state) = self.accounts.remove(key) {
            self.standing_total -= account_state.standing;
        }
    }

    /// Takes hints. A hint may mean new work or new settings, so the account is read again, unless it was
    /// read a moment ago and nothing has changed since.
    fn wake(&mut self, keys: Vec<AccountKey>) {
        let generation = self.context.store.generation();
        for key in keys {
            let fresh = match self.accounts.get_mut(&key) {
                Some(account_state) => {
                    account_state.may_have_work = true;
                    self.scheduler.add(&key);
                    account_state.read_at.elapsed() < FRESH_FOR && account_state.generation == generation
                }
                None => false,
            };
            if !fresh {
                self.unread.insert(key);
            }
        }
    }

    /// Marks accounts with a standing claim to be read again, the longest unread first: settings that another
    /// node changed must apply to mail that is handed over, too.
    fn note_standing(&mut self) {
        let mut standing: Vec<(Instant, &AccountKey)> = self
            .accounts
            .iter()
            .filter(|(_, account_state)| {
                account_state.standing > 0 && account_state.read_at.elapsed() >= POLL / 2
            })
            .map(|(key, account_state)| (account_state.read_at, key))
            .collect();
        standing.sort_by_key(|(read_at, _)| *read_at);
        self.unread.extend(standing.into_iter().take(REREAD_MAX).map(|(_, key)| key.clone()));
    }

    async fn start_jobs(&mut self, claimed: Vec<ClaimedMessage>, handed_over: bool) {
        for job in &claimed {
            self.context.in_flight.add(job.uid);
            count_entered(MessageStatus::Sending);
        }
        let (suspects, jobs): (Vec<_>, Vec<_>) = claimed.into_iter().partition(is_suspect);
        if !suspects.is_empty() {
            self.set_suspect_aside(suspects).await;
        }
        for job in jobs {
            if handed_over {
                self.note_handed_over(&accepting_account(&job));
            }
            self.start_job(job);
        }
    }

    fn note_handed_over(&mut self, key: &AccountKey) {
        if let Some(account_state) = self.accounts.get_mut(key)
            && account_state.standing > 0
        {
            account_state.standing -= 1;
            self.standing_total -= 1;
            account_state.used_at = Instant::now();
            self.scheduler.add(key);
        }
    }

    fn start_job(&mut self, job: ClaimedMessage) {
        let Some(account_state) = self.accounts.get_mut(&sending_account(&job)) else {
            // The account was deleted after the claim: the message is returned and waits for it.
            let (context, change) =
                (self.context.clone(), outcome::return_unstarted(&job, self.context.clock.now()));
            self.context.tasks.spawn(async move {
                let uid = change.uid;
                settle::write_return(&context, change).await;
                context.in_flight.remove(uid);
            });
            return;
        };
        let config = account_state.sender.config();
        let now = self.context.clock.now();
        // Without room its courier returns it, unless there is some by then.
        let slots =
            account_state.sender.destinations.reserve(&config.destinations, domains_of(&job), now).ok();
        if account_state.sender.queue.push(QueuedJob { message: job, slots }, config.connections_max) {
            self.context.tasks.spawn(courier::run(self.context.clone(), account_state.sender.clone()));
        }
    }

    /// Returns every message that has not started, so that a drain leaves no lease behind.
    async fn return_unstarted(&mut self) {
        self.context.store.unpark();
        let mut left: Vec<ClaimedMessage> =
            self.accounts.values().flat_map(|account_state| account_state.sender.queue.clear()).collect();
        left.extend(self.suspect.take());
        if let Some(handed_over) = self.context.store.handed_over().now_or_never() {
            handed_over.iter().for_each(|_| count_entered(MessageStatus::Sending));
            left.extend(handed_over);
        }
        if left.is_empty() {
            return;
        }
        let now = self.context.clock.now();
        let changes: Vec<_> = left.iter().map(|job| outcome::return_unstarted(job, now)).collect();
        let states: Vec<_> = changes.iter().map(|change| change.to.status()).collect();
        match self.context.store.apply(changes).await {
            Ok(applied) => {
                let given_back =
                    states.into_iter().zip(applied).filter_map(|(state, applied)| applied.then_some(state));
                given_back.for_each(count_entered);
            }
            Err(error) => {
                tracing::warn!(messages = left.len(), %error, "unsent mail could not be grants back; it returns at the next start");
            }
        }
    }
}

fn is_suspect(job: &ClaimedMessage) -> bool {
    job.lost_leases >= SUSPECT_AFTER
}
