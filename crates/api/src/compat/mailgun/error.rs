//! Errors in Mailgun's format: `{"message"}`, mostly with 400.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::http::error::ApiError;

/// The most faults that one message names.
const FAULTS_MAX: usize = 10;
/// The message for every wrong key.
const NO_KEY: &str = "Invalid private key: send a tenant's key as the password of the user `api`";

/// The answer to a refused request.
pub(super) fn refuse(error: &ApiError, _request_id: &str) -> (StatusCode, Value) {
    let status = match error.status() {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let message = match error.details() {
        _ if status == StatusCode::UNAUTHORIZED => NO_KEY.to_owned(),
        [] => error.message().to_owned(),
        details => details.iter().take(FAULTS_MAX).map(ToString::to_string).collect::<Vec<_>>().join("; "),
    };
    (status, json!({ "message": message }))
}

/// A field of our message as Mailgun names it.
pub(super) fn theirs(path: &str) -> String {
    let (name, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
    match name {
        // The call names no account.
        "account" => String::new(),
        "send_at" => "o:deliverytime".to_owned(),
        "tags" => "o:tag".to_owned(),
        "metadata" => "v:".to_owned(),
        "alternatives" => "amp-html".to_owned(),
        "return_path" => "h:Return-Path".to_owned(),
        "reply_to" => "h:Reply-To".to_owned(),
        "headers" => format!("h:{}", rest.trim_start_matches('.')),
        "attachments" => format!("attachment{rest}"),
        "template" if rest == ".version" => "t:version".to_owned(),
        "template" if rest == ".name" => "template".to_owned(),
        // A part that cannot be rendered: these variables produce no mail.
        "template" => format!("t:variables{}", rest.strip_prefix(".variables").unwrap_or_default()),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error::FieldError;

    #[test]
    fn all_faults_are_told_in_their_names() {
        let faults = [
            "to[1]",
            "attachments[0].content",
            "headers.X-A",
            "send_at",
            "template.variables.n",
            "template.name",
            "",
        ];
        let faults = faults.map(|path| FieldError::new(path, "no"));
        let (status, body) = refuse(&ApiError::invalid(faults.into()).renamed(theirs), "r");
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let said = "to[1]: no; attachment[0].content: no; h:X-A: no; o:deliverytime: no; t:variables.n: no; template: no; no";
        assert_eq!(body, json!({ "message": said }));
        assert_eq!(
            refuse(&ApiError::unauthorized(), "r"),
            (StatusCode::UNAUTHORIZED, json!({"message": NO_KEY}))
        );
        assert_eq!(refuse(&ApiError::unavailable("no", "cause"), "r").0, StatusCode::SERVICE_UNAVAILABLE);
    }
}
