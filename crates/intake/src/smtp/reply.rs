//! Replies: a code, an enhanced status code (RFC 3463) and a line of text.

use std::borrow::Cow;

use crate::refusal::{FieldFault, Refusal};

/// The most bytes of text in one reply; it may quote what the author of a mail wrote.
const TEXT_BYTES_MAX: usize = 400;

/// The memory for mail that is coming in is used up.
pub(super) const NO_ROOM: SubmissionReply =
    SubmissionReply::new(452, "4.3.1", "too much mail is coming in at once: try again later");

/// A reply of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmissionReply {
    /// The code of RFC 5321: 2xx done, 3xx continue, 4xx try later, 5xx refused.
    pub code: u16,
    /// The enhanced status code; empty if the reply has no such code.
    pub status: &'static str,
    /// The text for people.
    pub text: Cow<'static, str>,
}

impl SubmissionReply {
    /// A reply with a fixed text.
    pub const fn new(code: u16, status: &'static str, text: &'static str) -> Self {
        Self { code, status, text: Cow::Borrowed(text) }
    }

    /// A reply with a computed text; everything but printable ASCII is replaced, and a long text is
    /// truncated.
    pub fn with_text(code: u16, status: &'static str, text: &str) -> Self {
        let mut ascii = String::with_capacity(text.len().min(TEXT_BYTES_MAX));
        for c in text.chars() {
            match c {
                ' '..='~' => ascii.push(c),
                '…' => ascii.push_str("..."),
                '–' | '—' => ascii.push('-'),
                '‘' | '’' => ascii.push('\''),
                '“' | '”' => ascii.push('"'),
                _ if c.is_control() || c.is_whitespace() => ascii.push(' '),
                _ => ascii.push('?'),
            }
            if ascii.len() >= TEXT_BYTES_MAX {
                ascii.truncate(TEXT_BYTES_MAX);
                break;
            }
        }
        Self { code, status, text: Cow::Owned(ascii) }
    }

    /// Whether the reply is a permanent error.
    pub(super) fn is_error(&self) -> bool {
        self.code >= 500
    }

    /// Appends the line.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let digits = [self.code / 100, self.code / 10 % 10, self.code % 10].map(|digit| b'0' + digit as u8);
        out.extend_from_slice(&digits);
        // The space is there even without text, because clients look for it.
        out.push(b' ');
        if !self.status.is_empty() {
            out.extend_from_slice(self.status.as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(self.text.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

impl From<&Refusal> for SubmissionReply {
    /// The reply for a refusal, as far as it concerns the sender.
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Malformed { message } => Self::with_text(550, "5.6.0", message),
            Refusal::Invalid { details } if refusal.is_forbidden() => {
                Self::with_text(550, "5.7.1", &faults(details))
            }
            Refusal::Invalid { details } => Self::with_text(550, "5.6.0", &faults(details)),
            Refusal::Conflict { message } => Self::with_text(554, "5.6.0", message),
            Refusal::TooLarge { message } => Self::with_text(552, "5.3.4", message),
            Refusal::Busy { message } => Self::with_text(451, "4.3.2", message),
            Refusal::OverQuota { message, .. } => Self::with_text(452, "4.7.0", message),
            Refusal::Unavailable(_) => NOT_STORED,
        }
    }
}

/// The reply while the store does not answer.
pub(super) const NOT_STORED: SubmissionReply =
    SubmissionReply::new(451, "4.3.0", "the mail could not be stored and was not taken: try again later");

fn faults(details: &[FieldFault]) -> String {
    let Some((first, rest)) = details.split_first() else {
        return "the mail failed its checks".to_owned();
    };
    let name = named(&first.field);
    let colon = if name.is_empty() { "" } else { ": " };
    let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
    format!("{name}{colon}{}{more}", first.message)
}

/// The header field for a field of a message.
fn named(field: &str) -> &str {
    match field.split(['[', '.']).next().unwrap_or(field) {
        "id" => "X-Postway-Client-Id",
        "account" => "X-Postway-Account",
        "batch" => "X-Postway-Batch",
        "priority" => "X-Postway-Priority",
        "send_at" => "X-Postway-Send-At",
        "expires_at" => "X-Postway-Expires-At",
        "tags" => "X-Postway-Tag",
        "Idempotency-Key" => "X-Postway-Idempotency-Key",
        "body" => "",
        _ => field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(reply: &SubmissionReply) -> String {
        let mut out = Vec::new();
        reply.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_reply_is_one_line_of_printable_ascii_whatever_it_quotes() {
        let reply =
            SubmissionReply::with_text(550, "5.6.0", &format!("no\r\n250 ok \u{e9}{}", "x".repeat(1_000)));
        let line = line(&reply);
        assert!(line.starts_with("550 5.6.0 no  250 ok ?xxx") && line.len() < 420, "{line}");
        assert_eq!(line.matches('\n').count(), 1);
        let typeset = SubmissionReply::with_text(550, "5.6.0", "fields such as “From: …” – it’s needed");
        assert_eq!(typeset.text, "fields such as \"From: ...\" - it's needed");
        let cut = SubmissionReply::with_text(550, "5.6.0", &format!("{}…", "x".repeat(TEXT_BYTES_MAX - 1)));
        assert_eq!(cut.text.len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn a_fault_names_the_header_that_its_sender_wrote() {
        let refusal = |field: &str| Refusal::Invalid { details: vec![FieldFault::new(field, "is bad")] };
        for (field, shown) in [
            ("priority", "550 5.6.0 X-Postway-Priority: is bad\r\n"),
            ("tags[3]", "550 5.6.0 X-Postway-Tag: is bad\r\n"),
            ("from", "550 5.6.0 from: is bad\r\n"),
            ("body", "550 5.6.0 is bad\r\n"),
        ] {
            assert_eq!(line(&SubmissionReply::from(&refusal(field))), shown);
        }
        let two = Refusal::Invalid { details: vec![FieldFault::new("", "a"), FieldFault::new("", "b")] };
        assert_eq!(line(&SubmissionReply::from(&two)), "550 5.6.0 a (and 1 more)\r\n");
    }
}
