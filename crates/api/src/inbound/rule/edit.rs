//! Rules from request bodies. Each condition and action is read by itself, so that a fault is reported under
//! its path.

use postway_domain::{
    InboundRule,
    id::{MailboxId, RuleId},
    rule::{FollowUpPlan, RuleAction, RuleCondition, RuleContent},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::http::{error::FieldError, json_fields::JsonFieldReader};

/// The fields that a body sets; absent fields are `None`.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleEdit {
    pub(super) id: Option<RuleId>,
    pub(super) mailbox: Option<MailboxId>,
    pub(super) position: Option<i64>,
    pub(super) active: Option<bool>,
    pub(super) conditions: Option<Vec<RuleCondition>>,
    pub(super) actions: Option<Vec<RuleAction>>,
    pub(super) follow_up: Option<Option<FollowUpPlan>>,
    pub(super) version: Option<i64>,
    /// The names of the given fields, for the audit log.
    pub(super) fields: Vec<String>,
}

impl RuleEdit {
    /// Applies the edit to a rule.
    pub(super) fn apply_to(given: Self, mut rule: InboundRule) -> InboundRule {
        rule.mailbox = given.mailbox.unwrap_or(rule.mailbox);
        rule.position = given.position.unwrap_or(rule.position);
        rule.active = given.active.unwrap_or(rule.active);
        rule.content.conditions = given.conditions.unwrap_or(rule.content.conditions);
        rule.content.actions = given.actions.unwrap_or(rule.content.actions);
        rule.content.follow_up = given.follow_up.unwrap_or(rule.content.follow_up);
        rule
    }

    /// The content of a rule that is not stored.
    pub(super) fn content(self) -> RuleContent {
        RuleContent {
            conditions: self.conditions.unwrap_or_default(),
            actions: self.actions.unwrap_or_default(),
            follow_up: self.follow_up.flatten(),
        }
    }
}

/// Reads a body.
pub(super) fn read(body: Map<String, Value>, is_new: bool) -> Result<RuleEdit, Vec<FieldError>> {
    let names = body.keys().take(12).cloned().collect();
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    // Read-only fields: a client may send back what GET showed.
    for shown in ["created_at", "updated_at"] {
        fields.take(shown);
    }
    let id = match is_new {
        true => fields.parsed("id"),
        false => fields.take("id").and(None),
    };
    let given = RuleEdit {
        id,
        mailbox: fields.parsed("mailbox"),
        position: fields.read("position", "must be a whole number"),
        active: fields.read("active", "must be true or false"),
        conditions: items(&mut fields, "match", RuleContent::CONDITIONS_MAX, condition),
        actions: items(&mut fields, "actions", RuleContent::ACTIONS_MAX, action),
        follow_up: fields.has("follow_up").then(|| follow_up(&mut fields)),
        version: fields.read("version", "must be a whole number"),
        fields: names,
    };
    fields.finish("is not a field of a rule");
    if wrong.is_empty() { Ok(given) } else { Err(wrong) }
}

/// The fault of one item: its path, and the message.
type RuleFault = (String, String);

/// A list, item by item; `null` is an empty one.
fn items<T>(
    fields: &mut JsonFieldReader<'_>,
    name: &str,
    count_max: usize,
    read: impl Fn(&Map<String, Value>) -> Result<T, RuleFault>,
) -> Option<Vec<T>> {
    if !fields.has(name) {
        return None;
    }
    let items = match fields.take(name) {
        None => Vec::new(),
        Some(Value::Array(items)) if items.len() <= count_max => items,
        Some(_) => {
            fields.refuse(name, format!("must be a list of at most {count_max}"));
            return None;
        }
    };
    let mut read_items = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let item = match item.as_object() {
            Some(item) => read(item),
            None => Err((String::new(), "must be an object".to_owned())),
        };
        match item {
            Ok(item) => read_items.push(item),
            Err((within, message)) => {
                let dot = if within.is_empty() { "" } else { "." };
                fields.refuse(&format!("{name}[{place}]{dot}{within}"), message);
            }
        }
    }
    Some(read_items)
}

