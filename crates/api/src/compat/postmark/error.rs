//! Errors in Postmark's format: `{"ErrorCode", "Message"}`, mostly with 422.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::{
    compat::translate::renamed,
    http::error::{ApiError, FieldError},
};

/// The most faults that one message names.
const FAULTS_MAX: usize = 10;
/// The message for every invalid token. Clients look for the words "valid Server token" in it.
const NO_TOKEN: &str = "No valid Server token: send a tenant's key, which may do this, as `X-Postmark-Server-Token: KEY`. \
                        POSTMARK_API_TEST is none here, because it would say nothing of whose mail it tries out";
/// Our fields and their names there.
const NAMES: [(&str, &str); 19] = [
    ("from", "From"),
    ("to", "To"),
    ("cc", "Cc"),
    ("bcc", "Bcc"),
    ("reply_to", "ReplyTo"),
    ("subject", "Subject"),
    ("text", "TextBody"),
    ("html", "HtmlBody"),
    ("tags", "Tag"),
    ("metadata", "Metadata"),
    ("batch", "MessageStream"),
    ("messages", "Messages"),
    ("attachments", "Attachments"),
    ("filename", "Name"),
    ("content", "Content"),
    ("content_type", "ContentType"),
    ("content_id", "ContentID"),
    ("headers", "Headers"),
    ("return_path", "Headers.Return-Path"),
];

/// A fault by its number in Postmark's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostmarkFault {
    /// The key is unknown or not sufficient.
    Token,
    /// The store does not answer, or an internal failure.
    Maintenance,
    /// The request cannot be sent.
    Email,
    /// The body is not JSON.
    Json,
    /// The body is JSON of another form.
    Shape,
    /// Every recipient is suppressed.
    Inactive,
    /// There is no such bounce.
    NoBounce,
    /// The body's media type is not JSON.
    JsonRequired,
    /// The batch is too long.
    BatchLong,
    /// Asked too often.
    RateLimit,
    /// The parameters of a list are wrong.
    Query,
    /// There is no such message.
    NoMessage,
    /// There is no such template.
    NoTemplate,
    /// The template is not named, or lacks a field.
    TemplateMissing,
    /// The template cannot be rendered or stored.
    TemplateInvalid,
    /// The alias is another template's.
    AliasTaken,
    /// There is no such stream, or it cannot be changed that way.
    Stream,
}

impl PostmarkFault {
    /// Each with its number, and the number as the code of a field's fault, by which [`refuse`] recognises
    /// it.
    const ALL: [(Self, u16, &str); 17] = [
        (Self::Token, 10, "10"),
        (Self::Maintenance, 100, "100"),
        (Self::Email, 300, "300"),
        (Self::Json, 402, "402"),
        (Self::Shape, 403, "403"),
        (Self::Inactive, 406, "406"),
        (Self::NoBounce, 407, "407"),
        (Self::JsonRequired, 409, "409"),
        (Self::BatchLong, 410, "410"),
        (Self::RateLimit, 429, "429"),
        (Self::Query, 700, "700"),
        (Self::NoMessage, 701, "701"),
        (Self::NoTemplate, 1101, "1101"),
        (Self::TemplateMissing, 1120, "1120"),
        (Self::TemplateInvalid, 1122, "1122"),
        (Self::AliasTaken, 1123, "1123"),
        (Self::Stream, 1226, "1226"),
    ];

    fn known(self) -> (u16, &'static str) {
        let found = Self::ALL.into_iter().find(|(fault, ..)| *fault == self);
        found.map_or((300, "300"), |(_, number, code)| (number, code))
    }

    fn number(self) -> u16 {
        self.known().0
    }

