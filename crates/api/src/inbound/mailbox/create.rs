//! `POST /v1/mailboxes`.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::{TenantId, WatchedMailbox, id::MailboxId};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::{Map, Value, json};

use super::{
    MailboxView, check_addresses, check_target,
    edit::{self, MailboxEdit},
    key_of,
    schema::MailboxRequest,
    secret,
};
use crate::{
    auth::Manager,
    http::{
        body,
        error::{ApiError, FieldError},
        new_id::fresh_id,
        query::dry_run,
        request_id::RequestId,
    },
    state::{AppState, SharedState},
};

/// The most mailboxes of one tenant.
const MAILBOXES_MAX: usize = 500;

/// Create a mailbox
///
/// It is watched within seconds. 409 if the id is taken, or another mailbox has the same host, username and
/// folder.
#[utoipa::path(
    post,
    path = "/v1/mailboxes",
    operation_id = "createMailbox",
    tag = "inbound",
    params(("dry_run" = Option<bool>, Query, description = "Only check; store nothing")),
    request_body = MailboxRequest,
    responses(
        (status = 201, description = "Created", body = MailboxView),
        (status = 200, description = "A dry run; nothing is stored", body = MailboxView),
    )
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let dry_run = dry_run(request.uri())?;
    let mut body = body::json_object(request).await?;
    let id = read_id(&mut body);
    let (id, MailboxEdit { mut settings, secrets, .. }) = match (id, edit::edit(None, body)) {
        (Ok(id), Ok(edited)) => (id, edited),
        (id, edited) => {
            let wrong = id.err().into_iter().chain(edited.err().into_iter().flatten());
            return Err(ApiError::invalid(wrong.collect()));
        }
    };
    check_target(&app, &caller.actor, None, &settings)?;
    let (tenant, now) = (caller.tenant.clone(), app.clock.now());
    if app.store.mailboxes(Some(&tenant)).await?.len() >= MAILBOXES_MAX {
        return Err(ApiError::conflict(format!("there are {MAILBOXES_MAX} mailboxes already; delete some")));
    }
    let id = id.map_or_else(|| fresh_id("mbx_", now), Ok)?;
    check_addresses(&app, &key_of(&tenant, &id), &settings).await?;
    let secret = secret::seal(&app, &tenant, &id, &mut settings, secrets, None)?;
    let mailbox =
        WatchedMailbox { tenant, id, settings, secret, version: 1, created_at: now, updated_at: now };
    let view = MailboxView::new(mailbox.clone(), None);
    if dry_run {
        return Ok(Json(view).into_response());
    }
    let (tenant, id) = (mailbox.tenant.clone(), mailbox.id.clone());
    let detail = Some(json!({"roles": mailbox.settings.roles}));
    let entry = app.audit(&caller.actor, Some(&tenant), "mailbox.create", id.as_str(), &request_id, detail);
    match app.store.change(DirectoryChange::CreateMailbox(mailbox), Some(entry)).await? {
        ChangeResult::Done => {}
        _ => return Err(taken(&app, &tenant, &id).await?),
    }
    tracing::info!(%tenant, mailbox = %id, "mailbox created");
    let location = [(header::LOCATION, format!("/v1/mailboxes/{id}"))];
    Ok((StatusCode::CREATED, location, Json(view)).into_response())
}

fn read_id(body: &mut Map<String, Value>) -> Result<Option<MailboxId>, FieldError> {
    match body.remove("id") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => {
            id.parse().map(Some).map_err(|error| FieldError::new("id", format!("{error}")))
        }
        Some(_) => Err(FieldError::new("id", "must be a text")),
    }
}

/// Which of the two is taken: the id, or host, username and folder.
async fn taken(app: &AppState, tenant: &TenantId, id: &MailboxId) -> Result<ApiError, ApiError> {
    Ok(match app.store.mailbox(&key_of(tenant, id)).await? {
        Some(_) => ApiError::conflict(format!(
            "there is a mailbox `{id}` already: change that one, or choose another id"
        )),
        None => watched_already(),
    })
}

/// Two readers of one folder would each process its mail.
pub(super) fn watched_already() -> ApiError {
    ApiError::conflict(
        "another mailbox watches this folder of this user on this host and port; change that one",
    )
}
