//! `GET /server`: the tenant, as the server that a token belongs to. Also the refusal of webhooks, which are
//! not supported.

use axum::{Json, extract::State};
use postway_domain::{AccountKind, TenantId};
use serde_json::{Value, json};

use crate::{
    auth::{Manager, Reader},
    http::error::ApiError,
    state::SharedState,
};

pub(super) async fn show(State(app): State<SharedState>, caller: Reader) -> Result<Json<Value>, ApiError> {
    let tenant = app.store.tenant(&caller.tenant).await?;
    let tenant = tenant.ok_or_else(|| ApiError::not_found("the tenant is gone"))?;
    let account = match &tenant.default_account {
        Some(account) => app.store.account(&tenant.id, account).await?,
        None => None,
    };
    // Mail that the sandbox captures is not delivered.
    let is_live = account.is_some_and(|account| account.settings.kind != AccountKind::Sandbox);
    Ok(Json(json!({
        "ID": number_of(&tenant.id),
        "Name": if tenant.name.is_empty() { tenant.id.as_str() } else { &tenant.name },
        "ApiTokens": [],
        "Color": "Grey",
        "SmtpApiActivated": false,
        "RawEmailEnabled": false,
        "DeliveryType": if is_live { "Live" } else { "Sandbox" },
        "ServerLink": null,
        "InboundAddress": null,
        "InboundHookUrl": "",
        "BounceHookUrl": "",
        "OpenHookUrl": "",
        "DeliveryHookUrl": "",
        "ClickHookUrl": "",
        "InboundDomain": "",
        "InboundHash": null,
        "InboundSpamThreshold": 0,
        "PostFirstOpenOnly": false,
        "TrackOpens": false,
        "TrackLinks": "None",
        "IncludeBounceContentInHook": false,
        "EnableSmtpApiErrorHooks": false,
    })))
}

/// `/webhooks`, all methods: the calls would have our format, not Postmark's.
pub(super) async fn no_webhooks(_caller: Manager) -> ApiError {
    ApiError::not_found(
        "webhooks are not managed by this compatibility API: create them with POST /v1/webhooks, whose bodies the guide describes",
    )
}

/// A stable number for a tenant, whose id is a text. It is not a secret.
pub(super) fn number_of(tenant: &TenantId) -> u32 {
    let hash = tenant
        .as_str()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash >> 1).max(1)
}
