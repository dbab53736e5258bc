//! The sandbox: captures mail instead of sending it.
//!
//! It accepts every recipient and asks the gate like any other transport. The mail itself stays in the store.
//! The message ends as captured, never as sent, except for a test tenant: there the sandbox plays a relay, so
//! that everything that follows a sent message can be tried.
//!
//! It fails on demand: `refused@`, `full@`, `deferred@`, `timeout@` and `doubt@` of a domain that nobody can own
//! (`.test`, `.example`, `.invalid`, `example.com` and its like) play what their names say, so that an
//! application sees its own handling of it. Any other address is captured, whatever its name.

use postway_domain::failure::{EnhancedCode, FailurePhase, SendFailure};

use super::{DeliveryEnd, DeliveryResult, MailEnvelope, RecipientReply, RelayReply, WireGate, crash_point};

/// What an address of the sandbox plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlayedFault {
    /// There is no such mailbox.
    Refused,
    /// The mailbox is full.
    Full,
    /// Come again later.
    Deferred,
    /// The relay falls silent before the end of the mail.
    Timeout,
    /// The relay falls silent after it.
    Doubt,
}

impl PlayedFault {
    /// What this address plays: by its local part, up to a `+`, and only at a domain that is reserved for tests
    /// and documentation (RFC 2606, RFC 6761).
    fn of(address: &str) -> Option<Self> {
        let (local, domain) = address.rsplit_once('@')?;
        let domain = domain.to_ascii_lowercase();
        let top = domain.rsplit('.').next().unwrap_or_default();
        let is_within = |known: &str| domain == known || domain.ends_with(&format!(".{known}"));
        let is_reserved = matches!(top, "test" | "example" | "invalid" | "localhost")
            || ["example.com", "example.net", "example.org"].into_iter().any(is_within);
        let name = local.split('+').next().unwrap_or_default().to_ascii_lowercase();
        let fault = match name.as_str() {
            "refused" => Self::Refused,
            "full" => Self::Full,
            "deferred" => Self::Deferred,
            "timeout" => Self::Timeout,
            "doubt" => Self::Doubt,
            _ => return None,
        };
        is_reserved.then_some(fault)
    }

    /// The reply to RCPT; `None` if the recipient is accepted at first.
    fn refusal(self) -> Option<SendFailure> {
        let (code, enhanced, text) = match self {
            Self::Refused => (550, (5, 1, 1), "no such mailbox, says the sandbox"),
            Self::Full => (552, (5, 2, 2), "the mailbox is full, says the sandbox"),
            Self::Deferred => (451, (4, 7, 1), "greylisted, says the sandbox: come again later"),
            Self::Timeout | Self::Doubt => return None,
        };
        let (class, subject, detail) = enhanced;
        let enhanced = EnhancedCode(class, subject, detail);
        Some(SendFailure::from_reply(FailurePhase::Rcpt, code, Some(enhanced), text))
    }
}

/// The transport of sandbox accounts.
#[derive(Debug, Clone, Copy, Default)]
pub struct SandboxTransport {
    /// Whether it plays a relay that accepts the mail.
    pub plays_relay: bool,
}

