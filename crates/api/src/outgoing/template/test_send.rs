//! `POST /v1/templates/{name}/test`: sends a template to addresses of the request, to see it in a real
//! program.
//!
//! The mail takes the ordinary way: routes, limits, suppressions and the key's restrictions hold for it. It
//! goes to nobody but the given addresses, its subject begins with `[Test]`, and it has the tag `test`. It
//! belongs to no stream, so readers cannot leave one by it, and it counts for none.

use axum::{
    extract::{Request, State},
    response::Response,
};
use postway_domain::{MailLocale, NamedAddress};
use postway_intake::{PreviewTarget, VARIABLES};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    NamedTemplate, chosen,
    preview::{STORED_BODY_BYTES_MAX, not_an_object, sample},
    schema::TemplateTestRequest,
};
use crate::{
    auth::Sender,
    http::{body, error::ApiError, json_fields::JsonFieldReader, request_id::RequestId},
    message::{AcceptedView, submit::accept},
    state::SharedState,
};

/// The most addresses of a test.
const ADDRESSES_MAX: usize = 10;
/// What the subject of a test begins with, and the tag that it has.
const SUBJECT_MARK: &str = "[Test] ";
const TAG: &str = "test";
const SUBJECT_CHARS_MAX: usize = 150;
const NAME_CHARS_MAX: usize = 400;

/// Send a test of a template
///
/// One mail to the addresses in `to` and nobody else, rendered with `variables`, or with the template's
/// `sample` if none are given. Its subject begins with `[Test]`, and it has the tag `test`.
#[utoipa::path(
    post,
    path = "/v1/templates/{name}/test",
    operation_id = "sendTemplateTest",
    tag = "templates",
    params(
        ("name" = String, Path, description = "The template"),
        ("Idempotency-Key" = Option<String>, Header, description = "Identifies this request, so that a repeat is recognised"),
    ),
    request_body = TemplateTestRequest,
    responses((status = 202, description = "Durable", body = AcceptedView))
)]
pub(crate) async fn send(
    State(app): State<SharedState>,
    caller: Sender,
    id: RequestId,
    NamedTemplate(name): NamedTemplate,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, STORED_BODY_BYTES_MAX).await?;
    let (rest, variables) = body::json_beside(&bytes, "variables", body::SMALL_BYTES_MAX)?;
    let given = TestSendFields::read(rest, variables)?;
    let context = accept::context(caller, &id, &parts.headers, false)?;
    let tenant = &context.tenant;
    let template = chosen(&app, tenant, &name, given.version, given.locale.as_ref()).await?;
    let sample = sample(&template).to_owned();
    let variables = variables.map_or(sample.as_str(), RawValue::get);
    let (name, version) = (template.name.clone(), template.version);
    let target = PreviewTarget::Stored { name: name.clone(), version: Some(version), locale: given.locale };
    let rendered = app.door.preview(tenant, target, variables).await?;
    let variables = RawValue::from_string(variables.to_owned()).map_err(ApiError::internal)?;
    let mut message = given.rest;
    message.insert("to".to_owned(), json!(given.to));
    message.insert("subject".to_owned(), json!(marked(&rendered.subject)));
    message.insert("tags".to_owned(), json!([TAG]));
    let bytes = message_with_template(&message, name.as_str(), version, &variables)?;
    let receipt = accept::take(&app, &context, bytes.into()).await?;
    Ok(crate::message::receipt(receipt, false))
}

/// The subject with its mark, cut so that it is never too long because of it.
fn marked(subject: &str) -> String {
    SUBJECT_MARK.chars().chain(subject.chars()).take(SUBJECT_CHARS_MAX).collect()
}

/// The request as one for a message. The variables stay as they were written.
fn message_with_template(
    message: &Map<String, Value>,
    name: &str,
    version: i64,
    variables: &RawValue,
) -> Result<Vec<u8>, ApiError> {
    #[derive(serde::Serialize)]
    struct TestedTemplate<'a> {
        name: &'a str,
        version: i64,
        variables: &'a RawValue,
    }
    #[derive(serde::Serialize)]
    struct TestMessage<'a> {
        #[serde(flatten)]
        message: &'a Map<String, Value>,
        template: TestedTemplate<'a>,
    }
    let template = TestedTemplate { name, version, variables };
    debug_assert!(variables.get().len() <= VARIABLES.text_bytes_max);
    serde_json::to_vec(&TestMessage { message, template }).map_err(ApiError::internal)
}

/// The fields of a request.
struct TestSendFields {
    to: Vec<String>,
    version: Option<i64>,
    locale: Option<MailLocale>,
    /// Fields of a message, as they were given.
    rest: Map<String, Value>,
}

impl TestSendFields {
    fn read(body: Map<String, Value>, variables: Option<&RawValue>) -> Result<Self, ApiError> {
        let mut wrong: Vec<_> = variables.and_then(not_an_object).into_iter().collect();
        let mut fields = JsonFieldReader::new(body, &mut wrong);
        let to: Vec<String> = fields.read("to", "must be a list of addresses").unwrap_or_default();
        if !(1..=ADDRESSES_MAX).contains(&to.len()) {
            fields.refuse("to", format!("must have 1 to {ADDRESSES_MAX} addresses"));
        } else if to.iter().any(|address| address.parse::<NamedAddress>().is_err()) {
            fields.refuse("to", "must have addresses such as ada@example.net only");
        }
        let version = fields.read("version", "must be a whole number");
        let locale: Option<MailLocale> = fields.parsed("locale");
        let mut rest = Map::new();
        for name in ["from", "account"] {
            if let Some(text) = fields.text(name, NAME_CHARS_MAX) {
                rest.insert(name.to_owned(), text.into());
            }
        }
        if let Some(locale) = &locale {
            rest.insert("locale".to_owned(), locale.as_str().into());
        }
        fields.finish("is not a field of a test");
        match wrong.is_empty() {
            true => Ok(Self { to, version, locale, rest }),
            false => Err(ApiError::invalid(wrong)),
        }
    }
}
