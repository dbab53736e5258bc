//! The sandbox: captures mail instead of sending it.
//!
//! It accepts every recipient and asks the gate like any other transport. The mail itself stays in the store.
//! The message ends as captured, never as sent, except for a test tenant: there the sandbox plays a relay, so
//! that everything that follows a sent message can be tried.

use super::{DeliveryEnd, DeliveryResult, MailEnvelope, RecipientReply, RelayReply, WireGate, crash_point};

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
        let recipients: Vec<_> =
            envelope.recipients.iter().map(|_| RecipientReply::Accepted(captured())).collect();
        if recipients.is_empty() {
            return DeliveryResult::new(recipients, DeliveryEnd::NoRecipients);
        }
        let leave = match gate.commit(&recipients).await {
            Ok(()) => gate.begin_after_wait().await,
            refused => refused,
        };
        let end = match leave {
            Ok(()) => {
                crash_point!("sandbox_after_gate");
                match self.plays_relay {
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
            assert!(recipients.iter().all(RecipientReply::is_accepted));
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
}
