//! Fetches the files of a message.
//!
//! In: the source of each file ([`FileSource`]), its declared type, and the digest it should have. Out: the
//! bytes, their digest, and a content type that the bytes do not contradict. The files of a message are
//! fetched a few at a time, within limits on size and time for each and for all of them. If one cannot be
//! fetched, all fail, and the error names the field.
//!
//! Promises:
//! - no fetch leaves the public web, and no path leaves the operator's folders, unless the operator allows
//!   it;
//! - the limits of the message bound its memory, whatever a source sends, and a budget that tenants share
//!   bounds the memory of all messages;
//! - a cached file is found only by the tenant that fetched it, and only by the digest or URL that was asked
//!   for.
//!
//! Fails with [`FetchError`], which separates errors that may pass from those that make the message invalid.

mod allowance;
mod cache;
mod config;
mod content_type;
mod error;
mod folders;
mod slots;
mod source;
#[cfg(test)]
mod tests;
mod web;

use std::{path::Path, sync::Arc, time::Duration};

use aws_lc_rs::digest;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use md5::{Digest as _, Md5};
use postway_domain::{Clock, TenantId};
use postway_net::http::{HttpAuth, HttpClient};
use tokio::time::timeout;
use url::Url;

use crate::{
    budget::run_heavy,
    budget::{FairBudget, FairShare},
    refusal::Refusal,
};

pub use config::{AttachmentFolder, FetchConfig};
pub(crate) use content_type::content_type;
pub(crate) use error::FetchError;
pub(crate) use slots::{DRY_RUN_WAIT_S_MAX, FetchSlots};
pub(crate) use source::{FileSource, infer_source};

use allowance::FetchAllowance;
use cache::FileCache;
use error::{FetchFault, NO_MEMORY};
use folders::TenantFolders;

/// The least memory for files that are being fetched, of all messages together.
const MEMORY_BYTES_MIN: usize = 192 * 1024 * 1024;
/// Memory for a message besides its files. One tenant may have this and the files of its largest message.
const BESIDE_FILES_BYTES: usize = 48 * 1024 * 1024;

/// A SHA-256 digest.
pub(crate) type Sha256 = [u8; 32];

/// A tenant's own endpoint for files, which is asked by POST.
#[derive(Clone, Debug)]
pub(crate) struct EndpointTarget {
    /// The URL of the endpoint.
    pub url: Url,
    /// How postway authenticates.
    pub auth: HttpAuth,
}

/// The message that files are fetched for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchScope<'a> {
    /// The tenant of the message.
    pub tenant: &'a TenantId,
    /// The tenant's own endpoint for files.
    pub endpoint: Option<&'a EndpointTarget>,
    /// Whether large files will be linked, which raises the limits.
    pub links: bool,
    /// Whether the message is sensitive: none of its files are cached, in memory or on disk.
    pub is_private: bool,
    /// How long to wait for memory while too much is being fetched.
    pub memory_wait: Duration,
}

/// A file that a message needs.
#[derive(Clone, Debug)]
pub(crate) struct WantedFile {
    /// The index of the attachment, for errors.
    pub position: usize,
    /// The file name, which decides the content type if the content has no signature.
    pub filename: String,
    /// The source of the file.
    pub source: FileSource,
    /// The declared content type.
    pub content_type: Option<String>,
    /// The digests that the file must have.
    pub digests: FileDigests,
}

/// The digests that a file must have, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileDigests {
    pub sha256: Option<Sha256>,
    pub md5: Option<[u8; 16]>,
}

impl FileDigests {
    /// Checks the digests; the error is the field at fault and the reason.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), (&'static str, String)> {
        self.check_known(bytes, || sha256(bytes))
    }

    /// Checks the digests with a SHA-256 that is known already.
    fn check_known(
        &self,
        bytes: &[u8],
        known: impl FnOnce() -> Sha256,
    ) -> Result<(), (&'static str, String)> {
        if let Some(expected) = &self.sha256 {
            differ(expected, &known()).map_or(Ok(()), |message| Err(("sha256", message)))?;
        }
        if let Some(expected) = &self.md5 {
            let found: [u8; 16] = Md5::digest(bytes).into();
            differ(expected, &found).map_or(Ok(()), |message| Err(("content_md5", message)))?;
        }
        Ok(())
    }
}

