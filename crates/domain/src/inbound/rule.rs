//! Rules for inbound mail: conditions, and the actions of mail that meets them.

use serde::{Deserialize, Serialize};

use crate::{
    identity::id::{AccountId, MailboxId, RuleId, TenantId},
    message::OnDoubt,
    time::Time,
};

/// One rule of one mailbox. Rules apply in the order of their position, then of their id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboundRule {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its name.
    pub id: RuleId,
    /// The mailbox whose mail it applies to.
    pub mailbox: MailboxId,
    /// The position; lower ones come first.
    pub position: i64,
    /// Whether it is active.
    pub active: bool,
    /// The conditions and actions.
    pub content: RuleContent,
    /// The version, which increases with each change.
    pub version: i64,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

/// The content of a rule, stored as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleContent {
    /// All conditions must be met. A rule without conditions applies to every mail.
    #[serde(default, rename = "match")]
    pub conditions: Vec<RuleCondition>,
    /// The actions, in order.
    #[serde(default)]
    pub actions: Vec<RuleAction>,
    /// Reminders of the forwarded mail, until it is marked as resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up: Option<FollowUpPlan>,
}

impl RuleContent {
    /// The most conditions of a rule.
    pub const CONDITIONS_MAX: usize = 50;
    /// The most actions of a rule.
    pub const ACTIONS_MAX: usize = 20;
}

/// One condition. Text is compared in exactly one way: `contains`, `equals` (both without regard to case) or
/// `regex` (linear time; its named groups are captures).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "field", rename_all = "snake_case", deny_unknown_fields)]
pub enum RuleCondition {
    /// The author's address or name.
    From(TextMatch),
    /// Any address or name in `To`.
    To(TextMatch),
    /// Any address or name in `Cc`.
    Cc(TextMatch),
    /// The subject.
    Subject(TextMatch),
    /// Any header field of this name.
    Header {
        /// The field's name.
        name: String,
        /// What the field must say; if absent, the field only has to exist.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<TextMatch>,
    },
    /// The size in bytes.
    Size {
        /// The smallest size, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        /// The largest size, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
    /// Whether it has attachments.
    HasAttachment {
        /// Whether the mail must have attachments.
        value: bool,
    },
}

/// How text is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextMatch {
    /// The text contains this.
    Contains(String),
    /// The text equals this.
    Equals(String),
    /// A part of the text matches this pattern.
    Regex(String),
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum RuleAction {
    /// Forwards the mail.
    Forward(ForwardAction),
    /// Labels the mail.
    Tag {
        /// The label; may name captures as `{name}`.
        tag: String,
    },
    /// Notifies subscribers of `email.received`.
    Webhook,
    /// Marks it as read in its folder.
    MarkSeen,
    /// Moves it to another folder.
    Move {
        /// The name of the folder.
        folder: String,
    },
    /// Stops: later rules do not apply.
    Stop,
}

/// To whom and how a mail is forwarded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwardAction {
    /// Addresses; may name captures as `{name}`.
    #[serde(default)]
    pub to: Vec<String>,
    /// A name to look up in the tenant's contacts, such as `{customer}`: its addresses are added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// The form of the forwarded mail.
    #[serde(default, rename = "as")]
    pub form: ForwardForm,
    /// The author of the forwarded mail; by default the mailbox's username, if that is an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The account that sends it; the tenant's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountId>,
    /// What to do with it in doubt; the mailbox's setting if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<OnDoubt>,
}

/// The form of a forwarded mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForwardForm {
    /// The original with `Resent-` fields.
    Redirect,
    /// The original as an attachment (`message/rfc822`).
    Attachment,
    /// A new mail with `Fwd:` and the original text, images and attachments.
    #[default]
    Compose,
}

/// Reminders of a forwarded mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowUpPlan {
    /// Hours between two reminders.
    pub every_hours: u32,
    /// The number of reminders.
    #[serde(default = "FollowUpPlan::times_default")]
    pub times_max: u32,
}

impl FollowUpPlan {
    /// The most hours between two reminders.
    pub const HOURS_MAX: u32 = 24 * 90;
    /// The most reminders.
    pub const TIMES_MAX: u32 = 100;

    fn times_default() -> u32 {
        10
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_reads_as_people_write_it() {
        let written = json!({
            "match": [
                {"field": "subject", "regex": "order (?<order>[0-9]+)"},
                {"field": "header", "name": "List-Id"},
                {"field": "size", "max": 1000},
                {"field": "has_attachment", "value": true}
            ],
            "actions": [
                {"do": "forward", "contact": "{order}", "as": "redirect"},
                {"do": "tag", "tag": "order"}, {"do": "webhook"}, {"do": "mark_seen"},
                {"do": "move", "folder": "Done"}, {"do": "stop"}
            ],
            "follow_up": {"every_hours": 24}
        });
        let rule: RuleContent = serde_json::from_value(written).unwrap();
        assert_eq!(
            rule.conditions[0],
            RuleCondition::Subject(TextMatch::Regex("order (?<order>[0-9]+)".into()))
        );
        assert_eq!(rule.actions.len(), 6);
        assert_eq!(rule.follow_up, Some(FollowUpPlan { every_hours: 24, times_max: 10 }));
        let again: RuleContent = serde_json::from_value(serde_json::to_value(&rule).unwrap()).unwrap();
        assert_eq!(again, rule);
    }

    #[test]
    fn a_misspelt_rule_is_refused() {
        for wrong in [
            json!({"match": [{"field": "subjekt", "equals": "x"}]}),
            json!({"match": [{"field": "subject", "like": "x"}]}),
            json!({"actions": [{"do": "forward", "too": ["a@example.org"]}]}),
            json!({"then": []}),
        ] {
            assert!(serde_json::from_value::<RuleContent>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
