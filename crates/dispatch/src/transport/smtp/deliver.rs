//! One mail transaction: envelope, body, gate, dot.
//!
//! The commands of the envelope go out in one packet if the relay allows it (RFC 2920), the body follows in
//! blocks, and the dot is written alone, after the gate has opened. A failure before the first byte of the
//! dot means "not sent". From that byte on, only a well-formed reply decides. If the relay accepts DATA
//! although it refused every recipient, the connection is dropped without a dot.

use std::{io::Write as _, time::Duration};

use postway_domain::failure::{FailureCategory, FailurePhase, FailureSeverity, SendFailure};
use postway_mime::downgrade::RelayLacks;
use postway_trace::TraceContext;
use tokio::time::Instant;

use super::{
    SmtpConnection,
    body::{self, BodyScan},
    capability::RelayExtensions,
    connection::ConnectionState,
    dialogue::{MailTrail, describe, is_failed},
    judge::{check_mail, closed_failure, is_connection_failure, judge_rcpt_reply, needs_smtputf8},
    wire::UnaskedInput,
};
use crate::transport::{
    DeliveryEnd, DeliveryResult, MailEnvelope, RecipientReply, RelayReply, WireGate, crash_point,
    fitted_mail::FittedMail,
    phase_span::{fail_phase, phase},
};

/// The most commands, and roughly the most bytes, that are written before their replies are read. The socket
/// buffers of both sides hold that much, so neither side can block on a write while the other does not read
/// (RFC 2920 3.1).
const BATCH_COMMANDS_MAX: usize = 64;
const BATCH_BYTES_MAX: usize = 8 * 1024;
/// How much of the body is written before its deadline is renewed.
const BODY_BLOCK_BYTES: usize = 64 * 1024;
/// How long to wait for a relay's last reply after a write to it failed.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// One command of the envelope. `Rcpt` has the index of its recipient.
#[derive(Debug, Clone, Copy)]
pub(super) enum EnvelopeCommand {
    Rset,
    Mail,
    Rcpt(usize),
    Data,
}

impl EnvelopeCommand {
    pub(super) fn phase(self) -> FailurePhase {
        match self {
            Self::Rset | Self::Mail => FailurePhase::Mail,
            Self::Rcpt(_) => FailurePhase::Rcpt,
            Self::Data => FailurePhase::Data,
        }
    }
}

/// How the envelope ended.
enum EnvelopeEnd {
    /// The gate did not let the mail begin.
    Refused,
    /// The relay waits for the body.
    GoAhead,
    /// Every recipient was refused.
    NoRecipients,
}

/// What the replies to the envelope say so far.
#[derive(Default)]
struct EnvelopeProgress {
    accepted: usize,
    /// A command was refused, so RSET comes before the next mail.
    refused: bool,
    mail_refused: Option<SendFailure>,
}

impl EnvelopeProgress {
    /// Takes the reply to RSET, MAIL or RCPT, and gives back one to RSET or MAIL that is positive. Fails if the
    /// transaction cannot continue after it.
    fn take(
        &mut self,
        step: EnvelopeCommand,
        reply: RelayReply,
        recipients: &mut [RecipientReply],
    ) -> Result<Option<RelayReply>, SendFailure> {
        self.refused |= reply.code >= 400;
        match step {
            // After a refused MAIL, the replies to RCPT only repeat the refusal.
            EnvelopeCommand::Rcpt(_) if self.mail_refused.is_some() => {}
            EnvelopeCommand::Rcpt(at) => {
                recipients[at] = judge_rcpt_reply(reply, self.accepted)?;
                self.accepted += usize::from(recipients[at].is_accepted());
            }
            EnvelopeCommand::Rset | EnvelopeCommand::Mail | EnvelopeCommand::Data if reply.is_positive() => {
                return Ok(Some(reply));
            }
            EnvelopeCommand::Mail if reply.code >= 400 => {
                self.mail_refused = Some(reply.into_failure(FailurePhase::Mail))
            }
            EnvelopeCommand::Rset | EnvelopeCommand::Mail | EnvelopeCommand::Data => {
                return Err(reply.into_failure(step.phase()));
            }
        }
        Ok(None)
    }
}

