//! The span of a request, under the place that its header `traceparent` names.
//!
//! What monitoring and browsers ask for all the time is not traced, and neither is what was refused for its
//! key: strangers could fill a collector with it. A header that is no `traceparent`, or is there more than
//! once, is ignored.

use axum::{
    extract::MatchedPath,
    http::{HeaderMap, Method, StatusCode},
};
use postway_trace::{Span, SpanKind, TraceContext, context::TRACEPARENT};

use crate::http::request_id::RequestId;

/// The beginnings of routes that are not traced.
const UNTRACED: [&str; 4] = ["/health", "/metrics", "/assets", "/docs"];

/// The span of a request under way.
pub(crate) struct RequestSpan(Span);

impl RequestSpan {
    /// Begins the span, if this process traces.
    pub(crate) fn begin(headers: &HeaderMap, method: &Method, route: Option<&MatchedPath>) -> Self {
        let Some(route) = route.filter(|_| postway_trace::is_on()).map(MatchedPath::as_str) else {
            return Self(Span::default());
        };
        if route == "/" || UNTRACED.iter().any(|prefix| route.starts_with(prefix)) {
            return Self(Span::default());
        }
        let values = headers.get_all(TRACEPARENT).iter().map(|value| value.as_bytes());
        let mut span = Span::begin(TraceContext::parse_only(values), SpanKind::Server, "request");
        span.rename(|| format!("{method} {route}"));
        span.set("http.request.method", || method.as_str().to_owned());
        span.set("http.route", || route.to_owned());
        Self(span)
    }

    /// The context for what belongs under it.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.0.context()
    }

    /// Ends the span with the answer.
    pub(crate) fn end(self, status: StatusCode, id: &RequestId) {
        let Self(mut span) = self;
        if status == StatusCode::UNAUTHORIZED {
            span.discard();
            return;
        }
        span.set("http.response.status_code", || status.as_u16());
        span.set("postway.request_id", || id.as_str().to_owned());
        if status.is_server_error() {
            span.fail("server_error");
        }
    }
}
