//! `GET /v1/messages/{id}/pec`: the receipts of certified mail that came for a message.

use axum::{Json, extract::State};
use postway_domain::{MessageUid, Time};
use postway_store::record::ReceiptView;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{GivenId, find, view::object_or_empty};
use crate::{auth::Reader, error::ApiError, inbound::view::hex, state::Shared};

/// A receipt of certified mail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PecReceipt {
    /// What it is, in the words of the rules: `accettazione`, `avvenuta-consegna`, …
    #[schema(example = "avvenuta-consegna")]
    pub(super) kind: String,
    /// The recipient it is about; null where it is about the whole message.
    #[schema(example = "ada@pec.example.it")]
    pub(super) address: Option<String>,
    /// When it says that it happened.
    #[schema(value_type = String, format = DateTime)]
    pub(super) at: Time,
    /// `verified`, `unverified` or `absent`.
    #[schema(example = "verified")]
    pub(super) signature: String,
    /// The mail that brought it: `GET /v1/inbound/{id}/raw` has its bytes.
    #[schema(value_type = String, format = "uuid")]
    pub(super) inbound: MessageUid,
    /// The size of its bytes.
    pub(super) size: u64,
    /// The SHA-256 digest of its bytes.
    pub(super) sha256: String,
    /// Its particulars.
    #[serde(serialize_with = "object_or_empty")]
    #[schema(value_type = Object)]
    pub(super) detail: Option<Box<RawValue>>,
}

/// A message's receipts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PecReceiptList {
    /// In the order in which they came.
    data: Vec<PecReceipt>,
    /// Always null: the list comes whole.
    next_cursor: Option<String>,
}

impl From<&ReceiptView> for PecReceipt {
    fn from(receipt: &ReceiptView) -> Self {
        Self {
            kind: receipt.kind.clone(),
            address: receipt.address.clone(),
            at: receipt.at,
            signature: receipt.signature.clone(),
            inbound: receipt.inbound,
            size: receipt.body.len(),
            sha256: hex(&receipt.digest),
            detail: RawValue::from_string(receipt.detail.clone()).ok(),
        }
    }
}

/// List a message's receipts
///
/// Of certified mail (PEC): acceptance, delivery, failure. `/pec/export` gives them as evidence.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/pec",
    operation_id = "listPecReceipts",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of it, or its uid")),
    responses((status = 200, description = "All of them", body = PecReceiptList))
)]
pub(crate) async fn list(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
) -> Result<Json<PecReceiptList>, ApiError> {
    let uid = find(&app, &caller.tenant, &id).await?.summary.uid;
    let receipts = app.store.receipts(&caller.tenant, uid).await?;
    Ok(Json(PecReceiptList { data: receipts.iter().map(PecReceipt::from).collect(), next_cursor: None }))
}
