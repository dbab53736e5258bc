//! `POST /v1/mailboxes/{id}/test`: tests a mailbox.
//!
//! The binary makes the steps, through [`InboundProbe`]. Nothing is stored, and no mail is touched.

use std::time::Instant;

use async_trait::async_trait;
use axum::{Json, extract::State};
use bytes::Bytes;
use postway_domain::{TenantId, WatchedMailbox, rule::RuleContent};
use postway_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

use super::{NamedMailbox, find};
use crate::{auth::Manager, http::error::ApiError, inbound::rule::trial::RuleTrial, state::SharedState};

/// Tests mailboxes and rules the way they are used.
#[async_trait]
pub trait InboundProbe: Send + Sync {
    /// Connects, secures, signs in and opens the folder, step by step up to the first failure.
    async fn probe_mailbox(&self, mailbox: &WatchedMailbox) -> Vec<MailboxStep>;

    /// The faults of a rule, by field: `match[0].regex`, `actions[1].to[0]`.
    fn check_rule(&self, rule: &RuleContent) -> Vec<(String, String)>;

    /// What a rule would do with a mail. Contacts are looked up; nothing is done.
    async fn try_rule(
        &self,
        tenant: &TenantId,
        rule: &RuleContent,
        mail: Bytes,
    ) -> Result<RuleTrial, StoreError>;
}

/// One step of a mailbox test.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MailboxTestStep)]
pub struct MailboxStep {
    /// `settings`, `connect`, `tls`, `login`, `folder` or `mail`.
    #[schema(example = "login")]
    pub step: &'static str,
    /// Whether the step succeeded.
    pub ok: bool,
    /// What happened, or what to do.
    #[schema(example = "signed in as bounces@example.com")]
    pub detail: String,
}

/// The result of a mailbox test.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MailboxTest {
    /// Whether every step succeeded.
    ok: bool,
    /// The steps in order, up to the first that failed.
    steps: Vec<MailboxStep>,
    /// How long it took.
    duration_ms: u64,
}

/// Test a mailbox
///
/// Connects, secures, signs in and opens the folder. The answer is 200 even if a step fails: see `ok`.
#[utoipa::path(
    post,
    path = "/v1/mailboxes/{id}/test",
    operation_id = "testMailbox",
    tag = "inbound",
    params(("id" = String, Path, description = "The mailbox")),
    responses((status = 200, description = "The result of each step", body = MailboxTest))
)]
pub(crate) async fn test(
    State(app): State<SharedState>,
    caller: Manager,
    NamedMailbox(id): NamedMailbox,
) -> Result<Json<MailboxTest>, ApiError> {
    let (mailbox, _) = find(&app, &caller.tenant, &id).await?;
    let started = Instant::now();
    let steps = app.inbound.probe_mailbox(&mailbox).await;
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Json(MailboxTest { ok: !steps.is_empty() && steps.iter().all(|step| step.ok), steps, duration_ms }))
}