    fn code(self) -> &'static str {
        self.known().1
    }

    /// The fault of a field; of the complete body if the field is empty.
    pub(super) fn at(self, field: impl Into<String>, message: impl Into<String>) -> FieldError {
        FieldError { code: Some(self.code()), ..FieldError::new(field, message) }
    }

    /// The fault as an error.
    pub(super) fn error(self, field: impl Into<String>, message: impl Into<String>) -> ApiError {
        ApiError::invalid(vec![self.at(field, message)])
    }

    fn for_error(error: &ApiError) -> Self {
        match error.code() {
            "unauthorized" | "forbidden" => Self::Token,
            "malformed_request" => Self::Json,
            "unsupported_media_type" => Self::JsonRequired,
            "too_many_requests" => Self::RateLimit,
            "validation_error" => error.details().first().map_or(Self::Email, Self::of_field),
            _ if error.status().is_client_error() => Self::Email,
            _ => Self::Maintenance,
        }
    }

    fn of_field(detail: &FieldError) -> Self {
        let named = |given: &str| Self::ALL.into_iter().find(|(.., code)| *code == given);
        if let Some((fault, ..)) = detail.code.and_then(named) {
            return fault;
        }
        match detail.field.as_str() {
            "TemplateAlias" => Self::NoTemplate,
            "Messages" => Self::BatchLong,
            field if field.starts_with("TemplateModel") => Self::TemplateInvalid,
            _ => Self::Email,
        }
    }
}

/// The answer to a refused request.
pub(super) fn refuse(error: &ApiError, _request_id: &str) -> (StatusCode, Value) {
    let status = match error.status() {
        StatusCode::BAD_REQUEST | StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::UNPROCESSABLE_ENTITY,
        StatusCode::FORBIDDEN => StatusCode::UNAUTHORIZED,
        status => status,
    };
    (status, body(error))
}

/// The body of an error, also for one message of a batch.
pub(super) fn body(error: &ApiError) -> Value {
    json!({"ErrorCode": PostmarkFault::for_error(error).number(), "Message": words(error)})
}

fn words(error: &ApiError) -> String {
    if error.status() == StatusCode::UNAUTHORIZED {
        return NO_TOKEN.to_owned();
    }
    match error.details() {
        [] => error.message().to_owned(),
        details => details.iter().take(FAULTS_MAX).map(ToString::to_string).collect::<Vec<_>>().join("; "),
    }
}

/// The same error, with our fields under their names.
pub(super) fn theirs(error: ApiError) -> ApiError {
    error.renamed(|path| match path.split_once('.') {
        Some(("template", "name")) => "TemplateAlias".to_owned(),
        Some(("template", rest)) if rest.starts_with("variables") => {
            rest.replacen("variables", "TemplateModel", 1)
        }
        // A part that cannot be rendered: this model produces no mail.
        Some(("template", _)) => "TemplateModel".to_owned(),
        Some(("headers", name)) => format!("Headers.{name}"),
        _ if path == "template" => "TemplateModel".to_owned(),
        // There is one tag, so it has no index.
        _ if path.starts_with("tags[") => "Tag".to_owned(),
        _ => renamed(path, &NAMES),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_number_that_users_know() {
        for (fault, number, code) in PostmarkFault::ALL {
            assert_eq!(code, number.to_string());
            assert_eq!(PostmarkFault::for_error(&fault.error("To", "no")), fault);
        }
        let field = |field: &str| ApiError::field(field, "no");
        for (error, status, code) in [
            (ApiError::unauthorized(), 401, 10),
            (ApiError::forbidden("no"), 401, 10),
            (ApiError::malformed("no"), 422, 402),
            (ApiError::media_type("no"), 422, 409),
            (ApiError::not_found("no"), 404, 300),
            (ApiError::too_large("no"), 413, 300),
            (ApiError::too_many("no"), 429, 429),
            (ApiError::unavailable("no", "cause"), 503, 100),
            (ApiError::internal("cause"), 500, 100),
            (field("from"), 422, 300),
            (field("template.name"), 422, 1101),
            (field("template.variables"), 422, 1122),
            (field("template.subject"), 422, 1122),
            (field("template"), 422, 1122),
            (field("messages"), 422, 410),
        ] {
            let text = error.message().to_owned();
            let (got, body) = refuse(&theirs(error), "r");
            assert_eq!((got.as_u16(), body["ErrorCode"].as_u64()), (status, Some(code)), "{text}");
        }
    }

    #[test]
    fn all_faults_are_told_in_their_names() {
        let faults = ["to[1]", "attachments[0].filename", "tags[0]", "headers.content", "html"];
        let error = ApiError::invalid(faults.map(|field| FieldError::new(field, "no")).into());
        let said = "To[1]: no; Attachments[0].Name: no; Tag: no; Headers.content: no; HtmlBody: no";
        assert_eq!(body(&theirs(error))["Message"], said);
    }
}
