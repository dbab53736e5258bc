//! Hands a complete mail to the door.

use std::{net::IpAddr, time::Instant};

use postway_mime::SmtpTrace;
use postway_trace::{Span, SpanKind};

use super::{
    SmtpService,
    authenticator::{AdmittedSender, SmtpCredentials, SmtpDenial},
    conversation::SubmittedMail,
    options::MailOptions,
    reply::{NOT_STORED, SubmissionReply},
};
use crate::{Refusal, RequestContext, RequestTrace, accept::crash_point::crash_point};

/// The most servers that a mail may have passed; a mail that passed more is in a loop (RFC 5321, 6.3).
const HOPS_MAX: usize = 100;

/// The sender of a mail and its session.
pub(super) struct SmtpSender<'a> {
    pub(super) credentials: &'a SmtpCredentials,
    pub(super) greeted_as: &'a str,
    pub(super) peer: IpAddr,
    pub(super) session: &'a str,
    /// The name of this server.
    pub(super) by: &'a str,
    pub(super) secure: bool,
}

/// Accepts a mail, or says why not. The reply is 250 only if the mail is durable.
pub(super) async fn accept(
    service: &SmtpService,
    sender: &SmtpSender<'_>,
    submission: SubmittedMail,
) -> SubmissionReply {
    let reply = take(service, sender, submission).await;
    let outcome = match reply.code {
        ..300 => "accepted",
        300..500 => "deferred",
        500.. => "refused",
    };
    metrics::counter!("postway_smtp_messages_total", "outcome" => outcome).increment(1);
    reply
}

async fn take(service: &SmtpService, sender: &SmtpSender<'_>, submission: SubmittedMail) -> SubmissionReply {
    let SubmittedMail { envelope, body, number, share } = submission;
    let started = Instant::now();
    // The key may have been revoked since the login.
    let admitted = sender.credentials.check_key(&*service.gatekeeper, sender.peer).await;
    let AdmittedSender { tenant, restrictions } = match admitted {
        Ok(admitted) => admitted,
        Err(SmtpDenial::Refused(why)) => return SubmissionReply::with_text(550, "5.7.8", &why),
        Err(SmtpDenial::Later(why)) => return SubmissionReply::with_text(450, "4.7.0", &why),
        Err(SmtpDenial::Unavailable(error)) => {
            tracing::warn!(%error, "a mail was not taken over SMTP: keys cannot be looked up");
            return NOT_STORED;
        }
    };
    if hops(&body) > HOPS_MAX {
        return SubmissionReply::new(
            554,
            "5.4.6",
            "this mail has been through too many servers: it goes in a circle",
        );
    }
    let mut options = match MailOptions::for_mail(&envelope, &body) {
        Ok(options) => options,
        Err(reply) => return reply,
    };
    let is_signed_in = match sender.credentials {
        SmtpCredentials::Keyless(client) => {
            let by_rule = || client.account.as_ref().map(|account| account.as_str().to_owned());
            options.raw.account = options.raw.account.or_else(by_rule);
            if number == 1 {
                let (by, peer, session) = (client.by.as_str(), sender.peer, sender.session);
                tracing::info!(by, %tenant, %peer, session, "mail without a key");
            }
            false
        }
        SmtpCredentials::Key { .. } | SmtpCredentials::Proven(_) | SmtpCredentials::Unproven => true,
    };
    options.raw.dsn = (!envelope.dsn.is_empty()).then_some(envelope.dsn);
    let id = format!("smtp-{}-{number}", sender.session);
    let trace = SmtpTrace {
        greeted_as: sender.greeted_as,
        peer: sender.peer,
        by: sender.by,
        with: match (envelope.smtputf8, sender.secure, is_signed_in) {
            (false, false, false) => "ESMTP",
            (false, false, true) => "ESMTPA",
            (false, true, false) => "ESMTPS",
            (false, true, true) => "ESMTPSA",
            (true, false, false) => "UTF8SMTP",
            (true, false, true) => "UTF8SMTPA",
            (true, true, false) => "UTF8SMTPS",
            (true, true, true) => "UTF8SMTPSA",
        },
        id: &id,
    };
    let mut span = Span::begin(options.trace, SpanKind::Server, "SMTP mail").begun_at(started);
    span.set("postway.tenant", || tenant.to_string());
    let context = RequestContext {
        tenant,
        request_id: id.clone(),
        idempotency_key: options.idempotency_key,
        dry_run: false,
        refuses_capture: true,
        any_subject: false,
        spoken_times: false,
        on_doubt: None,
        restrictions,
        trace: RequestTrace::Decided(span.context()),
    };
    crash_point("smtp_before_accept");
    let taken = service.door.accept_submitted(&context, options.raw, body, trace).await;
    crash_point("smtp_after_accept");
    drop(share);
    match taken {
        Ok(receipt) => {
            metrics::histogram!("postway_accept_seconds").record(started.elapsed().as_secs_f64());
            SubmissionReply::with_text(250, "2.0.0", &format!("Ok: queued as {}", receipt.uid))
        }
        Err(refusal) => {
            span.fail(refusal.trace_code());
            if let Refusal::Unavailable(error) = &refusal {
                tracing::warn!(%error, request_id = id, "a mail was not taken over SMTP: it could not be stored");
            }
            SubmissionReply::from(&refusal)
        }
    }
}

/// The number of trace fields: one for each server that the mail passed.
fn hops(mail: &[u8]) -> usize {
    const TRACE: &[u8] = b"Received:";
    let header = mail.split(|byte| *byte == b'\n').take_while(|line| !line.trim_ascii().is_empty());
    header
        .filter(|line| line.get(..TRACE.len()).is_some_and(|start| start.eq_ignore_ascii_case(TRACE)))
        .count()
}
