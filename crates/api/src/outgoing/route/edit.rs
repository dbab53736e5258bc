//! Routes from request bodies. Every faulty field is reported under its path, including unknown ones.

use postway_domain::{
    MailRoute, MessagePriority,
    address_pattern::DomainPattern,
    id::{AccountId, BatchCode, RouteId, StreamId},
    route::{RouteConditions, RouteContent, RouteTarget},
};
use serde_json::{Map, Value};

use crate::http::{error::FieldError, json_fields::JsonFieldReader};

/// The longest tag that can be compared, in characters.
const TAG_CHARS_MAX: usize = 1_024;

/// The fields that a body sets; absent fields are `None`.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteEdit {
    pub(super) id: Option<RouteId>,
    pub(super) position: Option<i64>,
    pub(super) active: Option<bool>,
    /// `Some(None)` removes it.
    pub(super) description: Option<Option<String>>,
    pub(super) conditions: Option<RouteConditions>,
    pub(super) accounts: Option<Vec<RouteTarget>>,
    pub(super) version: Option<i64>,
    /// The names of the given fields, for the audit log.
    pub(super) fields: Vec<String>,
}

impl RouteEdit {
    /// Applies the edit to a route.
    pub(super) fn apply_to(self, mut route: MailRoute) -> MailRoute {
        route.position = self.position.unwrap_or(route.position);
        route.active = self.active.unwrap_or(route.active);
        route.content.description = self.description.unwrap_or(route.content.description);
        route.content.conditions = self.conditions.unwrap_or(route.content.conditions);
        route.content.accounts = self.accounts.unwrap_or(route.content.accounts);
        route
    }
}

/// Reads a body.
pub(super) fn read(body: Map<String, Value>, is_new: bool) -> Result<RouteEdit, Vec<FieldError>> {
    let names = body.keys().take(10).cloned().collect();
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
    let given = RouteEdit {
        id,
        position: fields.read("position", "must be a whole number"),
        active: fields.read("active", "must be true or false"),
        description: fields
            .has("description")
            .then(|| fields.text("description", MailRoute::DESCRIPTION_CHARS_MAX)),
        conditions: fields.has("match").then(|| conditions(&mut fields)),
        accounts: fields.has("accounts").then(|| accounts(&mut fields)),
        version: fields.read("version", "must be a whole number"),
        fields: names,
    };
    let position_max = MailRoute::POSITION_MAX;
    if given.position.is_some_and(|position| !(-position_max..=position_max).contains(&position)) {
        fields.refuse("position", format!("must be between -{position_max} and {position_max}"));
    }
    fields.finish("is not a field of a route");
    if wrong.is_empty() { Ok(given) } else { Err(wrong) }
}

fn conditions(fields: &mut JsonFieldReader<'_>) -> RouteConditions {
    let known = fields.object("match", |inner| RouteConditions {
        sender_domains: list(inner, "sender_domains", parsed::<DomainPattern>),
        tags: list(inner, "tags", |value| {
            let tag = value.as_str().filter(|tag| (1..=TAG_CHARS_MAX).contains(&tag.chars().count()));
            tag.map(str::to_owned).ok_or_else(|| format!("must be a tag of 1 to {TAG_CHARS_MAX} characters"))
        }),
        batches: list(inner, "batches", |value| parsed::<BatchCode>(value).map(|code| code.to_string())),
        streams: list(inner, "streams", |value| parsed::<StreamId>(value).map(|id| id.to_string())),
        priorities: list(inner, "priorities", priority),
        recipient_domains: list(inner, "recipient_domains", parsed::<DomainPattern>),
    });
    known.unwrap_or_default()
}

