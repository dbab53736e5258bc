//! The one shape of an error: `{"error":{"code","message","request_id","details":[{"field","message"}]}}`. A
//! fault of a message also has its public `code` and the `check` that found it.
//!
//! A handler returns an [`ApiError`]. As a response it is a status with the error attached; the middleware,
//! which knows the request's id, writes the body. So no answer can leave without it. The text of a store
//! error or a panic is logged, never shown: it may name files and hosts.

use std::{fmt, time::Duration};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_intake::Refusal;
use postway_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

/// Why a request was refused or failed.
#[derive(Clone, Debug)]
pub struct ApiError(Box<ErrorParts>);

#[derive(Clone, Debug)]
struct ErrorParts {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Vec<FieldError>,
    /// The cause, for the log only.
    cause: Option<String>,
    /// After how many seconds the same request may succeed, if not the usual number.
    retry_after_s: Option<u64>,
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// The path of the field, such as `to[0]` or `attachments[1].content`; empty for the complete body.
    pub field: String,
    /// What is wrong, and what to do about it.
    pub message: String,
    /// For a message or a template: `INVALID_PAYLOAD`, `OUTBOX_NOT_FOUND`, `RECIPIENT_NOT_FOUND`,
    /// `INVALID_EMAIL` or `INVALID_TEMPLATE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "INVALID_EMAIL")]
    pub code: Option<&'static str>,
    /// The check that found the fault: `INTEGRITY`, `OUTBOX`, `RECIPIENT` or `TEMPLATE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "RECIPIENT")]
    pub check: Option<&'static str>,
}

impl FieldError {
    pub(crate) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), code: None, check: None }
    }
}

impl From<postway_intake::FieldFault> for FieldError {
    fn from(fault: postway_intake::FieldFault) -> Self {
        let (code, check) = (Some(fault.code.as_str()), Some(fault.code.check()));
        Self { field: fault.field, message: fault.message, code, check }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.message),
            field => write!(f, "{field}: {}", self.message),
        }
    }
}

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct ErrorAnswer {
    error: ErrorBody,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// A stable code: `malformed_request`, `unauthorized`, `forbidden`, `sensitive`, `not_found`,
    /// `method_not_allowed`, `request_timeout`, `conflict`, `gone`, `payload_too_large`,
    /// `unsupported_media_type`, `validation_error`, `too_many_requests`, `unavailable`, `internal`.
    #[schema(example = "validation_error")]
    code: &'static str,
    /// A sentence for people.
    message: String,
    /// The request's id, as in `X-Request-Id`; absent for one item of a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// The fields that failed their checks.
    details: Vec<FieldError>,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorParts {
            status,
            code,
            message: message.into(),
            details: Vec::new(),
            cause: None,
            retry_after_s: None,
        }))
    }

    /// 400: the request cannot be read.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed_request", message)
    }

    /// 401: no key, or an unknown one.
    pub(crate) fn unauthorized() -> Self {
        let message = "a valid key is needed: send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// 401: the call is not proven to come from whom it says.
    pub(crate) fn unproven(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// 401: a sign-in failed; the answer does not say why.
    pub(crate) fn wrong_credentials() -> Self {
        let message = "the name, the password or the code is wrong, or the code was used before";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// 401: a passkey did not open anything.
    pub(crate) fn wrong_passkey() -> Self {
        let message =
            "this passkey opens nothing here, or the answer came too late: try again, or sign in another way";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// 403: the key is valid but may not do this.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 403: the content is hidden from every key.
    pub(crate) fn sensitive(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "sensitive", message)
    }

    /// 404: nothing has this name.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 410: it existed and is removed.
    pub(crate) fn gone(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "gone", message)
    }

    /// 405: the path has other methods.
    pub(crate) fn method_not_allowed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }

    /// 408: the body did not arrive in time.
    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message)
    }

    /// 409: the current state does not allow it.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// 413: the body is too large.
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", message)
    }

    /// 415: the body has the wrong media type.
    pub(crate) fn media_type(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// 422: the request was understood, but some fields are wrong.
    pub(crate) fn invalid(details: Vec<FieldError>) -> Self {
        let message = sentence(&details);
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "validation_error", message);
        error.0.details = details;
        error
    }

    /// 422 for one field.
    pub(crate) fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid(vec![FieldError::new(field, message)])
    }

    /// 429: the caller asks too often and may try again in a second.
    pub(crate) fn too_many(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message)
    }

    /// 429: the caller asks too often, or for too much, and may try again after this many seconds.
    pub(crate) fn too_many_until(message: impl Into<String>, seconds: u64) -> Self {
        let mut error = Self::too_many(message);
        error.0.retry_after_s = Some(seconds.max(1));
        error
    }

    /// 429: the caller's address sent too many wrong keys; `wait` is the time until the next one is checked.
    pub(crate) fn too_many_wrong_keys(wait: Duration) -> Self {
        Self::too_many_for("too many wrong keys came from your address", wait)
    }

    /// 429: too many wrong passwords were sent for this account, or from this address.
    pub(crate) fn too_many_sign_ins(wait: Duration) -> Self {
        Self::too_many_for("too many wrong passwords were tried for this account or from your address", wait)
    }

    fn too_many_for(why: &str, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let mut error = Self::too_many(format!("{why}; try again in {seconds} s"));
        error.0.retry_after_s = Some(seconds);
        error
    }

    /// 503: the same request may succeed later.
    pub(crate) fn unavailable(message: impl Into<String>, cause: impl ToString) -> Self {
        let mut error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message);
        error.0.cause = Some(cause.to_string());
        error
    }

    /// 503 because the server is busy, without a failure.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    /// 500: an internal failure; the cause is logged.
    pub(crate) fn internal(cause: impl ToString) -> Self {
        let message = "something went wrong on our side; the log has the particulars under the request id";
        let mut error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message);
        error.0.cause = Some(cause.to_string());
        error
    }

    /// The HTTP status, unless a compatibility API uses another.
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// The sentence for people.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// The fields that failed their checks.
    pub(crate) fn details(&self) -> &[FieldError] {
        &self.0.details
    }

    /// The same error with every field renamed, for the users of a compatibility API.
    pub(crate) fn renamed(self, name: impl Fn(&str) -> String) -> Self {
        if self.0.details.is_empty() {
            return self;
        }
        let mut inner = *self.0;
        for detail in &mut inner.details {
            detail.field = name(&detail.field);
        }
        inner.message = sentence(&inner.details);
        Self(Box::new(inner))
    }

    /// The cause, for the log only.
    pub(crate) fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    /// The error body, of one item of a list or, with the request's id, of the complete answer.
    pub(crate) fn into_body(self, request_id: Option<String>) -> ErrorBody {
        let ErrorParts { code, message, details, .. } = *self.0;
        ErrorBody { code, message, request_id, details }
    }

    /// The JSON of the complete answer.
    pub(crate) fn into_json(self, request_id: &str) -> Vec<u8> {
        let answer = ErrorAnswer { error: self.into_body(Some(request_id.to_owned())) };
        // Strings and lists of strings always serialize; the fallback keeps even that promise harmless.
        serde_json::to_vec(&answer).unwrap_or_else(|_| br#"{"error":{"code":"internal"}}"#.to_vec())
    }
}

