//! Spans of the phases of a delivery, under that of its attempt: what the relay's or the provider's time went
//! into.

use postway_domain::SendFailure;
use postway_trace::{Span, SpanKind, TraceContext};

use super::api_call::UnansweredCall;

/// Begins the span of a phase. It ends when it is dropped.
pub(crate) fn phase(attempt: Option<TraceContext>, name: &'static str) -> Span {
    Span::child(attempt, SpanKind::Client, name)
}

/// Ends the span of a phase that failed.
pub(super) fn fail_phase(mut span: Span, failure: &SendFailure) {
    if span.is_recorded() {
        span.fail(failure.code.clone());
        if let Some(code) = failure.smtp_code {
            span.set("smtp.reply_code", || code);
        }
    }
}

/// Ends the span of a call with the status of its answer, if it got one.
pub(super) fn end_call(mut span: Span, status: Result<u16, &UnansweredCall>) {
    match status {
        Ok(status) => {
            span.set("http.response.status_code", || status);
            if status >= 400 {
                span.fail("refused");
            }
        }
        Err(UnansweredCall::Refused) => span.fail("gate_refused"),
        Err(UnansweredCall::NotWritten(failure) | UnansweredCall::Unknown(failure)) => {
            fail_phase(span, failure)
        }
    }
}
