//! The id of a request: the client's, if it is safe to show and log, or a generated one. It also carries the
//! address that the request came from, because the audit log names both, and the span of the request.

use std::net::IpAddr;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, request::Parts},
};
use postway_domain::Clock;
use postway_trace::TraceContext;
use rand::Rng;

use crate::http::{error::ApiError, origin::RequestOrigin};

/// The header that carries the id, both ways.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is accepted from a client.
const BYTES_MAX: usize = 128;

/// A request's id: printable ASCII, so it is safe in a header, a log line and a database.
#[derive(Clone, Debug)]
pub(crate) struct RequestId {
    value: HeaderValue,
    client: Option<IpAddr>,
    trace: Option<TraceContext>,
}

impl RequestId {
    /// The client's id, or a new UUID v7.
    pub(crate) fn from_headers(headers: &HeaderMap, clock: &dyn Clock) -> Self {
        let value = match headers.get(&HEADER) {
            Some(given) if is_fit(given.as_bytes()) => given.clone(),
            _ => Self::generate(clock),
        };
        Self { value, client: None, trace: None }
    }

    /// The id of a request that came from there.
    pub(crate) fn with_origin(self, origin: Option<&RequestOrigin>) -> Self {
        Self { client: origin.map(|origin| origin.address), ..self }
    }

    /// The address that the request came from: the client's, or that of a proxy which does not name it.
    pub(crate) fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// The id of a request under this span.
    pub(crate) fn with_trace(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// The span of the request, if its trace is known.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    fn generate(clock: &dyn Clock) -> HeaderValue {
        let ms = u64::try_from(clock.now().as_millis()).unwrap_or(0);
        let uuid = uuid::Builder::from_unix_timestamp_millis(ms, &rand::rng().random()).into_uuid();
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        let value = HeaderValue::from_str(uuid.hyphenated().encode_lower(&mut text));
        value.unwrap_or_else(|_| HeaderValue::from_static("unknown"))
    }

    /// The id as text.
    pub(crate) fn as_str(&self) -> &str {
        self.value.to_str().unwrap_or_default()
    }

    /// The id as a header's value.
    pub(crate) fn header(&self) -> HeaderValue {
        self.value.clone()
    }
}

fn is_fit(bytes: &[u8]) -> bool {
    (1..=BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(|byte| (0x20..=0x7e).contains(byte))
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get().cloned().ok_or_else(|| ApiError::internal("a request came without its frame"))
    }
}