fn condition(item: &Map<String, Value>) -> Result<RuleCondition, RuleFault> {
    const WAYS: [&str; 3] = ["contains", "equals", "regex"];
    let known: &[&str] = match item.get("field").and_then(Value::as_str) {
        Some("from" | "to" | "cc" | "subject") => &WAYS,
        Some("header") => &["name", "value"],
        Some("size") => &["min", "max"],
        Some("has_attachment") => &["value"],
        _ => {
            let message = "must be from, to, cc, subject, header, size or has_attachment";
            return Err(("field".to_owned(), message.to_owned()));
        }
    };
    if let Some(unknown) = item.keys().find(|name| *name != "field" && !known.contains(&name.as_str())) {
        let message = format!("is not a part of this condition; there is {}", known.join(", "));
        return Err((unknown.chars().take(100).collect(), message));
    }
    if known == WAYS && item.len() != 2 {
        return Err((String::new(), "needs exactly one of contains, equals and regex".to_owned()));
    }
    // What can still be wrong is the type of a value.
    let wrong_value = known.iter().copied().find(|name| match (*name, item.get(*name)) {
        (_, None) => false,
        ("min" | "max", Some(value)) => !value.is_u64(),
        ("value", Some(value)) if item["field"] == "has_attachment" => !value.is_boolean(),
        ("value", Some(value)) => !is_text_match(value),
        (_, Some(value)) => !value.is_string(),
    });
    match (wrong_value, from_object(item)) {
        (None, Ok(condition)) => Ok(condition),
        (None, Err(message)) => Err((String::new(), message)),
        (Some(name @ ("min" | "max")), _) => Err((name.to_owned(), "must be a number of bytes".to_owned())),
        (Some(name), _) if item["field"] == "has_attachment" => {
            Err((name.to_owned(), "must be true or false".to_owned()))
        }
        (Some(name @ "value"), _) => {
            let message = "must be an object with one of contains, equals and regex";
            Err((name.to_owned(), message.to_owned()))
        }
        (Some(name), _) => Err((name.to_owned(), "must be a text".to_owned())),
    }
}

fn is_text_match(value: &Value) -> bool {
    value.as_object().is_some_and(|way| {
        way.len() == 1
            && way.iter().all(|(name, text)| {
                ["contains", "equals", "regex"].contains(&name.as_str()) && text.is_string()
            })
    })
}

fn action(item: &Map<String, Value>) -> Result<RuleAction, RuleFault> {
    match item.get("do").and_then(Value::as_str) {
        Some("forward") => {
            let mut forward = item.clone();
            forward.remove("do");
            // A single address may be written without a list.
            if let Some(to) = forward.get_mut("to").filter(|to| to.is_string()) {
                *to = Value::Array(vec![to.take()]);
            }
            forward.retain(|_, value| !value.is_null());
            read_at(Value::Object(forward)).map(RuleAction::Forward)
        }
        Some("tag" | "move") => from_object(item).map_err(|message| (String::new(), message)),
        Some("webhook" | "mark_seen" | "stop") => match item.keys().find(|name| *name != "do") {
            // A condition or action without parts is not read closely enough for serde to find unknown
            // fields.
            Some(unknown) => {
                Err((unknown.chars().take(100).collect(), "is not a part of this action".to_owned()))
            }
            None => from_object(item).map_err(|message| (String::new(), message)),
        },
        _ => {
            let message = "must be forward, tag, webhook, mark_seen, move or stop";
            Err(("do".to_owned(), message.to_owned()))
        }
    }
}

fn follow_up(fields: &mut JsonFieldReader<'_>) -> Option<FollowUpPlan> {
    match read_at(fields.take("follow_up")?) {
        Ok(follow_up) => Some(follow_up),
        Err((within, message)) => {
            let dot = if within.is_empty() { "" } else { "." };
            fields.refuse(&format!("follow_up{dot}{within}"), message);
            None
        }
    }
}

