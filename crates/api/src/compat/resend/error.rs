//! Errors in Resend's format: `{"statusCode", "name", "message"}`.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::http::error::{ApiError, FieldError};

/// The name of a fault without a more specific one.
const INVALID: &str = "validation_error";
const MISSING: &str = "missing_required_field";
/// The most faults that one message names.
const FAULTS_MAX: usize = 10;

/// The fault of a missing field.
pub(super) fn missing(field: &'static str) -> FieldError {
    FieldError { code: Some(MISSING), ..FieldError::new(field, "is missing") }
}

/// The body of an error.
pub(super) fn body(status: StatusCode, name: &str, message: &str) -> Value {
    json!({"statusCode": status.as_u16(), "name": name, "message": message})
}

/// The answer to a refused request.
pub(super) fn refuse(error: &ApiError, _request_id: &str) -> (StatusCode, Value) {
    let (status, name) = match error.code() {
        "unauthorized" => (StatusCode::FORBIDDEN, "invalid_api_key"),
        "forbidden" => (StatusCode::UNAUTHORIZED, "restricted_api_key"),
        "not_found" => (StatusCode::NOT_FOUND, "not_found"),
        "method_not_allowed" => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
        "conflict" => (StatusCode::CONFLICT, "invalid_idempotent_request"),
        "too_many_requests" => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
        "validation_error" => of_fields(error.details()),
        "internal" => (error.status(), "internal_server_error"),
        _ if error.status().is_client_error() => (error.status(), INVALID),
        _ => (error.status(), "application_error"),
    };
    (status, body(status, name, &words(error)))
}

/// The status and name, by the first fault.
fn of_fields(details: &[FieldError]) -> (StatusCode, &'static str) {
    let first = details.first();
    let field = first.map_or("", |detail| detail.field.as_str());
    // In a batch a field has its email's index before it: `[2].from`.
    let field =
        field.strip_prefix('[').and_then(|rest| rest.split_once("].")).map_or(field, |(_, field)| field);
    let name = match first.and_then(|detail| detail.code) {
        Some(MISSING) => MISSING,
        _ if field == "from" => "invalid_from_address",
        _ if field.starts_with("attachments") => "invalid_attachment",
        _ if field == "Idempotency-Key" => return (StatusCode::BAD_REQUEST, "invalid_idempotency_key"),
        _ => INVALID,
    };
    (StatusCode::UNPROCESSABLE_ENTITY, name)
}

/// The faults in words: this format has no list of details.
pub(super) fn words(error: &ApiError) -> String {
    if error.status() == StatusCode::UNAUTHORIZED {
        return "the key is not valid: send one of a tenant as `Authorization: Bearer KEY`".to_owned();
    }
    let said = |detail: &FieldError| match detail.field.as_str() {
        "" => detail.message.clone(),
        field => format!("`{field}`: {}", detail.message),
    };
    match error.details() {
        [] => error.message().to_owned(),
        details => details.iter().take(FAULTS_MAX).map(said).collect::<Vec<_>>().join("; "),
    }
}

/// A conflict means idempotency in this API; an action that the current state does not allow is a fault of
/// the request.
pub(super) fn as_request_fault(error: ApiError) -> ApiError {
    match error.status() {
        StatusCode::CONFLICT => {
            let fault = FieldError { code: Some(INVALID), ..FieldError::new("", error.message()) };
            ApiError::invalid(vec![fault])
        }
        _ => theirs(error),
    }
}

/// The same error, with our fields under their names.
pub(super) fn theirs(error: ApiError) -> ApiError {
    error.renamed(|path| match path.split_once('.') {
        None if path == "send_at" => "scheduled_at".to_owned(),
        Some(("template", "name")) => "template.id".to_owned(),
        Some((file, "url")) if file.starts_with("attachments[") => format!("{file}.path"),
        _ => path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(error: ApiError) -> (u16, String, String) {
        let (status, body) = refuse(&theirs(error), "r");
        assert_eq!(body["statusCode"], status.as_u16());
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        (status.as_u16(), text("name"), text("message"))
    }

    #[test]
    fn every_fault_has_a_name_that_users_know() {
        let field = |field: &str| ApiError::field(field, "no");
        for (error, status, name) in [
            (ApiError::unauthorized(), 403, "invalid_api_key"),
            (ApiError::forbidden("no"), 401, "restricted_api_key"),
            (ApiError::not_found("no"), 404, "not_found"),
            (ApiError::method_not_allowed("no"), 405, "method_not_allowed"),
            (ApiError::conflict("no"), 409, "invalid_idempotent_request"),
            (ApiError::malformed("no"), 400, "validation_error"),
            (ApiError::too_large("no"), 413, "validation_error"),
            (ApiError::too_many("no"), 429, "rate_limit_exceeded"),
            (ApiError::unavailable("no", "cause"), 503, "application_error"),
            (ApiError::internal("cause"), 500, "internal_server_error"),
            (ApiError::invalid(vec![missing("to")]), 422, "missing_required_field"),
            (field("from"), 422, "invalid_from_address"),
            (field("[3].from"), 422, "invalid_from_address"),
            (field("attachments[0].content"), 422, "invalid_attachment"),
            (field("Idempotency-Key"), 400, "invalid_idempotency_key"),
            (field("to[0]"), 422, "validation_error"),
        ] {
            let text = error.message().to_owned();
            let (got_status, got_name, _) = shown(error);
            assert_eq!((got_status, got_name.as_str()), (status, name), "{text}");
        }
    }

    #[test]
    fn all_faults_are_told_in_their_names() {
        let faults = ["send_at", "template.name", "attachments[1].url", "headers.url"];
        let (.., message) = shown(ApiError::invalid(faults.map(|field| FieldError::new(field, "no")).into()));
        assert_eq!(
            message,
            "`scheduled_at`: no; `template.id`: no; `attachments[1].path`: no; `headers.url`: no"
        );
    }
}
