//! The secrets that sign a webhook's calls, and `POST /v1/webhooks/{id}/rotate`.
//!
//! A webhook has a list of secrets, the newest first, sealed together; the earlier ones have an expiry. Calls
//! are signed with all valid ones, so that a receiver can switch to a new secret when it suits.

use std::time::Duration;

use axum::{Json, extract::State};
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::{Subscriber, TenantId, Time, id::SubscriberId, secret::SealedSecret};
use postway_store::record::{ChangeResult, DirectoryChange};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::{NamedWebhook, WebhookView, find, refuse_client, view::WebhookWithSecret};
use crate::{
    auth::Manager,
    http::{error::ApiError, request_id::RequestId, resource::change_versioned},
    state::{AppState, SharedState},
};

/// The most secrets of a webhook.
const SECRETS_MAX: usize = 3;
const SECRET_BYTES: usize = 32;
/// How long an earlier secret signs beside a new one.
const EARLIER_FOR: Duration = Duration::from_secs(86_400);

/// A stored secret. Never printed.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum StoredWebhookSecret {
    /// The newest.
    Newest(String),
    /// An earlier one, which is valid until then.
    Earlier { secret: String, until: Time },
}

/// A webhook's first secret, and the sealed list that contains it.
pub(super) fn first(
    app: &AppState,
    tenant: &TenantId,
    id: &SubscriberId,
) -> Result<(String, SealedSecret), ApiError> {
    let secret = make();
    let sealed = seal(app, tenant, id, &[StoredWebhookSecret::Newest(secret.clone())])?;
    Ok((secret, sealed))
}

/// A new secret in the form of Standard Webhooks.
fn make() -> String {
    format!("whsec_{}", BASE64_STANDARD.encode(rand::rng().random::<[u8; SECRET_BYTES]>()))
}

fn seal(
    app: &AppState,
    tenant: &TenantId,
    id: &SubscriberId,
    secrets: &[StoredWebhookSecret],
) -> Result<SealedSecret, ApiError> {
    let text = serde_json::to_string(secrets)
        .map_err(|_| ApiError::internal("a webhook's secrets do not serialize"))?;
    app.secret_key.seal(&Subscriber::sealing_context(tenant, id), &text).map_err(ApiError::internal)
}

fn open(app: &AppState, webhook: &Subscriber) -> Result<Vec<StoredWebhookSecret>, ApiError> {
    let Some(sealed) = &webhook.secrets else { return Ok(Vec::new()) };
    let place = Subscriber::sealing_context(&webhook.tenant, &webhook.id);
    let text = app.secret_key.open(&place, sealed).map_err(ApiError::internal)?;
    // The parser's error may quote the secret.
    serde_json::from_str(&text).map_err(|_| ApiError::internal("a webhook's secrets are not a JSON list"))
}

/// Rotate a webhook's secret
///
/// Calls are signed with the new and the earlier secrets for a day, at most three at a time, so that you can
/// replace it meanwhile. The new secret is shown only once.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/rotate",
    operation_id = "rotateWebhookSecret",
    tag = "webhooks",
    params(("id" = String, Path, description = "The webhook")),
    responses((status = 200, description = "The webhook with its new secret", body = WebhookWithSecret))
)]
pub(crate) async fn rotate(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedWebhook(id): NamedWebhook,
) -> Result<Json<WebhookWithSecret>, ApiError> {
    let tenant = &caller.tenant;
    let secret = make();
    change_versioned("webhook", || async {
        let current = find(&app, tenant, &id).await?;
        refuse_client(&id, "change how it signs in")?;
        let updated_at = app.clock.now();
        let secrets = rotated(open(&app, &current)?, secret.clone(), updated_at);
        let sealed = seal(&app, tenant, &id, &secrets)?;
        let expected = current.version;
        let webhook = Subscriber { secrets: Some(sealed), version: expected + 1, updated_at, ..current };
        let view = WebhookView::from(webhook.clone());
        let entry = app.audit(&caller.actor, Some(tenant), "webhook.rotate", id.as_str(), &request_id, None);
        let change = DirectoryChange::UpdateSubscriber(webhook, expected);
        if app.store.change(change, Some(entry)).await? == ChangeResult::Done {
            tracing::info!(%tenant, webhook = %id, "webhook has a new secret");
            return Ok(Some(Json(WebhookWithSecret { webhook: view, secret: secret.clone() })));
        }
        Ok::<_, ApiError>(None)
    })
    .await
}

/// The new secret before those that are still valid.
fn rotated(secrets: Vec<StoredWebhookSecret>, new: String, now: Time) -> Vec<StoredWebhookSecret> {
    let earlier = secrets.into_iter().filter_map(|kept| match kept {
        StoredWebhookSecret::Newest(secret) => {
            Some(StoredWebhookSecret::Earlier { secret, until: now.plus(EARLIER_FOR) })
        }
        StoredWebhookSecret::Earlier { until, .. } => (now < until).then_some(kept),
    });
    [StoredWebhookSecret::Newest(new)].into_iter().chain(earlier).take(SECRETS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_secret_signs_for_a_day_and_no_more_than_three_do() {
        let at = |hour: i64| Time::from_millis(hour * 3_600_000);
        let newest = |secret: &str| StoredWebhookSecret::Newest(secret.to_owned());
        let earlier =
            |secret: &str, hour| StoredWebhookSecret::Earlier { secret: secret.to_owned(), until: at(hour) };
        let has =
            |secrets: &[StoredWebhookSecret], expected: &[StoredWebhookSecret]| assert!(secrets == expected);
        let two = rotated(vec![newest("a")], "b".to_owned(), at(0));
        has(&two, &[newest("b"), earlier("a", 24)]);
        let three = rotated(two.clone(), "c".to_owned(), at(1));
        has(&three, &[newest("c"), earlier("b", 25), earlier("a", 24)]);
        has(&rotated(three, "d".to_owned(), at(2)), &[newest("d"), earlier("c", 26), earlier("b", 25)]);
        has(&rotated(two, "c".to_owned(), at(24)), &[newest("c"), earlier("b", 48)]);
    }

    #[test]
    fn secrets_are_kept_in_the_form_that_calls_are_signed_from() {
        let kept = [
            StoredWebhookSecret::Newest("a".to_owned()),
            StoredWebhookSecret::Earlier { secret: "b".to_owned(), until: Time::from_millis(0) },
        ];
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(text, r#"["a",{"secret":"b","until":"1970-01-01T00:00:00.000Z"}]"#);
        assert!(serde_json::from_str::<Vec<StoredWebhookSecret>>(&text).unwrap() == kept);
    }
}
