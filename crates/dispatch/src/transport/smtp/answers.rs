//! What a server says after the final dot: one reply for the mail (SMTP), or one for each accepted recipient
//! in the order of their RCPT (LMTP, RFC 2033 4.2).
//!
//! Only a well-formed reply decides. Without one there is doubt: about the mail, or with LMTP about each
//! recipient that has no reply yet. The replies that came before stay valid, so a connection that dies among
//! them leaves only the others in doubt.

use postway_domain::failure::{FailurePhase, SendFailure};
use tokio::time::Instant;

use super::{
    SmtpConnection, connection::ConnectionState, dialogue::MailTrail, judge::bounded_reply,
    provider_id::provider_message_id, settings::RelayProtocol,
};
use crate::transport::{DeliveryEnd, RecipientReply, RelayReply, crash_point};

impl SmtpConnection {
    /// Reads what follows the dot before the deadline. `after` is the state to restore on success.
    pub(super) async fn read_answers(
        &mut self,
        (after, deadline): (ConnectionState, Instant),
        recipients: &mut [RecipientReply],
        trail: &mut MailTrail,
    ) -> DeliveryEnd {
        match self.protocol {
            RelayProtocol::Smtp => self.read_one_answer(after, deadline).await,
            RelayProtocol::Lmtp => self.read_answer_for_each(after, deadline, recipients, trail).await,
        }
    }

    async fn read_one_answer(&mut self, after: ConnectionState, deadline: Instant) -> DeliveryEnd {
        let reply = self.wire.reply(FailurePhase::Dot, deadline).await;
        crash_point!("smtp_after_reply");
        match reply {
            Ok(reply) if reply.is_positive() => {
                self.state = after;
                self.messages_sent += 1;
                accepted(reply)
            }
            Ok(reply) if reply.code >= 400 => {
                if reply.code != 421 {
                    self.state = ConnectionState::NeedsReset;
                }
                DeliveryEnd::NotSent(reply.into_failure(FailurePhase::Dot))
            }
            // 3xx is not a valid reply to the dot.
            Ok(reply) => DeliveryEnd::InDoubt(reply.into_failure(FailurePhase::Dot)),
            Err(failure) => DeliveryEnd::InDoubt(failure),
        }
    }

    /// Reads the replies for all accepted recipients. The mail counts as accepted if the server took it for
    /// one of them at least.
    async fn read_answer_for_each(
        &mut self,
        after: ConnectionState,
        deadline: Instant,
        recipients: &mut [RecipientReply],
        trail: &mut MailTrail,
    ) -> DeliveryEnd {
        trail.rcpt = recipients.to_vec();
        let mut end = None;
        let mut doubt: Option<SendFailure> = None;
        let mut next = after;
        for reply in recipients.iter_mut().filter(|reply| reply.is_accepted()) {
            if let Some(failure) = &doubt {
                *reply = RecipientReply::Doubtful(failure.clone());
                continue;
            }
            *reply = match self.wire.reply(FailurePhase::Dot, deadline).await {
                Ok(answer) if answer.is_positive() => {
                    trail.answers.push(answer.clone());
                    end.get_or_insert_with(|| accepted(answer.clone()));
                    RecipientReply::Taken(bounded_reply(answer))
                }
                Ok(answer) if answer.code >= 400 => {
                    next = match (answer.code, next) {
                        // The server closes the connection; there may be no further reply.
                        (421, _) | (_, ConnectionState::Unusable) => ConnectionState::Unusable,
                        (_, ConnectionState::Ready | ConnectionState::NeedsReset) => {
                            ConnectionState::NeedsReset
                        }
                    };
                    trail.answers.push(answer.clone());
                    RecipientReply::Refused(answer.into_failure(FailurePhase::Dot))
                }
                // 3xx is not a valid reply to the dot, and those after it cannot be attributed.
                Ok(answer) => {
                    let failure = answer.into_failure(FailurePhase::Dot);
                    RecipientReply::Doubtful(doubt.insert(failure).clone())
                }
                Err(failure) => RecipientReply::Doubtful(doubt.insert(failure).clone()),
            };
            crash_point!("lmtp_between_answers");
        }
        self.state = if doubt.is_some() { ConnectionState::Unusable } else { next };
        match (end, doubt) {
            (Some(end), _) => {
                self.messages_sent += 1;
                end
            }
            (None, Some(failure)) => DeliveryEnd::InDoubt(failure),
            (None, None) => DeliveryEnd::NoRecipients,
        }
    }
}

fn accepted(reply: RelayReply) -> DeliveryEnd {
    DeliveryEnd::Accepted {
        provider_message_id: provider_message_id(&reply.text),
        reply: bounded_reply(reply),
    }
}
