//! The span of an attempt, under the place that its message has in a trace, whichever node or process accepted
//! the message. The spans of the transport are under it.

use postway_domain::{AccountId, SendFailure};
use postway_net::TlsClient;
use postway_store::record::ClaimedMessage;
use postway_trace::{Span, SpanKind};

use crate::{
    outcome::{AttemptVerdict, outcome_word},
    transport::{HandshakeMilestones, MailEnvelope, SmtpConnection, SmtpSettings, phase},
};

/// The trace of a message, for log lines.
pub(super) fn trace_id(job: &ClaimedMessage) -> Option<impl tracing::Value> {
    job.trace.filter(|_| postway_trace::is_on()).map(|context| tracing::field::display(context.trace))
}

/// Begins the span of an attempt by this account.
pub(super) fn begin(job: &ClaimedMessage, account: &AccountId) -> Span {
    let mut span = Span::child(job.trace, SpanKind::Client, "attempt");
    if span.is_recorded() {
        span.set("postway.message", || job.uid.to_string());
        span.set("postway.tenant", || job.lane.tenant.to_string());
        span.set("postway.account", || account.to_string());
        span.set("postway.attempt", || job.attempt);
        span.set("postway.recipients", || job.recipients.len());
    }
    span
}

/// Ends it with what came of it.
pub(super) fn end(mut span: Span, verdict: &AttemptVerdict) {
    let outcome = outcome_word(verdict.outcome);
    span.set("postway.outcome", || outcome);
    if !matches!(outcome, "sent" | "captured") {
        span.fail(outcome);
    }
}

/// Opens a connection, in a span of its own.
pub(super) async fn connect(
    envelope: &MailEnvelope<'_>,
    settings: &SmtpSettings,
    tls: &TlsClient,
    reached: &mut HandshakeMilestones,
) -> Result<SmtpConnection, SendFailure> {
    let mut span = phase(envelope.trace, "SMTP connect");
    span.set("server.address", || settings.host.clone());
    span.set("server.port", || settings.port);
    let opened = SmtpConnection::open_watched(settings, tls, reached).await;
    if let Err(failure) = &opened {
        span.fail(failure.code.clone());
    }
    opened
}
