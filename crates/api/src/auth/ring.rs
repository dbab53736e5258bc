//! Tenants' keys as this process knows them: the store's answer, remembered for a moment, and when each was used last.
//!
//! Every request shows its key, so what was read is believed for a few seconds; a key revoked on another node works here
//! for as long, one revoked here not at all. Only keys that exist are remembered: a key made just now opens at once, and
//! the memory is bounded by their number.
//!
//! When a key was last used is written apart from the request, at most once a minute for each key and together for all
//! that were used in the same second. What is noted when the process ends is lost: it says *about* when.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use postway_domain::{ApiKey, KeyDigest, TenantId, Time};
use postway_store::{Store, StoreError, record::DirectoryChange};
use tokio::task::JoinSet;

use crate::state::App;

/// How long an answer is believed.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// Beyond this many answers, those no longer believed are forgotten.
const REMEMBERED_MAX: usize = 10_000;
/// How often the use of one key is written.
const TOUCH_EVERY: Duration = Duration::from_secs(60);
/// How long uses are collected before they are written together.
const COLLECT_FOR: Duration = Duration::from_secs(1);

struct Known {
    read_at: Instant,
    key: Arc<ApiKey>,
}

/// The memory of keys.
#[derive(Default)]
pub(crate) struct KeyRing {
    known: RwLock<HashMap<KeyDigest, Known>>,
    uses: Arc<Mutex<Uses>>,
    /// The writer of uses, while there is something to write. Gone with the ring.
    writer: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct Uses {
    /// To be written.
    noted: HashMap<String, Time>,
    /// When each key's use was last noted.
    last: HashMap<String, Time>,
    /// Whether somebody is about to write them.
    has_writer: bool,
}

impl KeyRing {
    /// The key that was shown, if it opens now: neither revoked nor expired, of a tenant that is not deleted.
    pub(crate) async fn valid(&self, presented: &[u8], app: &App) -> Result<Option<Arc<ApiKey>>, StoreError> {
        // What cannot be a key is not worth a question to the store.
        if !presented.starts_with(ApiKey::PREFIX.as_bytes()) {
            return Ok(None);
        }
        self.valid_digest(KeyDigest::of(presented), app).await
    }

    /// The key with this digest, if it opens now.
    pub(crate) async fn valid_digest(
        &self,
        digest: KeyDigest,
        app: &App,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        let key = match self.remembered(&digest) {
            Some(key) => key,
            None => match app.store.key(&digest).await? {
                Some(key) => self.remember(key),
                None => return Ok(None),
            },
        };
        let now = app.clock.now();
        if !key.is_valid(now) || !app.knows_tenant(&key.tenant).await? {
            return Ok(None);
        }
        self.note_use(&key, now, &app.store);
        Ok(Some(key))
    }

    /// Forgets a tenant's key, or all of its keys: the next request reads anew.
    pub(crate) fn forget(&self, tenant: &TenantId, id: Option<&str>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| known.key.tenant != *tenant || id.is_some_and(|id| known.key.id != id));
    }

    fn remembered(&self, digest: &KeyDigest) -> Option<Arc<ApiKey>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(digest).filter(|known| known.read_at.elapsed() < FRESH_FOR).map(|known| known.key.clone())
    }

    fn remember(&self, key: ApiKey) -> Arc<ApiKey> {
        let key = Arc::new(key);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.retain(|_, known| known.read_at.elapsed() < FRESH_FOR);
        }
        known.insert(key.digest, Known { read_at: Instant::now(), key: key.clone() });
        key
    }

    fn note_use(&self, key: &ApiKey, now: Time, store: &Arc<dyn Store>) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let last = uses.last.get(&key.id).copied().max(key.last_used_at);
        if last.is_some_and(|last| now.since(last) < TOUCH_EVERY) {
            return;
        }
        if uses.last.len() >= REMEMBERED_MAX {
            uses.last.retain(|_, last| now.since(*last) < TOUCH_EVERY);
        }
        uses.last.insert(key.id.clone(), now);
        uses.noted.insert(key.id.clone(), now);
        if !std::mem::replace(&mut uses.has_writer, true) {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            while writer.try_join_next().is_some() {}
            writer.spawn(write_uses(self.uses.clone(), store.clone()));
        }
    }
}

/// Writes what was noted, once, and ends.
async fn write_uses(uses: Arc<Mutex<Uses>>, store: Arc<dyn Store>) {
    tokio::time::sleep(COLLECT_FOR).await;
    let noted: Vec<(String, Time)> = {
        let mut uses = uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.has_writer = false;
        uses.noted.drain().collect()
    };
    if let Err(error) = store.change(DirectoryChange::TouchKeys(noted), None).await {
        tracing::debug!(%error, "when keys were last used could not be written");
    }
}
