//! Accounts that have room again, from the couriers to the runner.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use postway_store::record::AccountKey;
use tokio::sync::Notify;

/// Collected until the runner looks.
#[derive(Default)]
pub(crate) struct Freed {
    keys: Mutex<BTreeSet<AccountKey>>,
    rung: Notify,
}

impl Freed {
    /// This account has finished a message, or stands otherwise than before.
    pub fn tell(&self, key: &AccountKey) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if !keys.contains(key) {
            keys.insert(key.clone());
        }
        drop(keys);
        self.rung.notify_one();
    }

    /// Waits for news, and takes all there is.
    pub async fn next(&self) -> BTreeSet<AccountKey> {
        loop {
            let keys = std::mem::take(&mut *self.keys.lock().unwrap_or_else(PoisonError::into_inner));
            if !keys.is_empty() {
                return keys;
            }
            self.rung.notified().await;
        }
    }
}
