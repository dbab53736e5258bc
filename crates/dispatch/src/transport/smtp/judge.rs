//! The decisions of a transaction that need no connection: what may be offered, and what a reply means.

use std::io;

use postway_domain::failure::{
    FailureCategory, FailurePhase, FailureSeverity, MESSAGE_CHARS_MAX, SendFailure, is_too_many_recipients,
};

use super::body::{self, BodyScan};
use crate::transport::{MailEnvelope, RecipientReply, RelayReply};

/// The longest path (RFC 5321 4.5.3.1.3), with a margin for internationalised ones.
const PATH_BYTES_MAX: usize = 512;

/// What a reply to RCPT means. "Too many recipients" defers a recipient only if another one was accepted; the
/// first one is refused, because splitting the mail could not help.
pub(super) fn judge_rcpt_reply(reply: RelayReply, accepted: usize) -> Result<RecipientReply, SendFailure> {
    if reply.is_positive() {
        return Ok(RecipientReply::Accepted(bounded_reply(reply)));
    }
    if reply.code < 400 {
        return Err(reply.into_failure(FailurePhase::Rcpt));
    }
    let too_many = is_too_many_recipients(reply.code, reply.enhanced, &reply.text);
    let failure = reply.into_failure(FailurePhase::Rcpt);
    Ok(match too_many && accepted > 0 {
        true => RecipientReply::Deferred(failure),
        false => RecipientReply::Refused(failure),
    })
}

/// The reply with its text bounded for storage, like that of failures.
pub(super) fn bounded_reply(mut reply: RelayReply) -> RelayReply {
    if let Some((end, _)) = reply.text.char_indices().nth(MESSAGE_CHARS_MAX) {
        reply.text.truncate(end);
    }
    reply
}

/// The checks that need no relay: paths that would break out of their command, and line ends that would
/// smuggle mail.
pub(super) fn check_mail(
    envelope: &MailEnvelope<'_>,
    body: &[u8],
    recipients: &mut [RecipientReply],
) -> Result<BodyScan, SendFailure> {
    let refuse = |code: &'static str, category, phase, message: &str| {
        SendFailure::new(code, category, phase, FailureSeverity::Permanent, message)
    };
    let invalid = "the address has a space, control character or angle bracket, or is too long";
    if !is_path(envelope.sender) {
        return Err(refuse("address_invalid", FailureCategory::SenderRejected, FailurePhase::Mail, invalid));
    }
    for (address, reply) in envelope.recipients.iter().zip(recipients) {
        if address.is_empty() || !is_path(address) {
            let failure =
                refuse("address_invalid", FailureCategory::UnknownRecipient, FailurePhase::Rcpt, invalid);
            *reply = RecipientReply::Refused(failure);
        }
    }
    body::scan(body).map_err(|bare| {
        refuse("bare_line_end", FailureCategory::ContentRejected, FailurePhase::Data, &bare.to_string())
    })
}

/// True if `path` cannot break out of the command it is written into: brackets and spaces occur only inside
/// quotes.
fn is_path(path: &str) -> bool {
    let (mut quoted, mut escaped) = (false, false);
    let contained = path.chars().all(|c| {
        let literal = escaped;
        escaped = quoted && !literal && c == '\\';
        quoted ^= c == '"' && !literal;
        !c.is_control() && (quoted || !matches!(c, ' ' | '<' | '>'))
    });
    contained && !quoted && path.len() <= PATH_BYTES_MAX
}

/// True if the mail can only go to a relay that offers SMTPUTF8.
pub(super) fn needs_smtputf8(envelope: &MailEnvelope<'_>) -> bool {
    envelope.smtputf8
        || !envelope.sender.is_ascii()
        || envelope.recipients.iter().any(|path| !path.is_ascii())
}

/// True if the connection failed, rather than the relay refusing.
pub(super) fn is_connection_failure(failure: &SendFailure) -> bool {
    match failure.smtp_code {
        Some(code) => code == 421,
        None => failure.category == FailureCategory::Network,
    }
}

/// The failure of a connection that the relay closed.
pub(super) fn closed_failure(phase: FailurePhase) -> SendFailure {
    SendFailure::io(phase, io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_break_out_of_its_command() {
        let good =
            ["a@b", "", "o'neil+x@example.org", "\"a b\"@example.org", "\"a\\\"> <\"@b", "ü@example.org"];
        for path in good {
            assert!(is_path(path), "{path}");
        }
        let long = "x".repeat(PATH_BYTES_MAX + 1);
        let bad = ["a@b>\r\nDATA", "a@b\n", "a\0@b", "a@b> SIZE=1", "a b@c", "<a@b>", "a\u{85}@b", &long];
        for path in bad.into_iter().chain(["\"a\"@b> SIZE=1", "\"a@b", "\"a\\\"@b"]) {
            assert!(!is_path(path), "{path}");
        }
    }

    #[test]
    fn a_long_reply_is_cut_at_a_character() {
        let reply = RelayReply { code: 250, enhanced: None, text: "ü".repeat(9_000) };
        assert_eq!(bounded_reply(reply).text.chars().count(), MESSAGE_CHARS_MAX);
    }
}
