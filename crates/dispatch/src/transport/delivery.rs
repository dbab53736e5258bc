//! The types between dispatch and its transports: envelope, reply, delivery, gate.

use std::time::Duration;

use async_trait::async_trait;
use postway_domain::{
    dsn::DsnWishes,
    failure::{EnhancedCode, FailurePhase, SendFailure},
};
use postway_trace::TraceContext;

/// The envelope of one transaction.
#[derive(Debug, Clone, Copy)]
pub struct MailEnvelope<'a> {
    /// The reverse path; empty is the null sender.
    pub sender: &'a str,
    /// The forward paths; replies are returned in this order.
    pub recipients: &'a [&'a str],
    /// The size to announce, in bytes.
    pub size: usize,
    /// The body has bytes above 127.
    pub eight_bit: bool,
    /// An address or a header is internationalised. Non-ASCII addresses in this envelope imply it.
    pub smtputf8: bool,
    /// The sender's wishes about reports. They are passed on if the peer offers DSN; if not, the mail is sent
    /// without.
    pub dsn: Option<&'a DsnWishes>,
    /// The span of the attempt, which those of the transport are under.
    pub trace: Option<TraceContext>,
}

/// A well-formed SMTP reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayReply {
    /// The three digits, 200 to 599.
    pub code: u16,
    /// The enhanced code of the first line, if it has one.
    pub enhanced: Option<EnhancedCode>,
    /// The text without codes; lines are separated by `\n`.
    pub text: String,
}

impl RelayReply {
    /// True for 2xx.
    pub fn is_positive(&self) -> bool {
        self.code / 100 == 2
    }

    /// This reply as the failure of `phase`.
    pub fn into_failure(self, phase: FailurePhase) -> SendFailure {
        SendFailure::from_reply(phase, self.code, self.enhanced, &self.text)
    }
}

/// The reply for one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipientReply {
    /// The relay accepted it into the transaction, whose end decides.
    Accepted(RelayReply),
    /// The relay, or a check of our own, refused it.
    Refused(SendFailure),
    /// The relay accepts no more recipients in this transaction. Not a failure: the next transaction sends to
    /// it.
    Deferred(SendFailure),
    /// It was not offered, or the transaction ended before its reply came.
    NotTried,
    /// The server took responsibility for this recipient alone, after the dot (LMTP).
    Taken(RelayReply),
    /// The dot was written, others had their replies, and this one has none that is well-formed (LMTP).
    Doubtful(SendFailure),
}

impl RecipientReply {
    /// True if the recipient is part of the transaction, and was not refused after it.
    pub fn is_accepted(&self) -> bool {
        match self {
            Self::Accepted(_) | Self::Taken(_) => true,
            Self::Refused(_) | Self::Deferred(_) | Self::NotTried | Self::Doubtful(_) => false,
        }
    }
}

/// The result of one transaction.
#[derive(Debug)]
pub struct DeliveryResult {
    /// One entry per recipient of the envelope, in its order.
    pub recipients: Vec<RecipientReply>,
    /// How the transaction ended, which applies to the accepted recipients and to those not tried.
    pub end: DeliveryEnd,
    /// The parts that were encoded because the relay lacks an extension: `header`, `body`.
    pub converted: &'static [&'static str],
    /// The pause that the peer asked for.
    pub pause: Option<Duration>,
    /// What both sides said, if the mail or a recipient was refused or lost.
    pub dialogue: Option<String>,
}

impl DeliveryResult {
    /// The result for a mail that was not converted, with no pause.
    pub fn new(recipients: Vec<RecipientReply>, end: DeliveryEnd) -> Self {
        Self { recipients, end, converted: &[], pause: None, dialogue: None }
    }
}

/// How a transaction ended.
#[derive(Debug)]
pub enum DeliveryEnd {
    /// The relay took responsibility for the accepted recipients.
    Accepted {
        /// Its reply to the final dot.
        reply: RelayReply,
        /// The relay's own id for the mail, if its reply has one.
        provider_message_id: Option<String>,
    },
    /// The sandbox captured the mail; nothing was sent.
    Captured {
        /// The reply shown in the place of a relay's.
        reply: RelayReply,
    },
    /// The mail was certainly not accepted: the final dot was not written, or the reply to it was a refusal.
    NotSent(SendFailure),
    /// At least a part of the final dot was written and no well-formed reply came: the mail may have been
    /// accepted.
    InDoubt(SendFailure),
    /// The gate refused; nothing final was written and the connection was dropped.
    GateRefused,
    /// Every recipient was refused.
    NoRecipients,
}

/// The mail must not be sent: the lease was lost, the permit has expired, or the process is isolated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the wire commit was refused; the message is no longer ours to send")]
pub struct GateRefused;

/// Lets a mail begin, and makes the wire commit durable before the final dot.
#[async_trait]
pub trait WireGate: Send {
    /// Called right before the first command of the mail is written: MAIL, or the body of an API call. On
    /// `Err` the transport writes nothing.
    fn begin(&mut self) -> Result<(), GateRefused> {
        Ok(())
    }

    /// Like [`WireGate::begin`], for a transport that had to wait, for example for a connection or the reply
    /// to RSET. The wait may have outlasted the permit, so an expired one is renewed if possible.
    async fn begin_after_wait(&mut self) -> Result<(), GateRefused> {
        self.begin()
    }

    /// Called once, after the body was written and before the dot, with the replies to RCPT in envelope
    /// order. On `Err` the transport drops the connection without writing the dot.
    async fn commit(&mut self, recipients: &[RecipientReply]) -> Result<(), GateRefused>;
}
