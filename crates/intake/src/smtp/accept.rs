//! A whole mail, through the door.

use std::{net::IpAddr, time::Instant};

use postway_mime::Trace;

use super::{
    Service,
    authenticator::{AdmittedSender, Denied, SmtpCredentials},
    conversation::Submission,
    options::Options,
    reply::{NOT_STORED, Reply},
};
use crate::{Refusal, RequestContext, accept::crash_point::crash_point};

/// Servers that a mail may have been through; one that has been through more goes in a circle (RFC 5321, 6.3).
const HOPS_MAX: usize = 100;

/// Who hands a mail over, and how.
pub(super) struct Sender<'a> {
    pub(super) credentials: &'a SmtpCredentials,
    pub(super) greeted_as: &'a str,
    pub(super) peer: IpAddr,
    pub(super) session: &'a str,
    /// Our name.
    pub(super) by: &'a str,
    pub(super) secure: bool,
}

/// Takes a mail, or says why not. A reply of 250 is given for what is durable only.
pub(super) async fn accept(service: &Service, sender: &Sender<'_>, submission: Submission) -> Reply {
    let reply = take(service, sender, submission).await;
    let outcome = match reply.code {
        ..300 => "accepted",
        300..500 => "deferred",
        500.. => "refused",
    };
    metrics::counter!("postway_smtp_messages_total", "outcome" => outcome).increment(1);
    reply
}

async fn take(service: &Service, sender: &Sender<'_>, submission: Submission) -> Reply {
    let Submission { envelope, body, number, share } = submission;
    let started = Instant::now();
    // The key may have been revoked since the login.
    let admitted = sender.credentials.judge(&*service.gatekeeper, sender.peer).await;
    let AdmittedSender { tenant, restrictions } = match admitted {
        Ok(admitted) => admitted,
        Err(Denied::Refused(why)) => return Reply::saying(550, "5.7.8", &why),
        Err(Denied::Later(why)) => return Reply::saying(450, "4.7.0", &why),
        Err(Denied::Unavailable(error)) => {
            tracing::warn!(%error, "a mail was not taken over SMTP: keys cannot be looked up");
            return NOT_STORED;
        }
    };
    if hops(&body) > HOPS_MAX {
        return Reply::new(554, "5.4.6", "this mail has been through too many servers: it goes in a circle");
    }
    let mut options = match Options::of(&envelope, &body) {
        Ok(options) => options,
        Err(reply) => return reply,
    };
    let is_signed_in = match sender.credentials {
        SmtpCredentials::Network(open) => {
            let by_rule = || open.account.as_ref().map(|account| account.as_str().to_owned());
            options.raw.account = options.raw.account.or_else(by_rule);
            if number == 1 {
                let (network, peer, session) = (&open.network, sender.peer, sender.session);
                tracing::info!(%network, %tenant, %peer, session, "mail without a key, by smtp.open_networks");
            }
            false
        }
        SmtpCredentials::Key { .. } | SmtpCredentials::Proven(_) | SmtpCredentials::Unproven => true,
    };
    options.raw.dsn = (!envelope.dsn.is_empty()).then_some(envelope.dsn);
    let id = format!("smtp-{}-{number}", sender.session);
    let trace = Trace {
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
    let context = RequestContext {
        tenant,
        request_id: id.clone(),
        idempotency_key: options.idempotency_key,
        dry_run: false,
        must_leave: true,
        any_subject: false,
        spoken_times: false,
        on_doubt: None,
        restrictions,
    };
    crash_point("smtp_before_accept");
    let taken = service.door.accept_submitted(&context, options.raw, body, trace).await;
    crash_point("smtp_after_accept");
    drop(share);
    match taken {
        Ok(receipt) => {
            metrics::histogram!("postway_accept_seconds").record(started.elapsed().as_secs_f64());
            Reply::saying(250, "2.0.0", &format!("Ok: queued as {}", receipt.uid))
        }
        Err(refusal) => {
            if let Refusal::Unavailable(error) = &refusal {
                tracing::warn!(%error, request_id = id, "a mail was not taken over SMTP: it could not be stored");
            }
            Reply::from(&refusal)
        }
    }
}

/// The trace fields of a mail: one for each server that it has been through.
fn hops(mail: &[u8]) -> usize {
    const TRACE: &[u8] = b"Received:";
    let header = mail.split(|byte| *byte == b'\n').take_while(|line| !line.trim_ascii().is_empty());
    header
        .filter(|line| line.get(..TRACE.len()).is_some_and(|start| start.eq_ignore_ascii_case(TRACE)))
        .count()
}
