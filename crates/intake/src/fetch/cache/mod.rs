//! Files fetched before, in memory and on disk, by tenant and digest.
//!
//! What is found has the digest that was asked for, so it is right by itself; and a tenant finds only what that same tenant
//! has fetched. A second, small memory says which digest a URL had a moment ago, so that a thousand messages with the same
//! URL fetch it once: whoever asks while a fetch runs waits for it.
//!
//! A cache that fails is a cache that misses: its faults are logged and fail nobody.

mod disk;

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use moka::{Expiry, future::Cache as Memory};
use postway_domain::{Clock, TenantId};
use url::Url;

use super::{FetchConfig, Sha256, error::Fault};
use disk::Disk;

/// How long it is believed that a URL gives what it gave, unless its host says less.
pub(super) const URL_FRESH_FOR: Duration = Duration::from_secs(60);
/// Of how many URLs that is remembered.
const URLS_MAX: u64 = 10_000;
/// How long a file nobody asks for stays in memory.
const MEMORY_IDLE_MAX: Duration = Duration::from_secs(300);
/// A file may take this part of the memory.
const MEMORY_SHARE: u64 = 8;
/// What an entry costs besides its bytes.
const ENTRY_BYTES: usize = 256;

/// What a URL gave, and for how long that is believed. Not at all means that it was for the one who asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub sha256: Sha256,
    pub fresh_for: Duration,
}

struct AsLongAsFresh;

impl Expiry<(TenantId, Url), Known> for AsLongAsFresh {
    fn expire_after_create(&self, _: &(TenantId, Url), known: &Known, _: Instant) -> Option<Duration> {
        Some(known.fresh_for)
    }
}

/// Both levels, and the memory of URLs.
pub(super) struct Cache {
    urls: Memory<(TenantId, Url), Known>,
    memory: Memory<(TenantId, Sha256), Bytes>,
    memory_file_bytes_max: u64,
    disk: Option<Arc<Disk>>,
}

impl Cache {
    /// A cache with what its folder still holds. Reads that folder, so it blocks for a moment.
    pub(super) fn open(config: &FetchConfig, clock: Arc<dyn Clock>) -> Self {
        let disk = config.cache_folder.clone().and_then(|folder| {
            let disk = Disk::open(folder, config.cache_bytes_max, clock);
            disk.inspect_err(
                |error| tracing::warn!(%error, "the cache of attachments has no disk: it stays in memory"),
            )
            .ok()
        });
        let weight = |_: &_, bytes: &Bytes| u32::try_from(bytes.len() + ENTRY_BYTES).unwrap_or(u32::MAX);
        Self {
            urls: Memory::builder().max_capacity(URLS_MAX).expire_after(AsLongAsFresh).build(),
            memory: Memory::builder()
                .max_capacity(config.memory_bytes_max)
                .weigher(weight)
                .time_to_idle(MEMORY_IDLE_MAX)
                .build(),
            memory_file_bytes_max: config.memory_bytes_max / MEMORY_SHARE,
            disk: disk.map(Arc::new),
        }
    }

    /// The tenant's file of that digest.
    pub(super) async fn get(&self, tenant: &TenantId, sha256: &Sha256) -> Option<Bytes> {
        let key = (tenant.clone(), *sha256);
        if let Some(bytes) = self.memory.get(&key).await {
            return Some(bytes);
        }
        let (disk, (tenant, sha256)) = (self.disk.clone()?, key.clone());
        let bytes = blocking(move || disk.read(&tenant, &sha256)).await??;
        self.keep_in_memory(key, &bytes).await;
        Some(bytes)
    }

    /// Keeps a file.
    pub(super) async fn put(&self, tenant: &TenantId, sha256: Sha256, bytes: &Bytes) {
        let key = (tenant.clone(), sha256);
        self.keep_in_memory(key.clone(), bytes).await;
        if let Some(disk) = self.disk.clone() {
            let bytes = bytes.clone();
            let written = blocking(move || disk.write(&key.0, &key.1, &bytes)).await;
            if let Some(Err(error)) = written {
                tracing::warn!(%error, "a fetched attachment could not be kept on disk");
            }
        }
    }

    async fn keep_in_memory(&self, key: (TenantId, Sha256), bytes: &Bytes) {
        if bytes.len() as u64 <= self.memory_file_bytes_max {
            self.memory.insert(key, bytes.clone()).await;
        }
    }

    /// What the URL gave a moment ago, or what `fetch` finds out. Those who ask at the same time share one fetch and its
    /// outcome; if it is given up, the next of them takes over.
    pub(super) async fn url(
        &self,
        tenant: &TenantId,
        url: &Url,
        fetch: impl Future<Output = Result<Known, Fault>>,
    ) -> Result<Known, Arc<Fault>> {
        self.urls.try_get_with((tenant.clone(), url.clone()), fetch).await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.inspect_err(|error| tracing::error!(%error, "the cache of attachments failed")).ok()
}
