//! `POST /v1/tokens/verify`: whether what a reader of an account's mail presents is good.
//!
//! The database of the application is asked, and compared in constant time. A wrong code is counted against its token, and
//! the fifth ends it. How often a tenant may ask is bounded besides, so that guessing cannot keep the database busy.

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
use postway_intake::outbox::{Finding, Presented};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Sender,
    http::{
        body,
        error::{ApiError, FieldError},
        json_fields::Fields,
    },
    state::Shared,
};

/// The longest token and path.
const TEXT_CHARS_MAX: usize = 1_024;
/// The longest code.
const CODE_CHARS_MAX: usize = 16;
/// How often a tenant may ask at once, and how soon it may ask once more.
const BURST: u32 = 100;
const ONE_MORE_IN: Duration = Duration::from_millis(50);
/// Tenants that are remembered; those that have not asked for long are forgotten.
const TENANTS_MAX: usize = 10_000;

/// What to verify.
#[derive(ToSchema)]
#[schema(as = VerifyToken)]
#[expect(dead_code, reason = "it describes the body; the fields are read one by one")]
pub(crate) struct VerifyRequest {
    /// The token of the link.
    #[schema(example = "q83vEjRWeJC…")]
    token: String,
    /// The path of the link, which the token is signed for.
    #[schema(example = "/activate")]
    path: String,
    /// The code of the mail, where the reader was asked for it.
    #[schema(example = "04217")]
    code: Option<String>,
    /// Whether a good token is consumed with it; an activation then activates its account.
    consume: Option<bool>,
}

/// What was found.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = VerifiedToken)]
pub(crate) struct Verified {
    /// Whether it is good.
    valid: bool,
    /// Why it is not: `malformed`, `unknown`, `path`, `code`, `attempts`, `expired`, `consumed` or `revoked`.
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
/// For tokens of an outbox with accounts. The answer is 200 also where the token is not good: `valid` says so. 429 where
/// you ask too often.
#[utoipa::path(
    post,
    path = "/v1/tokens/verify",
    operation_id = "verifyToken",
    tag = "outbox",
    request_body = VerifyRequest,
    responses((status = 200, description = "What was found", body = Verified))
)]
pub(crate) async fn verify(
    State(app): State<Shared>,
    caller: Sender,
    request: Request,
) -> Result<Json<Verified>, ApiError> {
    if !app.token_pace.admits(&caller.tenant, Instant::now()) {
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
        Finding::Valid { action, account, login, consumed } => Verified {
            valid: true,
            reason: None,
            action: Some(action),
            account: Some(account),
            login: Some(login),
            consumed: Some(consumed),
        },
        Finding::Invalid(reason) => Verified { reason: Some(reason), ..Verified::default() },
    }))
}

async fn read(request: Request) -> Result<Presented, ApiError> {
    let mut wrong = Vec::new();
    let mut fields = Fields::of(body::json_object(request).await?, &mut wrong);
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
            Ok(Presented { token, path, code, consume: consume.unwrap_or(false) })
        }
        _ => Err(ApiError::invalid(wrong)),
    }
}

/// How often tenants ask, each with a bucket of its own that fills with time.
#[derive(Default)]
pub(crate) struct Pace(Mutex<HashMap<TenantId, Instant>>);

impl Pace {
    /// Whether a tenant may ask now. What is kept is when its bucket will be full again.
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
        let (pace, now) = (Pace::default(), Instant::now());
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
