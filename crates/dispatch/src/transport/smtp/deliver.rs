//! One mail transaction: envelope, body, gate, dot.
//!
//! The commands go out in one packet where the relay allows it (RFC 2920), the body in one write, and the dot
//! alone, after the gate. Up to the first byte of the dot a failure means "not sent"; from there on only a
//! well-formed reply settles the matter. A relay that goes ahead with DATA although it took no recipient is
//! left without a dot.

use std::{io::Write as _, time::Duration};

use postway_domain::failure::{Category, Failure, Phase, Severity};
use postway_mime::downgrade::RelayLacks;
use tokio::time::Instant;

use super::{
    SmtpConnection,
    body::{self, Scan},
    connection::State,
    judge::{bounded, check, gone, is_dead, judge, needs_smtputf8},
    provider_id::provider_message_id,
    wire::Heard,
};
use crate::transport::{
    Delivery, DeliveryEnd, Envelope, RecipientReply, Reply, WireGate, crash_point, fitted_mail::FittedMail,
};

/// The most commands, and about the most bytes of them, before their replies are read: both sides' socket
/// buffers hold that much, so neither can wait for the other to read (RFC 2920 3.1).
const BATCH_COMMANDS_MAX: usize = 64;
const BATCH_BYTES_MAX: usize = 8 * 1024;
/// How much of the body is written before its deadline is renewed.
const BODY_BLOCK_BYTES: usize = 64 * 1024;
/// How long to wait for a relay's last words after it broke off.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// One command of the envelope. Recipients are named by their place in it.
#[derive(Debug, Clone, Copy)]
enum Step {
    Rset,
    Mail,
    Rcpt(usize),
    Data,
}

impl Step {
    fn phase(self) -> Phase {
        match self {
            Self::Rset | Self::Mail => Phase::Mail,
            Self::Rcpt(_) => Phase::Rcpt,
            Self::Data => Phase::Data,
        }
    }
}

/// How the envelope went.
enum Offer {
    /// The gate does not let the mail begin.
    Refused,
    /// The relay waits for the body.
    GoAhead,
    /// Every recipient was refused.
    NoRecipients,
}

/// What the replies before DATA's amounted to.
#[derive(Default)]
struct Progress {
    accepted: usize,
    /// Something was refused: the relay is to be reset before the next mail.
    refused: bool,
    mail_refused: Option<Failure>,
}

impl Progress {
    /// Takes in the reply to RSET, MAIL or RCPT. Fails where it leaves the conversation without sense.
    fn take(&mut self, step: Step, reply: Reply, recipients: &mut [RecipientReply]) -> Result<(), Failure> {
        self.refused |= reply.code >= 400;
        match step {
            // Behind a refused MAIL these only echo it.
            Step::Rcpt(_) if self.mail_refused.is_some() => {}
            Step::Rcpt(at) => {
                recipients[at] = judge(reply, self.accepted)?;
                self.accepted += usize::from(recipients[at].is_accepted());
            }
            _ if reply.is_positive() => {}
            Step::Mail if reply.code >= 400 => self.mail_refused = Some(reply.into_failure(Phase::Mail)),
            Step::Rset | Step::Mail | Step::Data => return Err(reply.into_failure(step.phase())),
        }
        Ok(())
    }
}

impl SmtpConnection {
    /// Sends one mail. Never fails as such: the [`Delivery`] says what is known of each recipient and of the
    /// whole.
    pub async fn deliver(
        &mut self,
        envelope: &Envelope<'_>,
        body: &[u8],
        gate: &mut dyn WireGate,
    ) -> Delivery {
        let mut recipients = vec![RecipientReply::NotTried; envelope.recipients.len()];
        let lacks =
            RelayLacks { eight_bit_mime: !self.offered.eight_bit_mime, smtputf8: !self.offered.smtputf8 };
        let fitted = FittedMail::new(envelope, body, lacks);
        let (envelope, body, converted) = match &fitted {
            Some(mail) => (mail.envelope(envelope), mail.bytes.as_slice(), mail.converted),
            None => (*envelope, body, &[][..]),
        };
        let envelope = &envelope;
        let end = match check(envelope, body, &mut recipients).and_then(|scan| {
            self.check_offer(envelope)?;
            Ok(scan)
        }) {
            Err(failure) => DeliveryEnd::NotSent(failure),
            Ok(_) if recipients.iter().all(|reply| *reply != RecipientReply::NotTried) => {
                DeliveryEnd::NoRecipients
            }
            Ok(scan) => self.transact(envelope, body, scan, gate, &mut recipients).await,
        };
        Delivery { converted, ..Delivery::new(recipients, end) }
    }

