//! `GET /server`: the tenant, as the server that a token is of. And what is not here: webhooks.

use axum::{Json, extract::State};
use postway_domain::{AccountKind, TenantId};
use serde_json::{Value, json};

use crate::{
    auth::{Manager, Reader},
    http::error::ApiError,
    state::Shared,
};

pub(super) async fn show(State(app): State<Shared>, caller: Reader) -> Result<Json<Value>, ApiError> {
    let tenant = app.store.tenant(&caller.tenant).await?;
    let tenant = tenant.ok_or_else(|| ApiError::not_found("the tenant is gone"))?;
    let account = match &tenant.default_account {
        Some(account) => app.store.account(&tenant.id, account).await?,
        None => None,
    };
    // Mail that the sandbox captures goes nowhere.
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

/// `/webhooks`, whatever is asked of them: their bodies would be ours, and not what a receiver for Postmark's reads.
pub(super) async fn no_webhooks(_caller: Manager) -> ApiError {
    ApiError::not_found(
        "webhooks are not managed by this door: make them with POST /v1/webhooks, whose bodies the guide describes",
    )
}

/// A number for a tenant, whose id is a text: the same whenever it is asked for, and a key to nothing.
pub(super) fn number_of(tenant: &TenantId) -> u32 {
    let hash = tenant
        .as_str()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash >> 1).max(1)
}
