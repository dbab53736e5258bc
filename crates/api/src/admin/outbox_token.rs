//! `POST /v1/tokens/verify`: verifies a token or code from an account mail.
//!
//! The application's database is asked, and values are compared in constant time. A wrong code counts against
//! its token, and the fifth invalidates it. The rate of a tenant's calls is limited besides, so that guessing
//! cannot keep the database busy.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::TenantId;
use postway_intake::outbox::{PresentedToken, TokenCheck};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Sender,
    http::{
        body,
        error::{ApiError, FieldError},
        json_fields::JsonFieldReader,
    },
    state::SharedState,
};

/// The longest token and path.
const TEXT_CHARS_MAX: usize = 1_024;
/// The longest code.
const CODE_CHARS_MAX: usize = 16;
/// How many calls a tenant may make at once, and how soon one more.
const BURST: u32 = 100;
const ONE_MORE_IN: Duration = Duration::from_millis(50);
/// The most tenants that are remembered; those that have not called for long are dropped.
const TENANTS_MAX: usize = 10_000;

/// The token to verify.
#[derive(ToSchema)]
#[schema(as = VerifyToken)]
#[expect(dead_code, reason = "it describes the body; the fields are read one by one")]
pub(crate) struct VerifyRequest {
    /// The token from the link.
    #[schema(example = "q83vEjRWeJC…")]
    token: String,
    /// The path of the link, which the token is signed for.
    #[schema(example = "/activate")]
    path: String,
    /// The code from the mail, if the reader was asked for it.
    #[schema(example = "04217")]
    code: Option<String>,
    /// Whether a valid token is consumed; an activation then activates its account.
    consume: Option<bool>,
}

/// The result of a verification.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = VerifiedToken)]
pub(crate) struct TokenVerification {
    /// Whether the token is valid.
    valid: bool,
    /// Why it is not valid: `malformed`, `unknown`, `path`, `code`, `attempts`, `expired`, `consumed` or
    /// `revoked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// `activation` or `password_recovery`.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
    /// The account's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<i64>,
    /// The account's login.
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<String>,
    /// Whether it was consumed now.
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed: Option<bool>,
}

/// Verify a token
///
/// For tokens of an outbox with accounts. The answer is 200 even if the token is not valid: see `valid`. 429
/// if you ask too often.
#[utoipa::path(
    post,
    path = "/v1/tokens/verify",
    operation_id = "verifyToken",
    tag = "outbox",
    request_body = VerifyRequest,
    responses((status = 200, description = "The result", body = TokenVerification))
)]
pub(crate) async fn verify(
    State(app): State<SharedState>,
    caller: Sender,
    request: Request,
) -> Result<Json<TokenVerification>, ApiError> {
    if !app.verify_rate_limit.admits(&caller.tenant, Instant::now()) {
        return Err(ApiError::too_many("tokens are verified too often; try again in a second"));
    }
    let presented = read(request).await?;
    if !app.outbox.has_tokens(&caller.tenant) {
        return Err(ApiError::not_found("no outbox with accounts is configured for this tenant"));
    }
    let finding = app.outbox.verify(&caller.tenant, &presented).await.map_err(|error| {
        ApiError::unavailable("the database of the tokens does not answer now; try again", error)
    })?;
    Ok(Json(match finding {
        TokenCheck::Valid { action, account, login, consumed } => TokenVerification {
            valid: true,
            reason: None,
            action: Some(action),
            account: Some(account),
            login: Some(login),
            consumed: Some(consumed),
        },
        TokenCheck::Invalid(reason) => {
            TokenVerification { reason: Some(reason), ..TokenVerification::default() }
        }
    }))
}

async fn read(request: Request) -> Result<PresentedToken, ApiError> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body::json_object(request).await?, &mut wrong);
    let token = fields.text("token", TEXT_CHARS_MAX);
    let path = fields.text("path", TEXT_CHARS_MAX);
    let code = fields.text("code", CODE_CHARS_MAX);
    let consume = fields.read("consume", "must be true or false");
    fields.finish("is not a field here");
    for (name, value) in [("token", &token), ("path", &path)] {
        if value.is_none() && !wrong.iter().any(|fault| fault.field == name) {
            wrong.push(FieldError::new(name, "is needed"));
        }
    }
    match (token, path) {
        (Some(token), Some(path)) if wrong.is_empty() => {
            Ok(PresentedToken { token, path, code, consume: consume.unwrap_or(false) })
        }
        _ => Err(ApiError::invalid(wrong)),
    }
}

/// A rate limit on verifications, with a token bucket for each tenant.
#[derive(Default)]
pub(crate) struct VerifyRateLimit(Mutex<HashMap<TenantId, Instant>>);

impl VerifyRateLimit {
    /// Whether a tenant may call now. The map holds the time at which each bucket will be full again.
    pub(crate) fn admits(&self, tenant: &TenantId, now: Instant) -> bool {
        let mut full_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if full_at.len() >= TENANTS_MAX {
            full_at.retain(|_, at| *at > now);
        }
        let at = full_at.get(tenant).copied().unwrap_or(now).max(now) + ONE_MORE_IN;
        let is_admitted = at <= now + ONE_MORE_IN * BURST;
        if is_admitted {
            full_at.insert(tenant.clone(), at);
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_may_ask_often_for_a_moment_and_at_a_pace_for_long() {
        let (pace, now) = (VerifyRateLimit::default(), Instant::now());
        let (one, other) = ("one".parse().unwrap(), "other".parse().unwrap());
        let admitted = (0..1_000).filter(|_| pace.admits(&one, now)).count();
        assert_eq!(admitted, 100);
        assert!(pace.admits(&other, now));
        assert!(!pace.admits(&one, now + Duration::from_millis(49)));
        assert!(pace.admits(&one, now + Duration::from_millis(50)));
        let later = now + Duration::from_secs(60);
        assert_eq!((0..1_000).filter(|_| pace.admits(&one, later)).count(), 100);
    }
}
