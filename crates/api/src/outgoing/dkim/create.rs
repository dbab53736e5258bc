//! `POST /v1/dkim`: creates a signing key and returns the record to publish.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::{DkimAlgorithm, Time};
use postway_intake::signing::{self, SigningError};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{SigningKeyPath, SigningKeyView, normal, normal_domain};
use crate::{
    auth::Manager,
    http::{
        body,
        error::{ApiError, FieldError},
        json_fields::JsonFieldReader,
        request_id::RequestId,
    },
    state::SharedState,
};

/// The most keys of one tenant.
const KEYS_MAX: usize = 1_000;
/// The longest DNS name.
const NAME_CHARS_MAX: usize = 253;

/// A signing key to create. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SigningKeyRequest {
    /// The domain to sign for: the one in your From addresses.
    #[schema(example = "example.com")]
    domain: String,
    /// The name by which receivers find the public half; `pw` and the month, as in `pw202611`, when absent.
    #[schema(example = "pw202611")]
    selector: Option<String>,
    /// `rsa` (default; 2,048 bits, which every receiver verifies) or `ed25519`.
    #[schema(example = "rsa")]
    algorithm: Option<String>,
}

/// Create a signing key
///
/// Publish `dns_record` as a TXT record at `dns_name`; receivers cannot verify signatures before. 409 if
/// domain and selector are taken.
#[utoipa::path(
    post,
    path = "/v1/dkim",
    operation_id = "createSigningKey",
    tag = "signing keys",
    request_body = SigningKeyRequest,
    responses((status = 201, description = "Created; it signs from now on", body = SigningKeyView))
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let now = app.clock.now();
    let (named, algorithm) = read(body::json_object(request).await?, now).map_err(ApiError::invalid)?;
    let tenant = caller.tenant.clone();
    let keys = app.store.dkim_keys(Some(&tenant), None).await?;
    let taken = || {
        let (domain, selector) = (&named.domain, &named.selector);
        let message =
            format!("there is a signing key `{selector}` for `{domain}` already; choose another selector");
        ApiError::conflict(message)
    };
    if keys.iter().any(|key| key.domain == named.domain && key.selector == named.selector) {
        return Err(taken());
    }
    if keys.len() >= KEYS_MAX {
        return Err(ApiError::conflict(format!("there are {KEYS_MAX} signing keys already; delete some")));
    }
    let (secret_key, owner) = (app.secret_key.clone(), tenant.clone());
    let (domain, selector) = (named.domain.clone(), named.selector.clone());
    // Generating an RSA key takes up to a second.
    let made = tokio::task::spawn_blocking(move || {
        signing::new_key(&owner, &domain, &selector, algorithm, &secret_key, now)
    });
    let key = made.await.map_err(ApiError::internal)?.map_err(refusal)?;
    let view = SigningKeyView::from(&key);
    let detail = Some(json!({"algorithm": algorithm.as_str()}));
    let entry = app.audit(&caller.actor, Some(&tenant), "dkim.create", named.target(), &request_id, detail);
    if app.store.change(DirectoryChange::CreateDkimKey(key), Some(entry)).await? != ChangeResult::Done {
        return Err(taken());
    }
    let SigningKeyPath { domain, selector } = &named;
    tracing::info!(%tenant, domain, selector, "signing key created");
    let location = [(header::LOCATION, format!("/v1/dkim/{domain}/{selector}"))];
    Ok((StatusCode::CREATED, location, Json(view)).into_response())
}

fn read(body: Map<String, Value>, now: Time) -> Result<(SigningKeyPath, DkimAlgorithm), Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    if !fields.has("domain") {
        fields.refuse("domain", "is needed: the domain in your From addresses");
    }
    let domain = fields.text("domain", NAME_CHARS_MAX).map(|domain| normal_domain(&domain));
    let selector = fields.text("selector", NAME_CHARS_MAX).map(|selector| normal(&selector));
    let algorithm = fields.read("algorithm", "must be rsa or ed25519").unwrap_or(DkimAlgorithm::Rsa);
    fields.finish("is not a field of a signing key");
    match domain {
        Some(domain) if wrong.is_empty() => {
            let selector = selector.unwrap_or_else(|| selector_of(now));
            Ok((SigningKeyPath { domain, selector }, algorithm))
        }
        _ => Err(wrong),
    }
}

/// The default selector: new keys get new names that show their age.
fn selector_of(now: Time) -> String {
    let month: String = now.to_string().chars().take(7).filter(char::is_ascii_digit).collect();
    format!("pw{month}")
}

fn refusal(error: SigningError) -> ApiError {
    match error {
        SigningError::Name(message) => {
            let (field, message) = message.split_once(": ").unwrap_or(("domain", &message));
            ApiError::field(field, message)
        }
        SigningError::Key(message) => ApiError::internal(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_tells_the_month() {
        assert_eq!(selector_of("2026-11-15T10:00:00Z".parse().unwrap()), "pw202611");
    }

    #[test]
    fn every_wrong_field_is_named() {
        let read = |body: Value| {
            let wrong = read(body.as_object().unwrap().clone(), Time::from_millis(0)).err().unwrap();
            wrong.into_iter().map(|wrong| wrong.field).collect::<Vec<_>>()
        };
        assert_eq!(read(json!({})), ["domain"]);
        let body = json!({"domain": 1, "algorithm": "dsa", "bits": 512});
        assert_eq!(read(body), ["domain", "algorithm", "bits"]);
    }
}
