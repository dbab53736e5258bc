//! `POST /v1/accounts/{id}/test`: tests an account.
//!
//! The steps up to signing in are made by the binary, which knows the transports, through [`AccountProbe`].
//! The test mail goes through the intake like any other mail, so that it is counted, limited, stored and
//! found like any other; this call waits for its outcome.

use std::time::Duration;

use async_trait::async_trait;
use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{Account, EmailAddress, MessageStatus, Subscriber, TenantId, message::reason::CAPTURED};
use postway_intake::{RequestContext, RequestTrace};
use postway_store::record::MessageKey;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::{NamedAccount, find};
use crate::{
    auth::Manager,
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
    },
    message::view::FailureView,
    state::{AppState, SharedState},
    webhook::probe::WebhookTest,
};

/// How long the call waits for its test mail.
const SEND_MAX: Duration = Duration::from_secs(30);
/// How often the message is polled.
const GLANCE: Duration = Duration::from_millis(100);

/// Tests accounts and webhooks the way they are used.
#[async_trait]
pub trait AccountProbe: Send + Sync {
    /// Connects, secures and signs in, step by step up to the first failure. Sends nothing.
    async fn probe(&self, account: &Account) -> Vec<ProbeStep>;

    /// Why Postway refuses to connect to a host and which setting would allow it, or `None` if it may be
    /// tried. Names are not resolved here.
    fn refusal(&self, host: &str) -> Option<String>;

    /// Calls a webhook once, with an event of the type `webhook.test`.
    async fn test_webhook(&self, webhook: &Subscriber) -> WebhookTest;
}

/// One step of a test.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AccountTestStep)]
pub struct ProbeStep {
    /// `connect`, `tls`, `auth` or `send`.
    #[schema(example = "connect")]
    pub step: &'static str,
    /// Whether the step succeeded.
    pub ok: bool,
    /// What happened.
    #[schema(example = "connected to smtp.example.com:587")]
    pub detail: String,
    /// How long it took.
    pub duration_ms: u64,
}

/// The result of a test.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountTest {
    /// Whether every step succeeded.
    ok: bool,
    /// The steps in order, up to the first that failed.
    steps: Vec<ProbeStep>,
    /// The test mail's uid, if one was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The test mail to send.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountTestRequest {
    /// The recipient; no mail is sent when absent.
    #[schema(example = "ada@example.net")]
    to: Option<String>,
    /// The sender; the account's return path or user name when absent.
    #[schema(example = "shop@example.com")]
    from: Option<String>,
}

/// Test an account
///
/// Connects, secures and signs in; with `to`, also sends a test mail through the account. The answer is 200
/// even if a step fails: see `ok`.
#[utoipa::path(
    post,
    path = "/v1/accounts/{id}/test",
    operation_id = "testAccount",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    request_body = Option<AccountTestRequest>,
    responses((status = 200, description = "The result of each step", body = AccountTest))
)]
pub(crate) async fn test(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedAccount(id): NamedAccount,
    request: Request,
) -> Result<Json<AccountTest>, ApiError> {
    let account = find(&app, &caller.tenant, &id).await?;
    let mail = test_mail(&account, optional_object(request).await?)?;
    let mut steps = app.probe.probe(&account).await;
    let mut message = None;
    if let (true, Some(mail)) = (steps.iter().all(|step| step.ok), mail) {
        let started = Instant::now();
        let context = RequestContext {
            tenant: caller.tenant.clone(),
            request_id: request_id.as_str().to_owned(),
            idempotency_key: None,
            dry_run: false,
            refuses_capture: false,
            any_subject: false,
            spoken_times: false,
            on_doubt: None,
            restrictions: caller.restrictions.clone(),
            trace: RequestTrace::Decided(request_id.trace()),
        };
        let receipt = app.door.accept_json(&context, mail.to_string().into()).await?;
        let key = MessageKey::Uid(receipt.uid);
        let (ok, detail) = outcome(&app, &caller.tenant, &key, started + SEND_MAX).await?;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        steps.push(ProbeStep { step: "send", ok, detail, duration_ms });
        message = Some(receipt.uid.to_string());
    }
    Ok(Json(AccountTest { ok: steps.iter().all(|step| step.ok), steps, message }))
}

/// The body, if there is one.
async fn optional_object(request: Request) -> Result<Map<String, Value>, ApiError> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts, body, body::SMALL_BYTES_MAX).await?;
    if bytes.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    body::json_object(Request::from_parts(parts, bytes.into())).await
}

/// The mail to send, as the intake reads it.
fn test_mail(account: &Account, mut body: Map<String, Value>) -> Result<Option<Value>, ApiError> {
    let mut wrong = Vec::new();
    let mut address = |name: &str| match body.remove(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.parse::<EmailAddress>().is_ok() => Some(text),
        Some(_) => {
            wrong.push(FieldError::new(name, "must be an email address"));
            None
        }
    };
    let (to, from) = (address("to"), address("from"));
    wrong.extend(body.keys().map(|name| FieldError::new(name, "is not a field of this call")));
    let settings = &account.settings;
    let known = [&settings.return_path, &settings.username].into_iter().flatten();
    let from = from.or_else(|| known.into_iter().find(|text| text.parse::<EmailAddress>().is_ok()).cloned());
    if wrong.is_empty() && to.is_some() && from.is_none() {
        wrong.push(FieldError::new("from", "the account names no sender: give one"));
    }
    if !wrong.is_empty() {
        return Err(ApiError::invalid(wrong));
    }
    Ok(to.map(|to| {
        json!({
            "account": account.id.as_str(), "from": from, "to": [to], "priority": "immediate",
            "subject": "Test of your mail account", "tags": ["account-test"],
            "text": format!("This mail was sent to test the account {}. There is nothing to do.\n", account.id),
        })
    }))
}

/// The outcome of the test mail by the deadline.
async fn outcome(
    app: &AppState,
    tenant: &TenantId,
    key: &MessageKey,
    deadline: Instant,
) -> Result<(bool, String), ApiError> {
    loop {
        let Some(record) = app.store.message(tenant, key).await? else {
            return Err(ApiError::internal("a message was accepted and is not there"));
        };
        let message = record.summary;
        let said = || {
            let failure = message.error.as_deref().map(FailureView::read);
            failure.as_ref().and_then(FailureView::words).unwrap_or("no reason is known").to_owned()
        };
        match message.state.status() {
            MessageStatus::Sent => {
                let id = message.provider_message_id.map_or_else(String::new, |id| format!(" as {id}"));
                return Ok((true, format!("the relay took it{id}")));
            }
            MessageStatus::Captured => return Ok((true, CAPTURED.to_owned())),
            // Returned, or waiting for its next attempt: the first attempt failed.
            MessageStatus::Ready | MessageStatus::Scheduled if message.attempt == 0 => {}
            MessageStatus::Accepted | MessageStatus::Validating | MessageStatus::Sending => {}
            status => return Ok((false, format!("it is {}: {}", status.as_str(), said()))),
        }
        if Instant::now() >= deadline {
            let waits = "it still waits to be sent; `explain` on the message says for what";
            return Ok((false, waits.to_owned()));
        }
        tokio::time::sleep(GLANCE).await;
    }
}
