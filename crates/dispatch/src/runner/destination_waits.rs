//! Accounts whose mail waits for a receiving domain: their claims passed over lanes, and nothing else will
//! say when these may be claimed from.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use postway_store::record::AccountKey;
use tokio::time::Instant;

/// After this time they are claimed for again: often enough to use nearly all of a limit by the second, and
/// a claim then brings several messages.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The accounts that wait, in the order of their times.
#[derive(Default)]
pub(super) struct DestinationWaits {
    order: VecDeque<(Instant, AccountKey)>,
    keys: BTreeSet<AccountKey>,
}

impl DestinationWaits {
    /// Notes that an account waits from now on, unless it does already.
    pub fn note(&mut self, key: &AccountKey) {
        if self.keys.insert(key.clone()) {
            self.order.push_back((Instant::now() + LOOK_AGAIN, key.clone()));
            self.count();
        }
    }

    fn count(&self) {
        metrics::gauge!("postway_destination_waits").set(self.keys.len() as f64);
    }

    /// When the next of them has waited long enough.
    pub fn next_at(&self) -> Option<Instant> {
        self.order.front().map(|(at, _)| *at)
    }

    /// An account that has waited long enough.
    pub fn take_over(&mut self) -> Option<AccountKey> {
        self.order.front().filter(|(at, _)| *at <= Instant::now())?;
        let (_, key) = self.order.pop_front()?;
        self.keys.remove(&key);
        self.count();
        Some(key)
    }
}
