//! `GET /v1/recipients`: the directory page by page, or the entries that match a filter.

use axum::{Json, extract::State, http::Uri};
use postway_domain::{EmailAddress, KnownRecipient, RecipientId, RecipientKey, TenantId};

use super::{
    personal, read,
    view::{RecipientEntryView, RecipientList},
};
use crate::{
    auth::Reader,
    http::{
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
    },
    state::{AppState, SharedState},
};

/// List recipients
///
/// Recipients that are not deleted. A recipient must match every filter.
#[utoipa::path(
    get,
    path = "/v1/recipients",
    operation_id = "listRecipients",
    tag = "recipients",
    params(
        ("address" = Option<String>, Query, description = "Only those with this address, in any case"),
        ("external_id" = Option<String>, Query, description = "Only the one with this id of yours"),
        ("personal_number" = Option<String>, Query, description = "Only the one with this personal number"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page, the oldest first", body = RecipientList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<RecipientList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let address = query.parse("address", str::parse::<EmailAddress>).map(|address| address.to_string());
    let external_id = query.parse("external_id", |id| read::check_external_id(id).map(|()| id.to_owned()));
    let personal_number = query.parse("personal_number", |number| {
        let fits = number.chars().count() <= *personal::CHARS.end();
        if fits { Ok(number.to_owned()) } else { Err("is too long for a personal number") }
    });
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    if external_id.is_none() && personal_number.is_none() {
        return whole(&app, &caller.tenant, address.as_deref(), cursor, limit).await;
    }
    let keys = keys(&app, &caller.tenant, external_id.as_deref(), personal_number.as_deref());
    let found = one(&app, &caller.tenant, &keys).await?;
    let holds = |one: &KnownRecipient| {
        let at_address = address.as_ref().is_none_or(|address| EmailAddress::is_same(&one.address, address));
        let so_called = external_id.is_none() || one.external_id == external_id;
        at_address && so_called && one.deleted_at.is_none()
    };
    let data = found.filter(holds).map(RecipientEntryView::from).into_iter().collect();
    Ok(Json(RecipientList { data, next_cursor: None }))
}

async fn whole(
    app: &AppState,
    tenant: &TenantId,
    address: Option<&str>,
    cursor: Option<String>,
    limit: u32,
) -> Result<Json<RecipientList>, ApiError> {
    let after: Option<RecipientId> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    // One item more than requested shows whether there is a next page.
    let mut found = app.store.recipients(tenant, address, after, limit + 1).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(|last| pagination::write_cursor(&last.id));
    Ok(Json(RecipientList { data: found.into_iter().map(RecipientEntryView::from).collect(), next_cursor }))
}

/// The keys to look up: the rarer of the two, in each form it may be stored in.
fn keys(
    app: &AppState,
    tenant: &TenantId,
    external_id: Option<&str>,
    personal_number: Option<&str>,
) -> Vec<RecipientKey> {
    match (personal_number, external_id) {
        (Some(number), _) => personal::digests(&app.secret_key, tenant, number)
            .into_iter()
            .map(RecipientKey::Personal)
            .collect(),
        (None, Some(id)) => vec![RecipientKey::External(id.to_owned())],
        (None, None) => Vec::new(),
    }
}

async fn one(
    app: &AppState,
    tenant: &TenantId,
    keys: &[RecipientKey],
) -> Result<Option<KnownRecipient>, ApiError> {
    for key in keys {
        if let Some(found) = app.store.recipient(tenant, key).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