impl SmtpConnection {
    /// Sends one mail. The returned [`DeliveryResult`] says what is known about each recipient and about the
    /// transaction, also after a failure.
    pub async fn deliver(
        &mut self,
        envelope: &MailEnvelope<'_>,
        body: &[u8],
        gate: &mut dyn WireGate,
    ) -> DeliveryResult {
        let mut recipients = vec![RecipientReply::NotTried; envelope.recipients.len()];
        let lacks =
            RelayLacks { eight_bit_mime: !self.offered.eight_bit_mime, smtputf8: !self.offered.smtputf8 };
        let fitted = FittedMail::new(envelope, body, lacks);
        let (envelope, body, converted) = match &fitted {
            Some(mail) => (mail.envelope(envelope), mail.bytes.as_slice(), mail.converted),
            None => (*envelope, body, &[][..]),
        };
        let envelope = &envelope;
        let mut trail = MailTrail::default();
        let end = match check_mail(envelope, body, &mut recipients).and_then(|scan| {
            self.check_offer(envelope)?;
            Ok(scan)
        }) {
            Err(failure) => DeliveryEnd::NotSent(failure),
            Ok(_) if recipients.iter().all(|reply| *reply != RecipientReply::NotTried) => {
                DeliveryEnd::NoRecipients
            }
            Ok(scan) => self.transact(envelope, (body, scan), gate, &mut recipients, &mut trail).await,
        };
        let dialogue = is_failed(&end, &recipients)
            .then(|| describe(&self.opening, (envelope, self.offered), &trail, &recipients, &end));
        DeliveryResult { converted, dialogue, ..DeliveryResult::new(recipients, end) }
    }

    /// Refuses mail that this relay has said it does not accept.
    fn check_offer(&self, envelope: &MailEnvelope<'_>) -> Result<(), SendFailure> {
        if needs_smtputf8(envelope) && !self.offered.smtputf8 {
            return Err(SendFailure::new(
                "smtputf8_unsupported",
                FailureCategory::Smtputf8Unsupported,
                FailurePhase::Mail,
                FailureSeverity::Permanent,
                "the relay does not offer SMTPUTF8, which this mail's addresses or headers need",
            ));
        }
        match self.offered.size_max {
            Some(max) if envelope.size as u64 > max => Err(SendFailure::new(
                "message_too_large",
                FailureCategory::MessageTooLarge,
                FailurePhase::Mail,
                FailureSeverity::Permanent,
                format!("the mail has {} bytes, the relay takes {max}", envelope.size),
            )),
            _ => Ok(()),
        }
    }

    async fn transact(
        &mut self,
        envelope: &MailEnvelope<'_>,
        (body, scan): (&[u8], BodyScan),
        gate: &mut dyn WireGate,
        recipients: &mut [RecipientReply],
        trail: &mut MailTrail,
    ) -> DeliveryEnd {
        crash_point!("smtp_before_mail");
        let reused = self.transactions > 0;
        let ready = self.state;
        // Unusable until the end is known: a future that is dropped half-way must not leave a connection that
        // looks usable.
        self.state = ConnectionState::Unusable;
        self.transactions += 1;
        if reused && self.wire.listen() != UnaskedInput::Nothing || ready == ConnectionState::Unusable {
            self.abandon();
            return DeliveryEnd::NotSent(closed_failure(FailurePhase::Mail).into_stale());
        }
        let resets = ready == ConnectionState::NeedsReset;
        // Without pipelining, the reply to RSET is awaited first, and the gate is asked after it.
        if (!resets || self.offered.pipelining) && gate.begin().is_err() {
            self.state = ready;
            return DeliveryEnd::GateRefused;
        }
        let mut heard = false;
        let span = phase(envelope.trace, "SMTP envelope");
        let offer = self.offer((envelope, resets), gate, recipients, trail, &mut heard).await;
        match &offer {
            Err(failure) => fail_phase(span, failure),
            Ok(_) => drop(span),
        }
        let end = match offer {
            Ok(EnvelopeEnd::GoAhead) => {
                crash_point!("smtp_after_rcpt");
                self.send_body((body, scan, envelope.trace), gate, recipients, trail).await
            }
            Ok(EnvelopeEnd::Refused) => DeliveryEnd::GateRefused,
            Ok(EnvelopeEnd::NoRecipients) => DeliveryEnd::NoRecipients,
            Err(failure) if reused && !heard && is_connection_failure(&failure) => {
                self.abandon();
                DeliveryEnd::NotSent(failure.into_stale())
            }
            Err(failure) => DeliveryEnd::NotSent(failure),
        };
        // After a surplus reply, every later reply would be attributed to the wrong command.
        if self.state == ConnectionState::Unusable || self.wire.has_unread() {
            self.abandon();
        }
        end
    }

