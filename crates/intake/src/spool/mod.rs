//! The spool: a folder into which applications on the same disk put mail, one JSON file each.
//!
//! A file is first moved to `taken` under a unique name, which no application can remove or replace and which
//! is the idempotency key of its message. The file is removed once the message is durable. A crash leaves it
//! in `taken`; it is accepted again under the same key, which finds the existing message. So each file
//! becomes one message, even if several nodes watch the same folder. A file that cannot be accepted is moved
//! to `failed`, with a file beside it that says why; so is a file that names no account while the sandbox,
//! which nobody chose, would capture its mail. While the store does not answer, files stay where they are.
//!
//! An application should write its file under a name that does not end in `.json`, and rename it when it is
//! complete. If it does not, the spool waits a few seconds for the file to be complete.

mod folder;
mod request;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use postway_domain::TenantId;
use rand::Rng;
use tokio_util::sync::CancellationToken;

use self::folder::{SpoolFile, SpoolFiles, SpooledRequest};
use crate::{
    accept::{
        context::{RequestContext, RequestTrace},
        door::Door,
    },
    refusal::Refusal,
};

/// How often an empty folder is polled.
const POLL: Duration = Duration::from_secs(1);
/// How many files one poll takes.
const PAGE: usize = 1_000;
/// How many files are accepted at once, so that they share commits.
const AT_ONCE: usize = 4;

/// A folder that is watched for mail.
pub struct SpoolFolder {
    door: Arc<Door>,
    folder: Arc<SpoolFiles>,
    tenant: TenantId,
}

impl SpoolFolder {
    /// Opens the folder, creating it if it is missing.
    pub fn open(door: Arc<Door>, folder: PathBuf, tenant: TenantId) -> io::Result<Self> {
        Ok(Self { door, folder: Arc::new(SpoolFiles::open(folder)?), tenant })
    }

    /// Accepts files until it is stopped.
    pub async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let has_more = self.take_waiting(&stop).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "the spool could not be read");
                false
            });
            if !has_more {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(POLL) => {}
                }
            }
        }
    }

    /// Accepts the files that are there now; returns whether there may be more.
    pub async fn take_waiting(&self, stop: &CancellationToken) -> io::Result<bool> {
        let now = self.door.clock.now();
        let serial = rand::rng().random();
        let files = self.blocking(move |folder| {
            folder.take_over(now, serial, PAGE)?;
            folder.taken(PAGE)
        });
        let files = files.await?;
        let is_page = files.len() == PAGE;
        let takes = stream::iter(files).map(|file| async move {
            if stop.is_cancelled() {
                return false;
            }
            let name = file.name.clone();
            self.take(file).await.unwrap_or_else(|error| {
                tracing::warn!(%error, file = name, "a spooled file could not be taken");
                false
            })
        });
        let moved = takes.buffer_unordered(AT_ONCE).filter(|moved| std::future::ready(*moved)).count().await;
        Ok(is_page && moved > 0)
    }

    /// Accepts one file; returns whether it left the folder, as a message or set aside.
    async fn take(&self, file: SpoolFile) -> io::Result<bool> {
        let (now, bytes_max) = (self.door.clock.now(), self.door.limits().request_bytes_max);
        let wanted = file.clone();
        let found = self.blocking(move |folder| folder.read(&wanted, bytes_max, now)).await?;
        let SpooledRequest::Request { request, lock } = found else { return Ok(false) };
        let accepted = match request {
            Ok(request) => self.accept(&file, request).await,
            Err(refusal) => Err(refusal),
        };
        // The lock is held until the file is gone.
        match accepted {
            Err(refusal) if refusal.is_transient() => {
                tracing::warn!(error = %refusal, "a spooled file waits: it cannot be taken now");
                drop(lock);
                Ok(false)
            }
            Ok(()) => {
                self.blocking(move |folder| folder.remove(&file).inspect(|()| drop(lock))).await?;
                Ok(true)
            }
            Err(refusal) => {
                tracing::warn!(file = file.name, "a spooled file was refused and set aside");
                let set_aside = move |folder: &SpoolFiles| {
                    folder.set_aside(&file, &request::explain(&refusal)).inspect(|()| drop(lock))
                };
                self.blocking(set_aside).await?;
                Ok(true)
            }
        }
    }

    async fn accept(&self, file: &SpoolFile, request: Bytes) -> Result<(), Refusal> {
        let ctx = RequestContext {
            tenant: self.tenant.clone(),
            request_id: format!("spool-{}", file.serial),
            idempotency_key: Some(format!("spool:{}", file.serial)),
            dry_run: false,
            refuses_capture: true,
            any_subject: false,
            spoken_times: false,
            on_doubt: None,
            restrictions: None,
            trace: RequestTrace::Undecided,
        };
        self.door.accept_json(&ctx, request).await.map(drop)
    }

    /// Works on the folder outside the runtime: disks are slow, and files can be large.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SpoolFiles) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let folder = Arc::clone(&self.folder);
        tokio::task::spawn_blocking(move || work(&folder)).await.map_err(io::Error::other)?
    }
}
