//! The id of a request: the client's, if it is safe to show and log, or a generated one.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, request::Parts},
};
use postway_domain::Clock;
use rand::Rng;

use crate::http::error::ApiError;

/// The header that carries the id, both ways.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is accepted from a client.
const BYTES_MAX: usize = 128;

/// A request's id: printable ASCII, so it is safe in a header, a log line and a database.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// The client's id, or a new UUID v7.
    pub(crate) fn from_headers(headers: &HeaderMap, clock: &dyn Clock) -> Self {
        match headers.get(&HEADER) {
            Some(given) if is_fit(given.as_bytes()) => Self(given.clone()),
            _ => Self::generate(clock),
        }
    }

    fn generate(clock: &dyn Clock) -> Self {
        let ms = u64::try_from(clock.now().as_millis()).unwrap_or(0);
        let uuid = uuid::Builder::from_unix_timestamp_millis(ms, &rand::rng().random()).into_uuid();
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        let value = HeaderValue::from_str(uuid.hyphenated().encode_lower(&mut text));
        Self(value.unwrap_or_else(|_| HeaderValue::from_static("unknown")))
    }

    /// The id as text.
    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// The id as a header's value.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
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