    /// Refuses what this relay is known not to take.
    fn check_offer(&self, envelope: &Envelope<'_>) -> Result<(), Failure> {
        if needs_smtputf8(envelope) && !self.offered.smtputf8 {
            return Err(Failure::new(
                "smtputf8_unsupported",
                Category::Smtputf8Unsupported,
                Phase::Mail,
                Severity::Permanent,
                "the relay does not offer SMTPUTF8, which this mail's addresses or headers need",
            ));
        }
        match self.offered.size_max {
            Some(max) if envelope.size as u64 > max => Err(Failure::new(
                "message_too_large",
                Category::MessageTooLarge,
                Phase::Mail,
                Severity::Permanent,
                format!("the mail has {} bytes, the relay takes {max}", envelope.size),
            )),
            _ => Ok(()),
        }
    }

    async fn transact(
        &mut self,
        envelope: &Envelope<'_>,
        body: &[u8],
        scan: Scan,
        gate: &mut dyn WireGate,
        recipients: &mut [RecipientReply],
    ) -> DeliveryEnd {
        crash_point!("smtp_before_mail");
        let reused = self.transactions > 0;
        let ready = self.state;
        // Until the end is known: a future dropped half-way must not leave a connection that looks usable.
        self.state = State::Unusable;
        self.transactions += 1;
        self.used_at = Instant::now();
        if reused && self.wire.listen() != Heard::Nothing || ready == State::Unusable {
            self.abandon();
            return DeliveryEnd::NotSent(gone(Phase::Mail).into_stale());
        }
        let resets = ready == State::NeedsReset;
        // Without pipelining the answer to RSET is waited for, and the gate is asked after it.
        if (!resets || self.offered.pipelining) && gate.begin().is_err() {
            self.state = ready;
            return DeliveryEnd::GateRefused;
        }
        let mut heard = false;
        let offer = self.offer(envelope, resets, gate, recipients, &mut heard).await;
        let end = match offer {
            Ok(Offer::GoAhead) => {
                crash_point!("smtp_after_rcpt");
                self.send_body(body, scan, gate, recipients).await
            }
            Ok(Offer::Refused) => DeliveryEnd::GateRefused,
            Ok(Offer::NoRecipients) => DeliveryEnd::NoRecipients,
            Err(failure) if reused && !heard && is_dead(&failure) => {
                self.abandon();
                DeliveryEnd::NotSent(failure.into_stale())
            }
            Err(failure) => DeliveryEnd::NotSent(failure),
        };
        self.used_at = Instant::now();
        // A reply more than was asked for means that the next one would be taken for another's.
        if self.state == State::Unusable || self.wire.has_unread() {
            self.abandon();
        }
        end
    }

    /// Sends MAIL, RCPT and DATA and reads their replies. Sets the state when the conversation is still in
    /// step.
    async fn offer(
        &mut self,
        envelope: &Envelope<'_>,
        reset: bool,
        gate: &mut dyn WireGate,
        recipients: &mut [RecipientReply],
        heard: &mut bool,
    ) -> Result<Offer, Failure> {
        let deadline = Instant::now() + self.deadlines.envelope;
        let tried = (0..recipients.len()).filter(|&at| recipients[at] == RecipientReply::NotTried);
        let steps: Vec<Step> = reset
            .then_some(Step::Rset)
            .into_iter()
            .chain([Step::Mail])
            .chain(tried.map(Step::Rcpt))
            .chain([Step::Data])
            .collect();
        let mut progress = Progress::default();
        let mut next = 0;
        let begins_late = reset && !self.offered.pipelining;
        while next < steps.len() {
            if begins_late && matches!(steps[next], Step::Mail) && gate.begin_after_wait().await.is_err() {
                self.state = State::Ready;
                return Ok(Offer::Refused);
            }
            // Without pipelining DATA is reached one by one: do not ask for what has no recipient.
            if matches!(steps[next], Step::Data) && progress.accepted == 0 {
                self.state = State::NeedsReset;
                return Ok(Offer::NoRecipients);
            }
            let first = next;
            loop {
                self.write_step(envelope, steps[next]);
                next += 1;
                let full = next - first >= BATCH_COMMANDS_MAX || self.wire.output().len() >= BATCH_BYTES_MAX;
                if next == steps.len() || full || !self.offered.pipelining {
                    break;
                }
            }
            self.wire.send(steps[first].phase(), deadline.min(self.command_deadline())).await?;
            for &step in &steps[first..next] {
                let limit = match step {
                    Step::Data => Instant::now() + self.deadlines.data,
                    Step::Rset | Step::Mail | Step::Rcpt(_) => deadline.min(self.command_deadline()),
                };
                let reply = self.wire.reply(step.phase(), limit).await?;
                // 421 is the relay's last word: the replies to the rest of the batch will not come.
                if reply.code == 421 {
                    return Err(reply.into_failure(step.phase()));
                }
                *heard = true;
                match step {
                    Step::Data => return self.answer_to_data(reply, progress),
                    Step::Rset | Step::Mail | Step::Rcpt(_) => progress.take(step, reply, recipients)?,
                }
            }
            if let Some(failure) = progress.mail_refused {
                self.state = State::NeedsReset;
                return Err(failure);
            }
        }
        Err(Failure::protocol(Phase::Data, "the envelope ended without an answer to DATA"))
    }

