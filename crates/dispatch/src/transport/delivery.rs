//! What a transport is given and what it gives back.

use std::time::Duration;

use async_trait::async_trait;
use postway_domain::{
    dsn::DsnWishes,
    failure::{EnhancedCode, Failure, Phase},
};

/// The envelope of one transaction.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// The reverse path; empty is the null sender.
    pub sender: &'a str,
    /// The forward paths, in the order their replies are given back.
    pub recipients: &'a [&'a str],
    /// The size to announce, in bytes.
    pub size: usize,
    /// The body holds bytes above 127.
    pub eight_bit: bool,
    /// An address or a header is internationalised. Non-ASCII addresses in this envelope imply it.
    pub smtputf8: bool,
    /// What the sender wishes to be told; passed on where the peer offers that, and no reason not to send.
    pub dsn: Option<&'a DsnWishes>,
}

/// A well-formed SMTP reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The three digits, 200 to 599.
    pub code: u16,
    /// The enhanced code of the first line, if it has one.
    pub enhanced: Option<EnhancedCode>,
    /// The text without codes; lines are separated by `\n`.
    pub text: String,
}

impl Reply {
    /// True for 2xx.
    pub fn is_positive(&self) -> bool {
        self.code / 100 == 2
    }

    /// This reply as the reason why `phase` did not work out.
    pub fn into_failure(self, phase: Phase) -> Failure {
        Failure::from_reply(phase, self.code, self.enhanced, &self.text)
    }
}

/// What became of one recipient's RCPT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipientReply {
    /// The relay took it into the transaction. Its fate is that of the transaction's end.
    Accepted(Reply),
    /// The relay, or a check of our own, refused it.
    Refused(Failure),
    /// The relay had enough recipients for one transaction: no failure, send it in the next one.
    Deferred(Failure),
    /// It was not offered, or the transaction ended before its reply came.
    NotTried,
}

impl RecipientReply {
    /// True when this recipient is in the transaction.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted(_))
    }
}

/// What became of one transaction.
#[derive(Debug)]
pub struct Delivery {
    /// One entry per recipient of the envelope, in its order.
    pub recipients: Vec<RecipientReply>,
    /// How the transaction ended; it speaks for the accepted recipients, and for those not tried.
    pub end: DeliveryEnd,
    /// What of the mail was encoded because the relay lacks an extension: `header`, `body`.
    pub converted: &'static [&'static str],
    /// How long the peer asks not to be sent anything.
    pub pause: Option<Duration>,
}

impl Delivery {
    /// Of a mail that was sent as it is, if at all.
    pub fn new(recipients: Vec<RecipientReply>, end: DeliveryEnd) -> Self {
        Self { recipients, end, converted: &[], pause: None }
    }
}

/// How a transaction ended.
#[derive(Debug)]
pub enum DeliveryEnd {
    /// The relay took responsibility for the accepted recipients.
    Accepted {
        /// Its reply to the final dot.
        reply: Reply,
        /// The relay's own name for the mail, where its reply gives one.
        provider_message_id: Option<String>,
    },
    /// The sandbox kept the mail, and nothing left.
    Captured {
        /// What stands in place of a relay's reply.
        reply: Reply,
    },
    /// The mail was certainly not taken: the final dot was not written, or the answer to it was a refusal.
    NotSent(Failure),
    /// At least a part of the final dot was written and no well-formed answer came: it may have been taken.
    InDoubt(Failure),
    /// The gate refused; nothing final was written and the connection was dropped.
    GateRefused,
    /// Every recipient was refused.
    NoRecipients,
}

/// The caller may no longer send this mail: its lease, deadline or state is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the wire commit was refused; the message is no longer ours to send")]
pub struct GateRefused;

/// Lets a mail begin, and makes "the final word is about to be said" durable.
#[async_trait]
pub trait WireGate: Send {
    /// Called right before the first word of the mail is written: MAIL, or the call of an API. On `Err` nothing is.
    fn begin(&mut self) -> Result<(), GateRefused> {
        Ok(())
    }

    /// The same where the transport had to wait for something, such as a connection or the answer to RSET. That may have taken longer
    /// than a permit lasts, so one that ran out is renewed, if it can be.
    async fn begin_after_wait(&mut self) -> Result<(), GateRefused> {
        self.begin()
    }

    /// Called once, after the body is flushed and before the dot, with the replies to RCPT in envelope order.
    /// On `Err` the transport drops the connection without the dot.
    async fn commit(&mut self, recipients: &[RecipientReply]) -> Result<(), GateRefused>;
}
