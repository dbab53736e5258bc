//! `POST /hooks/{provider}/{token}`: where providers report what happened to mail.
//!
//! The token is the permission to call, and the provider's signature proves the call. 200 means that every
//! event of the call is durable; a provider repeats anything else. What the events say is processed later.

mod throttle;

pub(crate) use self::throttle::HookThrottle;

use std::time::Instant;

use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    http::StatusCode,
};
use postway_domain::{KeyDigest, ProviderHook};
use postway_intake::{EVENTS_MAX, HOOK_BYTES_MAX, HookCall, HookRefusal};

use crate::{
    http::{body, body_budget::RequestShare, error::ApiError, origin::RequestOrigin},
    state::SharedState,
};

/// The longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 128;

/// Report events of mail
///
/// For providers, in their own form: SES through SNS, SendGrid, Mailgun, Postmark, Resend, or the documented
/// JSON of `http`. A call must be signed as the account's hook says. 200 means that its events are stored. No
/// key is needed. 401 says that the signature is missing, wrong or too old, and 404 that there is no such hook.
#[utoipa::path(
    post,
    path = "/hooks/{provider}/{token}",
    operation_id = "reportProviderEvents",
    tag = "accounts",
    security(()),
    params(
        ("provider" = String, Path, description = "`ses`, `sendgrid`, `mailgun`, `postmark`, `resend` or `http`"),
        ("token" = String, Path, description = "The token of the account's hook"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "What the provider sends"),
    responses(
        (status = 200, description = "The events are stored"),
    )
)]
pub(crate) async fn report(
    State(app): State<SharedState>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let (parts, body) = request.into_parts();
    let unknown = || ApiError::not_found("there is no such hook");
    let Path((provider, token)) = path.map_err(|_| unknown())?;
    if token.len() > TOKEN_BYTES_MAX || !token.starts_with(ProviderHook::TOKEN_PREFIX) {
        return Err(unknown());
    }
    let digest = KeyDigest::of(token.as_bytes());
    let client = RequestOrigin::from_parts(&parts).and_then(|origin| origin.client());
    let now = Instant::now();
    let hooks = app.door.hooks();
    let hook = match hooks.cached(&digest) {
        Some(hook) => hook,
        None => {
            if client.is_some_and(|client| !app.hook_throttle.admits_token(client, now)) {
                return Err(too_often());
            }
            hooks.find(&digest).await?.ok_or_else(unknown)?
        }
    };
    if hook.provider.as_str() != provider {
        return Err(unknown());
    }
    if client.is_some_and(|client| app.hook_throttle.must_wait(client, digest, now)) {
        return Err(too_often());
    }
    // What it takes of the memory is its tenant's: nobody else has a use for the call.
    let share = parts.extensions.get::<RequestShare>();
    if let Some(share) = share {
        share.assign_to(&hook.tenant);
    }
    let bytes = body::read(&parts, body, HOOK_BYTES_MAX).await?;
    // The events are copied out of the body.
    if share.is_some_and(|share| !share.cover(2 * bytes.len())) {
        return Err(ApiError::busy(
            "too many events are being handed over at once; nothing was done, try again",
        ));
    }
    let header = |name: &str| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
    match hooks.receive(&hook, HookCall { header: &header, body: &bytes }).await {
        Ok(_) => Ok(StatusCode::OK),
        Err(refusal) => Err(refuse(&hook, refusal, || {
            if let Some(client) = client {
                app.hook_throttle.count_wrong(client, digest, now);
            }
        })),
    }
}

fn too_often() -> ApiError {
    ApiError::too_many("too many wrong calls from this address; try again in a few seconds")
}

fn refuse(hook: &ProviderHook, refusal: HookRefusal, count_wrong: impl FnOnce()) -> ApiError {
    let reason = match &refusal {
        HookRefusal::Forged(_) => "forged",
        HookRefusal::Malformed(_) => "malformed",
        HookRefusal::TooMany => "too_many",
        HookRefusal::Unchecked(_) => "unchecked",
        HookRefusal::Secret(_) => "secret",
        HookRefusal::Store(_) => "store",
    };
    metrics::counter!("postway_provider_calls_refused_total", "reason" => reason).increment(1);
    let (tenant, account) = (&hook.tenant, &hook.account);
    tracing::warn!(%tenant, %account, provider = hook.provider.as_str(), reason, error = %refusal, "refused a call of a provider");
    match refusal {
        HookRefusal::Forged(message) => {
            count_wrong();
            ApiError::unproven(message)
        }
        HookRefusal::Malformed(message) => ApiError::malformed(message),
        HookRefusal::TooMany => ApiError::too_large(format!(
            "a call may have {EVENTS_MAX} events: let the provider send fewer at once"
        )),
        HookRefusal::Unchecked(message) => {
            ApiError::unavailable("the signature cannot be checked now", message)
        }
        HookRefusal::Secret(error) => ApiError::internal(error),
        HookRefusal::Store(error) => error.into(),
    }
}
