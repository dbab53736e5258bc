//! The files of a message, from wherever they are.
//!
//! In: where each file comes from ([`Source`]), what it is said to be, and the digest it should have. Out: the bytes, their
//! digest, and a content type that the bytes do not contradict. A message's files are fetched a few at a time, under a bound
//! for each and one for all of them, in size and in time; one that cannot be had fails them all, with the field at fault.
//!
//! Promises:
//! - no fetch leaves the public web, and no path the operator's folders, unless the operator has allowed it;
//! - memory is bounded by what the message may hold, whatever a source sends, and that of all messages by a common budget of
//!   which each tenant has its share;
//! - what is kept for the next time is found by the same tenant only, and only while it is what was asked for.
//!
//! Fails with [`FetchError`], which tells what may work later from what makes the message invalid.

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
use postway_net::http::{Auth, HttpClient};
use tokio::time::timeout;
use url::Url;

use crate::{
    budget::weighed,
    budget::{FairBudget, FairShare},
    refusal::Refusal,
};

pub use config::{AttachmentFolder, FetchConfig};
pub(crate) use content_type::content_type;
pub(crate) use error::FetchError;
pub(crate) use slots::{DRY_RUN_WAIT_S_MAX, FetchPlaces};
pub(crate) use source::{Source, infer_source};

use allowance::Room;
use cache::Cache;
use error::{Fault, NO_MEMORY};
use folders::Folders;

/// What files that are being fetched may take in memory, of all messages together, at least.
const MEMORY_BYTES_MIN: usize = 192 * 1024 * 1024;
/// One tenant may have as much as the files of its largest message, and this for what the message itself has.
const BESIDE_FILES_BYTES: usize = 48 * 1024 * 1024;

/// A SHA-256 digest.
pub(crate) type Sha256 = [u8; 32];

/// A tenant's own place for files, asked by POST.
#[derive(Clone, Debug)]
pub(crate) struct EndpointTarget {
    /// Where it is.
    pub url: Url,
    /// How postway says who asks.
    pub auth: Auth,
}

/// For whom files are fetched, and what may become of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errand<'a> {
    /// Whose message it is.
    pub tenant: &'a TenantId,
    /// The tenant's own place for files.
    pub endpoint: Option<&'a EndpointTarget>,
    /// Whether large files will be linked to, so that there is more room for them.
    pub links: bool,
    /// Whether the message is sensitive: nothing of it is kept for the next time, in memory or on disk.
    pub is_private: bool,
    /// How long to wait for memory where too much is being fetched.
    pub patience: Duration,
}

/// A file that a message needs.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Its place among the message's attachments, for errors.
    pub position: usize,
    /// Its name, which decides what it is where its content does not tell.
    pub filename: String,
    /// Where it comes from.
    pub source: Source,
    /// What it is said to be.
    pub content_type: Option<String>,
    /// The digests it must have.
    pub digests: Digests,
}

/// The digests that a file must have, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digests {
    pub sha256: Option<Sha256>,
    pub md5: Option<[u8; 16]>,
}

impl Digests {
    /// Whether the bytes have them; else the field at fault, and what is wrong.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), (&'static str, String)> {
        self.check_known(bytes, || sha256(bytes))
    }

    /// The same, where the SHA-256 is known already.
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

/// A file at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub bytes: Bytes,
    pub content_type: String,
    pub sha256: Sha256,
}

/// The bytes of a file, which take of the common memory for as long as somebody has them.
struct CountedBytes {
    bytes: Bytes,
    _room: Arc<Room>,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes and their digest.
struct Body {
    bytes: Bytes,
    sha256: Sha256,
}

impl Body {
    fn of(bytes: Bytes) -> Self {
        Self { sha256: sha256(&bytes), bytes }
    }
}

/// Fetches. One for the whole process, shared.
pub(crate) struct Fetcher {
    http: HttpClient,
    cache: Cache,
    memory: Arc<FairBudget>,
    config: FetchConfig,
}

impl Fetcher {
    /// A fetcher that goes out by this client, with what its folder still keeps. Reads that folder, so it blocks for a
    /// moment. The clock tells which of the kept files was used last.
    pub(crate) fn new(http: HttpClient, config: FetchConfig, clock: Arc<dyn Clock>) -> Self {
        let cache = Cache::open(&config, clock);
        let largest = config.linked_bytes_max.max(config.message_bytes_max) + BESIDE_FILES_BYTES;
        let memory = FairBudget::new(MEMORY_BYTES_MIN.max(largest), largest);
        Self { http, cache, memory, config }
    }

    /// How long all files of a message may take.
    pub(crate) fn message_timeout(&self) -> Duration {
        self.config.message_timeout
    }

    /// Takes memory for what a message has besides its files while they are fetched.
    pub(crate) async fn memory_for(
        &self,
        tenant: &TenantId,
        bytes: usize,
        patience: Duration,
    ) -> Result<FairShare, Refusal> {
        let memory = self.memory.wait(tenant, bytes.min(BESIDE_FILES_BYTES), patience).await;
        memory.ok_or_else(|| Refusal::busy(NO_MEMORY))
    }

