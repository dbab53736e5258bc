//! The door itself: its parts, and what is asked of it besides accepting mail.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use postway_domain::{Clock, TenantId, Time, secret::SecretKey};
use postway_net::{VirusScanner, http::HttpClient};
use postway_store::{
    Store, StoreError,
    blob::{BlobError, BlobStorage},
    record::{FileLink, StoredBody},
};

use super::{
    compose::{
        MailBuilder,
        links::{FileLinkKey, FileLinkTarget},
        unsubscribe::{SUBJECT, UnsubscribeLink},
    },
    context::RequestContext,
    look_up::MessageLookup,
    refused_mail::RefusedShares,
    store::MessageWriter,
};
use crate::{
    budget::HeavyWork,
    fetch::{FetchConfig, FetchSlots, FileFetcher},
    hook::HookDoor,
    limits::{IDEMPOTENCY_KEY_CHARS_MAX, IntakeLimits},
    refusal::Refusal,
};

/// The one way in. There is one for the process, and all subsystems share it.
pub struct Door {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) depot: Arc<BlobStorage>,
    pub(crate) limits: IntakeLimits,
    pub(crate) heavy: HeavyWork,
    pub(crate) lookup: MessageLookup,
    pub(crate) builder: MailBuilder,
    pub(crate) writer: MessageWriter,
    pub(crate) fetcher: FileFetcher,
    pub(crate) fetch_slots: FetchSlots,
    pub(crate) link_key: FileLinkKey,
    pub(crate) refused: RefusedShares,
    pub(crate) virus_scanner: Option<Arc<VirusScanner>>,
    hooks: HookDoor,
}

/// The parts that a door is made from.
pub struct DoorParts {
    /// Stores messages.
    pub store: Arc<dyn Store>,
    /// Stores large bodies.
    pub depot: Arc<BlobStorage>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Opens tenants' secrets, and signs links and envelope senders.
    pub secret_key: Arc<SecretKey>,
    /// Fetches attachments; it refuses private addresses.
    pub http: HttpClient,
    /// Limits and folders for fetching attachments.
    pub fetch: FetchConfig,
    /// Limits on requests and messages.
    pub limits: IntakeLimits,
    /// The domain of Message-IDs when the author's domain cannot be used.
    pub mail_domain: String,
    /// Where readers of mail reach this gateway, for links to large files.
    pub public_url: Option<String>,
}

impl Door {
    /// A door with these parts.
    pub fn new(parts: DoorParts) -> Self {
        let DoorParts { store, depot, clock, secret_key, http, fetch, limits, mail_domain, public_url } =
            parts;
        let lookup = MessageLookup::new(Arc::clone(&store), Arc::clone(&secret_key), Arc::clone(&clock));
        Self {
            heavy: HeavyWork::default(),
            builder: MailBuilder::new(mail_domain, public_url, &secret_key),
            writer: MessageWriter::new(
                Arc::clone(&store),
                Arc::clone(&clock),
                Arc::clone(&depot),
                limits.inline_bytes_max,
                Arc::clone(&lookup.settings),
            ),
            hooks: HookDoor::new(
                Arc::clone(&store),
                Arc::clone(&clock),
                Arc::clone(&secret_key),
                http.clone(),
            ),
            lookup,
            fetcher: FileFetcher::new(http, fetch, Arc::clone(&clock)),
            fetch_slots: FetchSlots::default(),
            link_key: FileLinkKey::new(&secret_key),
            refused: RefusedShares::default(),
            virus_scanner: None,
            store,
            clock,
            depot,
            limits,
        }
    }

    /// The way in for events that providers report.
    pub fn hooks(&self) -> &HookDoor {
        &self.hooks
    }

    /// The time.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The limits of what this door accepts.
    pub fn limits(&self) -> &IntakeLimits {
        &self.limits
    }

    /// Why the sandbox would capture mail of this tenant that names no account, although nobody chose the
    /// sandbox; `None` if it would not.
    pub async fn capture_reason(&self, tenant: &TenantId) -> Result<Option<&'static str>, StoreError> {
        self.lookup.settings.capture_reason(tenant).await
    }

    /// Where readers of mail reach this gateway, if the operator says so.
    pub fn public_url(&self) -> Option<&str> {
        self.builder.public_url()
    }

    /// Whether readers reach this gateway by https, as one-click links need.
    pub fn serves_readers(&self) -> bool {
        self.builder.serves_readers()
    }

    /// Checks the size and the idempotency key, which come with every kind of request.
    pub(super) fn check_request(&self, ctx: &RequestContext, bytes: usize) -> Result<(), Refusal> {
        let bytes_max = self.limits.request_bytes_max;
        if bytes > bytes_max {
            let message = format!("the request is larger than {bytes_max} bytes (http.max_request_bytes)");
            return Err(Refusal::TooLarge { message });
        }
        match &ctx.idempotency_key {
            Some(key) if !is_idempotency_key(key) => Err(Refusal::field(
                "Idempotency-Key",
                format!("must be 1 to {IDEMPOTENCY_KEY_CHARS_MAX} printable ASCII characters"),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Reads a tenant's body, which may be inline or a blob.
    pub async fn resolve(&self, tenant: &TenantId, body: StoredBody) -> Result<Bytes, StoreError> {
        Ok(self.depot.resolve(tenant, body).await?)
    }

    /// Reads an object beside the blobs, such as an archived mail.
    pub async fn read_object(&self, path: &str) -> Result<Bytes, StoreError> {
        Ok(self.depot.get_object(path).await?)
    }

    /// Deletes an object beside the blobs.
    pub async fn delete_object(&self, path: &str) -> Result<(), StoreError> {
        Ok(self.depot.delete_object(path).await?)
    }

    /// Finds the file behind a link.
    pub async fn follow(&self, token: &str) -> Result<FileLinkTarget, StoreError> {
        let Some((uid, blob)) = self.link_key.read(token) else { return Ok(FileLinkTarget::Unknown) };
        Ok(match self.store.link(uid, &blob).await? {
            Some(link) if link.file.expires_at > self.clock.now() => FileLinkTarget::File(link),
            // The signature is ours, so the link existed once.
            Some(_) | None => FileLinkTarget::Ended,
        })
    }

    /// Reads a linked file, piece by piece.
    pub async fn read_file(
        &self,
        link: &FileLink,
    ) -> Result<BoxStream<'static, Result<Bytes, BlobError>>, StoreError> {
        Ok(self.depot.get_stream(&link.tenant, &link.file.blob).await?)
    }

    /// Opens the token of an unsubscribe link, if it is one of ours.
    pub fn read_unsubscribe(&self, token: &str) -> Option<UnsubscribeLink> {
        self.builder.read_unsubscribe(token)
    }

    /// Opens the token in the subject of a mail that a reader wrote to leave a stream, if the subject has
    /// one.
    pub fn read_unsubscribe_subject(&self, subject: &str) -> Option<UnsubscribeLink> {
        let mut words = subject.split_whitespace().skip_while(|word| !word.eq_ignore_ascii_case(SUBJECT));
        words.next()?;
        self.read_unsubscribe(words.next()?)
    }
}

fn is_idempotency_key(key: &str) -> bool {
    (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.len())
        && key.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}
