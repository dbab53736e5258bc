//! Checks a rule, field by field, before it is stored.

use postway_domain::{
    EmailAddress, NamedAddress,
    rule::{FollowUpPlan, ForwardAction, RuleAction, RuleCondition, RuleContent},
};

use super::{
    condition::{ConditionError, ReadyCondition, TEXT_BYTES_MAX, captured_names},
    template,
};

/// The most addresses that one rule may forward to, besides those of a contact.
const FORWARD_TO_MAX: usize = 50;
/// The longest tag, in bytes.
pub(crate) const TAG_BYTES_MAX: usize = 100;
/// The longest name of a folder, in bytes.
const FOLDER_BYTES_MAX: usize = 255;

/// The faults of a rule: a field such as `match[0].regex`, and what to do about it. Empty if there are none.
pub fn check_rule(content: &RuleContent) -> Vec<(String, String)> {
    let mut faults = RuleFaults(Vec::new());
    if content.conditions.len() > RuleContent::CONDITIONS_MAX {
        faults.add(
            "match",
            format!("there are more than {} conditions: use fewer", RuleContent::CONDITIONS_MAX),
        );
        return faults.0;
    }
    for (index, condition) in content.conditions.iter().enumerate() {
        if let Err(ConditionError(why)) = ReadyCondition::new(condition) {
            faults.add(format!("match[{index}].{}", field_of(condition)), why);
        }
    }
    check_actions(content, &mut faults);
    if let Some(follow_up) = &content.follow_up {
        check_follow_up(follow_up, content, &mut faults);
    }
    faults.0
}

struct RuleFaults(Vec<(String, String)>);

impl RuleFaults {
    fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push((field.into(), message.into()));
    }
}

/// The field of a condition that a fault is about.
fn field_of(condition: &RuleCondition) -> &'static str {
    use postway_domain::rule::TextMatch;
    let of_text = |text: &TextMatch| match text {
        TextMatch::Contains(_) => "contains",
        TextMatch::Equals(_) => "equals",
        TextMatch::Regex(_) => "regex",
    };
    match condition {
        RuleCondition::From(text)
        | RuleCondition::To(text)
        | RuleCondition::Cc(text)
        | RuleCondition::Subject(text) => of_text(text),
        RuleCondition::Header { name, .. } if postway_mime::check_header(name, "").is_err() => "name",
        RuleCondition::Header { .. } => "value",
        RuleCondition::Size { .. } => "size",
        RuleCondition::HasAttachment { .. } => "value",
    }
}

fn check_actions(content: &RuleContent, faults: &mut RuleFaults) {
    let actions = &content.actions;
    if actions.is_empty() {
        faults.add("actions", "is empty: say what to do with the mail");
    }
    if actions.len() > RuleContent::ACTIONS_MAX {
        faults.add("actions", format!("there are more than {}: use fewer", RuleContent::ACTIONS_MAX));
        return;
    }
    let captured = captured_names(content);
    let known = |template: &str| -> Result<(), String> {
        match template::names(template).find(|name| !captured.contains(*name)) {
            Some(name) => Err(format!(
                "no condition captures {{{name}}}: name a group of a regex so, as in (?<{name}>…)"
            )),
            None => Ok(()),
        }
    };
    let (mut forwards, mut moves) = (0, 0);
    for (index, action) in actions.iter().enumerate() {
        let at = format!("actions[{index}]");
        match action {
            RuleAction::Forward(forward) => {
                forwards += 1;
                check_forward(forward, &at, &known, faults);
            }
            RuleAction::Tag { tag } => {
                if tag.trim().is_empty() || tag.len() > TAG_BYTES_MAX || tag.contains(char::is_control) {
                    faults.add(
                        format!("{at}.tag"),
                        format!("must be 1 to {TAG_BYTES_MAX} bytes without control characters"),
                    );
                } else if let Err(why) = known(tag) {
                    faults.add(format!("{at}.tag"), why);
                }
            }
            RuleAction::Move { folder } => {
                moves += 1;
                if folder.is_empty() || folder.len() > FOLDER_BYTES_MAX || folder.contains(char::is_control) {
                    faults.add(
                        format!("{at}.folder"),
                        format!("must be 1 to {FOLDER_BYTES_MAX} bytes without control characters"),
                    );
                }
            }
            RuleAction::Webhook | RuleAction::MarkSeen | RuleAction::Stop => {}
        }
    }
    if forwards > 1 {
        faults.add(
            "actions",
            "there is more than one forward: a rule sends one message; name all its recipients in it",
        );
    }
    if moves > 1 {
        faults.add("actions", "there is more than one move: a mail is in one folder");
    }
}

