//! `PATCH /v1/rules/{id}`: changes the given fields.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::InboundRule;
use postway_store::record::{ChangeResult, DirectoryChange, MailboxKey};
use serde_json::json;

use super::{
    NamedRule, RuleView, check,
    edit::{self, RuleEdit},
    find, no_such_mailbox,
    schema::RuleRequest,
};
use crate::{
    auth::Manager,
    http::{
        body,
        error::ApiError,
        request_id::RequestId,
        resource::{change_versioned, check_version},
    },
    state::SharedState,
};

/// Change a rule
///
/// Changes the given fields and leaves the others; `match` and `actions` are replaced as lists. With
/// `version`, the change is made only if the rule still has that version; 409 otherwise.
#[utoipa::path(
    patch,
    path = "/v1/rules/{id}",
    operation_id = "changeRule",
    tag = "inbound",
    params(("id" = String, Path, description = "The rule")),
    request_body = RuleRequest,
    responses((status = 200, description = "The rule after the change", body = RuleView))
)]
pub(crate) async fn patch(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedRule(id): NamedRule,
    request: Request,
) -> Result<Json<RuleView>, ApiError> {
    let given = edit::read(body::json_object(request).await?, false).map_err(ApiError::invalid)?;
    let tenant = &caller.tenant;
    change_versioned("rule", || async {
        let current = find(&app, tenant, &id).await?;
        let expected = current.version;
        check_version("rule", given.version, expected)?;
        let before = current.mailbox.clone();
        let (version, updated_at) = (expected + 1, app.clock.now());
        let rule = RuleEdit::apply_to(given.clone(), InboundRule { version, updated_at, ..current });
        check(&app, tenant, &rule.content).await?;
        if rule.mailbox != before {
            let key = MailboxKey { tenant: tenant.clone(), mailbox: rule.mailbox.clone() };
            app.store.mailbox(&key).await?.ok_or_else(|| no_such_mailbox(&rule.mailbox))?;
        }
        let view = RuleView::from(rule.clone());
        let detail = Some(json!({"fields": given.fields, "version": version}));
        let entry = app.audit(&caller.actor, Some(tenant), "rule.change", id.as_str(), &request_id, detail);
        match app.store.change(DirectoryChange::UpdateRule(rule, expected), Some(entry)).await? {
            ChangeResult::Done => {
                tracing::info!(%tenant, rule = %id, version, "rule changed");
                return Ok(Some(Json(view)));
            }
            ChangeResult::Already
            | ChangeResult::Missing
            | ChangeResult::Exists
            | ChangeResult::Stale
            | ChangeResult::InUse => {}
        }
        Ok::<_, ApiError>(None)
    })
    .await
}
