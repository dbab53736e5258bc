//! A cache of API keys: what the store answered a moment ago, and when each key was last used.
//!
//! Every request presents its key, so an answer of the store is trusted for a few seconds. A key revoked on
//! another node works here for that long; one revoked here stops at once, even if it is being read at that
//! moment. Existing keys are cached without a bound but their number; wrong ones are handled by
//! `wrong_keys.rs`.
//!
//! The time of last use is written apart from the request, at most once a minute for each key, and together
//! for all keys used in the same second. What is not yet written when the process ends is lost, so the time
//! is approximate.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use postway_domain::{ApiKey, KeyDigest, TenantId, Time, client::ClientAddress};
use postway_store::{Store, StoreError, record::DirectoryChange};
use tokio::task::JoinSet;

use super::wrong_keys::WrongKeyMemory;
use crate::state::AppState;

/// How long an answer of the store is trusted.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// Beyond this many entries, expired ones are removed.
const REMEMBERED_MAX: usize = 10_000;
/// How often the use of one key is written.
const TOUCH_EVERY: Duration = Duration::from_secs(60);
/// How long uses are collected before they are written in one batch.
const COLLECT_FOR: Duration = Duration::from_secs(1);

struct KnownKey {
    read_at: Instant,
    key: Arc<ApiKey>,
}

#[derive(Default)]
struct KnownKeyMap {
    by_digest: HashMap<KeyDigest, KnownKey>,
    /// How many times keys were removed: what was read before the latest removal may be revoked.
    forgotten: u64,
}

/// Why a key could not be looked up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyLookupError {
    /// The caller's address has sent too many wrong keys and must wait this long.
    #[error("too many wrong keys")]
    TooManyWrong(Duration),
    /// The store does not answer.
    #[error(transparent)]
    Unavailable(#[from] StoreError),
}

/// The cache.
#[derive(Default)]
pub(crate) struct KeyCache {
    known: RwLock<KnownKeyMap>,
    wrong: WrongKeyMemory,
    uses: Arc<Mutex<KeyUseLog>>,
    /// The task that writes uses, while there are any to write. It ends with the cache.
    writer: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct KeyUseLog {
    /// Uses to be written.
    noted: HashMap<String, Time>,
    /// When each key's use was last recorded.
    last: HashMap<String, Time>,
    /// Whether a task is about to write them.
    has_writer: bool,
}

impl KeyCache {
    /// The key that `client` presents, if it is valid now: not revoked, not expired, and of a tenant that is
    /// not deleted. A client that sent too many wrong keys is admitted only with a key that is cached here.
    pub(crate) async fn valid_key(
        &self,
        presented: &[u8],
        client: Option<ClientAddress>,
        app: &AppState,
    ) -> Result<Option<Arc<ApiKey>>, KeyLookupError> {
        let (digest, now) = (KeyDigest::of(presented), Instant::now());
        let is_known = self.has_seen(&digest);
        if !is_known && let Some(wait) = client.and_then(|client| self.wrong.wait(client, now)) {
            count_refused("throttled");
            return Err(KeyLookupError::TooManyWrong(wait));
        }
        // A text that cannot be a key, or was a wrong key a moment ago, is not looked up.
        let is_wrong =
            !presented.starts_with(ApiKey::PREFIX.as_bytes()) || self.wrong.is_known_wrong(&digest, now);
        let key = if is_wrong { None } else { self.valid_digest(digest, app).await? };
        if key.is_none() {
            count_refused("wrong");
            if !is_wrong && !is_known {
                self.wrong.remember(digest, now);
            }
            if let Some(client) = client {
                self.wrong.count_wrong_key(client, now);
            }
        }
        Ok(key)
    }

    /// How long `client` must wait before it may try another key or proof, if it must.
    pub(crate) fn wait(&self, client: Option<ClientAddress>) -> Option<Duration> {
        let wait = client.and_then(|client| self.wrong.wait(client, Instant::now()));
        if wait.is_some() {
            count_refused("throttled");
        }
        wait
    }

    /// Counts a failed proof of `client` as a wrong key.
    pub(crate) fn count_wrong(&self, client: Option<ClientAddress>) {
        count_refused("wrong");
        if let Some(client) = client {
            self.wrong.count_wrong_key(client, Instant::now());
        }
    }

    /// The key with this digest, if it is valid now.
    pub(crate) async fn valid_digest(
        &self,
        digest: KeyDigest,
        app: &AppState,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        let key = match self.recall(&digest) {
            Ok(key) => key,
            Err(forgotten) => match app.store.key(&digest).await? {
                Some(key) => self.remember(key, forgotten),
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

    /// Removes a tenant's key, or all of its keys, from the cache: the next request reads the store.
    pub(crate) fn forget(&self, tenant: &TenantId, id: Option<&str>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let stays = |one: &KnownKey| one.key.tenant != *tenant || id.is_some_and(|id| one.key.id != id);
        known.by_digest.retain(|_, one| stays(one));
        known.forgotten += 1;
    }

    /// Whether this key was in the store at some time.
    fn has_seen(&self, digest: &KeyDigest) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).by_digest.contains_key(digest)
    }

    /// The key, if it was read a moment ago; otherwise how many times keys were removed so far.
    fn recall(&self, digest: &KeyDigest) -> Result<Arc<ApiKey>, u64> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let fresh = known.by_digest.get(digest).filter(|known| known.read_at.elapsed() < FRESH_FOR);
        fresh.map(|known| known.key.clone()).ok_or(known.forgotten)
    }

    /// Caches a key that was read when keys had been removed `forgotten` times. If keys were removed since,
    /// it is valid for this request, which came before, and is not cached.
    fn remember(&self, key: ApiKey, forgotten: u64) -> Arc<ApiKey> {
        let key = Arc::new(key);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.forgotten != forgotten {
            return key;
        }
        if known.by_digest.len() >= REMEMBERED_MAX {
            known.by_digest.retain(|_, known| known.read_at.elapsed() < FRESH_FOR);
        }
        known.by_digest.insert(key.digest, KnownKey { read_at: Instant::now(), key: key.clone() });
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

fn count_refused(outcome: &'static str) {
    metrics::counter!("postway_keys_refused_total", "outcome" => outcome).increment(1);
}

/// Writes the recorded uses once, and ends.
async fn write_uses(uses: Arc<Mutex<KeyUseLog>>, store: Arc<dyn Store>) {
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

#[cfg(test)]
mod tests {
    use postway_domain::KeyScope;

    use super::*;

    fn key(id: &str) -> ApiKey {
        ApiKey {
            id: id.to_owned(),
            tenant: "default".parse().unwrap(),
            name: id.to_owned(),
            digest: KeyDigest::of(id.as_bytes()),
            scopes: vec![KeyScope::Send],
            networks: Vec::new(),
            restrictions: None,
            created_at: Time::from_millis(0),
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
            scram: None,
            created_by: None,
        }
    }

    #[test]
    fn a_key_that_was_revoked_while_it_was_read_is_not_remembered() {
        let (cache, one) = (KeyCache::default(), key("one"));
        let before = cache.recall(&one.digest).unwrap_err();
        // Another request revokes the key between our read and our write to the cache.
        cache.forget(&one.tenant, Some("one"));
        cache.remember(one.clone(), before);
        assert!(cache.recall(&one.digest).is_err(), "the next request reads anew");
        let now = cache.recall(&one.digest).unwrap_err();
        cache.remember(one.clone(), now);
        assert!(cache.recall(&one.digest).is_ok());
        cache.forget(&one.tenant, Some("other"));
        assert!(cache.recall(&one.digest).is_ok(), "another key was forgotten");
    }
}
