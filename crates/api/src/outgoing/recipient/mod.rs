//! `/v1/recipients`: a tenant's directory of the people it writes to.
//!
//! The directory is optional: mail goes to any address. A message that names an entry is sent only to that
//! entry's address, and not at all once the entry is deleted. A personal number is encrypted before it is
//! stored and never shown: it is shown masked and found by a keyed digest (`personal.rs`). A deleted entry is
//! marked, not removed; its personal number is removed, and its external id is free again.

pub(crate) mod list;
pub(crate) mod personal;
mod read;
mod schema;
mod view;
pub(crate) mod write;

use axum::{Json, extract::State, http::StatusCode};
use postway_domain::{KnownRecipient, RecipientKey, TenantId};
use postway_store::record::{ChangeResult, DirectoryChange};

pub(crate) use self::view::RecipientEntryView;
use crate::{
    auth::{Manager, Reader},
    http::{error::ApiError, request_id::RequestId, resource::path_parameter},
    state::{AppState, SharedState},
};

/// The prefix of an external id in a path.
const EXTERNAL: &str = "external:";

/// The recipient that `{id}` in the path names: our id, or `external:` and the tenant's.
pub(crate) struct NamedRecipient {
    given: String,
    key: RecipientKey,
}

path_parameter!(NamedRecipient, "id", |given| {
    let key = match given.strip_prefix(EXTERNAL) {
        Some(external) => RecipientKey::External(external.to_owned()),
        None => RecipientKey::Id(given.parse().map_err(|_| no_recipient(given))?),
    };
    Ok(NamedRecipient { given: given.to_owned(), key })
});

fn no_recipient(given: &str) -> ApiError {
    let shown: String = given.chars().take(EXTERNAL.len() + read::EXTERNAL_ID_BYTES_MAX).collect();
    ApiError::not_found(format!(
        "there is no recipient `{shown}`: give its id, or {EXTERNAL} and your own id of it"
    ))
}

/// The entry, deleted or not.
async fn find(app: &AppState, tenant: &TenantId, named: &NamedRecipient) -> Result<KnownRecipient, ApiError> {
    let found = app.store.recipient(tenant, &named.key).await?;
    found.ok_or_else(|| no_recipient(&named.given))
}

/// Show a recipient
///
/// A deleted recipient has `deleted_at`; it is found by its id, and by yours until another one has it.
#[utoipa::path(
    get,
    path = "/v1/recipients/{id}",
    operation_id = "getRecipient",
    tag = "recipients",
    params(("id" = String, Path, description = "The id, or `external:` and your own id of the recipient")),
    responses((status = 200, description = "The recipient", body = RecipientEntryView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    named: NamedRecipient,
) -> Result<Json<RecipientEntryView>, ApiError> {
    find(&app, &caller.tenant, &named).await.map(|recipient| Json(recipient.into()))
}

/// Delete a recipient
///
/// Messages that name it are refused from now on, and waiting ones are not sent. Its external id is free
/// again.
#[utoipa::path(
    delete,
    path = "/v1/recipients/{id}",
    operation_id = "deleteRecipient",
    tag = "recipients",
    params(("id" = String, Path, description = "The id, or `external:` and your own id of the recipient")),
    responses((status = 204, description = "It is deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    named: NamedRecipient,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let id = find(&app, tenant, &named).await?.id;
    let entry = app.audit(&caller.actor, Some(tenant), "recipient.delete", id.to_string(), &request_id, None);
    let change = DirectoryChange::DeleteRecipient(tenant.clone(), id, app.clock.now());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => Ok(StatusCode::NO_CONTENT),
        _ => Err(no_recipient(&named.given)),
    }
}