fn differ(expected: &[u8], found: &[u8]) -> Option<String> {
    (expected != found)
        .then(|| format!("should be {}, but what came has the digest {}", hex(expected), hex(found)))
}

/// A fetched file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchedFile {
    pub bytes: Bytes,
    pub content_type: String,
    pub sha256: Sha256,
}

/// The bytes of a file, which count against the common memory as long as they exist.
struct CountedBytes {
    bytes: Bytes,
    _allowance: Arc<FetchAllowance>,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes and their digest.
struct FetchedBody {
    bytes: Bytes,
    sha256: Sha256,
}

impl FetchedBody {
    fn new(bytes: Bytes) -> Self {
        Self { sha256: sha256(&bytes), bytes }
    }
}

/// Fetches files. There is one for the process.
pub(crate) struct FileFetcher {
    http: HttpClient,
    cache: FileCache,
    memory: Arc<FairBudget>,
    config: FetchConfig,
}

impl FileFetcher {
    /// A fetcher with this HTTP client and the files in its cache folder. Reads that folder, so it blocks for
    /// a moment. The clock records when a cached file was last used.
    pub(crate) fn new(http: HttpClient, config: FetchConfig, clock: Arc<dyn Clock>) -> Self {
        let cache = FileCache::open(&config, clock);
        let largest = config.linked_bytes_max.max(config.message_bytes_max) + BESIDE_FILES_BYTES;
        let memory = FairBudget::new(MEMORY_BYTES_MIN.max(largest), largest);
        Self { http, cache, memory, config }
    }

    /// How long all files of a message may take.
    pub(crate) fn message_timeout(&self) -> Duration {
        self.config.message_timeout
    }

    /// Takes memory for a message besides its files, while they are fetched.
    pub(crate) async fn memory_for(
        &self,
        tenant: &TenantId,
        bytes: usize,
        memory_wait: Duration,
    ) -> Result<FairShare, Refusal> {
        let memory = self.memory.wait(tenant, bytes.min(BESIDE_FILES_BYTES), memory_wait).await;
        memory.ok_or_else(|| Refusal::busy(NO_MEMORY))
    }

    /// Grows that memory once the real size of the message is known.
    pub(crate) fn cover(memory: &mut FairShare, bytes: usize) -> Result<(), Refusal> {
        match memory.grow_to(bytes.min(BESIDE_FILES_BYTES)) {
            true => Ok(()),
            false => Err(Refusal::busy(NO_MEMORY)),
        }
    }

    /// Fetches all files of one message, in their order. The first failure ends the others. The files count
    /// against the common memory until they are dropped. If the memory runs out on the way, everything is
    /// released, so that no two messages wait for each other, and the files are fetched again once there is
    /// memory for the largest that they can be.
    pub(crate) async fn fetch_all(
        &self,
        scope: &FetchScope<'_>,
        wanted: &[WantedFile],
    ) -> Result<Vec<FetchedFile>, FetchError> {
        let FetchConfig { file_bytes_max, message_bytes_max, linked_bytes_max, .. } = self.config;
        let (file_max, all_max) = match scope.links {
            true => (linked_bytes_max, linked_bytes_max),
            false => (file_bytes_max, message_bytes_max),
        };
        let as_it_comes = self.memory.share(Some(scope.tenant.clone()));
        let allowance = Arc::new(FetchAllowance::new(file_max, all_max, as_it_comes));
        match self.fetch_into(scope, wanted, &allowance).await {
            Err(error) if error.is_busy => drop(allowance),
            done => return done,
        }
        let whole = self.memory.wait(scope.tenant, all_max, scope.memory_wait).await;
        let whole = whole.ok_or_else(|| FetchFault::no_memory().at("attachments".to_owned()))?;
        self.fetch_into(scope, wanted, &Arc::new(FetchAllowance::new(file_max, all_max, whole))).await
    }

