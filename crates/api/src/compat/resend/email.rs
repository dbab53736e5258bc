//! Translates an email of Resend's API.

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{error::missing, time};
use crate::{
    compat::translate::{
        MessageWriter, RawFields, RawItems, is_blank, is_empty_list, refuse_mail, split_addresses, text,
    },
    http::error::{ApiError, FieldError},
};

/// File extensions by media type.
const KINDS: [(&str, &str); 12] = [
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/json", "json"),
    ("text/plain", "txt"),
    ("text/html", "html"),
    ("text/csv", "csv"),
    ("text/calendar", "ics"),
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/svg+xml", "svg"),
];
/// The most addresses in `to`.
const TO_MAX: usize = 50;
/// Fields with the same name and value in both.
const SAME: [&str; 7] = ["from", "to", "cc", "bcc", "subject", "html", "text"];
/// Headers that are not passed on.
const OURS_TO_WRITE: [&str; 4] = ["Return-Path", "Sender", "Date", "Message-ID"];
/// The longest name or value of a tag.
const TAG_CHARS_MAX: usize = 256;
/// The separator between the name and the value of a tag in our label: neither contains it.
const COLON: char = ':';

/// Translates an email. Faults of values are left to the intake, except for what has no place in our message.
pub(super) fn message(json: &[u8]) -> Result<String, ApiError> {
    let mut fields = RawFields::read(json)?;
    let mut ours = MessageWriter::with_capacity(json.len() + 64);
    let mut faults = Vec::new();
    let template = fields.take("template");
    let (has_html, names_text) = (fields.get("html").is_some(), fields.get("text").is_some());
    for name in SAME {
        match fields.take(name) {
            Some(value) if matches!(name, "cc" | "bcc") && is_blank(value) => {}
            Some(value) => {
                if name == "to" && is_long(value) {
                    faults.push(FieldError::new("to", format!("there are more than {TO_MAX} addresses")));
                }
                match name {
                    "to" | "cc" | "bcc" => addresses(&mut ours, name, value),
                    _ => ours.json(name, value.get()),
                }
            }
            None if matches!(name, "from" | "to") || (name == "subject" && template.is_none()) => {
                faults.push(missing(name));
            }
            None => {}
        }
    }
    // An email with html only gets a text; `text: ""` means that none is wanted.
    if has_html && !names_text && template.is_none() {
        ours.json("auto_text", "true");
    }
    if let Some(value) = either(&mut fields, "reply_to", "replyTo") {
        addresses(&mut ours, "reply_to", value);
    }
    if let Some(value) = either(&mut fields, "scheduled_at", "scheduledAt") {
        match text(value) {
            Some(said) => ours.text("send_at", &time::with_zone(&said)),
            None => ours.json("send_at", value.get()),
        }
    }
    // PHP has one kind of empty array, and writes it as a list.
    if let Some(headers) = fields.take("headers").filter(|headers| !is_empty_list(headers))
        && let Err(fault) = self::headers(&mut ours, headers)
    {
        faults.push(fault);
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
        false => Err(refuse_mail(faults)),
    }
}

/// A field under the name of the API or of the SDK, unless it is blank.
fn either<'a>(fields: &mut RawFields<'a>, name: &str, other: &str) -> Option<&'a RawValue> {
    let given = [fields.take(name), fields.take(other)];
    given.into_iter().flatten().find(|value| !is_blank(value))
}

/// Adds addresses. A comma in a text separates them, unless it is in a name, which the intake expects in
/// quotes.
fn addresses(ours: &mut MessageWriter, name: &str, value: &RawValue) {
    let is_list = |line: &str| split_addresses(line).iter().all(|one| one.contains('@'));
    match text(value) {
        Some(line) if !is_list(&line) => ours.json(name, value.get()),
        _ => ours.addresses(name, value),
    }
}

fn is_long(to: &RawValue) -> bool {
    let count = match text(to) {
        Some(line) => split_addresses(&line).len(),
        None => RawItems::read("to", to).map_or(0, |items| items.0.len()),
    };
    count > TO_MAX
}

/// `{id, variables}` as `{name, variables}`.
fn template(value: &RawValue) -> Result<String, FieldError> {
    let mut fields = inner("template", value)?;
    let mut ours = MessageWriter::with_capacity(value.get().len() + 16);
    match fields.take("id") {
        Some(id) => ours.json("name", id.get()),
        None => return Err(missing("template.id")),
    }
    if let Some(variables) = fields.take("variables").filter(|variables| !is_empty_list(variables)) {
        ours.json("variables", variables.get());
    }
    Ok(ours.into_json())
}