fn from_object<T: DeserializeOwned>(item: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(item.clone())).map_err(|error| error.to_string())
}

/// Parses a value; an error has the path of the fault.
fn read_at<T: DeserializeOwned>(value: Value) -> Result<T, RuleFault> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        (if path == "." { String::new() } else { path }, error.inner().to_string())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(body: Value) -> Vec<String> {
        let wrong = read(body.as_object().unwrap().clone(), true).unwrap_err();
        wrong.into_iter().map(|wrong| wrong.field).collect()
    }

    #[test]
    fn every_wrong_place_is_named() {
        for (body, fields) in [
            (json!({"match": {}}), &["match"][..]),
            (json!({"match": [7, {"field": "subjekt"}]}), &["match[0]", "match[1].field"]),
            (json!({"match": [{"field": "subject", "like": "x"}]}), &["match[0].like"]),
            (json!({"match": [{"field": "from"}]}), &["match[0]"]),
            (json!({"match": [{"field": "to", "equals": "a", "regex": "b"}]}), &["match[0]"]),
            (json!({"match": [{"field": "cc", "regex": 7}]}), &["match[0].regex"]),
            (json!({"match": [{"field": "size", "min": -1}]}), &["match[0].min"]),
            (json!({"match": [{"field": "header"}]}), &["match[0]"]),
            (json!({"match": [{"field": "header", "name": "X", "value": "x"}]}), &["match[0].value"]),
            (json!({"match": [{"field": "has_attachment", "value": "yes"}]}), &["match[0].value"]),
            (json!({"actions": [{"do": "fly"}, {"do": "tag"}]}), &["actions[0].do", "actions[1]"]),
            (json!({"actions": [{"do": "forward", "to": [7]}]}), &["actions[0].to[0]"]),
            (json!({"actions": [{"do": "forward", "as": "is"}]}), &["actions[0].as"]),
            (json!({"actions": [{"do": "forward", "too": []}]}), &["actions[0].too"]),
            (json!({"actions": [{"do": "stop", "after": 1}]}), &["actions[0].after"]),
            (json!({"follow_up": {"every_hours": "x"}}), &["follow_up.every_hours"]),
            (json!({"position": "first", "then": 1}), &["position", "then"]),
            (json!({"id": "a b", "mailbox": ""}), &["id", "mailbox"]),
        ] {
            assert_eq!(wrong(body.clone()), fields, "{body}");
        }
    }

    #[test]
    fn one_address_may_stand_alone() {
        let body = json!({"actions": [{"do": "forward", "to": "ada@example.net", "from": null}]});
        let given = read(body.as_object().unwrap().clone(), true).unwrap();
        let RuleAction::Forward(forward) = &given.actions.as_ref().unwrap()[0] else { panic!("{given:?}") };
        assert_eq!((&forward.to[..], &forward.from), (&["ada@example.net".to_owned()][..], &None));
    }

    #[test]
    fn what_is_not_given_stays() {
        let rule = InboundRule {
            tenant: "default".parse().unwrap(),
            id: "r".parse().unwrap(),
            mailbox: "m".parse().unwrap(),
            position: 3,
            active: true,
            content: RuleContent {
                follow_up: Some(FollowUpPlan { every_hours: 1, times_max: 2 }),
                actions: vec![RuleAction::Stop],
                ..RuleContent::default()
            },
            version: 1,
            created_at: postway_domain::Time::from_millis(0),
            updated_at: postway_domain::Time::from_millis(0),
        };
        let put = |body: Value| {
            RuleEdit::apply_to(read(body.as_object().unwrap().clone(), false).unwrap(), rule.clone())
        };
        assert_eq!(put(json!({})), rule);
        let changed = put(json!({"follow_up": null, "active": false}));
        assert_eq!((changed.content.follow_up, changed.active, changed.position), (None, false, 3));
        assert_eq!(changed.content.actions, [RuleAction::Stop]);
    }
}
