//! A collector of traces: takes OTLP over HTTP in JSON, and keeps the spans.
//!
//! It reads strictly what the specification of OTLP says for JSON: ids in hexadecimal, 64-bit numbers as text,
//! enums as numbers. A request that is anything else panics in the test that looks at the spans.

use serde_json::Value;

use crate::http_source::{HttpSource, SourceReply};

/// Where a collector takes spans.
const PATH: &str = "/v1/traces";

/// A collector on a port of its own.
pub struct OtlpCollector {
    source: HttpSource,
}

/// A span, as it came.
#[derive(Clone, Debug)]
pub struct CollectedSpan {
    /// Its trace.
    pub trace: String,
    /// Its id.
    pub id: String,
    /// The span that it is under; empty for the first of a trace.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// When it began and ended, in nanoseconds since 1970.
    pub times_ns: (u64, u64),
    /// Why it failed, if it did.
    pub failure: Option<String>,
    attributes: Vec<(String, Value)>,
}

impl CollectedSpan {
    /// An attribute as text; empty if it has none of that name.
    pub fn attribute(&self, key: &str) -> String {
        match self.attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }
}

impl OtlpCollector {
    /// Starts one that takes everything.
    pub async fn start() -> Self {
        let source = HttpSource::start().await;
        let taken = SourceReply::Whole {
            status: 200,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: b"{}".to_vec(),
        };
        source.serve(PATH, taken);
        Self { source }
    }

    /// From now on, it does this with every export.
    pub fn answer(&self, reply: SourceReply) {
        self.source.serve(PATH, reply);
    }

    /// Its address, as a client is configured with it.
    pub fn endpoint(&self) -> String {
        self.source.url("")
    }

    /// How many exports have come.
    pub fn exports(&self) -> usize {
        self.source.requests().len()
    }

    /// The value of a header of the latest export.
    pub fn header(&self, name: &str) -> Option<String> {
        self.source.requests().last()?.header(name).map(str::to_owned)
    }

    /// All spans so far. Panics if a request is not OTLP.
    pub fn spans(&self) -> Vec<CollectedSpan> {
        let requests = self.source.requests();
        let of_request = |body: &[u8]| {
            let request: Value = serde_json::from_slice(body).expect("an export is JSON");
            list(&request, "resourceSpans").iter().flat_map(of_resource).collect::<Vec<_>>()
        };
        requests.iter().flat_map(|request| of_request(&request.body)).collect()
    }

    /// The spans of one trace.
    pub fn trace(&self, id: &str) -> Vec<CollectedSpan> {
        self.spans().into_iter().filter(|span| span.trace == id).collect()
    }
}

fn of_resource(resource: &Value) -> Vec<CollectedSpan> {
    let named = attributes(&resource["resource"]);
    assert!(named.iter().any(|(key, _)| key == "service.name"), "nobody says whose spans they are");
    let scopes = list(resource, "scopeSpans").iter();
    scopes.flat_map(|scope| list(scope, "spans")).map(read_span).collect()
}

fn read_span(span: &Value) -> CollectedSpan {
    assert!((1..=5).contains(&span["kind"].as_u64().expect("a kind is a number")), "{span:#}");
    let (trace, id) = (text(span, "traceId"), text(span, "spanId"));
    assert!(is_hex(&trace, 32) && is_hex(&id, 16), "{span:#}");
    let parent = text(span, "parentSpanId");
    assert!(parent.is_empty() || is_hex(&parent, 16), "{span:#}");
    for link in span.get("links").and_then(Value::as_array).into_iter().flatten() {
        assert!(is_hex(&text(link, "traceId"), 32) && is_hex(&text(link, "spanId"), 16), "{span:#}");
    }
    let time = |field| text(span, field).parse().expect("a time is a number in a text");
    CollectedSpan {
        trace,
        id,
        parent,
        name: text(span, "name"),
        times_ns: (time("startTimeUnixNano"), time("endTimeUnixNano")),
        failure: span.get("status").map(|status| text(status, "message")),
        attributes: attributes(span),
    }
}

fn attributes(of: &Value) -> Vec<(String, Value)> {
    let entry = |entry: &Value| {
        let value = &entry["value"];
        let value = value.get("stringValue").or(value.get("intValue")).expect("a value has a type");
        assert!(value.is_string(), "both types are written as texts");
        (text(entry, "key"), value.clone())
    };
    list(of, "attributes").iter().map(entry).collect()
}

fn list<'a>(of: &'a Value, field: &str) -> &'a [Value] {
    of[field].as_array().unwrap_or_else(|| panic!("no list {field} in {of:#}"))
}

fn text(of: &Value, field: &str) -> String {
    of[field].as_str().unwrap_or_else(|| panic!("no text {field} in {of:#}")).to_owned()
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
