//! Tenants' keys as this process knows them: the store's answer, remembered for a moment, and when each was used last.
//!
//! Every request shows its key, so what was read is believed for a few seconds; a key revoked on another node works here
//! for as long, one revoked here not at all, also where it was being read at that moment. Keys that exist are remembered without
//! a bound but their number; those that open nothing are `wrong_keys.rs`'s.
//!
//! When a key was last used is written apart from the request, at most once a minute for each key and together for all
//! that were used in the same second. What is noted when the process ends is lost: it says *about* when.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use postway_domain::{ApiKey, KeyDigest, TenantId, Time, client::ClientAddress};
use postway_store::{Store, StoreError, record::DirectoryChange};
use tokio::task::JoinSet;

use super::wrong_keys::WrongKeys;
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

#[derive(Default)]
struct KnownKeys {
    by_digest: HashMap<KeyDigest, Known>,
    /// How often keys were forgotten: what was read before the last time may be revoked.
    forgotten: u64,
}

/// Why a key is not even looked up, or cannot be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyUnread {
    /// The caller's address has sent too many wrong keys and must wait this long.
    #[error("too many wrong keys")]
    TooManyWrong(Duration),
    /// The store cannot be asked.
    #[error(transparent)]
    Unavailable(#[from] StoreError),
}

/// The memory of keys.
#[derive(Default)]
pub(crate) struct KeyRing {
    known: RwLock<KnownKeys>,
    wrong: WrongKeys,
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
    /// The key that `client` shows, if it opens now: neither revoked nor expired, of a tenant that is not deleted. A client
    /// that has shown too many wrong ones is let in with a key that is known here, and with no other.
    pub(crate) async fn valid(
        &self,
        presented: &[u8],
        client: Option<ClientAddress>,
        app: &App,
    ) -> Result<Option<Arc<ApiKey>>, KeyUnread> {
        let (digest, now) = (KeyDigest::of(presented), Instant::now());
        let is_known = self.has_seen(&digest);
        if !is_known && let Some(wait) = client.and_then(|client| self.wrong.wait(client, now)) {
            count_refused("throttled");
            return Err(KeyUnread::TooManyWrong(wait));
        }
        // What cannot be a key, or was none a moment ago, is not worth a question to the store.
        let is_wrong = !presented.starts_with(ApiKey::PREFIX.as_bytes()) || self.wrong.knows(&digest, now);
        let key = if is_wrong { None } else { self.valid_digest(digest, app).await? };
        if key.is_none() {
            count_refused("wrong");
            if !is_wrong && !is_known {
                self.wrong.remember(digest, now);
            }
            if let Some(client) = client {
                self.wrong.count(client, now);
            }
        }
        Ok(key)
    }

    /// Returns how long `client` must wait before it may try another key or proof, if it must wait.
    pub(crate) fn wait(&self, client: Option<ClientAddress>) -> Option<Duration> {
        let wait = client.and_then(|client| self.wrong.wait(client, Instant::now()));
        if wait.is_some() {
            count_refused("throttled");
        }
        wait
    }

    /// Counts a proof of `client` that does not hold, as a wrong key.
    pub(crate) fn count_wrong(&self, client: Option<ClientAddress>) {
        count_refused("wrong");
        if let Some(client) = client {
            self.wrong.count(client, Instant::now());
        }
    }

    /// The key with this digest, if it opens now.
    pub(crate) async fn valid_digest(
        &self,
        digest: KeyDigest,
        app: &App,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        let key = match self.remembered(&digest) {
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

    /// Forgets a tenant's key, or all of its keys: the next request reads anew.
    pub(crate) fn forget(&self, tenant: &TenantId, id: Option<&str>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let stays = |one: &Known| one.key.tenant != *tenant || id.is_some_and(|id| one.key.id != id);
        known.by_digest.retain(|_, one| stays(one));
        known.forgotten += 1;
    }

    /// Whether this key was in the store at some time, long ago or not.
    fn has_seen(&self, digest: &KeyDigest) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).by_digest.contains_key(digest)
    }

    /// What was read a moment ago; else how often keys were forgotten until now.
    fn remembered(&self, digest: &KeyDigest) -> Result<Arc<ApiKey>, u64> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let fresh = known.by_digest.get(digest).filter(|known| known.read_at.elapsed() < FRESH_FOR);
        fresh.map(|known| known.key.clone()).ok_or(known.forgotten)
    }

    /// Remembers a key that was read after keys had been forgotten `forgotten` times. Where they were forgotten since, it is
    /// good for this request, which came before, and for none after it.
    fn remember(&self, key: ApiKey, forgotten: u64) -> Arc<ApiKey> {
        let key = Arc::new(key);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.forgotten != forgotten {
            return key;
        }
        if known.by_digest.len() >= REMEMBERED_MAX {
            known.by_digest.retain(|_, known| known.read_at.elapsed() < FRESH_FOR);
        }
        known.by_digest.insert(key.digest, Known { read_at: Instant::now(), key: key.clone() });
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

#[cfg(test)]
mod tests {
    use postway_domain::Scope;

    use super::*;

    fn key(id: &str) -> ApiKey {
        ApiKey {
            id: id.to_owned(),
            tenant: "default".parse().unwrap(),
            name: id.to_owned(),
            digest: KeyDigest::of(id.as_bytes()),
            scopes: vec![Scope::Send],
            networks: Vec::new(),
            restrictions: None,
            created_at: Time::from_millis(0),
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
            scram: None,
        }
    }

    #[test]
    fn a_key_that_was_revoked_while_it_was_read_is_not_remembered() {
        let (ring, one) = (KeyRing::default(), key("one"));
        let before = ring.remembered(&one.digest).unwrap_err();
        // Another request revokes it between our reading and our remembering.
        ring.forget(&one.tenant, Some("one"));
        ring.remember(one.clone(), before);
        assert!(ring.remembered(&one.digest).is_err(), "the next request reads anew");
        let now = ring.remembered(&one.digest).unwrap_err();
        ring.remember(one.clone(), now);
        assert!(ring.remembered(&one.digest).is_ok());
        ring.forget(&one.tenant, Some("other"));
        assert!(ring.remembered(&one.digest).is_ok(), "another key was forgotten");
    }
}
