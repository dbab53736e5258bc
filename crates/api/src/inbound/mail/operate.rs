//! `POST /v1/inbound/{id}/replay` and `/resolve`: an operator's actions on an inbound mail.

use axum::{Json, extract::State};
use postway_domain::MessageUid;
use postway_store::record::ChangeResult;

use super::{InboundMailView, NamedInbound, find, no_mail};
use crate::{
    auth::{Caller, Manager},
    http::{error::ApiError, request_id::RequestId},
    state::{AppState, SharedState},
};

/// Replay an inbound mail
///
/// It is processed again, with all its tries and the current rules. What was sent because of it is not sent
/// again. 409 while it is not settled, or if its bytes are gone.
#[utoipa::path(
    post,
    path = "/v1/inbound/{id}/replay",
    operation_id = "replayInbound",
    tag = "inbound",
    params(("id" = String, Path, description = "The mail")),
    responses((status = 200, description = "The mail after the change", body = InboundMailView))
)]
pub(crate) async fn replay(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedInbound(uid): NamedInbound,
) -> Result<Json<InboundMailView>, ApiError> {
    match app.store.replay_inbound(&caller.tenant, uid, app.clock.now()).await? {
        ChangeResult::Done | ChangeResult::Already => {}
        ChangeResult::Missing => return Err(no_mail(&uid.to_string())),
        ChangeResult::InUse | ChangeResult::Exists | ChangeResult::Stale => {
            let state = find(&app, &caller.tenant, uid).await?.mail.state;
            let message = match state.can_be_replayed() {
                true => format!("the mail is {}, but its bytes are no longer kept", state.as_str()),
                false => format!(
                    "the mail is {}; only one that is routed, no_match or dead can be replayed",
                    state.as_str()
                ),
            };
            return Err(ApiError::conflict(message));
        }
    }
    done(&app, &caller, &request_id, uid, "inbound.replay").await
}

/// Resolve an inbound mail
///
/// Declares that it was dealt with: there are no more reminders of it.
#[utoipa::path(
    post,
    path = "/v1/inbound/{id}/resolve",
    operation_id = "resolveInbound",
    tag = "inbound",
    params(("id" = String, Path, description = "The mail")),
    responses((status = 200, description = "The mail after the change", body = InboundMailView))
)]
pub(crate) async fn resolve(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedInbound(uid): NamedInbound,
) -> Result<Json<InboundMailView>, ApiError> {
    match app.store.resolve_inbound(&caller.tenant, uid, app.clock.now()).await? {
        ChangeResult::Done | ChangeResult::Already => {}
        ChangeResult::InUse | ChangeResult::Stale => {
            return Err(ApiError::conflict("the mail is being dealt with at this moment; try again"));
        }
        ChangeResult::Missing | ChangeResult::Exists => return Err(no_mail(&uid.to_string())),
    }
    done(&app, &caller, &request_id, uid, "inbound.resolve").await
}

async fn done(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    uid: MessageUid,
    action: &str,
) -> Result<Json<InboundMailView>, ApiError> {
    let tenant = &caller.tenant;
    app.record(app.audit(&caller.actor, Some(tenant), action, uid.to_string(), request_id, None)).await?;
    tracing::info!(%tenant, inbound = %uid, action, "an operator acted on an inbound mail");
    find(app, tenant, uid).await.map(|record| Json(record.into()))
}
