//! Rules as JSON.

use postway_domain::{
    Rule, Time,
    rule::{Action, Condition, FollowUp},
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
    /// The mailbox whose mail it is asked about.
    #[schema(example = "support")]
    mailbox: String,
    /// Its place; lower ones come first.
    position: i64,
    /// Whether it is asked at all.
    active: bool,
    /// All of them must hold; none holds always.
    #[serde(rename = "match")]
    #[schema(value_type = Vec<Object>, example = json!([{"field": "subject", "regex": "order (?<order>[0-9]+)"}]))]
    conditions: Vec<Condition>,
    /// Done in order where they do.
    #[schema(value_type = Vec<Object>, example = json!([{"do": "forward", "to": ["orders@example.com"]}, {"do": "stop"}]))]
    actions: Vec<Action>,
    /// Reminds of what was sent on until somebody says that it is resolved.
    #[schema(value_type = Option<Object>, example = json!({"every_hours": 24, "times_max": 10}))]
    follow_up: Option<FollowUp>,
    /// Rises with each change.
    version: i64,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was changed last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A tenant's rules.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RuleList {
    /// In the order in which they are asked, mailbox by mailbox.
    pub(super) data: Vec<RuleView>,
    /// Give this as `cursor` for the next; null at the end.
    pub(super) next_cursor: Option<String>,
}

impl From<Rule> for RuleView {
    fn from(rule: Rule) -> Self {
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
