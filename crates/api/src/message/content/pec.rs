//! `GET /v1/messages/{id}/pec`: the receipts of certified mail that came for a message.

use std::{fmt, str::FromStr};

use axum::{Json, extract::State, http::Uri};
use postway_domain::{MessageUid, Time};
use postway_store::record::{ReceiptPlace, ReceiptView};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{
    auth::Reader,
    http::{
        error::ApiError,
        pagination::{self, Paging},
        query::Parameters,
    },
    inbound::mail::view::hex,
    message::{GivenId, find, view::object_or_empty},
    state::Shared,
};

/// A receipt of certified mail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PecReceipt {
    /// What it is, in the words of the rules: `accettazione`, `avvenuta-consegna`, …
    #[schema(example = "avvenuta-consegna")]
    pub(crate) kind: String,
    /// The recipient it is about; null where it is about the whole message.
    #[schema(example = "ada@pec.example.it")]
    pub(crate) address: Option<String>,
    /// When it says that it happened.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) at: Time,
    /// `verified`, `unverified` or `absent`.
    #[schema(example = "verified")]
    pub(crate) signature: String,
    /// The mail that brought it: `GET /v1/inbound/{id}/raw` has its bytes.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) inbound: MessageUid,
    /// The size of its bytes.
    pub(crate) size: u64,
    /// The SHA-256 digest of its bytes.
    pub(crate) sha256: String,
    /// Its particulars.
    #[serde(serialize_with = "object_or_empty")]
    #[schema(value_type = Object)]
    pub(crate) detail: Option<Box<RawValue>>,
}

/// A page of a message's receipts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PecReceiptList {
    /// In the order in which they came.
    data: Vec<PecReceipt>,
    /// Give this as `cursor` for the next; null at the end.
    next_cursor: Option<String>,
}

/// Where a page of receipts ends.
struct Place(ReceiptPlace);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (inbound, digest) = &self.0;
        write!(f, "{inbound}/{}", hex(digest))
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (inbound, digest) = text.split_once('/').ok_or(())?;
        let bytes = (0..64).step_by(2).map(|at| u8::from_str_radix(digest.get(at..at + 2)?, 16).ok());
        let bytes: Vec<u8> = bytes.collect::<Option<_>>().ok_or(())?;
        Ok(Self((inbound.parse().map_err(drop)?, bytes.try_into().map_err(drop)?)))
    }
}

impl From<&ReceiptView> for PecReceipt {
    fn from(receipt: &ReceiptView) -> Self {
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
/// Of certified mail (PEC): acceptance, delivery, failure. `/pec/export` gives them as evidence.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/pec",
    operation_id = "listPecReceipts",
    tag = "messages",
    params(
        ("id" = String, Path, description = "Your id of it, or its uid"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to go on: the `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "One page", body = PecReceiptList))
)]
pub(crate) async fn list(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
    uri: Uri,
) -> Result<Json<PecReceiptList>, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let Paging { limit, cursor } = Paging::take(&mut query);
    query.finish()?;
    let after =
        cursor.as_deref().map(pagination::read_cursor::<Place>).transpose()?.map(|Place(place)| place);
    let uid = find(&app, &caller.tenant, &id).await?.summary.uid;
    // One more than asked for tells whether there is a next page.
    let mut receipts = app.store.receipt_page(&caller.tenant, uid, after, limit + 1).await?;
    let more = receipts.len() > limit as usize;
    receipts.truncate(limit as usize);
    let last = receipts.last().filter(|_| more);
    let next_cursor = last.map(|last| pagination::write_cursor(&Place(last.place())));
    Ok(Json(PecReceiptList { data: receipts.iter().map(PecReceipt::from).collect(), next_cursor }))
}
