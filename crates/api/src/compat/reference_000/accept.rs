//! `POST /emails {"data":[…]}`: many mails, each with its own result, in order.

use std::borrow::Cow;

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use bytes::Bytes;
use postway_intake::{RejectedItem, RequestContext, run_heavy};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{CUSTOM_NAMES, FieldNames, NAMES};
use crate::{
    auth::Sender,
    compat::{
        message_list::MessageListBody,
        translate::{
            MessageWriter, RawFields, RawItems, is_blank, is_null, refuse_mail, renamed, shown_id, text,
            unknown,
        },
    },
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
    },
    message::submit::{accept::compat_context, batch},
    state::SharedState,
};

/// The results, in order.
#[derive(Serialize)]
pub(super) struct AddEmailsAnswer {
    summary: AddEmailsSummary,
    results: Vec<AddedEmail>,
}

#[derive(Serialize)]
struct AddEmailsSummary {
    total: usize,
    successful: usize,
    failed: usize,
}

#[derive(Serialize)]
struct AddedEmail {
    id: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl AddedEmail {
    fn refused((id, error): RefusedEmail) -> Self {
        let error = json!({"code": error.code(), "message": error.message(), "details": error.details()});
        Self { id, status: "error", error: Some(error) }
    }
}

pub(super) async fn accept(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    request: Request,
) -> Result<(StatusCode, Json<AddEmailsAnswer>), ApiError> {
    let (parts, body) = request.into_parts();
    // This API has no limit on subjects.
    let context =
        RequestContext { any_subject: true, ..compat_context(caller, &request_id, &parts.headers)? };
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let (ours, mails) = run_heavy(bytes.len(), || read(&bytes))?;
    let mut taken = match ours.is_empty() {
        true => Vec::new(),
        false => batch::take_each(&app, &context, ours).await?.results,
    }
    .into_iter();
    let (mut results, mut successful) = (Vec::with_capacity(mails.len()), 0);
    for mail in mails {
        results.push(match mail {
            Err(refused) => AddedEmail::refused(refused),
            Ok(names) => match taken.next() {
                Some(Ok(receipt)) => {
                    successful += 1;
                    AddedEmail { id: Some(receipt.id), status: "success", error: None }
                }
                Some(Err(RejectedItem { id, refusal })) => {
                    AddedEmail::refused((id, ApiError::from(refusal).renamed(|field| renamed(field, names))))
                }
                None => return Err(ApiError::internal("the intake did not answer for every message")),
            },
        });
    }
    let (total, failed) = (results.len(), results.len() - successful);
    let status = match (successful, failed) {
        (_, 0) => StatusCode::CREATED,
        (0, _) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::OK,
    };
    Ok((status, Json(AddEmailsAnswer { summary: AddEmailsSummary { total, successful, failed }, results })))
}

/// Why a mail could not be translated, and its id if that can be read.
type RefusedEmail = (Option<String>, ApiError);
/// The field names of a translated mail, or its refusal.
type EmailTranslation = Result<FieldNames, RefusedEmail>;

/// Our messages of those that could be translated; and for each mail in order its field names, or why it was
/// refused.
fn read(bytes: &[u8]) -> Result<(Vec<Bytes>, Vec<EmailTranslation>), ApiError> {
    let MessageListBody { messages, beside } = MessageListBody::read(bytes, "data")?;
    beside.finish()?;
    if messages.is_empty() {
        return Err(ApiError::field("data", "is empty: give at least one mail"));
    }
    let mut ours = Vec::with_capacity(messages.len());
    let mut mails = Vec::with_capacity(messages.len());
    for mail in messages {
        let Some(mail) = mail else {
            mails.push(Err((None, ApiError::field("", "must be an object"))));
            continue;
        };
        let id = mail.get("id");
        mails.push(match translate(mail) {
            Ok((message, names)) => {
                ours.push(message.into());
                Ok(names)
            }
            Err(error) => Err((id.and_then(shown_id), error)),
        });
    }
    Ok((ours, mails))
}

/// Translates one mail, and returns its field names.
pub(in crate::compat) fn translate(mail: RawFields<'_>) -> Result<(String, FieldNames), ApiError> {
    let mut ours = MessageWriter::with_capacity(mail.len() + 32);
    let mail = mail.once()?;
    let (mut names, mut wrong) = (NAMES, Vec::new());
    for (name, value) in mail.0.iter().filter(|(_, value)| !is_null(value)) {
        match &**name {
            "on_doubt" if is_blank(value) => {}
            "id" | "from" | "subject" | "headers" | "metadata" | "on_doubt" => ours.json(name, value.get()),
            "custom_headers" if mail.get("headers").is_some() => {
                wrong.push(FieldError::new("custom_headers", "is the same as headers: give one of them"));
            }
            "custom_headers" => {
                names = CUSTOM_NAMES;
                ours.json("headers", value.get());
            }
            "to" | "cc" | "bcc" | "reply_to" => ours.addresses(name, value),
            "body_html" => ours.json("html", value.get()),
            "body_text" => ours.json("text", value.get()),
            "attachments" => match attachments(value) {
                Ok(files) => ours.json("attachments", &files),
                Err(fault) => wrong.push(fault),
            },
            _ => wrong.push(unknown(name)),
        }
    }
    if wrong.is_empty() { Ok((ours.into_json(), names)) } else { Err(refuse_mail(wrong)) }
}

/// The path of a `file:` URL on this machine (RFC 8089). Anything else stays as it is, for the intake to
/// judge.
fn local_path(address: &str) -> Option<Cow<'static, str>> {
    let (scheme, rest) = address.split_at_checked("file:".len())?;
    if !scheme.eq_ignore_ascii_case("file:") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/')?);
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return None;
            }
            path
        }
    };
    unescaped(path).map(Cow::Owned)
}

