//! Cached files, in memory and on disk, by tenant and digest.
//!
//! A cached file has the digest that was asked for, so it is right by itself, and a tenant finds only files
//! that the same tenant has fetched. A second, small cache remembers for a moment which digest a URL had, so
//! that a thousand messages with the same URL fetch it once: requests that arrive during a fetch wait for it.
//!
//! A cache that fails counts as a miss: its errors are logged and fail no message.

mod disk;

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use moka::{Expiry, future::Cache as MokaCache};
use postway_domain::{Clock, TenantId};
use url::Url;

use super::{FetchConfig, Sha256, error::FetchFault};
use disk::DiskCache;

/// How long a URL is assumed to return the same file, unless its host says less.
pub(super) const URL_FRESH_FOR: Duration = Duration::from_secs(60);
/// The most URLs that are remembered.
const URLS_MAX: u64 = 10_000;
/// How long an unused file stays in memory.
const MEMORY_IDLE_MAX: Duration = Duration::from_secs(300);
/// One file may occupy at most this fraction of the memory cache.
const MEMORY_SHARE: u64 = 8;
/// The memory of an entry besides its bytes.
const ENTRY_BYTES: usize = 256;

/// The file that a URL returned, and how long that is trusted. Zero means that the file was only for the
/// message that fetched it.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownUrl {
    pub sha256: Sha256,
    pub fresh_for: Duration,
}

struct FreshnessExpiry;

impl Expiry<(TenantId, Url), KnownUrl> for FreshnessExpiry {
    fn expire_after_create(&self, _: &(TenantId, Url), known: &KnownUrl, _: Instant) -> Option<Duration> {
        Some(known.fresh_for)
    }
}

/// The cache in memory and on disk, and the cache of URLs.
pub(super) struct FileCache {
    urls: MokaCache<(TenantId, Url), KnownUrl>,
    memory: MokaCache<(TenantId, Sha256), Bytes>,
    memory_file_bytes_max: u64,
    disk: Option<Arc<DiskCache>>,
}

impl FileCache {
    /// Opens the cache with the files in its folder. Reads that folder, so it blocks for a moment.
    pub(super) fn open(config: &FetchConfig, clock: Arc<dyn Clock>) -> Self {
        let disk = config.cache_folder.clone().and_then(|folder| {
            let disk = DiskCache::open(folder, config.cache_bytes_max, clock);
            disk.inspect_err(
                |error| tracing::warn!(%error, "the cache of attachments has no disk: it stays in memory"),
            )
            .ok()
        });
        let weight = |_: &_, bytes: &Bytes| u32::try_from(bytes.len() + ENTRY_BYTES).unwrap_or(u32::MAX);
        Self {
            urls: MokaCache::builder().max_capacity(URLS_MAX).expire_after(FreshnessExpiry).build(),
            memory: MokaCache::builder()
                .max_capacity(config.memory_bytes_max)
                .weigher(weight)
                .time_to_idle(MEMORY_IDLE_MAX)
                .build(),
            memory_file_bytes_max: config.memory_bytes_max / MEMORY_SHARE,
            disk: disk.map(Arc::new),
        }
    }

    /// Finds the tenant's file with this digest.
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

    /// Adds a file.
    pub(super) async fn put(&self, tenant: &TenantId, sha256: Sha256, bytes: &Bytes) {
        let key = (tenant.clone(), sha256);
        self.keep_in_memory(key.clone(), bytes).await;
        if let Some(disk) = self.disk.clone() {
            let bytes = bytes.clone();
            let written = blocking(move || disk.write(&key.0, &key.1, &bytes)).await;
            if let Some(Err(error)) = written {
                tracing::warn!(%error, "a fetched attachment could not be cached on disk");
            }
        }
    }

    async fn keep_in_memory(&self, key: (TenantId, Sha256), bytes: &Bytes) {
        if bytes.len() as u64 <= self.memory_file_bytes_max {
            self.memory.insert(key, bytes.clone()).await;
        }
    }

    /// The file that the URL returned a moment ago, or what `fetch` returns. Concurrent callers share one
    /// fetch and its result; if that fetch is dropped, the next caller takes over.
    pub(super) async fn url(
        &self,
        tenant: &TenantId,
        url: &Url,
        fetch: impl Future<Output = Result<KnownUrl, FetchFault>>,
    ) -> Result<KnownUrl, Arc<FetchFault>> {
        self.urls.try_get_with((tenant.clone(), url.clone()), fetch).await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.inspect_err(|error| tracing::error!(%error, "the cache of attachments failed")).ok()
}
