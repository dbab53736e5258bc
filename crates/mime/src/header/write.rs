//! Writing header fields: folding, encoded words (RFC 2047) and address lists.
//!
//! The encoders are mail-builder's. They are not used if their output could not be read back: mail-builder
//! does not encode ASCII that looks like an encoded word, and it encodes long ASCII that only needs folding.
//! Callers have checked names and values (no CR, LF, NUL). Lines have at most 78 octets if a fold is
//! possible.

use mail_builder::encoders::Base64Encoder;
use mail_builder::headers::{Header, address::EmailAddress as Address, raw::Raw, text::Text};
use postway_domain::address::NamedAddress;

const FOLD_AT: usize = 78;
/// The longest unfoldable piece of a raw value; with a name of 76 the line is still under 998.
const RAW_PIECE_MAX: usize = 900;

/// Writes the subject so that it reads back exactly: text that folding could change is encoded, and so is a
/// piece too long for a line, since people never see the raw form.
pub(crate) fn write_subject(value: &str, out: &mut Vec<u8>) {
    // Readers trim, shrink white space at a fold, and take a tab for a space.
    let exact = value.trim_ascii() == value && !value.contains("  ") && !value.contains('\t');
    write_unstructured("Subject", value, exact, FOLD_AT - "Subject: ".len(), out);
}

/// Writes a field that a user added. White space is not content there, and a long piece stays raw if it fits,
/// because it is often a URL or an id.
pub(crate) fn write_extra(name: &str, value: &str, out: &mut Vec<u8>) {
    write_unstructured(name, value, true, RAW_PIECE_MAX, out);
}

fn write_unstructured(name: &str, value: &str, may_be_raw: bool, piece_max: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let column = name.len() + 2;
    if !value.is_ascii() {
        Text::new(value).write_header(out, column);
    } else if may_be_raw && !value.contains("=?") && longest_piece(value) <= piece_max {
        Raw::new(value).write_header(out, column);
    } else {
        write_words(value, column, out);
        out.extend_from_slice(b"\r\n");
    }
}

/// The longest stretch from the start of one run of spaces to the start of the next.
fn longest_piece(value: &str) -> usize {
    let mut longest = 0;
    let mut start = 0;
    let mut previous = b' ';
    for (at, byte) in value.bytes().enumerate() {
        if byte == b' ' && previous != b' ' {
            longest = longest.max(at - start);
            start = at;
        }
        previous = byte;
    }
    longest.max(value.len() - start)
}

/// Writes ASCII as encoded words, one per line, for text that must not be read literally.
fn write_words(value: &str, column: usize, out: &mut Vec<u8>) {
    // 30 octets make a word of 55.
    for (index, chunk) in value.as_bytes().chunks(30).enumerate() {
        if index > 0 || column + 55 > FOLD_AT {
            out.extend_from_slice(b"\r\n ");
        }
        out.extend_from_slice(b"=?us-ascii?B?");
        Base64Encoder::new().encode_into(chunk, out);
        out.extend_from_slice(b"?=");
    }
}

/// Writes an address field with all its mailboxes.
pub(crate) fn write_mailboxes(name: &str, mailboxes: &[NamedAddress], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let mut line_start = out.len() - name.len() - 2;
    for (index, mailbox) in mailboxes.iter().enumerate() {
        if index > 0 {
            let width =
                mailbox.name().map_or(0, |name| name.len() + 3) + mailbox.address().as_str().len() + 3;
            if out.len() + 2 + width - line_start > FOLD_AT {
                out.extend_from_slice(b",\r\n ");
            } else {
                out.extend_from_slice(b", ");
            }
            line_start = last_line_start(out, line_start);
        }
        write_mailbox(mailbox, out.len() - line_start, out);
        line_start = last_line_start(out, line_start);
    }
    out.extend_from_slice(b"\r\n");
}

fn write_mailbox(mailbox: &NamedAddress, column: usize, out: &mut Vec<u8>) {
    let email = mailbox.address().as_str();
    match mailbox.name() {
        Some(name) if name.is_ascii() && name.contains("=?") => {
            write_words(name, column, out);
            out.extend_from_slice(b"\r\n <");
            out.extend_from_slice(email.as_bytes());
            out.push(b'>');
        }
        name => {
            // One column is reserved for a comma that may follow.
            let address = Address { name: name.map(Into::into), email: email.into() };
            address.write_header(out, column + 1);
            out.truncate(out.len() - 2);
        }
    }
}

/// Where the last line of `out` begins, given that it begins at `known` or later.
fn last_line_start(out: &[u8], known: usize) -> usize {
    out[known..].iter().rposition(|byte| *byte == b'\n').map_or(known, |at| known + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(value: &str) -> String {
        let mut out = Vec::new();
        write_subject(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn long_ascii_is_folded_and_not_encoded() {
        let text = subject("word ".repeat(40).trim_end());
        assert!(!text.contains("=?"));
        assert!(text.lines().all(|line| line.len() <= 78), "{text}");
        assert_eq!(
            text.replace("\r\n ", " ").trim_end(),
            format!("Subject: {}", "word ".repeat(40).trim_end())
        );
    }

    #[test]
    fn what_looks_like_an_encoded_word_is_encoded() {
        assert_eq!(subject("=?utf-8?q?x?="), "Subject: =?us-ascii?B?PT91dGYtOD9xP3g/PQ==?=\r\n");
    }

    #[test]
    fn a_long_url_in_a_header_of_the_user_stays_raw() {
        let url = format!("<https://example.org/{}>", "a".repeat(300));
        let mut out = Vec::new();
        write_extra("List-Unsubscribe", &url, &mut out);
        assert_eq!(out, format!("List-Unsubscribe: {url}\r\n").into_bytes());
    }

    #[test]
    fn many_mailboxes_are_folded_between_each_other() {
        let mailboxes: Vec<NamedAddress> =
            (0..20).map(|n| format!("\"Doe, J {n}\" <jane{n}@example.org>").parse().unwrap()).collect();
        let mut out = Vec::new();
        write_mailboxes("To", &mailboxes, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.len() <= 78), "{text}");
        assert!(
            text.starts_with(
                "To: \"Doe, J 0\" <jane0@example.org>, \"Doe, J 1\" <jane1@example.org>,\r\n \""
            )
        );
        assert_eq!(text.matches('@').count(), 20);
    }
}
