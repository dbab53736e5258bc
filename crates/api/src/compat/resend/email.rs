//! An email as Resend's users write it, as a message of ours.

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::error::missing;
use crate::{
    compat::translate::{Fields, Items, Ours, is_blank, text},
    error::{ApiError, FieldError},
};

/// The most addresses in `to`.
const TO_MAX: usize = 50;
/// Fields that mean the same in both, and whose values are the same.
const SAME: [&str; 7] = ["from", "to", "cc", "bcc", "subject", "html", "text"];
/// Between the name and the value of a tag, as a label of ours: neither has one.
const COLON: char = ':';

/// Our message for an email. What is wrong with values is for the intake to say, but for what has no place in ours.
pub(super) fn message(json: &[u8]) -> Result<String, ApiError> {
    let mut fields = Fields::read(json)?;
    let mut ours = Ours::with_capacity(json.len() + 64);
    let mut faults = Vec::new();
    let template = fields.take("template");
    for name in SAME {
        match fields.take(name) {
            Some(value) if matches!(name, "cc" | "bcc") && is_blank(value) => {}
            Some(value) => {
                if name == "to" && is_long(value) {
                    faults.push(FieldError::new("to", format!("there are more than {TO_MAX} addresses")));
                }
                ours.json(name, value.get());
            }
            None if matches!(name, "from" | "to") || (name == "subject" && template.is_none()) => {
                faults.push(missing(name));
            }
            None => {}
        }
    }
    for (theirs, ours_is) in [
        ("reply_to", "reply_to"),
        ("replyTo", "reply_to"),
        ("scheduled_at", "send_at"),
        ("scheduledAt", "send_at"),
    ] {
        if let Some(value) = fields.take(theirs).filter(|value| !is_blank(value)) {
            ours.json(ours_is, value.get());
        }
    }
    if let Some(headers) = fields.take("headers") {
        ours.json("headers", headers.get());
    }
    let written = [
        ("template", template.map(self::template)),
        ("tags", fields.take("tags").map(tags)),
        ("attachments", fields.take("attachments").map(attachments)),
    ];
    for (name, value) in written.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        match value {
            Ok(json) => ours.json(name, &json),
            Err(fault) => faults.push(fault),
        }
    }
    if fields.take("topic_id").is_some() {
        faults.push(FieldError::new("topic_id", "topics are not kept here: leave it out"));
    }
    match faults.is_empty() {
        true => Ok(ours.into_json()),
        false => Err(ApiError::invalid(faults)),
    }
}

fn is_long(to: &RawValue) -> bool {
    to.get().starts_with('[') && Items::read("to", to).is_ok_and(|items| items.0.len() > TO_MAX)
}

/// `{id, variables}` as `{name, variables}`.
fn template(value: &RawValue) -> Result<String, FieldError> {
    let mut fields = inner("template", value)?;
    let mut ours = Ours::with_capacity(value.get().len() + 16);
    match fields.take("id") {
        Some(id) => ours.json("name", id.get()),
        None => return Err(missing("template.id")),
    }
    if let Some(variables) = fields.take("variables") {
        ours.json("variables", variables.get());
    }
    Ok(ours.into_json())
}

/// `[{name, value}]` as labels `name:value`.
fn tags(value: &RawValue) -> Result<String, FieldError> {
    let mut labels = Vec::new();
    for (place, item) in Items::read("tags", value)?.0.into_iter().enumerate() {
        let mut fields = inner(&format!("tags[{place}]"), item)?;
        let mut part = |name: &str| {
            let field = || format!("tags[{place}].{name}");
            let given = fields.take(name).ok_or_else(|| FieldError::new(field(), "is missing"))?;
            match text(given) {
                Some(text) if !text.is_empty() && text.bytes().all(is_tag_byte) => Ok(text),
                _ => Err(FieldError::new(field(), "must be of A-Z a-z 0-9 _ -")),
            }
        };
        labels.push(format!("{}{COLON}{}", part("name")?, part("value")?));
    }
    Ok(Value::from(labels).to_string())
}

fn is_tag_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// A label as the tag that it was. One from another door has no value.
pub(super) fn tag(label: &str) -> Value {
    let (name, value) = label.split_once(COLON).unwrap_or((label, ""));
    serde_json::json!({"name": name, "value": value})
}

fn attachments(value: &RawValue) -> Result<String, FieldError> {
    let mut json = String::with_capacity(value.get().len() + 64);
    json.push('[');
    for (place, item) in Items::read("attachments", value)?.0.into_iter().enumerate() {
        if place > 0 {
            json.push(',');
        }
        json.push_str(&attachment(&format!("attachments[{place}]"), item)?);
    }
    json.push(']');
    Ok(json)
}

