//! `GET /v1/messages/{id}/pec/export`: the evidence for a certified mail as a zip file.
//!
//! `original.eml` is the mail as it was sent, `receipts/NN-kind.eml` each receipt as it was received, and
//! `manifest.json` lists them all with times, signatures and SHA-256 digests. Nothing is compressed: signed
//! bytes stay as they were. The archive is built in memory, so its size and the number of simultaneous
//! exports are bounded.

use std::io::{Cursor, Write};

use aws_lc_rs::digest;
use axum::{
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use postway_domain::{RecipientStatus, TenantId, Time};
use postway_store::record::{MessageRecord, StoredBody, StoredReceipt};
use serde::Serialize;
use tokio::sync::Semaphore;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::{
    auth::ContentReader,
    http::{body_budget::AlreadyCounted, error::ApiError, hex_digest::hex},
    message::{
        MessagePathId,
        content::{
            pec::PecReceiptView,
            raw::{headers, kind_for, refuse_sensitive},
        },
        find,
    },
    state::{AppState, SharedState},
};

/// The most bytes of mail in one export.
const EXPORT_BYTES_MAX: u64 = 96 * 1024 * 1024;
/// Roughly what an archive has besides its mails.
const BESIDE_MAILS_BYTES: usize = 64 * 1024;
/// The most simultaneous exports.
static EXPORTS: Semaphore = Semaphore::const_new(3);
/// The longest part of a file's name that comes from a receipt.
const KIND_CHARS_MAX: usize = 40;

/// The content of an export.
#[derive(Debug, Serialize)]
struct ExportManifest {
    message: ManifestMessage,
    exported_at: Time,
    /// Absent if the mail's bytes are no longer stored.
    original: Option<ManifestFile>,
    receipts: Vec<ManifestReceipt>,
}

#[derive(Debug, Serialize)]
struct ManifestMessage {
    id: String,
    uid: String,
    message_id: String,
    account: String,
    subject: String,
    created_at: Time,
    sent_at: Option<Time>,
    recipients: Vec<ManifestRecipient>,
}

#[derive(Debug, Serialize)]
struct ManifestRecipient {
    address: String,
    status: RecipientStatus,
    outcome: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct ManifestFile {
    file: String,
    size: u64,
    sha256: String,
}

#[derive(Debug, Serialize)]
struct ManifestReceipt {
    file: String,
    /// Whether the stored bytes are still those that were received.
    intact: bool,
    #[serde(flatten)]
    receipt: PecReceiptView,
}

/// Export a message's receipts
///
/// A zip file with the mail as it was sent, each receipt as it was received, and a manifest with times,
/// signatures and SHA-256 digests. 413 if they have more than 96 MiB together: `/v1/inbound/{id}/raw` returns
/// each receipt by itself. 403 for a sensitive message.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/pec/export",
    operation_id = "exportPecReceipts",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of the message, or its uid")),
    responses((status = 200, description = "The evidence", body = Vec<u8>, content_type = "application/zip"))
)]
pub(crate) async fn export(
    State(app): State<SharedState>,
    caller: ContentReader,
    MessagePathId(id): MessagePathId,
    asked: HeaderMap,
) -> Result<Response, ApiError> {
    let record = find(&app, &caller.tenant, &id).await?;
    refuse_sensitive(&record.summary)?;
    let uid = record.summary.uid;
    let _place = EXPORTS.acquire().await.map_err(ApiError::internal)?;
    let archive = archive(&app, &caller.tenant, record).await?;
    let headers = headers(kind_for(&asked, "application/zip"), &format!("{uid}-pec.zip"));
    Ok((AlreadyCounted, headers, archive).into_response())
}

