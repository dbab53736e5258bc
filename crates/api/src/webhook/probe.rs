//! `POST /v1/webhooks/{id}/test`: tests a webhook.
//!
//! The binary makes the call, through [`crate::AccountProbe`], signed like any other. It is not repeated, and
//! nothing is stored.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::{NamedWebhook, find, refuse_client};
use crate::{auth::Manager, http::error::ApiError, state::SharedState};

/// The result of a test call.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WebhookTest {
    /// Whether the answer would have acknowledged an event.
    pub ok: bool,
    /// The HTTP status, if an answer came.
    #[schema(example = 200)]
    pub status: Option<u16>,
    /// How long it took.
    pub latency_ms: u64,
    /// The answer, shortened, or what went wrong.
    pub answer: String,
}

/// Test a webhook
///
/// Calls it once with an event of the type `webhook.test`. The answer is 200 even if the call fails: see
/// `ok`.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/test",
    operation_id = "testWebhook",
    tag = "webhooks",
    params(("id" = String, Path, description = "The webhook")),
    responses((status = 200, description = "The result", body = WebhookTest))
)]
pub(crate) async fn test(
    State(app): State<SharedState>,
    caller: Manager,
    NamedWebhook(id): NamedWebhook,
) -> Result<Json<WebhookTest>, ApiError> {
    let webhook = find(&app, &caller.tenant, &id).await?;
    refuse_client(&id, "it is tried by sending mail; where it is called is changed")?;
    Ok(Json(app.probe.test_webhook(&webhook).await))
}
