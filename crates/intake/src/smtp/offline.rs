//! A session without a network, a gatekeeper or a store, for whoever tests the listener from outside: bytes go in, replies
//! and mails come out. It does what `session` does with the same conversation, at once.

use std::sync::LazyLock;

use bytes::{Bytes, BytesMut};
use postway_domain::{
    KeyDigest,
    scram::{ITERATIONS, SALT_BYTES, ScramVerifier},
};
use secrecy::ExposeSecret;

use super::{
    authenticator::{Denied, SmtpCredentials},
    conversation::{Conversation, Rules, Step},
    memory_budget::Budget,
    reply::Reply,
    scram::{ProvenKey, ScramCandidate, ScramOffer},
};

/// The salt of every name in an offline session.
const SALT: [u8; SALT_BYTES] = [7; SALT_BYTES];
/// The server's half of every nonce.
const NONCE: &str = "offline";
/// The key that may be proven, under the name `shop`.
static GOOD: LazyLock<ScramVerifier> = LazyLock::new(|| ScramVerifier::of("good", SALT));

/// What an offline session is made with.
#[derive(Clone, Copy, Debug)]
pub struct OfflineRules {
    /// The largest mail.
    pub message_bytes_max: usize,
    /// Recipients of one mail.
    pub recipients_max: usize,
    /// Whether STARTTLS is offered.
    pub offers_tls: bool,
    /// Whether a key may be shown without TLS.
    pub trusts_plain: bool,
}

/// One session. Keys that begin with `good` open, and every whole mail is taken.
#[derive(Debug)]
pub struct OfflineSession {
    conversation: Conversation,
    input: BytesMut,
    output: Vec<u8>,
    mails: Vec<Bytes>,
    is_over: bool,
}

impl OfflineSession {
    /// One that has just begun.
    pub fn new(rules: OfflineRules) -> Self {
        let OfflineRules { message_bytes_max, recipients_max, offers_tls, trusts_plain } = rules;
        let rules = Rules {
            name: "mx.example".to_owned(),
            message_bytes_max,
            recipients_max,
            offers_tls,
            trusts_plain,
            open: None,
        };
        // Room for the mail and for what its share is rounded up to.
        let budget = Budget::new(message_bytes_max.saturating_mul(2).max(1024 * 1024));
        let mut conversation = Conversation::new(rules, budget, false);
        let output = std::mem::take(conversation.output());
        Self { conversation, input: BytesMut::new(), output, mails: Vec::new(), is_over: false }
    }

    /// Reads the next bytes as one read from a socket would give them. A session that is over reads nothing.
    pub fn hear(&mut self, bytes: &[u8]) {
        if self.is_over {
            return;
        }
        self.input.extend_from_slice(bytes);
        loop {
            let step = self.conversation.advance(&mut self.input);
            self.output.append(self.conversation.output());
            match step {
                Step::Read => return,
                Step::StartTls => {
                    // What came in plain text behind it was in a buffer that is gone.
                    self.input.clear();
                    self.conversation.secured();
                    return;
                }
                Step::LookUp => {
                    let candidate = || ScramCandidate {
                        verifier: GOOD.clone(),
                        key: ProvenKey::Tenant(KeyDigest::of(b"good")),
                    };
                    let candidates = match self.conversation.scram_name() {
                        Some("shop") => vec![candidate()],
                        _ => Vec::new(),
                    };
                    let offer = ScramOffer { salt: SALT.to_vec(), iterations: ITERATIONS, candidates };
                    self.conversation.looked_up(Ok(offer), NONCE);
                }
                Step::Judge => {
                    let opens = match self.conversation.credentials() {
                        Some(SmtpCredentials::Key { key, .. }) => key.expose_secret().starts_with("good"),
                        Some(SmtpCredentials::Proven(_)) => true,
                        Some(SmtpCredentials::Unproven | SmtpCredentials::Network(_)) | None => false,
                    };
                    let denied = || Denied::Refused("this key does not open".to_owned());
                    self.conversation.judged(if opens { Ok(()) } else { Err(denied()) });
                }
                Step::Store(submission) => {
                    self.mails.push(submission.body);
                    self.conversation.stored(&Reply::new(250, "2.0.0", "taken"));
                }
                Step::Close(_) => {
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

    /// The mails that were taken, in order.
    pub fn mails(&self) -> &[Bytes] {
        &self.mails
    }

    /// Bytes that were heard and neither read nor forgotten.
    pub fn unread_bytes(&self) -> usize {
        self.input.len()
    }

    /// Whether the session has ended by itself.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}
