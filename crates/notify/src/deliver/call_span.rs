//! The span of a call to a subscriber, under the place that the message has in a trace. The call carries it as
//! `traceparent`, so the receiver's work belongs to the same trace.
//!
//! A call about several messages is under the first that has a place, and refers to the others.

use postway_domain::Subscriber;
use postway_trace::{Span, SpanKind, TraceContext, context::TRACEPARENT};

use super::http_call::FinishedCall;

/// Begins the span of a call about messages at these places.
pub(crate) fn begin(subscriber: &Subscriber, places: impl IntoIterator<Item = Option<TraceContext>>) -> Span {
    if !postway_trace::is_on() {
        return Span::default();
    }
    let mut places = places.into_iter().flatten();
    let Some(first) = places.next() else { return Span::default() };
    let mut span = Span::child(Some(first), SpanKind::Client, "notify");
    span.set("postway.tenant", || subscriber.tenant.to_string());
    span.set("postway.subscriber", || subscriber.id.to_string());
    for place in places.filter(|place| *place != first) {
        span.link(place);
    }
    span
}

/// The header of the call.
pub(crate) fn header(span: &Span) -> Option<(String, String)> {
    span.context().map(|context| (TRACEPARENT.to_owned(), context.to_string()))
}

/// Ends the span with the answer. The URL may hold credentials, so the span has none of it.
pub(crate) fn end(mut span: Span, called: &FinishedCall) {
    match called.status() {
        Some(status) => {
            span.set("http.response.status_code", || status);
            if !(200..300).contains(&status) {
                span.fail("not_acknowledged");
            }
        }
        None => span.fail("no_answer"),
    }
}