async fn archive(app: &AppState, tenant: &TenantId, record: MessageRecord) -> Result<Bytes, ApiError> {
    let uid = record.summary.uid;
    let original = app.store.raw(tenant, uid).await?;
    let receipts = app.store.receipts(tenant, uid).await?;
    let size =
        original.as_ref().map_or(0, StoredBody::len) + receipts.iter().map(|one| one.size).sum::<u64>();
    if size > EXPORT_BYTES_MAX {
        return Err(ApiError::too_large(format!(
            "the mails have {size} bytes together, more than {EXPORT_BYTES_MAX}; get each receipt from /v1/inbound/{{id}}/raw"
        )));
    }
    let held = app.body_budget.reserve_answer(tenant, size as usize)?;
    let mut archive = ExportArchive::with_room_for(size as usize);
    let mut manifest = ExportManifest {
        message: ManifestMessage::new(record),
        exported_at: app.clock.now(),
        original: None,
        receipts: Vec::with_capacity(receipts.len()),
    };
    if let Some(original) = original {
        let bytes = app.door.resolve(tenant, original).await?;
        manifest.original = Some(archive.put("original.eml".to_owned(), bytes)?);
    }
    for (number, receipt) in (1..).zip(&receipts) {
        // The receipt was removed together with its message.
        let gone = || ApiError::not_found("the message's receipts were removed");
        let body = app.store.receipt_raw(tenant, uid, receipt.digest).await?.ok_or_else(gone)?;
        let bytes = app.door.resolve(tenant, body).await?;
        let ManifestFile { file, sha256, .. } = archive.put(file_name(number, receipt), bytes)?;
        let shown = PecReceiptView::from(receipt);
        manifest.receipts.push(ManifestReceipt { file, intact: shown.sha256 == sha256, receipt: shown });
    }
    let manifest = serde_json::to_vec_pretty(&manifest).map_err(ApiError::internal)?;
    archive.put("manifest.json".to_owned(), manifest.into())?;
    Ok(held.attach_to(archive.finish()?.into()))
}

/// A receipt's name in the archive. Its kind comes from a stranger: only characters that are safe in a file
/// name are used.
fn file_name(number: u32, receipt: &StoredReceipt) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let kind: String = receipt
        .kind
        .to_ascii_lowercase()
        .chars()
        .take(KIND_CHARS_MAX)
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect();
    format!("receipts/{number:02}-{kind}.eml")
}

/// A zip file being written.
struct ExportArchive(ZipWriter<Cursor<Vec<u8>>>);

impl ExportArchive {
    /// An archive with capacity for mails of `bytes` bytes, so that it need not grow.
    fn with_room_for(bytes: usize) -> Self {
        Self(ZipWriter::new(Cursor::new(Vec::with_capacity(bytes + BESIDE_MAILS_BYTES))))
    }

    fn put(&mut self, file: String, bytes: Bytes) -> Result<ManifestFile, ApiError> {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        self.0.start_file(file.as_str(), options).map_err(ApiError::internal)?;
        self.0.write_all(&bytes).map_err(ApiError::internal)?;
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(digest::digest(&digest::SHA256, &bytes).as_ref());
        Ok(ManifestFile { file, size: bytes.len() as u64, sha256: hex(&sha256) })
    }

    fn finish(self) -> Result<Vec<u8>, ApiError> {
        self.0.finish().map(Cursor::into_inner).map_err(ApiError::internal)
    }
}

impl ManifestMessage {
    fn new(record: MessageRecord) -> Self {
        let message = record.summary;
        let id = message.client_id.as_ref().map_or_else(|| message.uid.to_string(), ToString::to_string);
        let recipients = record.recipients.into_iter().map(|recipient| ManifestRecipient {
            address: recipient.address,
            status: recipient.status,
            outcome: recipient.outcome.map(|outcome| outcome.as_str()),
        });
        Self {
            id,
            uid: message.uid.to_string(),
            message_id: message.message_id,
            account: message.lane.account.to_string(),
            subject: message.subject,
            created_at: message.created_at,
            sent_at: message.sent_at,
            recipients: recipients.collect(),
        }
    }
}