fn parsed<T: std::str::FromStr<Err: ToString>>(value: &Value) -> Result<T, String> {
    let text = value.as_str().ok_or_else(|| "must be a text".to_owned())?;
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// The code of a priority, which may be given by its number or by its name.
pub(super) fn priority(value: &Value) -> Result<i64, String> {
    let by_name = |name: &str| MessagePriority::ALL.iter().find(|one| one.as_str() == name).copied();
    let found = match value {
        Value::String(name) => by_name(name),
        value => value.as_i64().and_then(MessagePriority::from_code),
    };
    found
        .map(MessagePriority::code)
        .ok_or_else(|| "must be 0 to 3, or immediate, high, normal or low".to_owned())
}

/// A list whose items are read one by one. `null` is an empty list.
pub(super) fn list<T>(
    fields: &mut JsonFieldReader<'_>,
    name: &str,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Vec<T> {
    let items = match fields.take(name) {
        None => return Vec::new(),
        Some(Value::Array(items)) if items.len() <= RouteConditions::LIST_MAX => items,
        Some(_) => {
            fields.refuse(name, format!("must be a list of at most {}", RouteConditions::LIST_MAX));
            return Vec::new();
        }
    };
    let mut list = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        match read(item) {
            Ok(item) => list.push(item),
            Err(message) => fields.refuse(&format!("{name}[{place}]"), message),
        }
    }
    list
}

/// The accounts, each with a weight of 1 if it has none.
fn accounts(fields: &mut JsonFieldReader<'_>) -> Vec<RouteTarget> {
    let max = RouteContent::ACCOUNTS_MAX;
    let items = match fields.take("accounts") {
        Some(Value::Array(items)) if (1..=max).contains(&items.len()) => items,
        Some(_) | None => {
            fields.refuse("accounts", format!("must be a list of 1 to {max} accounts"));
            return Vec::new();
        }
    };
    let mut targets: Vec<RouteTarget> = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let path = |within: &str| format!("accounts[{place}]{within}");
        let Value::Object(item) = item else {
            fields.refuse(&path(""), "must be an object with `account`, and `weight` if it is not 1");
            continue;
        };
        // `missing` is shown, and may come back.
        let known = ["account", "weight", "missing"];
        if let Some(unknown) = item.keys().find(|name| !known.contains(&name.as_str())) {
            let unknown: String = unknown.chars().take(100).collect();
            fields.refuse(&path(&format!(".{unknown}")), "is not a field of an account here");
        }
        let (name, weight) = (item.get("account").unwrap_or(&Value::Null), item.get("weight"));
        let weight = match weight {
            None | Some(Value::Null) => Some(1),
            Some(weight) => weight.as_u64().and_then(|weight| u32::try_from(weight).ok()),
        };
        let Some(weight) = weight.filter(|weight| *weight <= RouteTarget::WEIGHT_MAX) else {
            fields.refuse(&path(".weight"), format!("must be 0 to {}", RouteTarget::WEIGHT_MAX));
            continue;
        };
        match parsed::<AccountId>(name) {
            Ok(account) if targets.iter().any(|target| target.account == account) => {
                fields.refuse(&path(".account"), "is named twice: give it one weight");
            }
            Ok(account) => targets.push(RouteTarget { account, weight }),
            Err(message) => fields.refuse(&path(".account"), message),
        }
    }
    if !targets.is_empty() && targets.iter().all(|target| target.weight == 0) {
        fields.refuse("accounts", "need a weight above 0 for one of them");
    }
    targets
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
            (json!({"id": "a b", "title": "x"}), &["id", "title"][..]),
            (json!({"position": 2_000_000, "active": "yes"}), &["active", "position"]),
            (json!({"match": {"sender_domains": ["example.com", "*"]}}), &["match.sender_domains[1]"]),
            (json!({"match": {"tags": "x"}}), &["match.tags"]),
            (json!({"match": {"tags": [""]}}), &["match.tags[0]"]),
            (json!({"match": {"priorities": ["low", 4]}}), &["match.priorities[1]"]),
            (
                json!({"match": {"batches": ["a b"], "streams": [7]}}),
                &["match.batches[0]", "match.streams[0]"],
            ),
            (json!({"match": {"sender": "x"}}), &["match.sender"]),
            (json!({"match": []}), &["match"]),
            (json!({"accounts": []}), &["accounts"]),
            (json!({"accounts": "relay"}), &["accounts"]),
            (json!({"accounts": [{"account": "a"}, {"account": "a"}]}), &["accounts[1].account"]),
            (json!({"accounts": [{"account": "a", "weight": 1_001}]}), &["accounts[0].weight"]),
            (json!({"accounts": [{"account": "a", "share": 1}]}), &["accounts[0].share"]),
            (
                json!({"accounts": [{"account": "a", "weight": 0}, {"account": "b", "weight": 0}]}),
                &["accounts"],
            ),
            (json!({"accounts": [7, {}]}), &["accounts[0]", "accounts[1].account"]),
        ] {
            assert_eq!(wrong(body.clone()), fields, "{body}");
        }
    }

    #[test]
    fn names_and_numbers_of_priorities_mean_the_same() {
        let body =
            json!({"accounts": [{"account": "a"}], "match": {"priorities": ["low", 0]}, "description": null});
        let given = read(body.as_object().unwrap().clone(), true).unwrap();
        assert_eq!(given.conditions.unwrap().priorities, [3, 0]);
        assert_eq!((given.accounts.unwrap()[0].weight, given.description), (1, Some(None)));
    }
}