    /// What the reply to DATA means after all that came before it. Where the relay waits for a body that will
    /// not come, the state stays unusable: without a dot there is no way back but to hang up.
    fn answer_to_data(&mut self, reply: Reply, progress: Progress) -> Result<Offer, Failure> {
        let go_ahead = reply.code == 354;
        if reply.code >= 400 {
            self.state = State::NeedsReset;
        }
        match progress {
            Progress { mail_refused: Some(failure), .. } => Err(failure),
            Progress { accepted: 0, .. } => Ok(Offer::NoRecipients),
            Progress { .. } if !go_ahead => Err(reply.into_failure(Phase::Data)),
            // One reply too many would be taken for the answer to the dot.
            Progress { .. } if self.wire.has_unread() => {
                Err(Failure::protocol(Phase::Data, "the relay gave more replies than it was sent commands"))
            }
            Progress { refused, .. } => {
                self.state = if refused { State::NeedsReset } else { State::Ready };
                Ok(Offer::GoAhead)
            }
        }
    }

    fn command_deadline(&self) -> Instant {
        Instant::now() + self.deadlines.command
    }

    fn write_step(&mut self, envelope: &Envelope<'_>, step: Step) {
        let offered = self.offered;
        let out = self.wire.output();
        match step {
            Step::Rset => out.extend_from_slice(b"RSET"),
            Step::Mail => {
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
            Step::Rcpt(at) => {
                out.extend_from_slice(b"RCPT TO:<");
                out.extend_from_slice(envelope.recipients[at].as_bytes());
                out.push(b'>');
                let wishes = envelope.dsn.filter(|_| offered.dsn);
                if let Some(wishes) = wishes.and_then(|wishes| wishes.recipients.get(envelope.recipients[at]))
                {
                    if let Some(notify) = wishes.notify {
                        write!(out, " NOTIFY={notify}").expect("writing to a Vec cannot fail");
                    }
                    if let Some(orcpt) = &wishes.orcpt {
                        write!(out, " ORCPT={}", orcpt.as_str()).expect("writing to a Vec cannot fail");
                    }
                }
            }
            Step::Data => out.extend_from_slice(b"DATA"),
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Body, gate, dot. `self.state` holds what it will be if all goes well.
    async fn send_body(
        &mut self,
        body: &[u8],
        scan: Scan,
        gate: &mut dyn WireGate,
        recipients: &[RecipientReply],
    ) -> DeliveryEnd {
        let after = std::mem::replace(&mut self.state, State::Unusable);
        let deadline = Instant::now() + self.deadlines.body;
        for block in body::stuffed(body, scan).chunks(BODY_BLOCK_BYTES) {
            let block_deadline = deadline.min(Instant::now() + self.deadlines.body_block);
            if let Err(failure) = self.wire.write(Phase::Data, block, block_deadline).await {
                return DeliveryEnd::NotSent(self.last_words().await.unwrap_or(failure));
            }
        }
        crash_point!("smtp_after_body");
        if gate.commit(recipients).await.is_err() {
            self.abandon();
            return DeliveryEnd::GateRefused;
        }
        crash_point!("smtp_after_gate");
        // A relay that gave up while the gate was at work never sees the dot: that is no doubt.
        match self.wire.listen() {
            Heard::Nothing => {}
            Heard::Words => {
                return DeliveryEnd::NotSent(self.last_words().await.unwrap_or_else(|| gone(Phase::Data)));
            }
            Heard::Closed => return DeliveryEnd::NotSent(gone(Phase::Data)),
        }
        let deadline = Instant::now() + self.deadlines.dot;
        match self.wire.write_dot(deadline).await {
            Ok(()) => {}
            Err(dot) if dot.begun => return DeliveryEnd::InDoubt(dot.failure),
            Err(dot) => return DeliveryEnd::NotSent(dot.failure),
        }
        crash_point!("smtp_after_dot");
        let reply = self.wire.reply(Phase::Dot, deadline).await;
        crash_point!("smtp_after_reply");
        match reply {
            Ok(reply) if reply.is_positive() => {
                self.state = after;
                self.messages_sent += 1;
                DeliveryEnd::Accepted {
                    provider_message_id: provider_message_id(&reply.text),
                    reply: bounded(reply),
                }
            }
            Ok(reply) if reply.code >= 400 => {
                if reply.code != 421 {
                    self.state = State::NeedsReset;
                }
                DeliveryEnd::NotSent(reply.into_failure(Phase::Dot))
            }
            // A 3xx is no answer to a dot.
            Ok(reply) => DeliveryEnd::InDoubt(reply.into_failure(Phase::Dot)),
            Err(failure) => DeliveryEnd::InDoubt(failure),
        }
    }

    /// What a relay said before it broke off in the middle of the body, if it was a refusal.
    async fn last_words(&mut self) -> Option<Failure> {
        let reply = self.wire.reply(Phase::Data, Instant::now() + LAST_WORDS_MAX).await.ok()?;
        (reply.code >= 400).then(|| reply.into_failure(Phase::Data))
    }
}
