//! `POST /v1/recipients` and `PATCH /v1/recipients/{id}`.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::{KnownRecipient, RecipientId};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::json;

use super::{
    NamedRecipient, RecipientEntryView, find,
    personal::PersonalNumber,
    read::{self, RecipientEdit},
    schema::RecipientEntryRequest,
};
use crate::{
    auth::Manager,
    http::{
        body,
        error::ApiError,
        query::dry_run,
        request_id::RequestId,
        resource::{change_versioned, check_version},
    },
    state::{AppState, SharedState},
};

/// Create a recipient
///
/// 409 if the external id is taken.
#[utoipa::path(
    post,
    path = "/v1/recipients",
    operation_id = "createRecipient",
    tag = "recipients",
    params(("dry_run" = Option<bool>, Query, description = "Only check; store nothing")),
    request_body = RecipientEntryRequest,
    responses(
        (status = 201, description = "Created", body = RecipientEntryView),
        (status = 200, description = "A dry run; nothing is stored", body = RecipientEntryView),
    )
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let dry_run = dry_run(request.uri())?;
    let given = read::body(body::json_object(request).await?).map_err(ApiError::invalid)?;
    let Some(address) = given.address.clone() else {
        return Err(ApiError::field("address", "a recipient needs an address"));
    };
    let now = app.clock.now();
    let id = RecipientId::new(now, &mut rand::rng());
    let new = KnownRecipient {
        tenant: caller.tenant.clone(),
        id,
        external_id: None,
        name: None,
        address,
        locale: None,
        personal_number: None,
        personal_number_digest: None,
        personal_number_masked: None,
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    let recipient = apply_edit(&app, new, &given)?;
    let view = RecipientEntryView::from(recipient.clone());
    if dry_run {
        return Ok(Json(view).into_response());
    }
    let (tenant, detail) = (&caller.tenant, Some(json!({"fields": given.fields})));
    let entry =
        app.audit(&caller.actor, Some(tenant), "recipient.create", id.to_string(), &request_id, detail);
    match app.store.change(DirectoryChange::CreateRecipient(recipient), Some(entry)).await? {
        ChangeResult::Done => {}
        _ => return Err(taken(&given)),
    }
    let location = [(header::LOCATION, format!("/v1/recipients/{id}"))];
    Ok((StatusCode::CREATED, location, Json(view)).into_response())
}

/// Change a recipient
///
/// Changes the given fields; `null` removes external id, name, language or personal number. With `version`,
/// the change is made only if the recipient still has that version; 409 otherwise.
#[utoipa::path(
    patch,
    path = "/v1/recipients/{id}",
    operation_id = "changeRecipient",
    tag = "recipients",
    params(("id" = String, Path, description = "The id, or `external:` and your own id of the recipient")),
    request_body = RecipientEntryRequest,
    responses((status = 200, description = "The recipient after the change", body = RecipientEntryView))
)]
pub(crate) async fn patch(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    named: NamedRecipient,
    request: Request,
) -> Result<Json<RecipientEntryView>, ApiError> {
    let given = read::body(body::json_object(request).await?).map_err(ApiError::invalid)?;
    change_versioned("recipient", || async {
        let current = find(&app, &caller.tenant, &named).await?;
        if let Some(at) = current.deleted_at {
            return Err(ApiError::conflict(format!("the recipient was deleted at {at}: create a new one")));
        }
        let expected = current.version;
        check_version("recipient", given.version, expected)?;
        let (version, updated_at) = (expected + 1, app.clock.now());
        let changed = apply_edit(&app, KnownRecipient { version, updated_at, ..current }, &given)?;
        let (tenant, id) = (&caller.tenant, changed.id.to_string());
        let detail = Some(json!({"fields": given.fields, "version": version}));
        let entry = app.audit(&caller.actor, Some(tenant), "recipient.update", id, &request_id, detail);
        let view = RecipientEntryView::from(changed.clone());
        match app.store.change(DirectoryChange::UpdateRecipient(changed, expected), Some(entry)).await? {
            ChangeResult::Done => return Ok(Some(Json(view))),
            ChangeResult::Exists => return Err(taken(&given)),
            ChangeResult::Already | ChangeResult::Missing | ChangeResult::Stale | ChangeResult::InUse => {}
        }
        Ok::<_, ApiError>(None)
    })
    .await
}

/// The entry with the given fields.
fn apply_edit(
    app: &AppState,
    mut recipient: KnownRecipient,
    given: &RecipientEdit,
) -> Result<KnownRecipient, ApiError> {
    if let Some(external_id) = &given.external_id {
        recipient.external_id.clone_from(external_id);
    }
    if let Some(name) = &given.name {
        recipient.name.clone_from(name);
    }
    if let Some(address) = &given.address {
        recipient.address.clone_from(address);
    }
    if let Some(locale) = &given.locale {
        recipient.locale.clone_from(locale);
    }
    match &given.personal_number {
        None => {}
        Some(None) => PersonalNumber::store_in(None, &mut recipient),
        // A client may send back the masked number; it changes nothing.
        Some(shown) if *shown == recipient.personal_number_masked => {}
        Some(Some(number)) if number.contains('*') => {
            let message = "must not contain a `*`, which marks hidden characters";
            return Err(ApiError::field("personal_number", message));
        }
        Some(Some(number)) => {
            let personal = PersonalNumber::new(&app.secret_key, &recipient.tenant, &recipient.id, number);
            PersonalNumber::store_in(Some(personal.map_err(ApiError::internal)?), &mut recipient);
        }
    }
    Ok(recipient)
}

fn taken(given: &RecipientEdit) -> ApiError {
    let id = given.external_id.clone().flatten().unwrap_or_default();
    ApiError::conflict(format!("there is a recipient with the external id `{id}` already: change that one"))
}
