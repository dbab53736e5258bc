//! `POST /v1/contacts` and `PATCH /v1/contacts/{id}`.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::Contact;
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::json;

use super::{ContactView, NamedContact, edit, find, view::ContactRequest};
use crate::{
    auth::Manager,
    http::{
        body,
        error::ApiError,
        new_id::fresh_id,
        request_id::RequestId,
        resource::{change_versioned, check_version},
    },
    state::SharedState,
};

/// Create a contact
///
/// 409 if the id or the name is taken. Case and spacing of names do not matter.
#[utoipa::path(
    post,
    path = "/v1/contacts",
    operation_id = "createContact",
    tag = "inbound",
    request_body = ContactRequest,
    responses((status = 201, description = "Created", body = ContactView))
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let given = edit::read(body::json_object(request).await?, true).map_err(ApiError::invalid)?;
    let name = given.name.ok_or_else(|| ApiError::field("name", "is needed: what it is found by"))?;
    let (tenant, now) = (caller.tenant.clone(), app.clock.now());
    let id = given.id.map_or_else(|| fresh_id("con_", now), Ok)?;
    let addresses = given.addresses.unwrap_or_default();
    let contact = Contact { tenant, id, name, addresses, version: 1, created_at: now, updated_at: now };
    let view = ContactView::from(contact.clone());
    let (tenant, id) = (contact.tenant.clone(), contact.id.clone());
    let entry = app.audit(&caller.actor, Some(&tenant), "contact.create", id.as_str(), &request_id, None);
    match app.store.change(DirectoryChange::CreateContact(contact), Some(entry)).await? {
        ChangeResult::Done => {}
        _ => return Err(taken()),
    }
    let location = [(header::LOCATION, format!("/v1/contacts/{id}"))];
    Ok((StatusCode::CREATED, location, Json(view)).into_response())
}

/// Change a contact
///
/// Changes the given fields; `addresses` is replaced as a list. With `version`, the change is made only if
/// the contact still has that version; 409 otherwise.
#[utoipa::path(
    patch,
    path = "/v1/contacts/{id}",
    operation_id = "changeContact",
    tag = "inbound",
    params(("id" = String, Path, description = "The contact")),
    request_body = ContactRequest,
    responses((status = 200, description = "The contact after the change", body = ContactView))
)]
pub(crate) async fn patch(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedContact(id): NamedContact,
    request: Request,
) -> Result<Json<ContactView>, ApiError> {
    let given = edit::read(body::json_object(request).await?, false).map_err(ApiError::invalid)?;
    let tenant = &caller.tenant;
    change_versioned("contact", || async {
        let current = find(&app, tenant, &id).await?;
        let expected = current.version;
        check_version("contact", given.version, expected)?;
        let (version, updated_at) = (expected + 1, app.clock.now());
        let contact = Contact {
            name: given.name.clone().unwrap_or_else(|| current.name.clone()),
            addresses: given.addresses.clone().unwrap_or_else(|| current.addresses.clone()),
            version,
            updated_at,
            ..current
        };
        let view = ContactView::from(contact.clone());
        let detail = Some(json!({"fields": given.fields, "version": version}));
        let entry =
            app.audit(&caller.actor, Some(tenant), "contact.change", id.as_str(), &request_id, detail);
        match app.store.change(DirectoryChange::UpdateContact(contact, expected), Some(entry)).await? {
            ChangeResult::Done => return Ok(Some(Json(view))),
            ChangeResult::Exists => return Err(taken()),
            ChangeResult::Already | ChangeResult::Missing | ChangeResult::Stale | ChangeResult::InUse => {}
        }
        Ok::<_, ApiError>(None)
    })
    .await
}

fn taken() -> ApiError {
    ApiError::conflict("there is a contact with this id or name already: change that one, or choose another")
}