/// Adds the headers, except those that occur once in a mail and that we write: the envelope sender is taken
/// from `Return-Path`, and the others are written anew anyway.
fn headers(ours: &mut MessageWriter, value: &RawValue) -> Result<(), FieldError> {
    let fields = inner("headers", value)?;
    let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
    if !fields.0.iter().any(|(name, _)| OURS_TO_WRITE.iter().any(|ours| is(name, ours))) {
        ours.json("headers", value.get());
        return Ok(());
    }
    let mut kept = MessageWriter::with_capacity(value.get().len());
    for (name, value) in fields.0 {
        if is(&name, "Return-Path") {
            let path = text(value).ok_or_else(|| FieldError::new("headers.Return-Path", "must be a text"))?;
            let path = path.trim();
            let bare = path.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(path);
            if !path.is_empty() {
                ours.text("return_path", bare);
            }
        } else if !OURS_TO_WRITE.iter().any(|ours| is(&name, ours)) {
            let quoted = Value::from(&*name).to_string();
            kept.json(&quoted[1..quoted.len() - 1], value.get());
        }
    }
    ours.json("headers", &kept.into_json());
    Ok(())
}

/// `[{name, value}]` as labels `name:value`.
fn tags(value: &RawValue) -> Result<String, FieldError> {
    let mut labels = Vec::new();
    for (place, item) in RawItems::read("tags", value)?.0.into_iter().enumerate() {
        let mut fields = inner(&format!("tags[{place}]"), item)?;
        let mut part = |name: &str| {
            let field = || format!("tags[{place}].{name}");
            let given = fields.take(name).ok_or_else(|| FieldError::new(field(), "is missing"))?;
            match text(given) {
                Some(text) if is_tag_part(&text) => Ok(text),
                _ => {
                    Err(FieldError::new(field(), format!("must be 1 to {TAG_CHARS_MAX} of A-Z a-z 0-9 _ -")))
                }
            }
        };
        labels.push(format!("{}{COLON}{}", part("name")?, part("value")?));
    }
    Ok(Value::from(labels).to_string())
}

fn is_tag_part(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=TAG_CHARS_MAX).contains(&text.len()) && text.bytes().all(fits)
}

/// The tag of a label. A label from another API has no value.
pub(super) fn tag(label: &str) -> Value {
    let (name, value) = label.split_once(COLON).unwrap_or((label, ""));
    serde_json::json!({"name": name, "value": value})
}

fn attachments(value: &RawValue) -> Result<String, FieldError> {
    let mut json = String::with_capacity(value.get().len() + 64);
    json.push('[');
    for (place, item) in RawItems::read("attachments", value)?.0.into_iter().enumerate() {
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
    let mut ours = MessageWriter::with_capacity(value.get().len() + 64);
    let mut given = |name: &str| fields.take(name).filter(|value| !is_blank(value));
    let path = given("path");
    // The SDK's type allows `false` for no name.
    let filename = given("filename").filter(|name| name.get() != "false");
    let kind = given("content_type").or_else(|| given("contentType"));
    match (filename, path.and_then(text)) {
        (Some(name), _) => ours.json("filename", name.get()),
        (None, path) => ours.text("filename", &file_name(path.as_deref(), kind.and_then(text).as_deref())),
    }
    if let Some(path) = path {
        ours.json("url", path.get());
    }
    if let Some(kind) = kind {
        ours.json("content_type", kind.get());
    }
    let content_id = ["content_id", "contentId", "inline_content_id"].into_iter().find_map(given);
    // A file may be empty.
    if let Some(content) = fields.take("content") {
        ours.json("content", &in_base64(content));
    }
    if let Some(id) = content_id {
        ours.json("content_id", id.get());
        ours.json("inline", "true");
    }
    Ok(ours.into_json())
}

/// The name of a file without one: the last part of its URL, or one by its media type.
fn file_name(path: Option<&str>, kind: Option<&str>) -> String {
    let last = path.and_then(|path| {
        let path = path.split(['?', '#']).next().unwrap_or(path);
        path.split_once("://").map_or(path, |(_, rest)| rest).split_once('/')?.1.rsplit('/').next()
    });
    if let Some(name) = last.filter(|name| !name.is_empty()) {
        return percent_decoded(name);
    }
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let ending = KINDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(kind)).map(|(_, ending)| ending);
    ending.map_or_else(|| "attachment".to_owned(), |ending| format!("attachment.{ending}"))
}

/// A decoded part of a URL; unchanged if it does not decode to text.
fn percent_decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    let decoded = String::from_utf8(bytes).ok();
    decoded.filter(|name| !name.contains(['/', '\\'])).unwrap_or_else(|| part.to_owned())
}

