//! Rules as JSON.

use postway_domain::{
    InboundRule, Time,
    rule::{FollowUpPlan, RuleAction, RuleCondition},
};
use serde::Serialize;
use utoipa::ToSchema;

/// A rule.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rule)]
pub(crate) struct RuleView {
    /// Its id.
    #[schema(example = "orders")]
    id: String,
    /// The mailbox whose mail it applies to.
    #[schema(example = "support")]
    mailbox: String,
    /// The position; lower ones come first.
    position: i64,
    /// Whether it is evaluated at all.
    active: bool,
    /// The conditions, all of which must match; an empty list matches every mail.
    #[serde(rename = "match")]
    #[schema(value_type = Vec<Object>, example = json!([{"field": "subject", "regex": "order (?<order>[0-9]+)"}]))]
    conditions: Vec<RuleCondition>,
    /// The actions, in order.
    #[schema(value_type = Vec<Object>, example = json!([{"do": "forward", "to": ["orders@example.com"]}, {"do": "stop"}]))]
    actions: Vec<RuleAction>,
    /// Reminders of forwarded mail until the mail is resolved.
    #[schema(value_type = Option<Object>, example = json!({"every_hours": 24, "times_max": 10}))]
    follow_up: Option<FollowUpPlan>,
    /// Increases with each change.
    version: i64,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A tenant's rules.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RuleList {
    /// The rules in the order of evaluation, mailbox by mailbox.
    pub(super) data: Vec<RuleView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl From<InboundRule> for RuleView {
    fn from(rule: InboundRule) -> Self {
        Self {
            id: rule.id.to_string(),
            mailbox: rule.mailbox.to_string(),
            position: rule.position,
            active: rule.active,
            conditions: rule.content.conditions,
            actions: rule.content.actions,
            follow_up: rule.content.follow_up,
            version: rule.version,
            created_at: rule.created_at,
            updated_at: rule.updated_at,
        }
    }
}
