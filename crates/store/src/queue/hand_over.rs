//! Standing claims and wake-ups: the part of the port that is in memory.
//!
//! A dispatcher with free slots registers them here. The accept transaction takes a slot, stores the message
//! as leased, and delivers it after the commit, which saves an fsync and a read. The database stays the only
//! queue: whatever is lost here with the process is leased in the database and is reclaimed from there.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use postway_domain::{DestinationGroup, Incarnation, LeaseToken, Time};
use tokio::sync::Notify;

use crate::record::{AccountKey, AccountWant, ClaimedMessage, LeaseGrant};

/// Messages up to this size are handed over; larger ones are claimed, so that memory stays bounded.
pub const HANDOVER_BYTES_MAX: usize = 64 * 1024;

/// One account's standing claim.
#[derive(Debug)]
struct StandingClaim {
    incarnation: Incarnation,
    token: LeaseToken,
    lasts: Duration,
    /// The request; its capacity is what is left of it.
    want: AccountWant,
}

#[derive(Default)]
struct HandOverState {
    standing: HashMap<AccountKey, StandingClaim>,
    delivered: Vec<ClaimedMessage>,
    woken: BTreeSet<AccountKey>,
    /// Hints for other nodes, if the database can send them.
    to_tell: Option<BTreeSet<AccountKey>>,
}

/// Shared by a store's accept and claim paths. The lock is taken for map operations only.
#[derive(Default)]
pub struct HandOver {
    inner: Mutex<HandOverState>,
    on_delivery: Notify,
    on_wake: Notify,
    on_tell: Notify,
    on_preparation: Notify,
    on_report: Notify,
    on_inbound: Notify,
    on_provider_events: Notify,
}

impl HandOver {
    fn lock(&self) -> MutexGuard<'_, HandOverState> {
        // Every critical section leaves the maps consistent, so a poisoned lock is still usable.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces an account's standing claim; one without capacity removes it.
    pub fn park(&self, want: AccountWant, lease: &LeaseGrant, now: Time) {
        let mut inner = self.lock();
        if want.room == 0 {
            inner.standing.remove(&want.key);
            return;
        }
        let (incarnation, token, lasts) = (lease.incarnation, lease.token, lease.until.since(now));
        inner.standing.insert(want.key.clone(), StandingClaim { incarnation, token, lasts, want });
    }

    /// Takes one slot for mail to these destinations, if there is a standing claim that has room for them and
    /// whose limits are covered. They may have changed since they were read.
    pub fn take(
        &self,
        key: &AccountKey,
        destination: Option<&DestinationGroup>,
        now: Time,
        is_covered: impl FnOnce(&AccountWant) -> bool,
    ) -> Option<(LeaseGrant, AccountWant)> {
        let mut inner = self.lock();
        let standing = inner.standing.get_mut(key).filter(|standing| {
            standing.want.destinations.of(destination) > 0 && is_covered(&standing.want)
        })?;
        standing.want.room -= 1;
        standing.want.destinations.take(destination, 1);
        let want = standing.want.clone();
        let lease = LeaseGrant {
            incarnation: standing.incarnation,
            token: standing.token,
            until: now.plus(standing.lasts),
        };
        if want.room == 0 {
            inner.standing.remove(key);
        }
        Some((lease, want))
    }

    /// The standing claim of an account, if it has one.
    pub fn standing(&self, key: &AccountKey) -> Option<AccountWant> {
        self.lock().standing.get(key).map(|standing| standing.want.clone())
    }

    /// Withdraws one account's standing claim.
    pub fn withdraw(&self, key: &AccountKey) {
        self.lock().standing.remove(key);
    }

    /// Withdraws every standing claim.
    pub fn unpark(&self) {
        self.lock().standing.clear();
    }

    /// Gives committed work to the dispatcher.
    pub fn deliver(&self, claimed: Vec<ClaimedMessage>) {
        if claimed.is_empty() {
            return;
        }
        self.lock().delivered.extend(claimed);
        self.on_delivery.notify_one();
    }

    /// Waits for delivered work.
    pub async fn delivered(&self) -> Vec<ClaimedMessage> {
        loop {
            let claimed = std::mem::take(&mut self.lock().delivered);
            if !claimed.is_empty() {
                return claimed;
            }
            self.on_delivery.notified().await;
        }
    }

    /// Hints that these accounts may have due work, or have changed.
    pub fn wake(&self, keys: impl IntoIterator<Item = AccountKey>) {
        let keys: Vec<AccountKey> = keys.into_iter().collect();
        if keys.is_empty() {
            return;
        }
        if let Some(to_tell) = &mut self.lock().to_tell {
            to_tell.extend(keys.iter().cloned());
            self.on_tell.notify_one();
        }
        self.hear(keys);
    }

    /// Takes hints from another node.
    pub fn hear(&self, keys: impl IntoIterator<Item = AccountKey>) {
        let mut inner = self.lock();
        let before = inner.woken.len();
        inner.woken.extend(keys);
        if inner.woken.len() > before {
            drop(inner);
            self.on_wake.notify_one();
        }
    }

    /// Waits for hints to send to other nodes. They are collected from the first call on.
    pub async fn to_tell(&self) -> BTreeSet<AccountKey> {
        loop {
            let keys = std::mem::take(self.lock().to_tell.get_or_insert_default());
            if !keys.is_empty() {
                return keys;
            }
            self.on_tell.notified().await;
        }
    }

    /// Hints that there may be something to prepare.
    pub fn wake_preparation(&self) {
        self.on_preparation.notify_one();
    }

    /// Waits for that hint.
    pub async fn preparation_woken(&self) {
        self.on_preparation.notified().await;
    }

    /// Hints that there may be something new to report.
    pub fn wake_reports(&self) {
        // There are several waiters: all that wait now, and one that was busy.
        self.on_report.notify_waiters();
        self.on_report.notify_one();
    }

    /// Waits for that hint.
    pub async fn reports_woken(&self) {
        self.on_report.notified().await;
    }

    /// Hints that there may be reported events to process.
    pub fn wake_provider_events(&self) {
        self.on_provider_events.notify_one();
    }

    /// Waits for the hint.
    pub async fn provider_event_woken(&self) {
        self.on_provider_events.notified().await;
    }

    /// Hints that there may be inbound mail to process.
    pub fn wake_inbound(&self) {
        self.on_inbound.notify_one();
    }

    /// Waits for that hint.
    pub async fn inbound_woken(&self) {
        self.on_inbound.notified().await;
    }

    /// Waits for a hint.
    pub async fn woken(&self) -> Vec<AccountKey> {
        loop {
            let keys = std::mem::take(&mut self.lock().woken);
            if !keys.is_empty() {
                return keys.into_iter().collect();
            }
            self.on_wake.notified().await;
        }
    }
}