    async fn fetch_into(
        &self,
        scope: &FetchScope<'_>,
        wanted: &[WantedFile],
        allowance: &Arc<FetchAllowance>,
    ) -> Result<Vec<FetchedFile>, FetchError> {
        let fetches: Vec<_> =
            wanted.iter().map(|wanted| Box::pin(self.fetch_one(scope, wanted, allowance))).collect();
        let files = stream::iter(fetches).buffered(self.config.at_once.max(1)).try_collect();
        let within = self.config.message_timeout;
        timeout(within, files).await.unwrap_or_else(|_| {
            let message = format!("the files did not all come within {} s", within.as_secs_f64());
            Err(FetchFault::transient(message).at("attachments".to_owned()))
        })
    }

    async fn fetch_one(
        &self,
        scope: &FetchScope<'_>,
        wanted: &WantedFile,
        allowance: &Arc<FetchAllowance>,
    ) -> Result<FetchedFile, FetchError> {
        let at =
            |field| move |fault: FetchFault| fault.at(format!("attachments[{}].{field}", wanted.position));
        let expected = wanted.digests.sha256.as_ref();
        let fetched = async {
            match &wanted.source {
                FileSource::Content(bytes) => content_given(bytes, allowance),
                FileSource::Url(url) => self.ask_url(scope, url, expected, allowance).await,
                FileSource::Endpoint(text) => self.ask_endpoint(scope, text, expected, allowance).await,
                FileSource::Path(path) => self.read_path(scope.tenant, path, allowance).await,
            }
        };
        // The HTTP client has this deadline too; here it also covers waiting for another message's fetch, and
        // a slow disk.
        let body = timeout(self.config.timeout, fetched)
            .await
            .unwrap_or_else(|_| {
                let seconds = self.config.timeout.as_secs_f64();
                Err(FetchFault::transient(format!("the file did not come within {seconds} s")))
            })
            .map_err(at(wanted.source.field()))?;
        if let Err((field, message)) = wanted.digests.check_known(&body.bytes, || body.sha256) {
            return Err(at(field)(FetchFault::permanent(message)));
        }
        let content_type = content_type(&wanted.filename, wanted.content_type.as_deref(), &body.bytes)
            .map_err(|refused| at(refused.field)(FetchFault::permanent(refused.message)))?;
        let bytes = Bytes::from_owner(CountedBytes { bytes: body.bytes, _allowance: Arc::clone(allowance) });
        Ok(FetchedFile { bytes, content_type, sha256: body.sha256 })
    }

    async fn read_path(
        &self,
        tenant: &TenantId,
        path: &Path,
        allowance: &Arc<FetchAllowance>,
    ) -> Result<FetchedBody, FetchFault> {
        let folders = TenantFolders::for_tenant(tenant, &self.config.folders);
        let (path, allowance) = (path.to_owned(), Arc::clone(allowance));
        let read = tokio::task::spawn_blocking(move || {
            let content = folders.read(&path, allowance.file_bytes_max, |length| allowance.take(length))?;
            Ok(FetchedBody::new(content.into()))
        });
        read.await.map_err(|_| FetchFault::transient("reading the file failed: see the log"))?
    }
}

fn content_given(bytes: &Bytes, allowance: &FetchAllowance) -> Result<FetchedBody, FetchFault> {
    let bytes_max = allowance.file_bytes_max;
    if bytes.len() > bytes_max {
        return Err(FetchFault::permanent(format!("is larger than {bytes_max} bytes")));
    }
    allowance.take(bytes.len())?;
    Ok(run_heavy(bytes.len(), || FetchedBody::new(bytes.clone())))
}

fn sha256(bytes: &[u8]) -> Sha256 {
    digest_of(digest::digest(&digest::SHA256, bytes))
}

fn digest_of(digest: digest::Digest) -> Sha256 {
    digest.as_ref().try_into().expect("a SHA-256 digest has 32 bytes")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
