//! `/v1/rules`: what is done with mail that arrives in a mailbox.
//!
//! Conditions and actions are checked when a rule is created or changed, as far as possible without a mail;
//! faults are reported under their paths (`match[0].regex`). A rule can be tested with a mail without doing
//! anything (`trial.rs`).

pub(crate) mod change;
pub(crate) mod create;
mod edit;
mod schema;
pub(crate) mod trial;
mod view;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, Uri},
};
use postway_domain::{
    InboundRule, TenantId,
    id::{MailboxId, RuleId},
    rule::{RuleAction, RuleContent},
};
use postway_store::record::{ChangeResult, DirectoryChange};

pub(crate) use self::view::{RuleList, RuleView};
use crate::{
    auth::{Manager, Reader},
    http::{
        error::{ApiError, FieldError},
        pagination::ListPart,
        query::QueryParameters,
        request_id::RequestId,
        resource::path_parameter,
    },
    state::{AppState, SharedState},
};

/// The rule that `{id}` in the path names. A text that cannot be an id is 404.
pub(crate) struct NamedRule(RuleId);

path_parameter!(NamedRule, "id", |given| given.parse().map(NamedRule).map_err(|_| no_rule(given)));

fn no_rule(given: &str) -> ApiError {
    let shown: String = given.chars().take(RuleId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no rule `{shown}`"))
}

async fn find(app: &AppState, tenant: &TenantId, id: &RuleId) -> Result<InboundRule, ApiError> {
    app.store.rule(tenant, id).await?.ok_or_else(|| no_rule(id.as_str()))
}

fn no_such_mailbox(id: &MailboxId) -> ApiError {
    ApiError::field("mailbox", format!("there is no mailbox `{id}`"))
}

/// Refuses a rule that has faults.
async fn check(app: &AppState, tenant: &TenantId, content: &RuleContent) -> Result<(), ApiError> {
    let wrong = faults(app, tenant, content).await?;
    if wrong.is_empty() { Ok(()) } else { Err(ApiError::invalid(wrong)) }
}

/// The faults of a rule: its patterns, its addresses, the accounts it names.
async fn faults(
    app: &AppState,
    tenant: &TenantId,
    content: &RuleContent,
) -> Result<Vec<FieldError>, ApiError> {
    let found = app.inbound.check_rule(content).into_iter();
    let mut wrong: Vec<FieldError> = found.map(|(field, message)| FieldError::new(field, message)).collect();
    for (place, action) in content.actions.iter().enumerate() {
        let RuleAction::Forward(forward) = action else { continue };
        if let Some(account) = &forward.account
            && app.store.account(tenant, account).await?.is_none()
        {
            let message = format!("there is no account `{account}`");
            wrong.push(FieldError::new(format!("actions[{place}].account"), message));
        }
    }
    Ok(wrong)
}

/// List rules
///
/// In the order of evaluation, mailbox by mailbox.
#[utoipa::path(
    get,
    path = "/v1/rules",
    operation_id = "listRules",
    tag = "inbound",
    params(
        ("mailbox" = Option<String>, Query, description = "Only those of this mailbox"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "In order", body = RuleList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<RuleList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let mailbox = query.parse("mailbox", str::parse::<MailboxId>);
    let part = ListPart::take(&mut query);
    query.finish()?;
    let rules = app.store.rules(&caller.tenant, mailbox.as_ref()).await?;
    let place = |rule: &InboundRule| (rule.mailbox.to_string(), rule.position, rule.id.to_string());
    let (rules, next_cursor) = part.select(rules, place)?;
    Ok(Json(RuleList { data: rules.into_iter().map(RuleView::from).collect(), next_cursor }))
}

/// Show a rule
///
/// One rule with its conditions and actions.
#[utoipa::path(
    get,
    path = "/v1/rules/{id}",
    operation_id = "getRule",
    tag = "inbound",
    params(("id" = String, Path, description = "The rule")),
    responses((status = 200, description = "The rule", body = RuleView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedRule(id): NamedRule,
) -> Result<Json<RuleView>, ApiError> {
    find(&app, &caller.tenant, &id).await.map(|rule| Json(rule.into()))
}

/// Delete a rule
///
/// Its reminders end. Mail that it forwarded is not affected.
#[utoipa::path(
    delete,
    path = "/v1/rules/{id}",
    operation_id = "deleteRule",
    tag = "inbound",
    params(("id" = String, Path, description = "The rule")),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedRule(id): NamedRule,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "rule.delete", id.as_str(), &request_id, None);
    let change = DirectoryChange::DeleteRule(tenant.clone(), id.clone());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => {
            tracing::info!(%tenant, rule = %id, "rule deleted");
            Ok(StatusCode::NO_CONTENT)
        }
        _ => Err(no_rule(id.as_str())),
    }
}
