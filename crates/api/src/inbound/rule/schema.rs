//! Request bodies as the OpenAPI document describes them. The structs are never filled; `edit` reads the
//! bodies.

use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{ObjectBuilder, Type, schema::SchemaType},
};

use crate::http::schema_form::{forms, of_type, one_of, text, text_or_list, words};

/// A rule to create or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RuleRequest {
    /// The id, unique in your tenant; on creation only. Generated when absent.
    #[schema(example = "orders")]
    id: Option<String>,
    /// The mailbox whose mail it applies to; required on creation.
    #[schema(example = "support")]
    mailbox: Option<String>,
    /// The position; lower ones come first. The last when absent.
    position: Option<i64>,
    /// Whether it is evaluated at all.
    #[schema(default = true)]
    active: Option<bool>,
    /// At most 50 conditions. `field` is `from`, `to`, `cc` or `subject`, each with one of `contains`,
    /// `equals` (both without regard to case) and `regex` (its named groups are captures); `header` with
    /// `name` and perhaps `value`, such as `{"contains": "x"}`; `size` with `min` and `max` in bytes; or
    /// `has_attachment` with `value`.
    #[serde(rename = "match")]
    #[schema(example = json!([{"field": "subject", "regex": "order (?<order>[0-9]+)"}]))]
    conditions: Option<Vec<RuleCondition>>,
    /// At most 20 actions. `do` is `forward` (with `to`, one address or a list, or `contact`, a name to look
    /// up; `as`, one of `compose`, `redirect` and `attachment`; `from`; `account`), `tag` (with `tag`),
    /// `webhook`, `mark_seen`, `move` (with `folder`) or `stop`. Addresses, names and tags may name captures
    /// as `{order}`.
    #[schema(example = json!([{"do": "forward", "to": ["orders@example.com"]}, {"do": "stop"}]))]
    actions: Option<Vec<RuleAction>>,
    /// Sends reminders of forwarded mail at this interval, until the mail is resolved.
    follow_up: Option<FollowUpRequest>,
    /// With `PATCH`: change only if the rule still has this version.
    version: Option<i64>,
}

/// Reminders of forwarded mail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FollowUpRequest {
    /// Hours between two reminders, at most 2,160.
    #[schema(example = 24)]
    every_hours: u32,
    /// The most reminders, up to 100.
    #[schema(nullable = false, default = 10)]
    times_max: Option<u32>,
}

forms! {
    /// A condition on a mail.
    RuleCondition => one_of([
        ways(tagged("field", &["from", "to", "cc", "subject"])).min_properties(Some(2)).max_properties(Some(2)),
        tagged("field", &["header"])
            .property("name", text())
            .required("name")
            .property("value", ways(of_type(Type::Object)).min_properties(Some(1)).max_properties(Some(1))),
        tagged("field", &["size"]).property("min", bytes()).property("max", bytes()),
        tagged("field", &["has_attachment"]).property("value", of_type(Type::Boolean)).required("value"),
    ]);
    /// An action on a mail.
    RuleAction => one_of([
        tagged("do", &["forward"])
            .property("to", text_or_list().item(of_type(Type::Null)))
            .property("contact", text_or_null())
            .property("as", words(&["compose", "redirect", "attachment"]))
            .property("from", text_or_null())
            .property("account", text_or_null())
            .property("on_doubt", words(&["resend", "hold"])),
        tagged("do", &["tag"]).property("tag", text()).required("tag"),
        tagged("do", &["move"]).property("folder", text()).required("folder"),
        tagged("do", &["webhook", "mark_seen", "stop"]),
    ]);
}

/// An object whose kind is given by one of its fields.
fn tagged(name: &str, values: &[&str]) -> ObjectBuilder {
    of_type(Type::Object).property(name, words(values)).required(name)
}

/// Adds the ways to compare a text, of which exactly one is given.
fn ways(object: ObjectBuilder) -> ObjectBuilder {
    ["contains", "equals", "regex"].into_iter().fold(object, |object, way| object.property(way, text()))
}

fn text_or_null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]))
}

fn bytes() -> ObjectBuilder {
    of_type(Type::Integer).minimum(Some(0))
}
