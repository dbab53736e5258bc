//! The way in for events that providers report: checks who calls, splits the call into events, and makes them
//! durable.
//!
//! The token in the URL finds the hook; the provider's signature proves the call. Promises:
//! - [`HookDoor::receive`] succeeds only when every event of the call is durable, and an event that came
//!   before is not stored again, whatever the order and however often;
//! - nothing of a call that is not proven is stored;
//! - a call is bounded in bytes, in events, and in how long its signature is accepted.
//!
//! What an event says is not read here: `postway-inbound` processes it later.

mod certificate;
#[cfg(test)]
mod fuzz;
mod proof;
mod sns;
mod split;

use std::sync::Arc;

use aws_lc_rs::digest;
use bytes::Bytes;
use postway_domain::{
    Clock, HookProvider, KeyDigest, ProviderHook, Time,
    id::RisingUids,
    secret::{SealedSecret, SecretError, SecretKey},
};
use postway_net::http::HttpClient;
use postway_store::{
    Store, StoreError,
    record::{AccountKey, NewProviderEvent, ProviderEventBatch},
};

use self::{certificate::SnsCertificates, split::SplitCall};
use crate::cache::ttl_cache::TtlCache;

pub use self::{
    proof::{is_sendgrid_key, is_standard_secret},
    split::EVENTS_MAX,
};

/// The largest body of a call.
pub const HOOK_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The most hooks that are cached.
const HOOKS_CACHED_MAX: usize = 10_000;

/// Why a call was refused. Nothing of it was stored.
#[derive(Debug, thiserror::Error)]
pub enum HookRefusal {
    /// It is not proven to come from the provider.
    #[error("{0}")]
    Forged(&'static str),
    /// It is proven or not, but cannot be read.
    #[error("{0}")]
    Malformed(String),
    /// It has too many events.
    #[error("a call may have {EVENTS_MAX} events: let the provider send fewer at once")]
    TooMany,
    /// What proves it cannot be had now.
    #[error("{0}")]
    Unchecked(String),
    /// The hook's own secret does not open.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A call of a provider.
pub struct HookCall<'a> {
    /// Reads a header.
    pub header: &'a (dyn Fn(&str) -> Option<String> + Send + Sync),
    /// The body.
    pub body: &'a [u8],
}

impl HookCall<'_> {
    /// A header that must be there.
    fn need(&self, name: &'static str) -> Result<String, HookRefusal> {
        (self.header)(name)
            .ok_or(HookRefusal::Forged("the signature is missing: have the provider sign its calls"))
    }
}

/// The door for calls of providers.
pub struct HookDoor {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    secret_key: Arc<SecretKey>,
    certificates: SnsCertificates,
    known: TtlCache<KeyDigest, Arc<ProviderHook>>,
}

impl HookDoor {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        secret_key: Arc<SecretKey>,
        http: HttpClient,
    ) -> Self {
        let known = TtlCache::with_capacity(HOOKS_CACHED_MAX);
        Self { store, clock, secret_key, certificates: SnsCertificates::new(http), known }
    }

    /// The hook of this token, if it was looked up a moment ago.
    pub fn cached(&self, token: &KeyDigest) -> Option<Arc<ProviderHook>> {
        self.known.get(token, self.store.generation())
    }

    /// The hook of this token.
    pub async fn find(&self, token: &KeyDigest) -> Result<Option<Arc<ProviderHook>>, StoreError> {
        if let Some(hook) = self.cached(token) {
            return Ok(Some(hook));
        }
        let generation = self.store.generation();
        let found = self.store.hook_by_token(token).await?.map(Arc::new);
        if let Some(hook) = &found {
            self.known.put(*token, generation, hook.clone());
        }
        Ok(found)
    }

    /// Checks a call and stores its events. Returns how many it had; when it returns, they are durable.
    pub async fn receive(&self, hook: &ProviderHook, call: HookCall<'_>) -> Result<usize, HookRefusal> {
        let now = self.clock.now();
        let secret = hook.secret.as_ref().map(|sealed| self.open(hook, sealed)).transpose()?;
        let secret = secret.as_deref().unwrap_or_default();
        let split = match hook.provider {
            HookProvider::Ses => sns::read(&self.certificates, &hook.settings, &call, now).await?,
            HookProvider::Sendgrid => {
                proof::check_sendgrid(hook.settings.public_key.as_deref(), &call, now)?;
                split::sendgrid(call.body)?
            }
            HookProvider::Mailgun => {
                let token = proof::check_mailgun(secret, call.body, now)?;
                split::mailgun(call.body, token)?
            }
            HookProvider::Postmark => {
                proof::check_basic(hook.settings.username.as_deref(), secret, &call)?;
                split::whole(call.body)?
            }
            HookProvider::Resend => {
                let id = proof::check_standard(secret, &call, now)?;
                split::named(call.body, id)?
            }
            HookProvider::Http => {
                proof::check_standard(secret, &call, now)?;
                split::list(call.body)?
            }
        };
        self.store(hook, split, now).await
    }

    async fn store(&self, hook: &ProviderHook, split: SplitCall, now: Time) -> Result<usize, HookRefusal> {
        let count = split.events.len();
        if count == 0 {
            return Ok(0);
        }
        let of_hook = |label: &str, identity: &[u8]| {
            digest_of(&[
                hook.tenant.as_str().as_bytes(),
                hook.account.as_str().as_bytes(),
                label.as_bytes(),
                identity,
            ])
        };
        let once = split.once.map(|token| of_hook("once", &token));
        // A provider lists what happened in its order, within one millisecond of ours.
        let uids = RisingUids::default();
        let events = split.events.into_iter().map(|event| NewProviderEvent {
            uid: uids.next(now, &mut rand::rng()),
            digest: of_hook("event", &event.identity),
            once,
            raw: Bytes::from(event.raw),
        });
        let key = AccountKey { tenant: hook.tenant.clone(), account: hook.account.clone() };
        let batch = ProviderEventBatch { key, provider: hook.provider, at: now, events: events.collect() };
        self.store.add_provider_events(batch).await?;
        metrics::counter!("postway_provider_events_total", "provider" => hook.provider.as_str())
            .increment(count as u64);
        Ok(count)
    }

    fn open(&self, hook: &ProviderHook, sealed: &SealedSecret) -> Result<String, SecretError> {
        self.secret_key.open(&ProviderHook::sealing_context(&hook.tenant, &hook.account), sealed)
    }
}

/// A digest of these parts, which cannot be mistaken for that of other parts.
fn digest_of(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}