    /// The same for what it turns out to have.
    pub(crate) fn cover(memory: &mut FairShare, bytes: usize) -> Result<(), Refusal> {
        match memory.grow_to(bytes.min(BESIDE_FILES_BYTES)) {
            true => Ok(()),
            false => Err(Refusal::busy(NO_MEMORY)),
        }
    }

    /// Fetches all files of one message, in their order. The first that fails ends the others. The files take of the common
    /// memory until they are dropped. Where that runs out on the way, all is let go of, so that nobody waits for somebody who
    /// waits, and fetched again once there is enough for the largest that they can be.
    pub(crate) async fn fetch_all(
        &self,
        errand: &Errand<'_>,
        wanted: &[Wanted],
    ) -> Result<Vec<File>, FetchError> {
        let FetchConfig { file_bytes_max, message_bytes_max, linked_bytes_max, .. } = self.config;
        let (file_max, all_max) = match errand.links {
            true => (linked_bytes_max, linked_bytes_max),
            false => (file_bytes_max, message_bytes_max),
        };
        let as_it_comes = self.memory.share(Some(errand.tenant.clone()));
        let room = Arc::new(Room::new(file_max, all_max, as_it_comes));
        match self.fetch_into(errand, wanted, &room).await {
            Err(error) if error.is_busy => drop(room),
            done => return done,
        }
        let whole = self.memory.wait(errand.tenant, all_max, errand.patience).await;
        let whole = whole.ok_or_else(|| Fault::no_memory().at("attachments".to_owned()))?;
        self.fetch_into(errand, wanted, &Arc::new(Room::new(file_max, all_max, whole))).await
    }

    async fn fetch_into(
        &self,
        errand: &Errand<'_>,
        wanted: &[Wanted],
        room: &Arc<Room>,
    ) -> Result<Vec<File>, FetchError> {
        let fetches: Vec<_> =
            wanted.iter().map(|wanted| Box::pin(self.fetch_one(errand, wanted, room))).collect();
        let files = stream::iter(fetches).buffered(self.config.at_once.max(1)).try_collect();
        let within = self.config.message_timeout;
        timeout(within, files).await.unwrap_or_else(|_| {
            let message = format!("the files did not all come within {} s", within.as_secs_f64());
            Err(Fault::transient(message).at("attachments".to_owned()))
        })
    }

    async fn fetch_one(
        &self,
        errand: &Errand<'_>,
        wanted: &Wanted,
        room: &Arc<Room>,
    ) -> Result<File, FetchError> {
        let at = |field| move |fault: Fault| fault.at(format!("attachments[{}].{field}", wanted.position));
        let expected = wanted.digests.sha256.as_ref();
        let fetched = async {
            match &wanted.source {
                Source::Content(bytes) => given(bytes, room),
                Source::Url(url) => self.ask_url(errand, url, expected, room).await,
                Source::Endpoint(text) => self.ask_endpoint(errand, text, expected, room).await,
                Source::Path(path) => self.read_path(errand.tenant, path, room).await,
            }
        };
        // The client has this deadline too; here it also covers waiting for someone else's fetch, and a slow disk.
        let body = timeout(self.config.timeout, fetched)
            .await
            .unwrap_or_else(|_| {
                let seconds = self.config.timeout.as_secs_f64();
                Err(Fault::transient(format!("the file did not come within {seconds} s")))
            })
            .map_err(at(wanted.source.field()))?;
        if let Err((field, message)) = wanted.digests.check_known(&body.bytes, || body.sha256) {
            return Err(at(field)(Fault::permanent(message)));
        }
        let content_type = content_type(&wanted.filename, wanted.content_type.as_deref(), &body.bytes)
            .map_err(|refused| at(refused.field)(Fault::permanent(refused.message)))?;
        let bytes = Bytes::from_owner(CountedBytes { bytes: body.bytes, _room: Arc::clone(room) });
        Ok(File { bytes, content_type, sha256: body.sha256 })
    }

    async fn read_path(&self, tenant: &TenantId, path: &Path, room: &Arc<Room>) -> Result<Body, Fault> {
        let folders = Folders::of(tenant, &self.config.folders);
        let (path, room) = (path.to_owned(), Arc::clone(room));
        let read = tokio::task::spawn_blocking(move || {
            let content = folders.read(&path, room.file_bytes_max, |length| room.take(length))?;
            Ok(Body::of(content.into()))
        });
        read.await.map_err(|_| Fault::transient("reading the file failed: see the log"))?
    }
}

fn given(bytes: &Bytes, room: &Room) -> Result<Body, Fault> {
    let bytes_max = room.file_bytes_max;
    if bytes.len() > bytes_max {
        return Err(Fault::permanent(format!("is larger than {bytes_max} bytes")));
    }
    room.take(bytes.len())?;
    Ok(weighed(bytes.len(), || Body::of(bytes.clone())))
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
