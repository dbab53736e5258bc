//! Translates a message.

use serde_json::value::RawValue;

use crate::{
    compat::translate::{
        MessageWriter, RawFields, RawItems, expect_text, is_blank, is_null, refuse_mail, text, unknown,
    },
    http::error::{ApiError, FieldError},
};

/// Translates a message into ours.
pub(in crate::compat) fn translate(
    message: RawFields<'_>,
    default_priority: Option<&RawValue>,
) -> Result<String, ApiError> {
    let mut ours = MessageWriter::with_capacity(message.len() + 64);
    let mut fields = message.once()?;
    let mut wrong = Vec::new();
    let body_is = match fields.take("content_type").filter(|kind| !is_blank(kind)).map(text) {
        None => "text",
        Some(Some(kind)) if matches!(&*kind, "plain" | "text/plain") => "text",
        Some(Some(kind)) if matches!(&*kind, "html" | "text/html") => "html",
        Some(_) => {
            wrong.push(FieldError::new("content_type", "must be plain or html"));
            "text"
        }
    };
    match fields.take("id") {
        Some(id) => ours.json("id", id.get()),
        None => wrong.push(FieldError::new("id", "is missing: every message has an id of yours")),
    }
    if let Some(priority) = fields.take("priority").filter(|own| !is_blank(own)).or(default_priority) {
        ours.json("priority", in_our_word(priority));
    }
    for (name, value) in fields.0.iter().filter(|(_, value)| !is_null(value)) {
        match &**name {
            "return_path" | "on_doubt" if is_blank(value) => {}
            "from" | "return_path" | "subject" | "headers" | "on_doubt" => ours.json(name, value.get()),
            "to" | "cc" | "bcc" | "reply_to" => ours.addresses(name, value),
            "body" => ours.json(body_is, value.get()),
            "account_id" | "deferred_ts" | "batch_code" | "message_id" if is_blank(value) => {}
            "account_id" => ours.json("account", value.get()),
            "deferred_ts" => ours.json("send_at", value.get()),
            "batch_code" => ours.json("batch", value.get()),
            "message_id" => ours.json("external_id", value.get()),
            // The tenant was read before: it decides which group the message goes into.
            "tenant_id" => wrong.extend(expect_text(name, value).err()),
            "attachments" => match attachments(value) {
                Ok(files) => ours.json("attachments", &files),
                Err(faults) => wrong.extend(faults),
            },
            _ => wrong.push(unknown(name)),
        }
    }
    if wrong.is_empty() { Ok(ours.into_json()) } else { Err(refuse_mail(wrong)) }
}

