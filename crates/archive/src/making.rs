//! Makes one copy: reads the message, writes the copy where the tenant wants it, and says what came of it.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use postway_domain::{
    Clock, NamedAddress, RecipientStatus, Tenant, Time, sealed_copy::seal_copy, secret::SecretKey,
    tenant::archive::ArchiveSettings,
};
use postway_intake::{Door, ForwardRequest, RequestContext};
use postway_store::{
    Store, StoreError,
    blob::BlobStorage,
    record::{ArchivedMail, DirectoryChange, MessageKey, MessageRecord, ToNotify},
};

use crate::{
    crash::crash_point,
    letter::{self, ArchiveLetter},
    stored_copy::{self, CopyEnvelope},
};

/// What copies are made with.
pub(crate) struct CopyContext {
    pub store: Arc<dyn Store>,
    pub depot: Arc<BlobStorage>,
    pub door: Arc<Door>,
    pub clock: Arc<dyn Clock>,
    pub secret_key: Arc<SecretKey>,
}

/// What came of a copy.
pub(crate) enum CopyEnd {
    /// It is made, in this place.
    Made(String),
    /// None is to be made, for this reason.
    None(&'static str),
}

/// Why a copy could not be made now. It is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyFailure {
    /// The store or the storage is away, so that others would fail, too.
    #[error("{0}")]
    Away(String),
    /// This copy cannot be made until something is changed.
    #[error("{0}")]
    Refused(String),
}

impl From<StoreError> for CopyFailure {
    fn from(error: StoreError) -> Self {
        if error.is_transient() { Self::Away(error.to_string()) } else { Self::Refused(error.to_string()) }
    }
}

impl CopyContext {
    /// Makes the copies of a message that was sent.
    pub(crate) async fn make(&self, due: &ToNotify) -> Result<CopyEnd, CopyFailure> {
        let (tenant, uid) = (&due.key.tenant, due.key.uid);
        let Some(tenant) = self.store.tenant(tenant).await? else {
            return Ok(CopyEnd::None("the tenant is deleted"));
        };
        let Some(settings) = tenant.settings.archive.clone() else {
            return Ok(CopyEnd::None("the tenant has no archive any more"));
        };
        let Some(record) = self.store.message(&tenant.id, &MessageKey::Uid(uid)).await? else {
            return Ok(CopyEnd::None("the message was removed"));
        };
        let sent = record.recipients.iter().filter(|one| one.status == RecipientStatus::Sent);
        let recipients: Vec<&str> = sent.map(|one| one.address.as_str()).collect();
        if recipients.is_empty() {
            return Ok(CopyEnd::None("it was sent to nobody"));
        }
        // Its body is removed with the event that is archived, and is for the recipient alone.
        if record.summary.sensitive {
            return Ok(CopyEnd::None("it is sensitive"));
        }
        let Some(body) = self.store.raw(&tenant.id, uid).await? else {
            return Ok(CopyEnd::None("its body was removed"));
        };
        let mail = self.depot.resolve(&tenant.id, body).await.map_err(StoreError::from)?;
        if letter::is_copy(&self.secret_key, uid, &mail) {
            return Ok(CopyEnd::None("it is a copy for the archive itself"));
        }
        // The stored message does not show the sender of its envelope; what is known for reports does.
        let traced = self.store.traced(&[uid]).await?.into_iter().find(|traced| traced.tenant == tenant.id);
        let sender = traced.map(|traced| traced.sender).unwrap_or_default();
        let sent_at = due.event.as_ref().map(|event| event.at).or(record.summary.sent_at);
        let envelope = CopyEnvelope {
            uid,
            sent_at: sent_at.unwrap_or(record.summary.updated_at),
            sender: &sender,
            recipients,
        };
        let mut places = Vec::new();
        if settings.storage {
            places.push(self.store_copy(&tenant, &settings, &envelope, &mail).await?);
        }
        if settings.to.is_some() {
            places.push(self.send_copy(&tenant, &settings, &record, &envelope, &mail).await?);
        }
        Ok(CopyEnd::Made(places.join(", ")))
    }