/// One sentence that says what failed.
fn sentence(details: &[FieldError]) -> String {
    match details {
        [] => "the request failed its checks".to_owned(),
        [one] => one.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more, see details)", rest.len()),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.0.status.into_response();
        let headers = response.headers_mut();
        match self.0.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(self.0.retry_after_s.unwrap_or(1)));
            }
            // Part of the body may be unread, so the connection cannot be used again.
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::SchemaTooNew { .. } => Self::unavailable(
                "the database was upgraded and this node is too old to write to it; use another node",
                error,
            ),
            StoreError::Unsettled(_) => Self::unavailable(
                "whether it was done is not known; repeat the request under the same id or Idempotency-Key",
                error,
            ),
            _ if error.is_transient() => {
                Self::unavailable("the store does not answer now; nothing was done, try again", error)
            }
            _ => Self::internal(error),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let is_forbidden = refusal.is_forbidden();
        match refusal {
            Refusal::Malformed { message } => Self::malformed(message),
            Refusal::Invalid { details } if is_forbidden => {
                let mut error = Self::invalid(details.into_iter().map(FieldError::from).collect());
                (error.0.status, error.0.code) = (StatusCode::FORBIDDEN, "forbidden");
                error
            }
            Refusal::Invalid { details } => {
                Self::invalid(details.into_iter().map(FieldError::from).collect())
            }
            Refusal::Conflict { message } => Self::conflict(message),
            Refusal::TooLarge { message } => Self::too_large(message),
            Refusal::Busy { message } => Self::busy(message),
            Refusal::OverQuota { message, retry_after_s } => Self::too_many_until(message, retry_after_s),
            Refusal::Unavailable(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unsettled commit is reported as neither done nor undone, and as worth a repeat.
    #[test]
    fn a_commit_that_nobody_can_settle_is_503_and_does_not_claim_that_nothing_was_done() {
        let answer = |error: StoreError| {
            let error = ApiError::from(Refusal::from(error));
            (error.0.status, error.0.message.clone())
        };
        let (status, message) = answer(StoreError::Unsettled("the answer was lost".into()));
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(message.contains("not known") && message.contains("Idempotency-Key"), "{message}");
        for error in [StoreError::TooSlow("30 s".into()), StoreError::Unavailable("gone".into())] {
            let (status, message) = answer(error);
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
            assert!(message.contains("nothing was done"), "{message}");
        }
    }
}