fn attachment(field: &str, value: &RawValue) -> Result<String, FieldError> {
    let mut fields = inner(field, value)?;
    let mut ours = Ours::with_capacity(value.get().len() + 64);
    let path = fields.take("path");
    // The SDK's type allows `false` for no name.
    let filename = fields.take("filename").filter(|name| name.get() != "false");
    match (filename, path.and_then(text)) {
        (Some(name), _) => ours.json("filename", name.get()),
        (None, Some(path)) => ours.text("filename", last_part(&path)),
        (None, None) => {}
    }
    if let Some(path) = path {
        ours.json("url", path.get());
    }
    if let Some(content) = fields.take("content") {
        ours.json("content", &in_base64(content));
    }
    if let Some(kind) = fields.take("content_type").or_else(|| fields.take("contentType")) {
        ours.json("content_type", kind.get());
    }
    let content_id =
        ["content_id", "contentId", "inline_content_id"].into_iter().find_map(|name| fields.take(name));
    if let Some(id) = content_id {
        ours.json("content_id", id.get());
        ours.json("inline", "true");
    }
    Ok(ours.into_json())
}

/// The name of a file by its address.
fn last_part(path: &str) -> &str {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

/// Content in base64 as it is, and a Buffer as JSON writes it, `{"type": "Buffer", "data": […]}`, in base64. Anything else is
/// for the intake to refuse.
fn in_base64(content: &RawValue) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Buffer {
        data: Vec<u8>,
    }

    let json = content.get();
    match json.starts_with('{').then(|| serde_json::from_str::<Buffer>(json)) {
        Some(Ok(Buffer { data })) => Cow::Owned(format!("\"{}\"", BASE64_STANDARD.encode(data))),
        _ => Cow::Borrowed(json),
    }
}

/// The fields of an object inside the email.
fn inner<'a>(field: &str, value: &'a RawValue) -> Result<Fields<'a>, FieldError> {
    serde_json::from_str(value.get()).map_err(|_| FieldError::new(field, "must be an object"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(email: Value) -> Value {
        serde_json::from_str(&message(email.to_string().as_bytes()).unwrap()).unwrap()
    }

    #[track_caller]
    fn wrong(email: Value) -> Vec<String> {
        let error = message(email.to_string().as_bytes()).unwrap_err();
        error.details().iter().map(|detail| detail.field.clone()).collect()
    }

    #[test]
    fn an_email_is_a_message() {
        let email = json!({
            "from": "Shop <shop@example.com>", "to": "a@example.net", "cc": ["b@example.net"], "subject": "Hi",
            "html": "<p>Hi", "reply_to": "c@example.com", "scheduled_at": "2030-01-01T00:00:00Z", "react": null,
            "headers": {"X-A": "1"}, "tags": [{"name": "kind", "value": "receipt"}], "unknown": 1,
            "attachments": [
                {"filename": "a.txt", "content": "aGk=", "content_type": "text/plain"},
                {"content": {"type": "Buffer", "data": [104, 105]}, "filename": "b.txt", "content_id": "logo"},
                {"path": "https://files.example/x/c.pdf?v=1", "filename": false},
            ],
        });
        assert_eq!(
            made(email),
            json!({
                "from": "Shop <shop@example.com>", "to": "a@example.net", "cc": ["b@example.net"], "subject": "Hi",
                "html": "<p>Hi", "reply_to": "c@example.com", "send_at": "2030-01-01T00:00:00Z",
                "headers": {"X-A": "1"}, "tags": ["kind:receipt"],
                "attachments": [
                    {"filename": "a.txt", "content": "aGk=", "content_type": "text/plain"},
                    {"filename": "b.txt", "content": "aGk=", "content_id": "logo", "inline": true},
                    {"filename": "c.pdf", "url": "https://files.example/x/c.pdf?v=1"},
                ],
            })
        );
        assert_eq!(tag("kind:receipt"), json!({"name": "kind", "value": "receipt"}));
    }

    #[test]
    fn what_is_blank_and_may_be_left_out_is_left_out() {
        let email = json!({"from": "a@example.com", "to": "", "cc": "", "bcc": " ", "reply_to": "", "replyTo": "",
            "scheduled_at": "", "subject": "", "text": "t"});
        assert_eq!(made(email), json!({"from": "a@example.com", "to": "", "subject": "", "text": "t"}));
    }

    #[test]
    fn a_template_brings_its_subject() {
        let email = json!({"from": "a@example.com", "to": "b@example.net", "template": {"id": "hi", "variables": {"n": 1}}});
        let template = json!({"name": "hi", "variables": {"n": 1}});
        assert_eq!(made(email)["template"], template);
    }

    #[test]
    fn what_has_no_place_here_is_named() {
        assert_eq!(wrong(json!({"html": "x"})), ["from", "to", "subject"]);
        let email = |part: Value| {
            let mut email = json!({"from": "a@example.com", "to": "b@example.net", "subject": "s"});
            email.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            email
        };
        for (part, field) in [
            (json!({"to": vec!["a@example.net"; 51]}), "to"),
            (json!({"topic_id": "t"}), "topic_id"),
            (json!({"tags": {}}), "tags"),
            (json!({"tags": [{"name": "a b", "value": "c"}]}), "tags[0].name"),
            (json!({"tags": [{"name": "a"}]}), "tags[0].value"),
            (json!({"template": "hi"}), "template"),
            (json!({"template": {}}), "template.id"),
            (json!({"attachments": ["x"]}), "attachments[0]"),
        ] {
            assert_eq!(wrong(email(part)), [field]);
        }
        assert!(message(b"[]").is_err() && message(b"{").is_err());
    }
}
