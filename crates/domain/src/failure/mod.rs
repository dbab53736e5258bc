//! Why a send failed, in a form that can be stored, counted and acted on.
//!
//! A [`SendFailure`] has a stable machine code (`smtp_550`, `connect_timeout`), a [`FailureCategory`] for
//! people and metrics, the [`FailurePhase`] it happened in, and a [`FailureSeverity`] that says what to do.
//! SMTP replies are classified by reply code, enhanced code, phase and, if providers agree on nothing else,
//! by wording; the table is in `classify`. Classification never fails: an unknown reply is `unknown`, and
//! transient unless it is a 5xx.

use std::{borrow::Cow, fmt, io, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

mod classify;
mod kind;

pub use classify::is_too_many_recipients;
pub use kind::{FailureCategory, FailurePhase, FailureSeverity, UnknownFailureWord};

/// The longest text of a peer that a failure stores, in characters.
pub const MESSAGE_CHARS_MAX: usize = 512;

/// The code of a failure on a pooled connection that was dead before it was used again.
const STALE: &str = "connection_stale";

/// An enhanced status code of RFC 3463, such as `5.1.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnhancedCode(
    /// Class: 2, 4 or 5.
    pub u8,
    /// Subject.
    pub u16,
    /// Detail.
    pub u16,
);

/// The input is not an enhanced status code.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not an enhanced status code; expected a class of 2, 4 or 5, then subject and detail, as in 5.1.1"
)]
pub struct InvalidEnhancedCode(pub String);

impl FromStr for EnhancedCode {
    type Err = InvalidEnhancedCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |part: Option<&str>| -> Option<u16> {
            let part = part?;
            let digits = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
            if digits { part.parse().ok() } else { None }
        };
        let parse = || {
            let mut parts = text.split('.');
            let class = match parts.next()? {
                "2" => 2,
                "4" => 4,
                "5" => 5,
                _ => return None,
            };
            let code = Self(class, number(parts.next())?, number(parts.next())?);
            parts.next().is_none().then_some(code)
        };
        parse().ok_or_else(|| InvalidEnhancedCode(text.chars().take(32).collect()))
    }
}

impl fmt::Display for EnhancedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl Serialize for EnhancedCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EnhancedCode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A classified failure of a send.
///
/// Its `Display` leaves the peer's text out: replies repeat addresses, and addresses do not belong into logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("{code} ({category}, {severity}) in {phase}")]
pub struct SendFailure {
    /// Stable machine code: `smtp_550`, `connect_timeout`, `connection_stale`.
    pub code: Cow<'static, str>,
    /// The kind of failure.
    pub category: FailureCategory,
    /// Where in the conversation it happened.
    pub phase: FailurePhase,
    /// What to do about it.
    pub severity: FailureSeverity,
    /// The three-digit reply, when the peer gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smtp_code: Option<u16>,
    /// The enhanced code, when the peer gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enhanced: Option<EnhancedCode>,
    /// The text of the peer or the system: at most [`MESSAGE_CHARS_MAX`] characters, without control
    /// characters.
    pub message: String,
    /// The code as the provider wrote it (`550 5.1.1`, an API's error name), for a search in its
    /// documentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_code: Option<String>,
}

impl SendFailure {
    /// A failure that has no SMTP reply. `code` must be stable: it is stored, counted and documented.
    pub fn new(
        code: impl Into<Cow<'static, str>>,
        category: FailureCategory,
        phase: FailurePhase,
        severity: FailureSeverity,
        message: impl AsRef<str>,
    ) -> Self {
        Self {
            code: code.into(),
            category,
            phase,
            severity,
            smtp_code: None,
            enhanced: None,
            message: clean(message.as_ref()),
            original_code: None,
        }
    }

