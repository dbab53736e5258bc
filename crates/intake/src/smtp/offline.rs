//! A session without a network, keys or a store, for tests of the listener from outside: bytes go in, replies
//! and mails come out. It drives the same conversation as `session`, synchronously.

use std::sync::LazyLock;

use bytes::{Bytes, BytesMut};
use postway_domain::{
    EmailAddress, KeyDigest,
    scram::{ITERATIONS, SALT_BYTES, ScramVerifier},
};
use secrecy::ExposeSecret;

use super::{
    authenticator::{SmtpCredentials, SmtpDenial},
    client_rules::ClientPrivileges,
    conversation::{SessionRules, SessionStep, SmtpConversation},
    memory_budget::MailMemoryBudget,
    reply::SubmissionReply,
    scram::{ProvenKey, ScramCandidate, ScramOffer},
};

/// The salt of every name in an offline session.
const SALT: [u8; SALT_BYTES] = [7; SALT_BYTES];
/// The server's half of every nonce.
const NONCE: &str = "offline";
/// The key that can be proven, under the user name `shop`.
static GOOD: LazyLock<ScramVerifier> = LazyLock::new(|| ScramVerifier::of("good", SALT));

/// The rules of an offline session.
#[derive(Clone, Copy, Debug)]
pub struct OfflineRules {
    /// The largest mail, in bytes.
    pub message_bytes_max: usize,
    /// The most recipients of one mail.
    pub recipients_max: usize,
    /// Whether STARTTLS is offered.
    pub offers_tls: bool,
    /// Whether a key may be shown without TLS.
    pub trusts_plain: bool,
    /// Whether it is a session of the reception, which knows the recipients whose address begins with `good`.
    pub is_reception: bool,
}

/// A session in which keys that begin with `good` are valid and every complete mail is accepted.
#[derive(Debug)]
pub struct OfflineSession {
    conversation: SmtpConversation,
    input: BytesMut,
    output: Vec<u8>,
    mails: Vec<Bytes>,
    is_over: bool,
}

impl OfflineSession {
    /// A new session.
    pub fn new(rules: OfflineRules) -> Self {
        let OfflineRules { message_bytes_max, recipients_max, offers_tls, trusts_plain, is_reception } =
            rules;
        let rules = SessionRules {
            name: "mx.example".to_owned(),
            message_bytes_max,
            recipients_max,
            offers_tls,
            takes_xclient: false,
            privileges: ClientPrivileges { trusts_plain, keyless: None },
            is_reception,
        };
        // Memory for the mail and for rounding up its share.
        let budget = MailMemoryBudget::new(message_bytes_max.saturating_mul(2).max(1024 * 1024));
        let mut conversation = SmtpConversation::new(rules, budget, false);
        let output = std::mem::take(conversation.output());
        Self { conversation, input: BytesMut::new(), output, mails: Vec::new(), is_over: false }
    }

    /// Reads bytes as one read from a socket would deliver them. A session that is over reads nothing.
    pub fn hear(&mut self, bytes: &[u8]) {
        if self.is_over {
            return;
        }
        self.input.extend_from_slice(bytes);
        loop {
            let step = self.conversation.advance(&mut self.input);
            self.output.append(self.conversation.output());
            match step {
                SessionStep::Read => return,
                // Its rules never allow it.
                SessionStep::NewClient => self.conversation.change_client(None),
                SessionStep::StartTls => {
                    // Plain text after STARTTLS is dropped with the buffer.
                    self.input.clear();
                    self.conversation.secured();
                    return;
                }
                SessionStep::LookUp => {
                    let candidate = || ScramCandidate {
                        verifier: GOOD.clone(),
                        key: ProvenKey::Tenant(KeyDigest::of(b"good")),
                    };
                    let candidates = match self.conversation.scram_name() {
                        Some("shop") => vec![candidate()],
                        _ => Vec::new(),
                    };
                    let offer = ScramOffer { salt: SALT.to_vec(), iterations: ITERATIONS, candidates };
                    self.conversation.set_scram_offer(Ok(offer), NONCE);
                }
                SessionStep::CheckKey => {
                    let opens = match self.conversation.credentials() {
                        Some(SmtpCredentials::Key { key, .. }) => key.expose_secret().starts_with("good"),
                        Some(SmtpCredentials::Proven(_)) => true,
                        Some(SmtpCredentials::Unproven | SmtpCredentials::Keyless(_)) | None => false,
                    };
                    let denied = || SmtpDenial::Refused("this key does not open".to_owned());
                    self.conversation.key_checked(if opens { Ok(()) } else { Err(denied()) });
                }
                SessionStep::AdmitRecipient => {
                    let is_known = |to: &EmailAddress| to.as_str().starts_with("good");
                    let unknown = SubmissionReply::new(550, "5.1.1", "nobody of this name is here");
                    let verdict = match self.conversation.asked_recipient() {
                        Some(to) if is_known(to) => Ok(()),
                        Some(_) | None => Err(unknown),
                    };
                    self.conversation.recipient_judged(verdict);
                }
                SessionStep::Store(submission) => {
                    self.mails.push(submission.body);
                    self.conversation.stored(&SubmissionReply::new(250, "2.0.0", "taken"));
                }
                SessionStep::Close(_) => {
                    self.is_over = true;
                    return;
                }
            }
        }
    }

    /// All replies so far, the greeting included.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// The accepted mails, in order.
    pub fn mails(&self) -> &[Bytes] {
        &self.mails
    }

    /// The number of bytes that were received and neither read nor dropped.
    pub fn unread_bytes(&self) -> usize {
        self.input.len()
    }

    /// Whether the session has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}