    /// Sends MAIL, RCPT and DATA and reads their replies. Sets the state if commands and replies are still in
    /// step.
    async fn offer(
        &mut self,
        (envelope, reset): (&MailEnvelope<'_>, bool),
        gate: &mut dyn WireGate,
        recipients: &mut [RecipientReply],
        trail: &mut MailTrail,
        heard: &mut bool,
    ) -> Result<EnvelopeEnd, SendFailure> {
        let deadline = Instant::now() + self.deadlines.envelope;
        let tried = (0..recipients.len()).filter(|&at| recipients[at] == RecipientReply::NotTried);
        trail.steps = reset
            .then_some(EnvelopeCommand::Rset)
            .into_iter()
            .chain([EnvelopeCommand::Mail])
            .chain(tried.map(EnvelopeCommand::Rcpt))
            .chain([EnvelopeCommand::Data])
            .collect();
        let mut progress = EnvelopeProgress::default();
        let mut next = 0;
        let count = trail.steps.len();
        let begins_late = reset && !self.offered.pipelining;
        while next < count {
            if begins_late
                && matches!(trail.steps[next], EnvelopeCommand::Mail)
                && gate.begin_after_wait().await.is_err()
            {
                self.state = ConnectionState::Ready;
                return Ok(EnvelopeEnd::Refused);
            }
            // Without pipelining the replies are known before DATA: without a recipient there is no DATA.
            if matches!(trail.steps[next], EnvelopeCommand::Data) && progress.accepted == 0 {
                self.state = ConnectionState::NeedsReset;
                return Ok(EnvelopeEnd::NoRecipients);
            }
            let first = next;
            loop {
                let offered = self.offered;
                write_step(self.wire.output(), offered, envelope, trail.steps[next]);
                next += 1;
                let full = next - first >= BATCH_COMMANDS_MAX || self.wire.output().len() >= BATCH_BYTES_MAX;
                if next == count || full || !self.offered.pipelining {
                    break;
                }
            }
            trail.sent = next;
            self.wire.send(trail.steps[first].phase(), deadline.min(self.command_deadline())).await?;
            for at in first..next {
                let step = trail.steps[at];
                let limit = match step {
                    EnvelopeCommand::Data => Instant::now() + self.deadlines.data,
                    EnvelopeCommand::Rset | EnvelopeCommand::Mail | EnvelopeCommand::Rcpt(_) => {
                        deadline.min(self.command_deadline())
                    }
                };
                let reply = self.wire.reply(step.phase(), limit).await?;
                // After 421 the relay closes the connection, so the other replies of the batch will not come.
                if reply.code == 421 {
                    return Err(reply.into_failure(step.phase()));
                }
                *heard = true;
                match step {
                    EnvelopeCommand::Data => return self.answer_to_data(reply, progress, trail),
                    EnvelopeCommand::Rset | EnvelopeCommand::Mail | EnvelopeCommand::Rcpt(_) => {
                        trail.keep(step, progress.take(step, reply, recipients)?);
                    }
                }
            }
            if let Some(failure) = progress.mail_refused {
                self.state = ConnectionState::NeedsReset;
                return Err(failure);
            }
        }
        Err(SendFailure::protocol(FailurePhase::Data, "the envelope ended without an answer to DATA"))
    }

    /// Decides by the reply to DATA and the replies before it. If the relay waits for a body that will not
    /// come, the state stays unusable: without a dot, closing the connection is the only way out.
    fn answer_to_data(
        &mut self,
        reply: RelayReply,
        progress: EnvelopeProgress,
        trail: &mut MailTrail,
    ) -> Result<EnvelopeEnd, SendFailure> {
        let go_ahead = reply.code == 354;
        if reply.code >= 400 {
            self.state = ConnectionState::NeedsReset;
        }
        match progress {
            EnvelopeProgress { mail_refused: Some(failure), .. } => Err(failure),
            EnvelopeProgress { accepted: 0, .. } => {
                trail.data = Some(reply);
                Ok(EnvelopeEnd::NoRecipients)
            }
            EnvelopeProgress { .. } if !go_ahead => Err(reply.into_failure(FailurePhase::Data)),
            // A surplus reply would be mistaken for the reply to the dot.
            EnvelopeProgress { .. } if self.wire.has_unread() => Err(SendFailure::protocol(
                FailurePhase::Data,
                "the relay gave more replies than it was sent commands",
            )),
            EnvelopeProgress { refused, .. } => {
                trail.data = Some(reply);
                self.state = if refused { ConnectionState::NeedsReset } else { ConnectionState::Ready };
                Ok(EnvelopeEnd::GoAhead)
            }
        }
    }

    fn command_deadline(&self) -> Instant {
        Instant::now() + self.deadlines.command
    }

    /// Sends the body, asks the gate, and sends the dot. `self.state` is the state to restore on success.
    async fn send_body(
        &mut self,
        (body, scan, trace): (&[u8], BodyScan, Option<TraceContext>),
        gate: &mut dyn WireGate,
        recipients: &mut [RecipientReply],
        trail: &mut MailTrail,
    ) -> DeliveryEnd {
        let after = std::mem::replace(&mut self.state, ConnectionState::Unusable);
        let deadline = Instant::now() + self.deadlines.body;
        let mut span = phase(trace, "SMTP body");
        span.set("postway.bytes", || body.len());
        for block in body::dot_stuffed(body, scan).chunks(BODY_BLOCK_BYTES) {
            let block_deadline = deadline.min(Instant::now() + self.deadlines.body_block);
            if let Err(failure) = self.wire.write(FailurePhase::Data, block, block_deadline).await {
                let failure = self.last_words().await.unwrap_or(failure);
                fail_phase(span, &failure);
                return DeliveryEnd::NotSent(failure);
            }
        }
        drop(span);
        trail.body = true;
        crash_point!("smtp_after_body");
        if gate.commit(recipients).await.is_err() {
            self.abandon();
            return DeliveryEnd::GateRefused;
        }
        crash_point!("smtp_after_gate");
        // If the relay gave up while the gate was asked, the dot is not written, so there is no doubt.
        match self.wire.listen() {
            UnaskedInput::Nothing => {}
            UnaskedInput::Words => {
                return DeliveryEnd::NotSent(
                    self.last_words().await.unwrap_or_else(|| closed_failure(FailurePhase::Data)),
                );
            }
            UnaskedInput::Closed => return DeliveryEnd::NotSent(closed_failure(FailurePhase::Data)),
        }
        let deadline = Instant::now() + self.deadlines.dot;
        let mut span = phase(trace, "SMTP dot");
        match self.wire.write_dot(deadline).await {
            Ok(()) => trail.dot = true,
            Err(dot) if dot.begun => {
                trail.dot = true;
                return DeliveryEnd::InDoubt(dot.failure);
            }
            Err(dot) => return DeliveryEnd::NotSent(dot.failure),
        }
        crash_point!("smtp_after_dot");
        let end = self.read_answers((after, deadline), recipients, trail).await;
        match &end {
            DeliveryEnd::Accepted { reply, .. } => span.set("smtp.reply_code", || reply.code),
            DeliveryEnd::NotSent(failure) | DeliveryEnd::InDoubt(failure) => {
                span.fail(failure.code.clone());
            }
            DeliveryEnd::Captured { .. } | DeliveryEnd::NoRecipients | DeliveryEnd::GateRefused => {}
        }
        end
    }

    /// The refusal that a relay sent before it closed the connection in the middle of the body, if any.
    async fn last_words(&mut self) -> Option<SendFailure> {
        let reply = self.wire.reply(FailurePhase::Data, Instant::now() + LAST_WORDS_MAX).await.ok()?;
        (reply.code >= 400).then(|| reply.into_failure(FailurePhase::Data))
    }
}

/// Writes one command of the envelope, as the relay's extensions allow.
pub(super) fn write_step(
    out: &mut Vec<u8>,
    offered: RelayExtensions,
    envelope: &MailEnvelope<'_>,
    step: EnvelopeCommand,
) {
    match step {
        EnvelopeCommand::Rset => out.extend_from_slice(b"RSET"),
        EnvelopeCommand::Mail => {
            out.extend_from_slice(b"MAIL FROM:<");
            out.extend_from_slice(envelope.sender.as_bytes());
            out.push(b'>');
            if offered.size {
                write!(out, " SIZE={}", envelope.size).expect("writing to a Vec cannot fail");
            }
            if envelope.eight_bit && offered.eight_bit_mime {
                out.extend_from_slice(b" BODY=8BITMIME");
            }
            if needs_smtputf8(envelope) {
                out.extend_from_slice(b" SMTPUTF8");
            }
            if let Some(wishes) = envelope.dsn.filter(|_| offered.dsn) {
                if let Some(ret) = wishes.ret {
                    write!(out, " RET={}", ret.as_str()).expect("writing to a Vec cannot fail");
                }
                if let Some(envid) = &wishes.envid {
                    write!(out, " ENVID={}", envid.as_str()).expect("writing to a Vec cannot fail");
                }
            }
        }
        EnvelopeCommand::Rcpt(at) => {
            out.extend_from_slice(b"RCPT TO:<");
            out.extend_from_slice(envelope.recipients[at].as_bytes());
            out.push(b'>');
            let wishes = envelope.dsn.filter(|_| offered.dsn);
            if let Some(wishes) = wishes.and_then(|wishes| wishes.recipients.get(envelope.recipients[at])) {
                if let Some(notify) = wishes.notify {
                    write!(out, " NOTIFY={notify}").expect("writing to a Vec cannot fail");
                }
                if let Some(orcpt) = &wishes.orcpt {
                    write!(out, " ORCPT={}", orcpt.as_str()).expect("writing to a Vec cannot fail");
                }
            }
        }
        EnvelopeCommand::Data => out.extend_from_slice(b"DATA"),
    }
    out.extend_from_slice(b"\r\n");
}
