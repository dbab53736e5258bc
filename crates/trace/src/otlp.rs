//! Spans as OTLP writes them in JSON, for `POST …/v1/traces`.
//!
//! Names are in camel case, ids in hexadecimal, 64-bit numbers as text, and enums as numbers, as the
//! specification of OTLP says for JSON.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeSeq};

use crate::{
    context::TraceContext,
    span::{AttributeValue, FinishedSpan},
};

/// The scope that all spans are of.
const SCOPE: &str = "postway";
/// The code of a status that says that a span failed.
const FAILED: u8 = 2;
/// The flag of W3C that is repeated in a span.
const SAMPLED: u32 = 1;

/// Who made the spans: `service.name` and the like.
pub type ResourceAttributes = Vec<(Cow<'static, str>, String)>;

/// The body of a request with these spans.
pub fn request(resource: &ResourceAttributes, version: &'static str, spans: &[FinishedSpan]) -> Vec<u8> {
    let attributes =
        resource.iter().map(|(key, value)| OtlpAttribute { key, value: OtlpValue::StringValue(value) });
    let body = OtlpRequest {
        resource_spans: [OtlpResourceSpans {
            resource: OtlpResource { attributes: attributes.collect() },
            scope_spans: [OtlpScopeSpans {
                scope: OtlpScope { name: SCOPE, version },
                spans: OtlpSpans(spans),
            }],
        }],
    };
    // Texts and numbers can always be written.
    serde_json::to_vec(&body).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtlpRequest<'a> {
    resource_spans: [OtlpResourceSpans<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtlpResourceSpans<'a> {
    resource: OtlpResource<'a>,
    scope_spans: [OtlpScopeSpans<'a>; 1],
}

#[derive(Serialize)]
struct OtlpResource<'a> {
    attributes: Vec<OtlpAttribute<'a>>,
}

#[derive(Serialize)]
struct OtlpScopeSpans<'a> {
    scope: OtlpScope,
    spans: OtlpSpans<'a>,
}

#[derive(Serialize)]
struct OtlpScope {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct OtlpAttribute<'a> {
    key: &'a str,
    value: OtlpValue<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum OtlpValue<'a> {
    StringValue(&'a str),
    IntValue(#[serde(serialize_with = "as_text")] i64),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtlpSpan<'a> {
    #[serde(serialize_with = "as_text")]
    trace_id: crate::TraceId,
    #[serde(serialize_with = "as_text")]
    span_id: crate::SpanId,
    #[serde(serialize_with = "as_text")]
    parent_span_id: OptionalId,
    flags: u32,
    name: &'a str,
    kind: u8,
    #[serde(serialize_with = "as_text")]
    start_time_unix_nano: u64,
    #[serde(serialize_with = "as_text")]
    end_time_unix_nano: u64,
    attributes: Vec<OtlpAttribute<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<OtlpLink>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<OtlpStatus<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtlpLink {
    #[serde(serialize_with = "as_text")]
    trace_id: crate::TraceId,
    #[serde(serialize_with = "as_text")]
    span_id: crate::SpanId,
}

#[derive(Serialize)]
struct OtlpStatus<'a> {
    code: u8,
    message: &'a str,
}

/// An id that may be absent, which is an empty text.
#[derive(Clone, Copy)]
struct OptionalId(Option<crate::SpanId>);

impl std::fmt::Display for OptionalId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |id| id.fmt(f))
    }
}

fn as_text<S: Serializer>(value: &impl std::fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

struct OtlpSpans<'a>(&'a [FinishedSpan]);

impl Serialize for OtlpSpans<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for span in self.0 {
            list.serialize_element(&OtlpSpan::from(span))?;
        }
        list.end()
    }
}

impl<'a> From<&'a FinishedSpan> for OtlpSpan<'a> {
    fn from(span: &'a FinishedSpan) -> Self {
        let attribute = |(key, value): &'a (&'static str, AttributeValue)| OtlpAttribute {
            key,
            value: match value {
                AttributeValue::Text(text) => OtlpValue::StringValue(text),
                AttributeValue::Number(number) => OtlpValue::IntValue(*number),
            },
        };
        let link =
            |TraceContext { trace, span, .. }: &TraceContext| OtlpLink { trace_id: *trace, span_id: *span };
        Self {
            trace_id: span.trace,
            span_id: span.id,
            parent_span_id: OptionalId(span.parent),
            flags: SAMPLED,
            name: &span.name,
            kind: span.kind as u8,
            start_time_unix_nano: span.began_unix_ns,
            end_time_unix_nano: span.ended_unix_ns,
            attributes: span.attributes.iter().map(attribute).collect(),
            links: span.links.iter().map(link).collect(),
            status: span.failure.as_deref().map(|message| OtlpStatus { code: FAILED, message }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::SpanKind;

    #[test]
    fn a_request_is_what_the_specification_says() {
        let context =
            TraceContext::parse(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        let span = FinishedSpan {
            trace: context.trace,
            id: context.span,
            parent: Some(context.span),
            name: "attempt".into(),
            kind: SpanKind::Client,
            began_unix_ns: 1_700_000_000_000_000_001,
            ended_unix_ns: 1_700_000_000_000_000_002,
            attributes: vec![("postway.account", "relay".into()), ("postway.attempt", 2i64.into())],
            links: vec![context],
            failure: Some("rate_limited".into()),
        };
        let root =
            FinishedSpan { parent: None, attributes: vec![], links: vec![], failure: None, ..span.clone() };
        let resource = vec![("service.name".into(), "postway".to_owned())];
        let body: Value = serde_json::from_slice(&request(&resource, "1.0", &[span, root])).unwrap();
        let (trace, id) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let text = |text: &str| json!({ "stringValue": text });
        let expected = json!({ "resourceSpans": [{
            "resource": { "attributes": [{ "key": "service.name", "value": text("postway") }] },
            "scopeSpans": [{
                "scope": { "name": "postway", "version": "1.0" },
                "spans": [{
                    "traceId": trace, "spanId": id, "parentSpanId": id, "flags": 1, "name": "attempt", "kind": 3,
                    "startTimeUnixNano": "1700000000000000001", "endTimeUnixNano": "1700000000000000002",
                    "attributes": [
                        { "key": "postway.account", "value": text("relay") },
                        { "key": "postway.attempt", "value": { "intValue": "2" } },
                    ],
                    "links": [{ "traceId": trace, "spanId": id }],
                    "status": { "code": 2, "message": "rate_limited" },
                }, {
                    "traceId": trace, "spanId": id, "parentSpanId": "", "flags": 1, "name": "attempt", "kind": 3,
                    "startTimeUnixNano": "1700000000000000001", "endTimeUnixNano": "1700000000000000002",
                    "attributes": [],
                }],
            }],
        }] });
        assert_eq!(body, expected);
    }
}
