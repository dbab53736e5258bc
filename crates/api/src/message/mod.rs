//! Messages: accepting, finding and showing them, and operators' changes to them.

pub(crate) mod archive;
pub(crate) mod bulk;
pub(crate) mod content;
pub(crate) mod feed;
pub(crate) mod operate;
pub(crate) mod read;
pub(crate) mod submit;
pub(crate) mod view;

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use postway_domain::{ClientId, MessageUid, TenantId};
use postway_intake::AcceptReceipt;
use postway_store::record::{MessageKey, MessageRecord};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::{error::ApiError, resource::path_parameter},
    state::AppState,
};

/// `{id}` in the path: a message's id or uid, as the caller sent it.
pub(crate) struct MessagePathId(pub(crate) String);

path_parameter!(MessagePathId, "id", |given| Ok(MessagePathId(given.to_owned())));

/// The message that `given` names: by uid if it is one, otherwise by the client's id.
pub(crate) async fn find(app: &AppState, tenant: &TenantId, given: &str) -> Result<MessageRecord, ApiError> {
    if let Ok(uid) = given.parse::<MessageUid>()
        && let Some(record) = app.store.message(tenant, &MessageKey::Uid(uid)).await?
    {
        return Ok(record);
    }
    if let Ok(id) = given.parse::<ClientId>()
        && let Some(record) = app.store.message(tenant, &MessageKey::Client(id)).await?
    {
        return Ok(record);
    }
    Err(no_message(given))
}

fn no_message(given: &str) -> ApiError {
    let shown: String = given.chars().take(ClientId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no message `{shown}`"))
}

/// The answer for a message that is durable.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Receipt)]
pub(crate) struct AcceptedView {
    /// Your id of the message, or its uid.
    #[schema(example = "order-1")]
    id: String,
    /// The message's own id.
    #[schema(value_type = String, format = "uuid")]
    uid: MessageUid,
    /// The message's status.
    #[schema(example = "ready")]
    status: &'static str,
}

impl From<AcceptReceipt> for AcceptedView {
    fn from(AcceptReceipt { id, uid, status, .. }: AcceptReceipt) -> Self {
        Self { id, uid, status }
    }
}

/// The answer for an accepted message. A dry run stores nothing, so it is 200 instead of 202.
pub(crate) fn receipt(receipt: AcceptReceipt, dry_run: bool) -> Response {
    let status = if dry_run { StatusCode::OK } else { StatusCode::ACCEPTED };
    (status, Json(AcceptedView::from(receipt))).into_response()
}