    /// Writes the copy, then notes it.
    async fn store_copy(
        &self,
        tenant: &Tenant,
        settings: &ArchiveSettings,
        envelope: &CopyEnvelope<'_>,
        mail: &[u8],
    ) -> Result<String, CopyFailure> {
        let path = stored_copy::path_of(&tenant.id, envelope.uid, envelope.sent_at, settings.encrypt);
        let mut copy = stored_copy::copy_of(envelope, mail);
        if settings.encrypt {
            let sealed = seal_copy(&self.secret_key, &tenant.id, envelope.uid, &copy);
            copy = sealed.map_err(|error| CopyFailure::Refused(error.to_string()))?;
        }
        let now = self.clock.now();
        let mut archived = ArchivedMail {
            tenant: tenant.id.clone(),
            uid: envelope.uid,
            path: path.clone(),
            size: copy.len() as u64,
            digest: [0; 32],
            is_sealed: settings.encrypt,
            archived_at: now,
            expires_at: settings.days.map(|days| envelope.sent_at.plus(days_of(days))),
        };
        archived.digest.copy_from_slice(digest(&SHA256, &copy).as_ref());
        // A copy under another name, because the settings changed between two tries, would never be deleted.
        let earlier = self.store.archived(&tenant.id, envelope.uid).await?;
        crash_point("archive_before_write");
        let written = self.depot.put_object(&path, Bytes::from(copy)).await;
        written.map_err(|error| CopyFailure::Away(error.to_string()))?;
        crash_point("archive_after_write");
        self.store.change(DirectoryChange::PutArchived(archived), None).await?;
        crash_point("archive_after_note");
        if let Some(earlier) = earlier.filter(|earlier| earlier.path != path) {
            let deleted = self.depot.delete_object(&earlier.path).await;
            deleted.map_err(|error| CopyFailure::Away(error.to_string()))?;
        }
        Ok(path)
    }

    /// Hands the copy over as a mail of its own.
    async fn send_copy(
        &self,
        tenant: &Tenant,
        settings: &ArchiveSettings,
        record: &MessageRecord,
        envelope: &CopyEnvelope<'_>,
        mail: &[u8],
    ) -> Result<String, CopyFailure> {
        let refused = |why: &str| CopyFailure::Refused(why.to_owned());
        let address = settings.address().ok_or_else(|| refused("archive.to is no address"))?;
        let to = letter::bare(address).map_err(CopyFailure::Refused)?;
        let from = settings.from.as_deref().or(tenant.settings.default_from.as_deref());
        let from: Option<NamedAddress> = from.and_then(|from| from.parse().ok());
        let from = from.ok_or_else(|| refused("there is no author for copies: set archive.from"))?;
        let ctx = RequestContext {
            tenant: tenant.id.clone(),
            request_id: format!("archive-{}", envelope.uid),
            idempotency_key: Some(letter::idempotency_key(&self.secret_key, &tenant.id, envelope.uid)),
            dry_run: false,
            refuses_capture: true,
            any_subject: true,
            spoken_times: false,
            on_doubt: None,
            restrictions: None,
            trace: postway_intake::RequestTrace::default(),
        };
        let copy = ArchiveLetter {
            key: &self.secret_key,
            from: &from,
            to: &to,
            subject: &record.summary.subject,
            envelope,
            mail,
        };
        let request = ForwardRequest {
            to: vec![to.clone()],
            account: None,
            subject: copy.subject(),
            batch: None,
            tags: vec!["archive".to_owned()],
            external_id: None,
            size: mail.len(),
            make: Box::new(|given| copy.make(given)),
            from: from.clone(),
        };
        crash_point("archive_before_accept");
        let accepted = self.door.accept_forward(&ctx, request).await;
        let receipt = accepted.map_err(|refusal| CopyFailure::Refused(refusal.to_string()))?;
        crash_point("archive_after_accept");
        Ok(format!("message {}", receipt.uid))
    }
}

fn days_of(days: u32) -> std::time::Duration {
    std::time::Duration::from_secs(u64::from(days) * 86_400)
}

/// Whether a copy may be tried again now: the first time soon, then ever later.
pub(crate) fn next_try(tries: i64, now: Time) -> Time {
    const FIRST_S: u64 = 15;
    const MAX_S: u64 = 3_600;
    let doublings = u32::try_from(tries.clamp(0, 16)).unwrap_or(16);
    now.plus(std::time::Duration::from_secs((FIRST_S << doublings).min(MAX_S)))
}