/// Content in base64 unchanged, and bytes in base64: a list of numbers, as the SDKs for Go, Python, Ruby and
/// Rust write them, or node's Buffer as JSON, `{"type": "Buffer", "data": […]}`. Anything else is for the
/// intake to refuse.
fn in_base64(content: &RawValue) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct NodeBuffer {
        data: Vec<u8>,
    }

    let json = content.get();
    let bytes = match json.as_bytes().first() {
        Some(b'[') => serde_json::from_str::<Vec<u8>>(json).ok(),
        Some(b'{') => serde_json::from_str::<NodeBuffer>(json).ok().map(|buffer| buffer.data),
        _ => None,
    };
    bytes.map_or(Cow::Borrowed(json), |bytes| Cow::Owned(format!("\"{}\"", BASE64_STANDARD.encode(bytes))))
}

/// The fields of a nested object.
fn inner<'a>(field: &str, value: &'a RawValue) -> Result<RawFields<'a>, FieldError> {
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
                {"content": [104, 105], "filename": "d.txt", "content_type": "", "content_id": "", "path": ""},
            ],
        });
        assert_eq!(
            made(email),
            json!({
                "from": "Shop <shop@example.com>", "to": "a@example.net", "cc": ["b@example.net"], "subject": "Hi",
                "html": "<p>Hi", "auto_text": true, "reply_to": "c@example.com", "send_at": "2030-01-01T00:00:00Z",
                "headers": {"X-A": "1"}, "tags": ["kind:receipt"],
                "attachments": [
                    {"filename": "a.txt", "content": "aGk=", "content_type": "text/plain"},
                    {"filename": "b.txt", "content": "aGk=", "content_id": "logo", "inline": true},
                    {"filename": "c.pdf", "url": "https://files.example/x/c.pdf?v=1"},
                    {"filename": "d.txt", "content": "aGk="},
                ],
            })
        );
        assert_eq!(tag("kind:receipt"), json!({"name": "kind", "value": "receipt"}));
    }

    #[test]
    fn what_is_blank_and_may_be_left_out_is_left_out() {
        let email = json!({"from": "a@example.com", "to": "", "cc": "", "bcc": " ", "reply_to": "", "replyTo": "",
            "scheduled_at": "", "subject": "", "text": "t", "headers": []});
        assert_eq!(made(email), json!({"from": "a@example.com", "to": "", "subject": "", "text": "t"}));
    }

    #[test]
    fn addresses_in_one_text_are_a_list() {
        let email = json!({"from": "a@example.com", "to": "b@example.net", "subject": "s",
            "cc": "\"Lovelace, Ada\" <c@example.net>, d@example.net", "replyTo": "e@example.com,f@example.com"});
        let made = made(email);
        assert_eq!(made["cc"], json!(["\"Lovelace, Ada\" <c@example.net>", "d@example.net"]));
        assert_eq!(made["reply_to"], json!(["e@example.com", "f@example.com"]));
        let named = json!({"from": "a@example.com", "to": "Doe, Jo <b@example.net>", "subject": "s"});
        assert_eq!(
            self::made(named)["to"],
            "Doe, Jo <b@example.net>",
            "the intake says what is wrong with it"
        );
    }

    #[test]
    fn headers_that_are_ours_to_write_are_passed_over_and_a_return_path_is_the_envelopes() {
        let email = json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t",
            "headers": {"X-A\"": "1", "message-id": "<x@y>", "Date": "today", "Sender": "c@example.com",
                        "Return-Path": "<bounce@example.com>"}});
        let made = made(email);
        assert_eq!(made["headers"], json!({"X-A\"": "1"}), "the intake refuses what is no name");
        assert_eq!(made["return_path"], "bounce@example.com");
    }

    #[test]
    fn a_file_without_a_name_gets_one() {
        for (path, kind, name) in [
            (Some("https://files.example/x/c%20d.pdf?v=1#p"), None, "c d.pdf"),
            (Some("https://files.example/"), Some("application/pdf"), "attachment.pdf"),
            (Some("https://files.example"), None, "attachment"),
            (Some("https://files.example/..%2Fetc"), None, "..%2Fetc"),
            (Some("https://files.example/%zz%"), None, "%zz%"),
            (None, Some("Text/CSV; charset=utf-8"), "attachment.csv"),
            (None, Some("x/y"), "attachment"),
            (None, None, "attachment"),
        ] {
            assert_eq!(file_name(path, kind), name, "{path:?} {kind:?}");
        }
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
            (json!({"to": vec!["a@example.net"; 51].join(",")}), "to"),
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
