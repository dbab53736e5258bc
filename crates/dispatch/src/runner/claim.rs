//! One claim: which accounts ask for how much, and what the answer says about them.

use std::{collections::HashMap, sync::atomic::Ordering, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use postway_domain::{LeaseToken, TenantId};
use postway_store::{
    StoreError,
    record::{AccountKey, AccountWant, ClaimRequest, ClaimedMessage, LeaseGrant},
};
use postway_trace::{Span, SpanKind};
use tokio::time::Instant;

use super::{
    DispatchRunner,
    account_state::{accepting_account, day_used_up},
    is_suspect,
    scheduler::{AccountCapacity, CapacityGrant},
};

/// Bodies up to this size come with their claim.
const INLINE_BYTES_MAX: u32 = 64 * 1024;
/// Added to the longest transaction for a lease: time for the connection, the commits and a slow machine.
const LEASE_MARGIN: Duration = Duration::from_secs(5 * 60);

/// A claim under way, with what it asked for.
pub(super) type ClaimInFlight =
    BoxFuture<'static, (Vec<AccountWant>, Result<Vec<ClaimedMessage>, StoreError>)>;

impl DispatchRunner {
    /// Starts a claim for accounts that have free capacity and may have work, or whose standing claim has run
    /// low.
    pub(super) fn start_claim(&mut self) -> Option<ClaimInFlight> {
        let in_flight = self.in_flight();
        let must_wait = self.one_at_a_time && (in_flight > 0 || self.suspect.is_some());
        if self.scheduler.is_empty() || must_wait || self.context.config.roster.is_isolated() {
            return None;
        }
        let in_flight_max = self.context.config.in_flight_max;
        let now = self.context.clock.now();
        let (accounts, crowded) = (&self.accounts, self.standing_total > in_flight_max / 2);
        let tenants = &self.in_flight_by_tenant;
        let tenant_in_flight =
            |tenant: &TenantId| tenants.get(tenant).map_or(0, |count| count.load(Ordering::Relaxed));
        let grants =
            self.scheduler.grant_slots(in_flight_max.saturating_sub(in_flight), &tenant_in_flight, |key| {
                let Some(account_state) = accounts.get(key) else { return AccountCapacity::default() };
                account_state.capacity(account_state.active(accounts, now), crowded)
            });
        let mut wants = Vec::with_capacity(grants.len());
        // Standing claims count too, or many accounts together would exceed the bound.
        let mut standing = in_flight + self.standing_total;
        for CapacityGrant { key, slots: room, .. } in grants {
            let Some(account_state) = accounts.get(&key) else { continue };
            let active = account_state.active(accounts, now);
            let uses_fallback = active.sender.key != key;
            standing = standing + room - account_state.standing.min(standing);
            let park = (standing <= in_flight_max && !uses_fallback) || room == 0;
            let config = active.sender.config();
            let (limits, destinations) =
                (config.limits(now), active.sender.destinations.room(&config.destinations, now));
            let via = uses_fallback.then(|| active.sender.key.account.clone());
            wants.push(AccountWant { key, room: room as u32, park, limits, via, destinations });
        }
        if self.one_at_a_time {
            wants.truncate(1);
            wants.iter_mut().for_each(|want| (want.room, want.park) = (1, false));
        }
        if wants.is_empty() {
            return None;
        }
        let lasts = self.context.config.deadlines.transaction_max() + LEASE_MARGIN;
        let lease = LeaseGrant {
            incarnation: self.context.config.roster.me(),
            token: LeaseToken::new(&mut rand::rng()),
            until: now.plus(lasts),
        };
        let request = ClaimRequest { lease, now, wants: wants.clone(), inline_bytes_max: INLINE_BYTES_MAX };
        let (store, started) = (self.context.store.clone(), std::time::Instant::now());
        // Spawned, so that it makes progress while the runner starts other jobs.
        let claim = tokio::spawn(async move {
            let claimed = store.claim(request).await;
            claimed.inspect(|claimed| trace_claim(claimed, started))
        });
        Some(
            async move {
                let claimed =
                    claim.await.unwrap_or_else(|error| Err(StoreError::Unexpected(error.to_string())));
                (wants, claimed)
            }
            .boxed(),
        )
    }

    pub(super) async fn finish_claim(
        &mut self,
        wants: Vec<AccountWant>,
        claimed: Result<Vec<ClaimedMessage>, StoreError>,
    ) {
        let claimed = match claimed {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "a claim failed");
                wants.iter().for_each(|want| self.scheduler.add(&want.key));
                tokio::time::sleep(Duration::from_millis(200)).await;
                return;
            }
        };
        let mut filled: HashMap<AccountKey, u32> = HashMap::new();
        for one in &claimed {
            *filled.entry(accepting_account(one)).or_default() += 1;
        }
        let mut short = Vec::new();
        for want in wants {
            let filled = filled.get(&want.key).copied().unwrap_or(0);
            self.note_filled(&want, filled).await;
            if filled < want.room {
                short.push(want);
            }
        }
        // No suspect at the head of the queue: back to full speed.
        self.one_at_a_time &= claimed.iter().any(is_suspect);
        self.start_jobs(claimed, false).await;
        for want in short {
            self.note_busy_destinations(&want);
        }
    }

    /// Notes that the claim for an account may have passed over lanes whose receiving domains are busy.
    fn note_busy_destinations(&mut self, want: &AccountWant) {
        let is_full = || {
            let now = self.context.clock.now();
            let active = self.accounts.get(&want.key)?.active(&self.accounts, now);
            let room = active.sender.destinations.room(&active.sender.config().destinations, now);
            Some(room.is_full_somewhere())
        };
        if want.destinations.is_full_somewhere() || is_full().unwrap_or(false) {
            self.destination_waits.note(&want.key);
        }
    }

    async fn note_filled(&mut self, want: &AccountWant, filled: u32) {
        let Some(account_state) = self.accounts.get_mut(&want.key) else { return };
        let standing = if want.park { (want.room - filled) as usize } else { 0 };
        self.standing_total =
            self.standing_total + standing - account_state.standing.min(self.standing_total + standing);
        account_state.standing = standing;
        // A claim that was filled completely may have left more behind.
        account_state.may_have_work = want.room > 0 && filled == want.room;
        if filled > 0 {
            account_state.used_at = Instant::now();
        }
        if account_state.may_have_work {
            self.scheduler.add(&want.key);
        }
        let may_stand_in = account_state.sender.config().fallback.is_some() && want.via.is_none();
        if filled < want.room && may_stand_in && want.limits.per_day > 0 {
            let now = self.context.clock.now();
            match self.context.store.used(&want.key, &want.limits, now).await {
                Ok(used) => account_state.spent_until = day_used_up(&used, want.limits.per_day),
                Err(error) => tracing::warn!(%error, "the use of an account's limits could not be read"),
            }
        }
    }
}

/// Records the claim in the trace of each message that has one.
fn trace_claim(claimed: &[ClaimedMessage], started: std::time::Instant) {
    for one in claimed.iter().filter(|one| one.trace.is_some()) {
        let mut span = Span::child(one.trace, SpanKind::Internal, "claim").begun_at(started);
        span.set("postway.claim.messages", || claimed.len());
    }
}