    /// Classifies a well-formed reply that is not a success.
    pub fn from_reply(phase: FailurePhase, code: u16, enhanced: Option<EnhancedCode>, text: &str) -> Self {
        let message = clean(text);
        let enhanced = enhanced.or_else(|| classify::enhanced_in_text(&message));
        let (category, severity) = classify::classify(phase, code, enhanced, &message);
        let original_code = match enhanced {
            Some(enhanced) => format!("{code} {enhanced}"),
            None => code.to_string(),
        };
        Self {
            code: format!("smtp_{code}").into(),
            category,
            phase,
            severity,
            smtp_code: Some(code),
            enhanced,
            message,
            original_code: Some(original_code),
        }
    }

    /// The connection broke, or could not be established.
    pub fn io(phase: FailurePhase, kind: io::ErrorKind, message: impl AsRef<str>) -> Self {
        use io::ErrorKind::*;
        let what = match kind {
            TimedOut => {
                return Self { message: clean(message.as_ref()), ..Self::timeout(phase) };
            }
            ConnectionRefused => "refused",
            ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof | NotConnected => "closed",
            HostUnreachable | NetworkUnreachable | AddrNotAvailable | NetworkDown => "unreachable",
            _ => "io",
        };
        let category =
            if phase == FailurePhase::Tls { FailureCategory::Tls } else { FailureCategory::Network };
        Self::new(format!("{phase}_{what}"), category, phase, FailureSeverity::Transient, message)
    }

    /// The deadline of `phase` passed.
    pub fn timeout(phase: FailurePhase) -> Self {
        let message = format!("no complete answer before the deadline of the {phase} phase");
        Self::new(
            format!("{phase}_timeout"),
            FailureCategory::Timeout,
            phase,
            FailureSeverity::Transient,
            message,
        )
    }

    /// The peer does not speak SMTP correctly. Transient, because it may be a wrong or half-started machine.
    pub fn protocol(phase: FailurePhase, message: impl AsRef<str>) -> Self {
        Self::new(
            format!("{phase}_protocol"),
            FailureCategory::Protocol,
            phase,
            FailureSeverity::Transient,
            message,
        )
    }

    /// Composing or sending this message panicked.
    pub fn poison(phase: FailurePhase, message: impl AsRef<str>) -> Self {
        Self::new("poison", FailureCategory::Poison, phase, FailureSeverity::Permanent, message)
    }

    /// This failure, marked as one of a pooled connection that was dead; see [`SendFailure::is_stale`].
    pub fn into_stale(mut self) -> Self {
        self.code = STALE.into();
        self.severity = FailureSeverity::Transient;
        self
    }

    /// True if only the reused connection was dead: nothing of the mail was sent, and a fresh connection may
    /// be tried at once without using an attempt.
    pub fn is_stale(&self) -> bool {
        self.code == STALE
    }

    /// The category in the coarse words that gateways of this kind share, such as `QUOTA_ERROR`.
    pub fn reference_category(&self) -> &'static str {
        match self.category {
            FailureCategory::Timeout => "TIMEOUT_ERROR",
            FailureCategory::Quota | FailureCategory::RateLimited => "QUOTA_ERROR",
            FailureCategory::Configuration | FailureCategory::Authentication => "CONFIGURATION_ERROR",
            // The message is returned, not failed, but the problem does not go away without an operator.
            FailureCategory::AccountSuspended => "PERMANENT_ERROR",
            FailureCategory::Network
            | FailureCategory::Tls
            | FailureCategory::Greylisted
            | FailureCategory::ServerBusy
            | FailureCategory::TooManyRecipients
            | FailureCategory::MailboxFull
            | FailureCategory::MailboxUnavailable
            | FailureCategory::UnknownRecipient
            | FailureCategory::UnknownDomain
            | FailureCategory::RelayDenied
            | FailureCategory::SenderRejected
            | FailureCategory::Policy
            | FailureCategory::Spam
            | FailureCategory::MessageTooLarge
            | FailureCategory::ContentRejected
            | FailureCategory::Routing
            | FailureCategory::Smtputf8Unsupported
            | FailureCategory::Protocol
            | FailureCategory::Poison
            | FailureCategory::Unknown => match self.is_permanent() {
                true => "PERMANENT_ERROR",
                false => "TRANSIENT_ERROR",
            },
        }
    }

    /// True if a later attempt may help; it uses a retry.
    pub fn is_transient(&self) -> bool {
        self.severity == FailureSeverity::Transient
    }

    /// True if trying again cannot help.
    pub fn is_permanent(&self) -> bool {
        self.severity == FailureSeverity::Permanent
    }

    /// True if the account is at fault: the mail waits without using a retry, and the account's circuit
    /// opens.
    pub fn is_account(&self) -> bool {
        self.severity == FailureSeverity::Account
    }
}

