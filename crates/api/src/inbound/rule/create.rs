//! `POST /v1/rules`.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::InboundRule;
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::json;

use super::{
    RuleView, check,
    edit::{self, RuleEdit},
    no_such_mailbox,
    schema::RuleRequest,
};
use crate::{
    auth::Manager,
    http::{body, error::ApiError, new_id::fresh_id, request_id::RequestId},
    state::SharedState,
};

/// The most rules of one mailbox: each is evaluated for each of its mails.
const RULES_MAX: usize = 200;

/// Create a rule
///
/// Without a `position` it is evaluated last. It applies to mail that is processed from now on.
#[utoipa::path(
    post,
    path = "/v1/rules",
    operation_id = "createRule",
    tag = "inbound",
    request_body = RuleRequest,
    responses((status = 201, description = "Created", body = RuleView))
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let given = edit::read(body::json_object(request).await?, true).map_err(ApiError::invalid)?;
    let mailbox = given.mailbox.clone().ok_or_else(|| ApiError::field("mailbox", "is needed"))?;
    let (tenant, now) = (caller.tenant.clone(), app.clock.now());
    let others = app.store.rules(&tenant, Some(&mailbox)).await?;
    if others.len() >= RULES_MAX {
        return Err(ApiError::conflict(format!("the mailbox has {RULES_MAX} rules already; delete some")));
    }
    let last = others.iter().map(|rule| rule.position).max();
    let rule = InboundRule {
        tenant,
        id: given.id.clone().map_or_else(|| fresh_id("rule_", now), Ok)?,
        position: last.map_or(1, |last| last.saturating_add(1)),
        mailbox,
        active: true,
        content: Default::default(),
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let rule = RuleEdit::apply_to(given, rule);
    check(&app, &rule.tenant, &rule.content).await?;
    let view = RuleView::from(rule.clone());
    let (tenant, id, mailbox) = (rule.tenant.clone(), rule.id.clone(), rule.mailbox.clone());
    let detail = Some(json!({"mailbox": mailbox.as_str()}));
    let entry = app.audit(&caller.actor, Some(&tenant), "rule.create", id.as_str(), &request_id, detail);
    match app.store.change(DirectoryChange::CreateRule(rule), Some(entry)).await? {
        ChangeResult::Done => {}
        ChangeResult::Missing => return Err(no_such_mailbox(&mailbox)),
        _ => {
            let message = format!("there is a rule `{id}` already: change that one, or choose another id");
            return Err(ApiError::conflict(message));
        }
    }
    tracing::info!(%tenant, rule = %id, %mailbox, "rule created");
    let location = [(header::LOCATION, format!("/v1/rules/{id}"))];
    Ok((StatusCode::CREATED, location, Json(view)).into_response())
}
