//! `/v1/rules`: what is done with mail that comes into a mailbox.
//!
//! A rule's conditions and actions are checked when it is made or changed, as far as that can be told without a mail; what
//! is wrong is named by its place (`match[0].regex`). What a rule would do with a mail can be tried without doing it
//! (`trial.rs`).

pub(crate) mod change;
pub(crate) mod create;
mod edit;
mod schema;
pub(crate) mod trial;
mod view;

use axum::{
    Json,
    extract::{FromRequestParts, Path, State},
    http::{StatusCode, Uri, request::Parts},
};
use postway_domain::{
    Rule, TenantId,
    id::{MailboxId, RuleId},
    rule::{Action, RuleContent},
};
use postway_store::record::{Changed, DirectoryChange};

pub(crate) use self::view::{RuleList, RuleView};
use crate::{
    auth::{Manager, Reader},
    http::{
        error::{ApiError, FieldError},
        pagination::Part,
        query::Parameters,
        request_id::RequestId,
    },
    state::{App, Shared},
};

/// How often a change is made anew when another one was faster.
const TRIES_MAX: u32 = 5;

/// `{id}` in a path. What cannot be a rule's id names none.
pub(crate) struct NamedRule(RuleId);

impl<S: Send + Sync> FromRequestParts<S> for NamedRule {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(given) = Path::<String>::from_request_parts(parts, state).await.map_err(|_| {
            ApiError::malformed("the id in the path cannot be read: use percent-encoded UTF-8")
        })?;
        given.parse().map(Self).map_err(|_| no_rule(&given))
    }
}

fn no_rule(given: &str) -> ApiError {
    let shown: String = given.chars().take(RuleId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no rule `{shown}`"))
}

async fn find(app: &App, tenant: &TenantId, id: &RuleId) -> Result<Rule, ApiError> {
    app.store.rule(tenant, id).await?.ok_or_else(|| no_rule(id.as_str()))
}

fn no_such_mailbox(id: &MailboxId) -> ApiError {
    ApiError::field("mailbox", format!("there is no mailbox `{id}`"))
}

/// Whether a rule says what can be done.
async fn check(app: &App, tenant: &TenantId, content: &RuleContent) -> Result<(), ApiError> {
    let wrong = faults(app, tenant, content).await?;
    if wrong.is_empty() { Ok(()) } else { Err(ApiError::invalid(wrong)) }
}

/// What is wrong with a rule: its patterns, its addresses, the accounts it names.
async fn faults(app: &App, tenant: &TenantId, content: &RuleContent) -> Result<Vec<FieldError>, ApiError> {
    let found = app.inbound.check_rule(content).into_iter();
    let mut wrong: Vec<FieldError> = found.map(|(field, message)| FieldError::new(field, message)).collect();
    for (place, action) in content.actions.iter().enumerate() {
        let Action::Forward(forward) = action else { continue };
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
/// In the order in which they are asked, mailbox by mailbox.
#[utoipa::path(
    get,
    path = "/v1/rules",
    operation_id = "listRules",
    tag = "inbound",
    params(
        ("mailbox" = Option<String>, Query, description = "Only those of this mailbox"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to go on: the `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "In order", body = RuleList))
)]
pub(crate) async fn list(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<RuleList>, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let mailbox = query.parse("mailbox", str::parse::<MailboxId>);
    let part = Part::take(&mut query);
    query.finish()?;
    let rules = app.store.rules(&caller.tenant, mailbox.as_ref()).await?;
    let place = |rule: &Rule| (rule.mailbox.to_string(), rule.position, rule.id.to_string());
    let (rules, next_cursor) = part.of(rules, place)?;
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
    State(app): State<Shared>,
    caller: Reader,
    NamedRule(id): NamedRule,
) -> Result<Json<RuleView>, ApiError> {
    find(&app, &caller.tenant, &id).await.map(|rule| Json(rule.into()))
}

/// Delete a rule
///
/// Its reminders end. What it has sent on stays sent.
#[utoipa::path(
    delete,
    path = "/v1/rules/{id}",
    operation_id = "deleteRule",
    tag = "inbound",
    params(("id" = String, Path, description = "The rule")),
    responses((status = 204, description = "It is gone"))
)]
pub(crate) async fn delete(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    NamedRule(id): NamedRule,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "rule.delete", id.as_str(), &request_id, None);
    let change = DirectoryChange::DeleteRule(tenant.clone(), id.clone());
    match app.store.change(change, Some(entry)).await? {
        Changed::Done => {
            tracing::info!(%tenant, rule = %id, "rule deleted");
            Ok(StatusCode::NO_CONTENT)
        }
        _ => Err(no_rule(id.as_str())),
    }
}
