//! Errors in SendGrid's format: `{"errors": [{"message", "field", "help"}]}`.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::http::error::{ApiError, FieldError};

/// The most faults that one answer names.
const FAULTS_MAX: usize = 20;
/// The message for every wrong key.
const NO_KEY: &str = "The provided authorization grant is invalid, expired, or revoked: send a tenant's key \
                      as `Authorization: Bearer KEY`";

/// The answer to a refused request.
pub(super) fn refuse(error: &ApiError, _request_id: &str) -> (StatusCode, Value) {
    let status = match error.status() {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let one = |message: &str, field: Option<&str>| json!({"message": message, "field": field, "help": null});
    let said =
        |detail: &FieldError| one(&detail.message, Some(&*detail.field).filter(|path| !path.is_empty()));
    let errors: Vec<Value> = match error.details() {
        _ if status == StatusCode::UNAUTHORIZED => vec![one(NO_KEY, None)],
        [] => vec![one(error.message(), None)],
        details => details.iter().take(FAULTS_MAX).map(said).collect(),
    };
    (status, json!({ "errors": errors }))
}

/// A field of our message as SendGrid names it, given the index of its personalization.
pub(super) fn theirs(index: usize, path: &str) -> String {
    let (name, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
    let rest = rest.replace('[', ".").replace(']', "");
    match name {
        "to" | "cc" | "bcc" => format!("personalizations.{index}.{name}{rest}"),
        "text" | "html" | "alternatives" => "content".to_owned(),
        "attachments" => format!("attachments{}", rest.replace("content_type", "type")),
        "tags" => format!("categories{rest}"),
        // The call names no account.
        "account" => String::new(),
        "metadata" => format!("custom_args{rest}"),
        "batch" => "batch_id".to_owned(),
        "stream" => "asm.group_id".to_owned(),
        "return_path" => "headers.Return-Path".to_owned(),
        "template" if rest == ".name" => "template_id".to_owned(),
        // A part that cannot be rendered: these data produce no mail.
        "template" => {
            let rest = rest.strip_prefix(".variables").unwrap_or_default();
            format!("personalizations.{index}.dynamic_template_data{rest}")
        }
        _ => format!("{name}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_every_fault_in_their_form() {
        let faults = ["to[1]", "html", ""].map(|path| FieldError::new(path, "no"));
        let (status, body) = refuse(&ApiError::invalid(faults.into()).renamed(|path| theirs(2, path)), "r");
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let fields: Vec<&Value> =
            body["errors"].as_array().unwrap().iter().map(|one| &one["field"]).collect();
        assert_eq!(fields, [&json!("personalizations.2.to.1"), &json!("content"), &json!(null)]);
        for (error, status) in [
            (ApiError::unauthorized(), 401),
            (ApiError::forbidden("no"), 403),
            (ApiError::malformed("no"), 400),
            (ApiError::too_large("no"), 413),
            (ApiError::too_many("no"), 429),
            (ApiError::unavailable("no", "cause"), 503),
        ] {
            let (got, body) = refuse(&error, "r");
            assert_eq!((got.as_u16(), body["errors"].as_array().map(Vec::len)), (status, Some(1)));
        }
    }

    #[test]
    fn our_fields_have_their_names() {
        for (ours, name) in [
            ("cc[0]", "personalizations.1.cc.0"),
            ("subject", "subject"),
            ("attachments[3].content_type", "attachments.3.type"),
            ("template.name", "template_id"),
            ("template.variables.name", "personalizations.1.dynamic_template_data.name"),
            ("template.subject", "personalizations.1.dynamic_template_data"),
            ("tags[2]", "categories.2"),
            ("headers.X-A", "headers.X-A"),
            ("send_at", "send_at"),
        ] {
            assert_eq!(theirs(1, ours), name);
        }
    }
}
