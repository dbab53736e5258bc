//! `GET /v1/messages/{id}/pec`: the receipts of certified mail (PEC) for a message.

use std::{fmt, str::FromStr};

use axum::{Json, extract::State, http::Uri};
use postway_domain::{MessageUid, Time};
use postway_store::record::{ReceiptPlace, StoredReceipt};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{
    auth::Reader,
    http::{
        error::ApiError,
        hex_digest::hex,
        pagination::{self, PageRequest},
        query::QueryParameters,
    },
    message::{MessagePathId, find, view::object_or_empty},
    state::SharedState,
};

/// A receipt of certified mail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PecReceipt)]
pub(crate) struct PecReceiptView {
    /// The kind of receipt, as the PEC rules name it: `accettazione`, `avvenuta-consegna`, …
    #[schema(example = "avvenuta-consegna")]
    pub(crate) kind: String,
    /// The recipient it is about; null if it is about the complete message.
    #[schema(example = "ada@pec.example.it")]
    pub(crate) address: Option<String>,
    /// When it happened, according to the receipt.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) at: Time,
    /// `verified`, `unverified` or `absent`.
    #[schema(example = "verified")]
    pub(crate) signature: String,
    /// The inbound mail that contained it: `GET /v1/inbound/{id}/raw` has its bytes.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) inbound: MessageUid,
    /// The size of the receipt's bytes.
    pub(crate) size: u64,
    /// The SHA-256 digest of the receipt's bytes.
    pub(crate) sha256: String,
    /// Further data of the receipt.
    #[serde(serialize_with = "object_or_empty")]
    #[schema(value_type = Object)]
    pub(crate) detail: Option<Box<RawValue>>,
}

/// A page of a message's receipts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PecReceiptList {
    /// The receipts, in the order of their arrival.
    data: Vec<PecReceiptView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    next_cursor: Option<String>,
}

/// The position of a page of receipts.
struct ReceiptCursor(ReceiptPlace);

impl fmt::Display for ReceiptCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (inbound, digest) = &self.0;
        write!(f, "{inbound}/{}", hex(digest))
    }
}

impl FromStr for ReceiptCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (inbound, digest) = text.split_once('/').ok_or(())?;
        let bytes = (0..64).step_by(2).map(|at| u8::from_str_radix(digest.get(at..at + 2)?, 16).ok());
        let bytes: Vec<u8> = bytes.collect::<Option<_>>().ok_or(())?;
        Ok(Self((inbound.parse().map_err(drop)?, bytes.try_into().map_err(drop)?)))
    }
}

impl From<&StoredReceipt> for PecReceiptView {
    fn from(receipt: &StoredReceipt) -> Self {
        Self {
            kind: receipt.kind.clone(),
            address: receipt.address.clone(),
            at: receipt.at,
            signature: receipt.signature.clone(),
            inbound: receipt.inbound,
            size: receipt.size,
            sha256: hex(&receipt.digest),
            detail: RawValue::from_string(receipt.detail.clone()).ok(),
        }
    }
}

/// List a message's receipts
///
/// Receipts of certified mail (PEC): acceptance, delivery, failure. `/pec/export` returns them as evidence.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/pec",
    operation_id = "listPecReceipts",
    tag = "messages",
    params(
        ("id" = String, Path, description = "Your id of the message, or its uid"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page", body = PecReceiptList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
    uri: Uri,
) -> Result<Json<PecReceiptList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let after = cursor
        .as_deref()
        .map(pagination::read_cursor::<ReceiptCursor>)
        .transpose()?
        .map(|ReceiptCursor(place)| place);
    let uid = find(&app, &caller.tenant, &id).await?.summary.uid;
    // One item more than requested shows whether there is a next page.
    let mut receipts = app.store.receipt_page(&caller.tenant, uid, after, limit + 1).await?;
    let more = receipts.len() > limit as usize;
    receipts.truncate(limit as usize);
    let last = receipts.last().filter(|_| more);
    let next_cursor = last.map(|last| pagination::write_cursor(&ReceiptCursor(last.place())));
    Ok(Json(PecReceiptList { data: receipts.iter().map(PecReceiptView::from).collect(), next_cursor }))
}