/// The text as one bounded line without control characters, because peers choose it.
fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len().min(MESSAGE_CHARS_MAX));
    let mut chars = 0;
    for word in text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty()) {
        let separator = usize::from(chars > 0);
        if chars + separator >= MESSAGE_CHARS_MAX {
            break;
        }
        if separator == 1 {
            cleaned.push(' ');
        }
        chars += separator;
        for c in word.chars().take(MESSAGE_CHARS_MAX - chars) {
            cleaned.push(c);
            chars += 1;
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enhanced_codes_are_read_and_written() {
        for text in ["2.0.0", "4.7.0", "5.1.1", "5.7.139", "5.999.0"] {
            assert_eq!(text.parse::<EnhancedCode>().unwrap().to_string(), text);
        }
        for text in
            ["", "5", "5.1", "5.1.1.1", "3.1.1", "5.1234.1", "5..1", "+5.1.1", "5.-1.1", "5.1.1 ", "05.1.1"]
        {
            assert!(text.parse::<EnhancedCode>().is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn a_hostile_reply_text_is_cleaned_and_bounded() {
        let failure = SendFailure::from_reply(
            FailurePhase::Rcpt,
            550,
            None,
            &format!("no\r\n\x1b[31m\0 {}", "ü".repeat(9_000)),
        );
        assert_eq!(failure.message.chars().count(), MESSAGE_CHARS_MAX);
        assert!(failure.message.starts_with("no [31m ü"), "{}", failure.message);
        assert!(!failure.message.chars().any(char::is_control));
    }

    #[test]
    fn a_printed_failure_does_not_repeat_addresses() {
        let failure =
            SendFailure::from_reply(FailurePhase::Rcpt, 550, None, "<ann@example.org>: User unknown");
        assert_eq!(failure.to_string(), "smtp_550 (unknown_recipient, permanent) in rcpt");
    }

    #[test]
    fn every_message_length_stays_within_the_bound() {
        for n in 500..530 {
            let text = format!("{} b c", "a".repeat(n));
            assert!(clean(&text).chars().count() <= MESSAGE_CHARS_MAX);
        }
    }

    #[test]
    fn a_failure_survives_json() {
        let failure = SendFailure::from_reply(FailurePhase::Rcpt, 550, "5.1.1".parse().ok(), "no such user");
        let json = serde_json::to_string(&failure).unwrap();
        assert!(json.contains(r#""category":"unknown_recipient""#), "{json}");
        assert!(json.contains(r#""enhanced":"5.1.1""#), "{json}");
        assert_eq!(serde_json::from_str::<SendFailure>(&json).unwrap(), failure);
    }

    #[test]
    fn io_errors_have_stable_codes() {
        let code = |phase, kind| SendFailure::io(phase, kind, "x").code.into_owned();
        assert_eq!(code(FailurePhase::Connect, io::ErrorKind::ConnectionRefused), "connect_refused");
        assert_eq!(code(FailurePhase::Dot, io::ErrorKind::UnexpectedEof), "dot_closed");
        assert_eq!(code(FailurePhase::Mail, io::ErrorKind::TimedOut), "mail_timeout");
        assert_eq!(code(FailurePhase::Connect, io::ErrorKind::Other), "connect_io");
        assert_eq!(SendFailure::timeout(FailurePhase::Connect).code, "connect_timeout");
        assert!(
            SendFailure::io(FailurePhase::Mail, io::ErrorKind::BrokenPipe, "gone").into_stale().is_stale()
        );
    }
}
