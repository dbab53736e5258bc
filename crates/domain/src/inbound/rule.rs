//! What is done with mail that comes in: conditions, and actions where they hold.

use serde::{Deserialize, Serialize};

use crate::{
    identity::id::{AccountId, MailboxId, RuleId, TenantId},
    message::OnDoubt,
    time::Time,
};

/// One rule of one mailbox. Rules are asked in the order of their position, then of their id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whose.
    pub tenant: TenantId,
    /// Its name.
    pub id: RuleId,
    /// The mailbox whose mail it is asked about.
    pub mailbox: MailboxId,
    /// Its place; lower ones come first.
    pub position: i64,
    /// Whether it is asked at all.
    pub active: bool,
    /// What it says.
    pub content: RuleContent,
    /// Rises with each change.
    pub version: i64,
    /// When it was made.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

/// What a rule says; kept as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleContent {
    /// All of them must hold; none holds always.
    #[serde(default, rename = "match")]
    pub conditions: Vec<Condition>,
    /// Done in order where they do.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// Reminds of what was forwarded until somebody says that it is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up: Option<FollowUp>,
}

impl RuleContent {
    /// Conditions of one rule, at most.
    pub const CONDITIONS_MAX: usize = 50;
    /// Actions of one rule, at most.
    pub const ACTIONS_MAX: usize = 20;
}

/// One condition. Exactly one of the ways to compare is given for text: `contains`, `equals` (both without regard to
/// case) or `regex` (linear time; its named groups are captures).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "field", rename_all = "snake_case", deny_unknown_fields)]
pub enum Condition {
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
        /// What it must say; absent means that it must be there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<TextMatch>,
    },
    /// The size in bytes.
    Size {
        /// At least so many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        /// At most so many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
    /// Whether it has attachments.
    HasAttachment {
        /// Whether it must.
        value: bool,
    },
}

/// How text is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextMatch {
    /// Contains this.
    Contains(String),
    /// Is this.
    Equals(String),
    /// Matches this pattern somewhere.
    Regex(String),
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Sends it on.
    Forward(Forward),
    /// Labels the mail.
    Tag {
        /// The label; may name captures as `{name}`.
        tag: String,
    },
    /// Tells subscribers of `email.received`.
    Webhook,
    /// Marks it as read in its folder.
    MarkSeen,
    /// Moves it to another folder.
    Move {
        /// Which.
        folder: String,
    },
    /// No later rule is asked.
    Stop,
}

/// To whom mail is sent on, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forward {
    /// Addresses; may name captures as `{name}`.
    #[serde(default)]
    pub to: Vec<String>,
    /// A name to look up in the tenant's contacts, such as `{customer}`: its addresses are added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// As what.
    #[serde(default, rename = "as")]
    pub form: ForwardForm,
    /// The author of what is sent on; the mailbox's username where it is an address and nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The account that sends it; the tenant's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountId>,
    /// What to do with it in doubt; as the mailbox says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<OnDoubt>,
}

/// As what a mail is sent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForwardForm {
    /// As it is, with `Resent-` fields.
    Redirect,
    /// Whole, as an attachment (`message/rfc822`).
    Attachment,
    /// Composed anew: `Fwd:`, the original text, images and attachments.
    #[default]
    Compose,
}

/// Reminds of a mail that was sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowUp {
    /// Hours between two reminders.
    pub every_hours: u32,
    /// Reminders, at most.
    #[serde(default = "FollowUp::times_default")]
    pub times_max: u32,
}

impl FollowUp {
    /// Hours between two reminders, at most.
    pub const HOURS_MAX: u32 = 24 * 90;
    /// Reminders that may be asked for, at most.
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
        assert_eq!(rule.conditions[0], Condition::Subject(TextMatch::Regex("order (?<order>[0-9]+)".into())));
        assert_eq!(rule.actions.len(), 6);
        assert_eq!(rule.follow_up, Some(FollowUp { every_hours: 24, times_max: 10 }));
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
