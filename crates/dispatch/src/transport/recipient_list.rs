//! The recipients that one call of an API names.
//!
//! One bad address would make the service refuse the complete call, so that address is refused alone, before
//! the call. Recipients beyond the bound of the service wait for the next call.

use postway_domain::failure::{FailureCategory, FailurePhase, FailureSeverity, SendFailure};

use super::{MailEnvelope, RecipientReply, RelayReply};

/// The longest address that services accept.
const ADDRESS_BYTES_MAX: usize = 320;
/// The message for a malformed address.
pub(super) const INVALID: &str =
    "the address has a space, control character, comma or angle bracket, or is too long";

/// The most recipients of one call, and the failure of those that wait for the next.
pub(super) struct RecipientBound {
    pub max: usize,
    pub code: &'static str,
    pub message: String,
}

impl RecipientBound {
    /// The reply for a recipient that waits for the next call.
    pub fn deferral(&self) -> RecipientReply {
        RecipientReply::Deferred(SendFailure::new(
            self.code,
            FailureCategory::TooManyRecipients,
            FailurePhase::Rcpt,
            FailureSeverity::Transient,
            &self.message,
        ))
    }
}

/// Chooses the recipients that the call names, and notes a reply for each recipient.
pub(super) fn choose_recipients<'a>(
    envelope: &MailEnvelope<'a>,
    bound: &RecipientBound,
    recipients: &mut [RecipientReply],
) -> Vec<&'a str> {
    let mut named = Vec::with_capacity(envelope.recipients.len().min(bound.max));
    for (address, reply) in envelope.recipients.iter().zip(recipients) {
        *reply = if !is_address(address) {
            let (category, severity) = (FailureCategory::UnknownRecipient, FailureSeverity::Permanent);
            RecipientReply::Refused(SendFailure::new(
                "address_invalid",
                category,
                FailurePhase::Rcpt,
                severity,
                INVALID,
            ))
        } else if named.len() == bound.max {
            bound.deferral()
        } else {
            named.push(*address);
            let text = "named in the call".to_owned();
            RecipientReply::Accepted(RelayReply { code: 200, enhanced: None, text })
        };
    }
    named
}

/// True if a service cannot mistake the text for a list, a name with an address, or nothing.
pub(super) fn is_address(address: &str) -> bool {
    let (mut quoted, mut escaped) = (false, false);
    let contained = address.chars().all(|c| {
        let literal = escaped;
        escaped = quoted && !literal && c == '\\';
        quoted ^= c == '"' && !literal;
        !c.is_control() && (quoted || !matches!(c, ' ' | '<' | '>' | ',' | ';'))
    });
    contained && !quoted && !address.is_empty() && address.len() <= ADDRESS_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_address() {
        for address in ["a@b", "o'neil+x@example.org", "\"a, b\"@example.org"] {
            assert!(is_address(address), "{address}");
        }
        let long = "x".repeat(ADDRESS_BYTES_MAX + 1);
        for address in ["", "a@b,c@d", "A <a@b>", "a@b;c@d", "a@b\r\n", "\"a@b", &long] {
            assert!(!is_address(address), "{address}");
        }
    }
}