impl SandboxTransport {
    /// Accepts the mail if the gate opens.
    pub async fn deliver(&self, envelope: &MailEnvelope<'_>, gate: &mut dyn WireGate) -> DeliveryResult {
        let captured = || RelayReply { code: 250, enhanced: None, text: "captured".to_owned() };
        let played: Vec<Option<PlayedFault>> =
            envelope.recipients.iter().map(|address| PlayedFault::of(address)).collect();
        let reply = |fault: &Option<PlayedFault>| match fault.and_then(PlayedFault::refusal) {
            Some(failure) => RecipientReply::Refused(failure),
            None => RecipientReply::Accepted(captured()),
        };
        let recipients: Vec<RecipientReply> = played.iter().map(reply).collect();
        if !recipients.iter().any(RecipientReply::is_accepted) {
            return DeliveryResult::new(recipients, DeliveryEnd::NoRecipients);
        }
        if played.contains(&Some(PlayedFault::Timeout)) {
            let silent = SendFailure::timeout(FailurePhase::Data);
            return DeliveryResult::new(recipients, DeliveryEnd::NotSent(silent));
        }
        let is_doubtful = played.contains(&Some(PlayedFault::Doubt));
        let leave = match gate.commit(&recipients).await {
            Ok(()) => gate.begin_after_wait().await,
            refused => refused,
        };
        let end = match leave {
            Ok(()) => {
                crash_point!("sandbox_after_gate");
                match self.plays_relay {
                    _ if is_doubtful => DeliveryEnd::InDoubt(SendFailure::timeout(FailurePhase::Dot)),
                    true => DeliveryEnd::Accepted { reply: captured(), provider_message_id: None },
                    false => DeliveryEnd::Captured { reply: captured() },
                }
            }
            Err(_) => DeliveryEnd::GateRefused,
        };
        DeliveryResult::new(recipients, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::GateRefused;

    struct CountingGate {
        calls: usize,
        answer: Result<(), GateRefused>,
    }

    #[async_trait::async_trait]
    impl WireGate for CountingGate {
        async fn commit(&mut self, recipients: &[RecipientReply]) -> Result<(), GateRefused> {
            assert!(recipients.iter().any(RecipientReply::is_accepted));
            self.calls += 1;
            self.answer
        }
    }

    const TWO: MailEnvelope<'_> = MailEnvelope {
        sender: "",
        recipients: &["a@example.org", "b@example.org"],
        size: 1,
        eight_bit: false,
        smtputf8: false,
        dsn: None,
        trace: None,
    };

    #[tokio::test]
    async fn every_recipient_is_captured_after_one_commit() {
        let mut gate = CountingGate { calls: 0, answer: Ok(()) };
        let delivery = SandboxTransport::default().deliver(&TWO, &mut gate).await;
        assert!(matches!(delivery.end, DeliveryEnd::Captured { .. }));
        assert_eq!((delivery.recipients.len(), gate.calls), (2, 1));
        let played = SandboxTransport { plays_relay: true }.deliver(&TWO, &mut gate).await;
        assert!(matches!(played.end, DeliveryEnd::Accepted { .. }));
    }

    #[tokio::test]
    async fn a_refused_gate_captures_nothing() {
        let mut gate = CountingGate { calls: 0, answer: Err(GateRefused) };
        let delivery = SandboxTransport::default().deliver(&TWO, &mut gate).await;
        assert!(matches!(delivery.end, DeliveryEnd::GateRefused));
    }

    fn to<'a>(recipients: &'a [&'a str]) -> MailEnvelope<'a> {
        MailEnvelope { recipients, ..TWO }
    }

    #[tokio::test]
    async fn what_an_address_plays_happens_and_the_others_are_captured() {
        let mut gate = CountingGate { calls: 0, answer: Ok(()) };
        let sandbox = SandboxTransport::default();
        let mixed = sandbox.deliver(&to(&["refused@shop.test", "ada@shop.test"]), &mut gate).await;
        assert!(matches!(mixed.end, DeliveryEnd::Captured { .. }));
        assert!(matches!(&mixed.recipients[0], RecipientReply::Refused(failure) if failure.is_permanent()));
        assert!(mixed.recipients[1].is_accepted());
        let later = sandbox.deliver(&to(&["Deferred+7@example.com"]), &mut gate).await;
        assert!(matches!(later.end, DeliveryEnd::NoRecipients));
        assert!(matches!(&later.recipients[0], RecipientReply::Refused(failure) if failure.is_transient()));
        let silent = sandbox.deliver(&to(&["timeout@mail.example.net"]), &mut gate).await;
        assert!(matches!(silent.end, DeliveryEnd::NotSent(failure) if failure.is_transient()));
        assert_eq!(gate.calls, 1, "nothing of these may have left");
        let doubt = sandbox.deliver(&to(&["doubt@a.invalid"]), &mut gate).await;
        assert!(matches!(doubt.end, DeliveryEnd::InDoubt(_)));
        assert_eq!(gate.calls, 2, "a doubt follows a wire commit");
    }

    /// Somebody's real address is captured like any other.
    #[test]
    fn only_domains_that_nobody_owns_play() {
        for address in
            ["refused@shop.com", "doubt@notexample.com", "ada+refused@a.test", "refusedx@a.test", "refused"]
        {
            assert_eq!(PlayedFault::of(address), None, "{address}");
        }
        assert_eq!(PlayedFault::of("FULL@Example.ORG"), Some(PlayedFault::Full));
    }
}
