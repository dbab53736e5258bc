//! The words a failure is described with: phase, category and severity.
//!
//! Each word has one spelling, used in Rust, JSON, tables, logs and metrics.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The word is not one of those this enumeration knows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{word:?} is not a known {of}")]
pub struct UnknownFailureWord {
    /// What was read.
    pub word: String,
    /// Which enumeration it was read for.
    pub of: &'static str,
}

/// One list per enumeration, so that its spelling in JSON, in the database and in logs cannot drift apart.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $of:literal { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The one spelling of this value.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownFailureWord;

            fn from_str(word: &str) -> Result<Self, UnknownFailureWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownFailureWord { word: word.chars().take(64).collect(), of: $of }),
                }
            }
        }
    };
}

words! {
    /// Where in the conversation with the relay a failure happened.
    FailurePhase, "phase" {
        /// Name lookup and the TCP connection.
        Connect = "connect",
        /// STARTTLS and the TLS handshake.
        Tls = "tls",
        /// The greeting and EHLO or HELO.
        Greeting = "greeting",
        /// AUTH.
        Auth = "auth",
        /// MAIL FROM.
        Mail = "mail",
        /// RCPT TO.
        Rcpt = "rcpt",
        /// DATA and the body.
        Data = "data",
        /// The final dot and its reply.
        Dot = "dot",
        /// A call of a provider's API: the request and its answer.
        Request = "request",
        /// Before any connection: the mail itself could not be made.
        Compose = "compose",
    }
}

words! {
    /// What to do about a failure.
    FailureSeverity, "severity" {
        /// Try again later; it uses a retry.
        Transient = "transient",
        /// Trying again cannot help.
        Permanent = "permanent",
        /// The account is at fault: the mail waits without using a retry, and the account's circuit opens.
        Account = "account",
    }
}

words! {
    /// The kind of a failure, for people, filters and metrics.
    FailureCategory, "failure category" {
        /// The relay could not be reached or the connection broke.
        Network = "network",
        /// A deadline passed.
        Timeout = "timeout",
        /// TLS was refused, missing, or its certificate did not verify.
        Tls = "tls",
        /// The relay wants other credentials, or any.
        Authentication = "authentication",
        /// The sending account is paused, disabled or blocked.
        AccountSuspended = "account_suspended",
        /// The sending account is set up incompletely at its provider, or wrongly here.
        Configuration = "configuration",
        /// The sending account has used up its quota.
        Quota = "quota",
        /// Too much, too fast.
        RateLimited = "rate_limited",
        /// Refused on first sight; a later try is welcome.
        Greylisted = "greylisted",
        /// The relay is overloaded, full or closing.
        ServerBusy = "server_busy",
        /// More recipients than one transaction may have.
        TooManyRecipients = "too_many_recipients",
        /// The recipient's mailbox is over quota.
        MailboxFull = "mailbox_full",
        /// The recipient's mailbox exists but takes no mail now.
        MailboxUnavailable = "mailbox_unavailable",
        /// There is no such recipient.
        UnknownRecipient = "unknown_recipient",
        /// The recipient's domain does not exist or takes no mail.
        UnknownDomain = "unknown_domain",
        /// The relay may not be used for this recipient.
        RelayDenied = "relay_denied",
        /// The sender address is malformed, unknown or not ours to use.
        SenderRejected = "sender_rejected",
        /// Refused by a rule of the relay or the recipient.
        Policy = "policy",
        /// Taken for spam.
        Spam = "spam",
        /// Larger than the relay or the mailbox takes.
        MessageTooLarge = "message_too_large",
        /// Refused because of its content.
        ContentRejected = "content_rejected",
        /// A mail loop, or no route to the destination.
        Routing = "routing",
        /// An internationalised address, and a relay that cannot carry it.
        Smtputf8Unsupported = "smtputf8_unsupported",
        /// The peer broke the protocol, or says that we did.
        Protocol = "protocol",
        /// Composing or sending the message panicked.
        Poison = "poison",
        /// None of the above.
        Unknown = "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_and_json_spells_it_the_same() {
        for &category in FailureCategory::ALL {
            assert_eq!(category.as_str().parse(), Ok(category));
            assert_eq!(serde_json::to_value(category).unwrap(), category.as_str());
        }
        for &phase in FailurePhase::ALL {
            assert_eq!(phase.as_str().parse(), Ok(phase));
        }
        for &severity in FailureSeverity::ALL {
            assert_eq!(severity.as_str().parse(), Ok(severity));
        }
        let error = "weather".parse::<FailureCategory>().unwrap_err();
        assert_eq!(error.to_string(), r#""weather" is not a known failure category"#);
    }
}