/// A priority: its `medium` is our `normal`, and the others are the same.
fn in_our_word(priority: &RawValue) -> &str {
    if text(priority).as_deref() == Some("medium") { r#""normal""# } else { priority.get() }
}

/// Translates the attachments: the location of the bytes is `storage_path` in both.
fn attachments(list: &RawValue) -> Result<String, Vec<FieldError>> {
    let RawItems(files) = RawItems::read("attachments", list).map_err(|wrong| vec![wrong])?;
    let mut wrong = Vec::new();
    let mut translated = Vec::with_capacity(files.len());
    for (index, file) in files.into_iter().enumerate() {
        let at = format!("attachments[{index}]");
        let Ok(RawFields(fields)) = RawFields::read(file.get().as_bytes()) else {
            wrong.push(FieldError::new(at, "must be an object, with each field once"));
            continue;
        };
        let mut ours = MessageWriter::with_capacity(file.get().len());
        for (name, value) in fields.iter().filter(|(_, value)| !is_null(value)) {
            match &**name {
                "fetch_mode" | "content_id" | "mime_type" | "content_md5" if is_blank(value) => {}
                "filename" | "storage_path" | "fetch_mode" | "content_id" | "inline" | "content_md5" => {
                    ours.json(name, value.get());
                }
                "mime_type" => ours.json("content_type", value.get()),
                "auth" => wrong.push(FieldError::new(
                    format!("{at}.auth"),
                    "cannot be given with a message: set how to sign in on the tenant (client_auth)",
                )),
                _ => {
                    let FieldError { field, message, .. } = unknown(name);
                    wrong.push(FieldError::new(format!("{at}.{field}"), message));
                }
            }
        }
        translated.push(ours.into_json());
    }
    if wrong.is_empty() { Ok(format!("[{}]", translated.join(","))) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn translated(message: Value) -> Result<Value, Vec<String>> {
        let json = message.to_string();
        let ours = RawFields::read(json.as_bytes()).and_then(|fields| translate(fields, None));
        ours.map(|json| serde_json::from_str(&json).unwrap())
            .map_err(|error| error.details().iter().map(|detail| detail.field.clone()).collect())
    }

    #[test]
    fn a_message_is_said_in_our_words() {
        let ours = translated(json!({
            "id": "m1", "tenant_id": "acme", "account_id": "relay", "from": "a@x.example", "to": "b@x.example, C <c@x.example>",
            "cc": ["d@x.example"], "bcc": null, "subject": "s", "body": "<p>é</p>", "content_type": "html",
            "priority": "high", "deferred_ts": 1_700_000_000, "batch_code": "c1", "message_id": "x@y",
            "headers": {"X-A": "1"}, "attachments": [{"filename": "a.txt", "storage_path": "base64:YQ==",
                "fetch_mode": "base64", "mime_type": "text/plain", "content_md5": "0cc175b9c0f1b6a831c399e269772661", "auth": null}],
        }));
        let expected = json!({
            "id": "m1", "account": "relay", "from": "a@x.example", "to": ["b@x.example", "C <c@x.example>"],
            "cc": ["d@x.example"], "subject": "s", "html": "<p>é</p>", "priority": "high",
            "send_at": 1_700_000_000, "batch": "c1", "external_id": "x@y", "headers": {"X-A": "1"},
            "attachments": [{"filename": "a.txt", "storage_path": "base64:YQ==", "fetch_mode": "base64",
                "content_type": "text/plain", "content_md5": "0cc175b9c0f1b6a831c399e269772661"}],
        });
        assert_eq!(ours, Ok(expected));
    }

    #[test]
    fn what_is_blank_and_may_be_left_out_is_left_out() {
        let ours = translated(json!({
            "id": "m1", "tenant_id": "", "account_id": "", "from": "a@x.example", "to": "b@x.example", "cc": "", "bcc": " ",
            "reply_to": "", "return_path": "", "subject": "", "body": "t", "content_type": "", "deferred_ts": "",
            "batch_code": "", "message_id": "", "priority": "",
            "attachments": [{"filename": "a", "storage_path": "base64:YQ==", "fetch_mode": "", "mime_type": "", "content_md5": ""}],
        }));
        let expected = json!({"id": "m1", "from": "a@x.example", "to": "b@x.example", "subject": "", "text": "t",
            "attachments": [{"filename": "a", "storage_path": "base64:YQ=="}]});
        assert_eq!(ours, Ok(expected));
        assert_eq!(
            translated(json!({"id": "m1", "to": ""})),
            Ok(json!({"id": "m1", "to": ""})),
            "is wrong, not none"
        );
    }

    #[test]
    fn medium_is_normal_also_as_the_default() {
        let priority = |message: Value, default: Option<&str>| {
            let (json, default) =
                (message.to_string(), default.map(|text| serde_json::from_str(text).unwrap()));
            let ours = translate(RawFields::read(json.as_bytes()).ok().unwrap(), default).ok().unwrap();
            serde_json::from_str::<Value>(&ours).unwrap()["priority"].clone()
        };
        assert_eq!(priority(json!({"id": "a", "priority": "medium"}), None), "normal");
        assert_eq!(priority(json!({"id": "a"}), Some(r#""medium""#)), "normal");
        assert_eq!(priority(json!({"id": "a", "priority": "low"}), Some(r#""medium""#)), "low");
        assert_eq!(priority(json!({"id": "a", "priority": 0}), None), 0);
    }

    #[test]
    fn what_cannot_be_translated_is_named_as_its_users_know_it() {
        for (message, fields) in [
            (json!({"subject": "s"}), &["id"][..]),
            (json!({"id": "a", "colour": 1, "content_type": "rtf"}), &["content_type", "colour"]),
            (json!({"id": "a", "tenant_id": 1}), &["tenant_id"]),
            (
                json!({"id": "a", "attachments": [{"auth": {}}, 1, {"x": 1}]}),
                &["attachments[0].auth", "attachments[1]", "attachments[2].x"],
            ),
            (json!({"id": "a", "attachments": {}}), &["attachments"]),
            (json!([]), &[""]),
        ] {
            assert_eq!(translated(message.clone()).unwrap_err(), fields, "{message}");
        }
    }
}