/// A path without its percent escapes; `None` if one is malformed, or the result is not text.
fn unescaped(path: &str) -> Option<String> {
    let mut parts = path.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Translates the files: a text is a path or a `file:` URL, and the file is named by its last part; an object
/// is ours, except for its `name`.
fn attachments(list: &RawValue) -> Result<String, FieldError> {
    let RawItems(files) = RawItems::read("attachments", list)?;
    let each = files.into_iter().enumerate().map(|(index, file)| match text(file) {
        None => attachment(index, file),
        Some(given) => Ok(Cow::Owned(at_path(&given, None).into_json())),
    });
    Ok(format!("[{}]", each.collect::<Result<Vec<_>, _>>()?.join(",")))
}

/// A file on the server's disk, under this name or the last part of its path.
fn at_path(given: &str, name: Option<&RawValue>) -> MessageWriter {
    let path = local_path(given).unwrap_or(Cow::Owned(given.to_owned()));
    let mut ours = MessageWriter::with_capacity(2 * path.len() + 32);
    ours.text("path", &path);
    match name {
        Some(name) => ours.json("filename", name.get()),
        None => ours.text("filename", path.rsplit('/').next().unwrap_or_default()),
    }
    ours
}

/// Translates a file that is an object: `name` is its `filename`, and a path may be a `file:` URL. Anything
/// else is for the intake to judge.
fn attachment(index: usize, file: &RawValue) -> Result<Cow<'_, str>, FieldError> {
    let Ok(mut fields) = serde_json::from_str::<RawFields<'_>>(file.get()) else {
        return Ok(file.get().into());
    };
    let path = fields.get("path").and_then(text);
    if path.is_none() && fields.get("name").is_none() {
        return Ok(file.get().into());
    }
    let name = match (fields.take("name"), fields.take("filename")) {
        (Some(_), Some(_)) => {
            let message = "is the same as filename: give one of them";
            return Err(FieldError::new(format!("attachments[{index}].name"), message));
        }
        (name, filename) => name.or(filename),
    };
    let mut ours = match path {
        Some(path) => {
            fields.take("path");
            at_path(&path, name)
        }
        None => {
            let mut ours = MessageWriter::with_capacity(file.get().len() + 16);
            name.into_iter().for_each(|name| ours.json("filename", name.get()));
            ours
        }
    };
    for (field, value) in &fields.0 {
        // Known names need no escaping; the intake refuses any other.
        match field.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            true => ours.json(field, value.get()),
            false => return Err(unknown(&format!("attachments[{index}].{field}"))),
        }
    }
    Ok(Cow::Owned(ours.into_json()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(mail: Value) -> Result<(Value, FieldNames), Vec<String>> {
        let json = mail.to_string();
        let ours = RawFields::read(json.as_bytes()).and_then(translate);
        ours.map(|(json, names)| (serde_json::from_str(&json).unwrap(), names))
            .map_err(|error| error.details().iter().map(|detail| detail.field.clone()).collect())
    }

    #[test]
    fn a_mail_is_said_in_our_words() {
        let mail = json!({"id": "a", "to": "b@x.example, c@x.example", "reply_to": "d@x.example", "body_text": "é",
            "custom_headers": {"X-A": "1"}, "headers": null,
            "attachments": ["/files/ü/a \"b\".pdf", {"filename": "c.txt", "content": "YQ=="}]});
        let expected = json!({"id": "a", "to": ["b@x.example", "c@x.example"], "reply_to": "d@x.example",
            "text": "é", "headers": {"X-A": "1"}, "attachments": [
                {"path": "/files/ü/a \"b\".pdf", "filename": "a \"b\".pdf"},
                {"filename": "c.txt", "content": "YQ=="}]});
        assert_eq!(translated(mail), Ok((expected, CUSTOM_NAMES)));
    }

    #[test]
    fn a_file_address_is_the_path_that_it_names() {
        for (given, path) in [
            ("file:///files/a%20%C3%BC.pdf", "/files/a ü.pdf"),
            ("file://localhost/files/a.pdf", "/files/a.pdf"),
            ("FILE:/files/a.pdf", "/files/a.pdf"),
            ("file:///files/%2e%2e/a%2fb", "/files/../a/b"),
            ("file://elsewhere/files/a.pdf", "file://elsewhere/files/a.pdf"),
            ("file:///files/100%.pdf", "file:///files/100%.pdf"),
            ("file:///files/%ff", "file:///files/%ff"),
            ("file:///files/%+1", "file:///files/%+1"),
            ("file://", "file://"),
            ("/files/100%20.pdf", "/files/100%20.pdf"),
        ] {
            let (ours, _) = translated(json!({"attachments": [given]})).unwrap();
            assert_eq!(ours["attachments"][0]["path"], path, "{given}");
        }
        let (ours, _) = translated(json!({"attachments": ["file:///files/a%20b.pdf"]})).unwrap();
        assert_eq!(ours["attachments"][0]["filename"], "a b.pdf");
    }

    #[test]
    fn a_file_may_have_its_name_in_either_word() {
        for (given, ours) in [
            (
                json!({"path": "a/b.pdf", "name": "Bill.pdf"}),
                json!({"path": "a/b.pdf", "filename": "Bill.pdf"}),
            ),
            (json!({"path": "file:///a/b%20c.pdf"}), json!({"path": "/a/b c.pdf", "filename": "b c.pdf"})),
            (json!({"path": "/a", "filename": "c"}), json!({"path": "/a", "filename": "c"})),
            (
                json!({"path": "/a", "name": null, "sha256": "00"}),
                json!({"path": "/a", "filename": "a", "sha256": "00"}),
            ),
            (json!({"name": "a.txt", "content": "YQ=="}), json!({"filename": "a.txt", "content": "YQ=="})),
            (json!({"name": 7, "path": 8}), json!({"filename": 7, "path": 8})),
            (json!(7), json!(7)),
        ] {
            let (translated, _) = translated(json!({"attachments": [given.clone()]})).unwrap();
            assert_eq!(translated["attachments"][0], ours, "{given}");
        }
        let both = json!({"attachments": ["/a", {"path": "/b", "name": "b", "filename": "c"}]});
        assert_eq!(translated(both).unwrap_err(), ["attachments[1].name"]);
        let odd = json!({"attachments": [{"path": "/b", "a\"b": 1}]});
        assert_eq!(translated(odd).unwrap_err(), ["attachments[0].a\"b"]);
    }

    #[test]
    fn what_cannot_be_translated_is_named() {
        for (mail, fields) in [
            (json!({"headers": {}, "custom_headers": {}}), &["custom_headers"][..]),
            (json!({"attachments": "/a", "colour": 1}), &["attachments", "colour"]),
        ] {
            assert_eq!(translated(mail.clone()).unwrap_err(), fields, "{mail}");
        }
    }
}
