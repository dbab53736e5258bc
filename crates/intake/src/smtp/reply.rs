//! What is answered: a code, an enhanced status code (RFC 3463) and a line of words.

use std::borrow::Cow;

use crate::refusal::{FieldError, Refusal};

/// Words of one reply, at most; what a mail's author wrote may be quoted in it.
const TEXT_BYTES_MAX: usize = 400;

/// A reply of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// As in RFC 5321: 2 done, 3 go on, 4 not now, 5 no.
    pub code: u16,
    /// The enhanced status code; empty where there is none.
    pub status: &'static str,
    /// For people.
    pub text: Cow<'static, str>,
}

impl Reply {
    /// With words that are known beforehand.
    pub(super) const fn new(code: u16, status: &'static str, text: &'static str) -> Self {
        Self { code, status, text: Cow::Borrowed(text) }
    }

    /// With words that are made up; anything but printable ASCII is replaced, and only the beginning is kept.
    pub(super) fn saying(code: u16, status: &'static str, text: &str) -> Self {
        let mut said = String::with_capacity(text.len().min(TEXT_BYTES_MAX));
        for c in text.chars() {
            match c {
                ' '..='~' => said.push(c),
                '…' => said.push_str("..."),
                '–' | '—' => said.push('-'),
                '‘' | '’' => said.push('\''),
                '“' | '”' => said.push('"'),
                _ if c.is_control() || c.is_whitespace() => said.push(' '),
                _ => said.push('?'),
            }
            if said.len() >= TEXT_BYTES_MAX {
                said.truncate(TEXT_BYTES_MAX);
                break;
            }
        }
        Self { code, status, text: Cow::Owned(said) }
    }

    /// Whether it says that something was wrong, and will be again.
    pub(super) fn is_error(&self) -> bool {
        self.code >= 500
    }

    /// Appends the line.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let digits = [self.code / 100, self.code / 10 % 10, self.code % 10].map(|digit| b'0' + digit as u8);
        out.extend_from_slice(&digits);
        // The space stands even where nothing follows: clients look for it.
        out.push(b' ');
        if !self.status.is_empty() {
            out.extend_from_slice(self.status.as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(self.text.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

impl From<&Refusal> for Reply {
    /// Why a mail was not taken, as far as it is its sender's business.
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Malformed { message } => Self::saying(550, "5.6.0", message),
            Refusal::Invalid { details } if refusal.is_forbidden() => {
                Self::saying(550, "5.7.1", &faults(details))
            }
            Refusal::Invalid { details } => Self::saying(550, "5.6.0", &faults(details)),
            Refusal::Conflict { message } => Self::saying(554, "5.6.0", message),
            Refusal::TooLarge { message } => Self::saying(552, "5.3.4", message),
            Refusal::Busy { message } => Self::saying(451, "4.3.2", message),
            Refusal::Unavailable(_) => NOT_STORED,
        }
    }
}

/// The store cannot keep it now.
pub(super) const NOT_STORED: Reply =
    Reply::new(451, "4.3.0", "the mail could not be stored and was not taken: try again later");

fn faults(details: &[FieldError]) -> String {
    let Some((first, rest)) = details.split_first() else {
        return "the mail failed its checks".to_owned();
    };
    let name = named(&first.field);
    let colon = if name.is_empty() { "" } else { ": " };
    let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
    format!("{name}{colon}{}{more}", first.message)
}

/// What a field of a message is called in a mail.
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

    fn line(reply: &Reply) -> String {
        let mut out = Vec::new();
        reply.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_reply_is_one_line_of_printable_ascii_whatever_it_quotes() {
        let reply = Reply::saying(550, "5.6.0", &format!("no\r\n250 ok \u{e9}{}", "x".repeat(1_000)));
        let line = line(&reply);
        assert!(line.starts_with("550 5.6.0 no  250 ok ?xxx") && line.len() < 420, "{line}");
        assert_eq!(line.matches('\n').count(), 1);
        let typeset = Reply::saying(550, "5.6.0", "fields such as “From: …” – it’s needed");
        assert_eq!(typeset.text, "fields such as \"From: ...\" - it's needed");
        let cut = Reply::saying(550, "5.6.0", &format!("{}…", "x".repeat(TEXT_BYTES_MAX - 1)));
        assert_eq!(cut.text.len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn a_fault_names_the_header_that_its_sender_wrote() {
        let refusal = |field: &str| Refusal::Invalid { details: vec![FieldError::new(field, "is bad")] };
        for (field, shown) in [
            ("priority", "550 5.6.0 X-Postway-Priority: is bad\r\n"),
            ("tags[3]", "550 5.6.0 X-Postway-Tag: is bad\r\n"),
            ("from", "550 5.6.0 from: is bad\r\n"),
            ("body", "550 5.6.0 is bad\r\n"),
        ] {
            assert_eq!(line(&Reply::from(&refusal(field))), shown);
        }
        let two = Refusal::Invalid { details: vec![FieldError::new("", "a"), FieldError::new("", "b")] };
        assert_eq!(line(&Reply::from(&two)), "550 5.6.0 a (and 1 more)\r\n");
    }
}
