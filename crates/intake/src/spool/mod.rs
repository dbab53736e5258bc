//! The spool: a folder into which applications on the same disk put mail, one JSON file each.
//!
//! A file is first moved to `taken`, under a name of its own that nobody else can take away or replace, and that is the key
//! under which it is accepted. It is removed once its message is durable. A crash leaves it in `taken`, and it is accepted
//! again under the same key, which finds the message that is there: so each file is one message, whatever happens, and
//! also where several nodes watch the same folder. A file that cannot be accepted is moved to `failed`, with a file beside it
//! that says why: so is one that names no account while the sandbox, which nobody chose, would capture it. While the store is away
//! files stay where they are.
//!
//! An application writes its file under a name that does not end in `.json`, and renames it when it is complete. One that
//! does not is waited for, for a few seconds.

mod folder;
mod request;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use postway_domain::TenantId;
use rand::Rng;
use tokio_util::sync::CancellationToken;

use self::folder::{Folder, Found, TakenFile};
use crate::{
    accept::{context::RequestContext, door::Door},
    refusal::Refusal,
};

/// How often the folder is looked at when it was empty.
const POLL: Duration = Duration::from_secs(1);
/// How many files are taken in one look.
const PAGE: usize = 1_000;
/// How many are accepted at once, so that they share commits.
const AT_ONCE: usize = 4;

/// A folder that is watched for mail.
pub struct Spool {
    door: Arc<Door>,
    folder: Arc<Folder>,
    tenant: TenantId,
}

impl Spool {
    /// Opens the folder, and makes it where it is missing.
    pub fn open(door: Arc<Door>, folder: PathBuf, tenant: TenantId) -> io::Result<Self> {
        Ok(Self { door, folder: Arc::new(Folder::open(folder)?), tenant })
    }

    /// Takes files until it is stopped.
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

    /// Takes what is there now; whether there may be more.
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

    /// Accepts one file; whether it is gone from the folder, as a message or set aside.
    async fn take(&self, file: TakenFile) -> io::Result<bool> {
        let (now, bytes_max) = (self.door.clock.now(), self.door.limits().request_bytes_max);
        let wanted = file.clone();
        let found = self.blocking(move |folder| folder.read(&wanted, bytes_max, now)).await?;
        let Found::Request { request, held } = found else { return Ok(false) };
        let accepted = match request {
            Ok(request) => self.accept(&file, request).await,
            Err(refusal) => Err(refusal),
        };
        // Nobody else may look at the file before it is gone.
        match accepted {
            Err(refusal) if refusal.is_transient() => {
                tracing::warn!(error = %refusal, "a spooled file waits: it cannot be taken now");
                drop(held);
                Ok(false)
            }
            Ok(()) => {
                self.blocking(move |folder| folder.remove(&file).inspect(|()| drop(held))).await?;
                Ok(true)
            }
            Err(refusal) => {
                tracing::warn!(file = file.name, "a spooled file was refused and set aside");
                let set_aside = move |folder: &Folder| {
                    folder.set_aside(&file, &request::explain(&refusal)).inspect(|()| drop(held))
                };
                self.blocking(set_aside).await?;
                Ok(true)
            }
        }
    }

    async fn accept(&self, file: &TakenFile, request: Bytes) -> Result<(), Refusal> {
        let ctx = RequestContext {
            tenant: self.tenant.clone(),
            request_id: format!("spool-{}", file.serial),
            idempotency_key: Some(format!("spool:{}", file.serial)),
            dry_run: false,
            must_leave: true,
            any_subject: false,
            spoken_times: false,
            on_doubt: None,
            restrictions: None,
        };
        self.door.accept_json(&ctx, request).await.map(drop)
    }

    /// Works on the folder beside the runtime: disks are slow, and files can be large.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let folder = Arc::clone(&self.folder);
        tokio::task::spawn_blocking(move || work(&folder)).await.map_err(io::Error::other)?
    }
}