fn check_forward(
    forward: &ForwardAction,
    at: &str,
    known: &impl Fn(&str) -> Result<(), String>,
    faults: &mut RuleFaults,
) {
    if forward.to.is_empty() && forward.contact.is_none() {
        faults.add(format!("{at}.to"), "say to whom: addresses in `to`, or a `contact`");
    }
    if forward.to.len() > FORWARD_TO_MAX {
        faults.add(format!("{at}.to"), format!("there are more than {FORWARD_TO_MAX} addresses: use fewer"));
        return;
    }
    for (index, to) in forward.to.iter().enumerate() {
        let field = || format!("{at}.to[{index}]");
        if let Err(why) = known(to) {
            faults.add(field(), why);
        } else if template::names(to).next().is_none()
            && let Err(error) = to.parse::<NamedAddress>()
        {
            faults.add(field(), error.to_string());
        }
    }
    if let Some(contact) = &forward.contact {
        if contact.trim().is_empty() || contact.len() > TEXT_BYTES_MAX {
            faults.add(format!("{at}.contact"), format!("must be 1 to {TEXT_BYTES_MAX} bytes"));
        } else if let Err(why) = known(contact) {
            faults.add(format!("{at}.contact"), why);
        }
    }
    if let Some(from) = &forward.from
        && let (Err(error), Err(_)) = (from.parse::<NamedAddress>(), from.parse::<EmailAddress>())
    {
        faults.add(format!("{at}.from"), error.to_string());
    }
}

fn check_follow_up(follow_up: &FollowUpPlan, content: &RuleContent, faults: &mut RuleFaults) {
    if !(1..=FollowUpPlan::HOURS_MAX).contains(&follow_up.every_hours) {
        faults.add("follow_up.every_hours", format!("must be 1 to {}", FollowUpPlan::HOURS_MAX));
    }
    if !(1..=FollowUpPlan::TIMES_MAX).contains(&follow_up.times_max) {
        faults.add("follow_up.times_max", format!("must be 1 to {}", FollowUpPlan::TIMES_MAX));
    }
    if !content.actions.iter().any(|action| matches!(action, RuleAction::Forward(_))) {
        faults.add("follow_up", "needs a forward among the actions: that is what is sent again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn faults(rule: Value) -> Vec<String> {
        let content: RuleContent = serde_json::from_value(rule).unwrap();
        check_rule(&content).into_iter().map(|(field, _)| field).collect()
    }

    #[test]
    fn a_sound_rule_has_no_fault() {
        let rule = json!({
            "match": [{"field": "subject", "regex": "for (?<who>\\w+)"}],
            "actions": [
                {"do": "forward", "to": ["{who}@example.org", "Ops <ops@example.org>"], "contact": "{who}"},
                {"do": "tag", "tag": "order-{who}"}, {"do": "stop"}
            ],
            "follow_up": {"every_hours": 24}
        });
        assert_eq!(faults(rule), Vec::<String>::new());
    }

    #[test]
    fn every_fault_names_its_field() {
        let rule = json!({
            "match": [{"field": "subject", "regex": "("}, {"field": "size"}, {"field": "header", "name": "a:b"}],
            "actions": [
                {"do": "forward", "to": ["nobody", "{x}@example.org"], "contact": " ", "from": "me"},
                {"do": "forward"},
                {"do": "tag", "tag": ""}, {"do": "move", "folder": "a\r\nb"}
            ],
            "follow_up": {"every_hours": 0, "times_max": 1000}
        });
        assert_eq!(
            faults(rule),
            [
                "match[0].regex",
                "match[1].size",
                "match[2].name",
                "actions[0].to[0]",
                "actions[0].to[1]",
                "actions[0].contact",
                "actions[0].from",
                "actions[1].to",
                "actions[2].tag",
                "actions[3].folder",
                "actions",
                "follow_up.every_hours",
                "follow_up.times_max"
            ]
        );
        assert_eq!(faults(json!({"actions": []})), ["actions"]);
        assert_eq!(
            faults(json!({"actions": [{"do": "stop"}], "follow_up": {"every_hours": 1}})),
            ["follow_up"]
        );
    }
}
