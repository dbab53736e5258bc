//! Accounts that have room again, from the couriers to the runner.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use postway_store::record::AccountKey;
use tokio::sync::Notify;

/// Collected until the runner looks.
#[derive(Default)]
pub(crate) struct Freed {
    keys: Mutex<BTreeMap<AccountKey, bool>>,
    rung: Notify,
}

impl Freed {
    /// This account has finished a message, or stands otherwise than before; and whether another may be due because of it.
    pub fn tell(&self, key: &AccountKey, has_next: bool) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        match keys.get_mut(key) {
            Some(known) => *known |= has_next,
            None => drop(keys.insert(key.clone(), has_next)),
        }
        drop(keys);
        self.rung.notify_one();
    }

    /// Waits for news, and takes all there is.
    pub async fn next(&self) -> BTreeMap<AccountKey, bool> {
        loop {
            let keys = std::mem::take(&mut *self.keys.lock().unwrap_or_else(PoisonError::into_inner));
            if !keys.is_empty() {
                return keys;
            }
            self.rung.notified().await;
        }
    }
}
