//! Signals from couriers to the runner: which accounts have free capacity again.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use postway_store::record::AccountKey;
use tokio::sync::Notify;

/// Accounts with free capacity, collected until the runner asks for them.
#[derive(Default)]
pub(crate) struct CapacityEvents {
    keys: Mutex<BTreeMap<AccountKey, bool>>,
    news: Notify,
}

impl CapacityEvents {
    /// Reports that the account finished a message or changed its state. `has_next` says whether another
    /// message may have become due because of it.
    pub fn report(&self, key: &AccountKey, has_next: bool) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        match keys.get_mut(key) {
            Some(known) => *known |= has_next,
            None => drop(keys.insert(key.clone(), has_next)),
        }
        drop(keys);
        self.news.notify_one();
    }

    /// Waits until an account was reported, then takes all reports.
    pub async fn next_batch(&self) -> BTreeMap<AccountKey, bool> {
        loop {
            let keys = std::mem::take(&mut *self.keys.lock().unwrap_or_else(PoisonError::into_inner));
            if !keys.is_empty() {
                return keys;
            }
            self.news.notified().await;
        }
    }
}
