//! `/v1/contacts`: a tenant's names and the addresses behind them, which rules look up.

mod edit;
mod view;
pub(crate) mod write;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, Uri},
};
use postway_domain::{Contact, TenantId, id::ContactId};
use postway_store::record::{ChangeResult, DirectoryChange};

pub(crate) use self::view::{ContactList, ContactView};
use crate::{
    auth::{Manager, Reader},
    http::{
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
        request_id::RequestId,
        resource::path_parameter,
    },
    state::{AppState, SharedState},
};

/// The contact that `{id}` in the path names. A text that cannot be an id is 404.
pub(crate) struct NamedContact(ContactId);

path_parameter!(NamedContact, "id", |given| given.parse().map(NamedContact).map_err(|_| no_contact(given)));

fn no_contact(given: &str) -> ApiError {
    let shown: String = given.chars().take(ContactId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no contact `{shown}`; ?name= finds one by its name"))
}

async fn find(app: &AppState, tenant: &TenantId, id: &ContactId) -> Result<Contact, ApiError> {
    app.store.contact(tenant, id).await?.ok_or_else(|| no_contact(id.as_str()))
}

/// List contacts
///
/// With `name`, only the contact with that name; case and white space do not matter.
#[utoipa::path(
    get,
    path = "/v1/contacts",
    operation_id = "listContacts",
    tag = "inbound",
    params(
        ("name" = Option<String>, Query, description = "Only the one with this name"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page, by id", body = ContactList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<ContactList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let name = query.parse("name", |name| match name.chars().count() <= Contact::NAME_CHARS_MAX {
        true => Ok(name.to_owned()),
        false => Err(format!("must have at most {} characters", Contact::NAME_CHARS_MAX)),
    });
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let tenant = &caller.tenant;
    if let Some(name) = name {
        let found = app.store.contact_named(tenant, &name).await?;
        let data = found.map(ContactView::from).into_iter().collect();
        return Ok(Json(ContactList { data, next_cursor: None }));
    }
    let after: Option<ContactId> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    // One item more than requested shows whether there is a next page.
    let mut found = app.store.contacts(tenant, after.as_ref(), limit + 1).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(|last| pagination::write_cursor(&last.id));
    Ok(Json(ContactList { data: found.into_iter().map(ContactView::from).collect(), next_cursor }))
}

/// Show a contact
///
/// One name and its addresses.
#[utoipa::path(
    get,
    path = "/v1/contacts/{id}",
    operation_id = "getContact",
    tag = "inbound",
    params(("id" = String, Path, description = "The contact")),
    responses((status = 200, description = "The contact", body = ContactView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedContact(id): NamedContact,
) -> Result<Json<ContactView>, ApiError> {
    find(&app, &caller.tenant, &id).await.map(|contact| Json(contact.into()))
}

/// Delete a contact
///
/// Rules that look up its name find no address from then on; forwarded mail is not affected.
#[utoipa::path(
    delete,
    path = "/v1/contacts/{id}",
    operation_id = "deleteContact",
    tag = "inbound",
    params(("id" = String, Path, description = "The contact")),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedContact(id): NamedContact,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "contact.delete", id.as_str(), &request_id, None);
    let change = DirectoryChange::DeleteContact(tenant.clone(), id.clone());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => Ok(StatusCode::NO_CONTENT),
        _ => Err(no_contact(id.as_str())),
    }
}
