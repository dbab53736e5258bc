//! `POST /v1/mailboxes/{id}/test`: can this mailbox be read?
//!
//! The steps are tried by whoever knows how to, through [`InboundProbe`]. Nothing is stored, and no mail is touched.

use std::time::Instant;

use async_trait::async_trait;
use axum::{Json, extract::State};
use bytes::Bytes;
use postway_domain::{TenantId, WatchedMailbox, rule::RuleContent};
use postway_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

use super::{NamedMailbox, find};
use crate::{auth::Manager, http::error::ApiError, inbound::rule::trial::RuleTrial, state::Shared};

/// Somebody who can try mailboxes and rules as they would be used.
#[async_trait]
pub trait InboundProbe: Send + Sync {
    /// Connects, secures, signs in and opens the folder, step by step up to the first that fails.
    async fn probe_mailbox(&self, mailbox: &WatchedMailbox) -> Vec<MailboxStep>;

    /// What is wrong with a rule, by field: `match[0].regex`, `actions[1].to[0]`.
    fn check_rule(&self, rule: &RuleContent) -> Vec<(String, String)>;

    /// What a rule would do with a mail. Contacts are looked up; nothing is done.
    async fn try_rule(
        &self,
        tenant: &TenantId,
        rule: &RuleContent,
        mail: Bytes,
    ) -> Result<RuleTrial, StoreError>;
}

/// One step of a trial of a mailbox.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MailboxTestStep)]
pub struct MailboxStep {
    /// `settings`, `connect`, `tls`, `login`, `folder` or `mail`.
    #[schema(example = "login")]
    pub step: &'static str,
    /// Whether it went well.
    pub ok: bool,
    /// What was found, or what to do.
    #[schema(example = "signed in as bounces@example.com")]
    pub detail: String,
}

/// How a trial of a mailbox went.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MailboxTest {
    /// Whether every step went well.
    ok: bool,
    /// In order, up to the first that failed.
    steps: Vec<MailboxStep>,
    /// How long it took.
    duration_ms: u64,
}

/// Test a mailbox
///
/// Connects, secures, signs in and opens the folder. The answer is 200 also where a step fails: `ok` says so.
#[utoipa::path(
    post,
    path = "/v1/mailboxes/{id}/test",
    operation_id = "testMailbox",
    tag = "inbound",
    params(("id" = String, Path, description = "The mailbox")),
    responses((status = 200, description = "How each step went", body = MailboxTest))
)]
pub(crate) async fn test(
    State(app): State<Shared>,
    caller: Manager,
    NamedMailbox(id): NamedMailbox,
) -> Result<Json<MailboxTest>, ApiError> {
    let (mailbox, _) = find(&app, &caller.tenant, &id).await?;
    let started = Instant::now();
    let steps = app.inbound.probe_mailbox(&mailbox).await;
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Json(MailboxTest { ok: !steps.is_empty() && steps.iter().all(|step| step.ok), steps, duration_ms }))
}
