//! Requests that were handed to another system, translated without a call: for importing rows of its tables.
//!
//! It uses the compatibility APIs' own translation, so that a row means what a call with the same content
//! would.

use serde_json::{Map, Value};

use super::{
    CompatApi, reference_000, reference_001, reference_004,
    translate::{RawFields, renamed},
};
use crate::http::error::{ApiError, FieldError};

/// The kind of a row of another system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignRowKind {
    /// A mail.
    Message,
    /// An account to send through.
    Account,
    /// A tenant.
    Tenant,
}

/// The body for our API, or every faulty field, named as that API names it. APIs without tables to import
/// refuse everything.
pub fn translate_row(
    api: CompatApi,
    kind: ForeignRowKind,
    body: Map<String, Value>,
) -> Result<Map<String, Value>, Vec<FieldError>> {
    let said = match (api, kind) {
        (CompatApi::Outbox, ForeignRowKind::Message) => {
            read(body, |fields| reference_000::accept::translate(fields).map(|(json, _)| json))
        }
        (CompatApi::Proxy, ForeignRowKind::Message) => {
            read(body, |fields| reference_001::message::translate(fields, None))
        }
        (CompatApi::Pipeline, ForeignRowKind::Message) => return of_004(body),
        (CompatApi::Proxy, ForeignRowKind::Account) => {
            return reference_001::account::translate(body, true);
        }
        (CompatApi::Proxy, ForeignRowKind::Tenant) => {
            return reference_001::tenant::translate(body, None);
        }
        _ => Err(ApiError::field("", format!("the compatibility API {api} has no such rows"))),
    };
    said.map_err(faults)
}

/// The field with the id of the original request of an imported message; calls do not have it.
pub const REQUEST_ID: &str = "request_id";

/// One of our fields as that API names it.
pub fn foreign_field_name(api: CompatApi, kind: ForeignRowKind, field: &str) -> String {
    match (api, kind) {
        (CompatApi::Outbox, ForeignRowKind::Message) => renamed(field, reference_000::NAMES),
        (CompatApi::Proxy, ForeignRowKind::Message) => renamed(field, reference_001::NAMES),
        (CompatApi::Proxy, ForeignRowKind::Account) => reference_001::account::in_its_names(field),
        (CompatApi::Proxy, ForeignRowKind::Tenant) => reference_001::tenant::in_its_names(field),
        (CompatApi::Pipeline, ForeignRowKind::Message) => renamed(field, reference_004::NAMES),
        _ => field.to_owned(),
    }
}

/// The ids of 004 are its own, and no call names them; the request's id is a header there and here.
fn of_004(mut body: Map<String, Value>) -> Result<Map<String, Value>, Vec<FieldError>> {
    let (id, request_id) = (body.remove("id"), body.remove("requestId"));
    let json = Value::Object(body).to_string();
    let mut ours =
        reference_004::send::translate_row(json.as_bytes()).and_then(|json| object(&json)).map_err(faults)?;
    ours.extend(id.map(|id| ("id".to_owned(), id)));
    ours.extend(request_id.map(|id| (REQUEST_ID.to_owned(), id)));
    Ok(ours)
}

fn read(
    body: Map<String, Value>,
    translate: impl FnOnce(RawFields<'_>) -> Result<String, ApiError>,
) -> Result<Map<String, Value>, ApiError> {
    let json = Value::Object(body).to_string();
    object(&RawFields::read(json.as_bytes()).and_then(translate)?)
}

fn object(json: &str) -> Result<Map<String, Value>, ApiError> {
    serde_json::from_str(json).map_err(ApiError::internal)
}

fn faults(error: ApiError) -> Vec<FieldError> {
    match error.details() {
        [] => vec![FieldError::new("", error.message())],
        details => details.iter().map(|fault| FieldError::new(&fault.field, &fault.message)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(api: CompatApi, kind: ForeignRowKind, body: Value) -> Result<Value, Vec<String>> {
        let Value::Object(body) = body else { panic!("{body}") };
        let ours = translate_row(api, kind, body);
        ours.map(Value::Object).map_err(|wrong| wrong.into_iter().map(|fault| fault.field).collect())
    }

    #[test]
    fn rows_are_read_as_the_doors_read_calls() {
        let message = ForeignRowKind::Message;
        for (api, kind, theirs, ours) in [
            (
                CompatApi::Outbox,
                message,
                json!({"id": "a", "to": "b@x.example", "body_text": "t"}),
                json!({"id": "a", "to": "b@x.example", "text": "t"}),
            ),
            (
                CompatApi::Proxy,
                message,
                json!({"id": "a", "body": "t", "batch_code": "c", "priority": 3}),
                json!({"id": "a", "priority": 3, "text": "t", "batch": "c"}),
            ),
            (
                CompatApi::Proxy,
                ForeignRowKind::Account,
                json!({"id": "a", "host": "h", "use_tls": true, "user": "u"}),
                json!({"id": "a", "host": "h", "username": "u", "tls": "starttls"}),
            ),
            (
                CompatApi::Proxy,
                ForeignRowKind::Tenant,
                json!({"id": "a", "name": "A"}),
                json!({"id": "a", "name": "A"}),
            ),
            (
                CompatApi::Pipeline,
                message,
                json!({"id": "a", "to": "b@x.example", "subject": "s", "html": "<p>h",
                "recipient": {"externalId": "C-1", "email": "b@x.example"}}),
                json!({"to": "b@x.example", "subject": "s", "html": "<p>h",
                    "recipient": {"external_id": "C-1", "email": "b@x.example"}, "id": "a"}),
            ),
        ] {
            assert_eq!(said(api, kind, theirs.clone()), Ok(ours), "{theirs}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_as_they_name_it() {
        let wrong =
            said(CompatApi::Proxy, ForeignRowKind::Message, json!({"colour": 1, "content_type": "rtf"}));
        assert_eq!(wrong, Err(vec!["content_type".to_owned(), "id".to_owned(), "colour".to_owned()]));
        assert_eq!(foreign_field_name(CompatApi::Proxy, ForeignRowKind::Message, "send_at"), "deferred_ts");
        assert_eq!(
            foreign_field_name(CompatApi::Proxy, ForeignRowKind::Account, "limits.per_day"),
            "limit_per_day"
        );
        assert!(said(CompatApi::Resend, ForeignRowKind::Message, json!({})).is_err());
    }
}
