//! Writes header fields with octets beyond ASCII so that every server accepts them.
//!
//! Text becomes encoded words (RFC 2047): the whole value of fields that only people read, and names and
//! comments beside addresses. File names and other parameters are encoded by RFC 2231. Local parts of
//! addresses and ids cannot be encoded: they are not changed and need SMTPUTF8, unless they are not UTF-8.
//!
//! Nothing declares the charset of these octets. They are read as UTF-8 if they are valid UTF-8, else in the
//! charset of the mail's text, else as Windows-1252, the most common undeclared charset.

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};
use mail_builder::headers::{Header, text::Text};
use postway_domain::EmailAddress;

use super::header::RawField;
use crate::reader::{in_charset, unfold, unstructured};

/// Fields that contain addresses with names.
const ADDRESSES: [&str; 15] = [
    "From",
    "Sender",
    "Reply-To",
    "To",
    "Cc",
    "Bcc",
    "Resent-From",
    "Resent-Sender",
    "Resent-Reply-To",
    "Resent-To",
    "Resent-Cc",
    "Return-Receipt-To",
    "Disposition-Notification-To",
    "Errors-To",
    "Mail-Followup-To",
];
/// Fields that contain a word with parameters.
const LABELS: [&str; 2] = ["Content-Type", "Content-Disposition"];
/// Fields that programs read, in which an encoded word has no meaning.
const EXACT: [&str; 13] = [
    "Message-ID",
    "Resent-Message-ID",
    "In-Reply-To",
    "References",
    "Received",
    "Return-Path",
    "Date",
    "Resent-Date",
    "MIME-Version",
    "Content-Transfer-Encoding",
    "Content-ID",
    "DKIM-Signature",
    "Authentication-Results",
];
/// The charset that is assumed if none is known.
const USUAL_CHARSET: &[u8] = b"windows-1252";
/// Octets of text in one encoded word, and in one piece of a parameter.
const WORD_OCTETS: usize = 30;

/// Writes a field in ASCII as far as possible. `charset` is that of the mail's text.
pub(crate) fn write_in_ascii(field: &RawField<'_>, charset: Option<&[u8]>, out: &mut Vec<u8>) {
    if field.value.is_ascii() {
        return field.write_folded(out);
    }
    let unfolded = unfold(field.value);
    let is_among = |names: &[&str]| names.iter().any(|name| field.is(name));
    let text = match std::str::from_utf8(&unfolded) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) if is_among(&EXACT) => Cow::Owned(without_odd_octets(&unfolded)),
        Err(_) => in_charset(&unfolded, Some(charset.unwrap_or(USUAL_CHARSET))),
    };
    let text = text.replace(|character: char| character.is_control() && character != '\t', " ");
    let mut value = Vec::with_capacity(text.len() * 2);
    value.push(b' ');
    if is_among(&ADDRESSES) {
        write_addresses(&text, &mut value);
    } else if is_among(&LABELS) {
        write_label(&text, &mut value);
    } else if is_among(&EXACT) {
        value.extend_from_slice(text.as_bytes());
    } else {
        let text = unstructured(text.as_bytes()).replace(char::is_control, " ");
        Text::new(text).write_header(&mut value, field.name.len() + 2);
    }
    RawField { name: field.name, value: &value }.write_folded(out);
}

fn without_odd_octets(value: &[u8]) -> String {
    value.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' }).collect()
}

/// Writes text as encoded words, one per line.
fn write_words(text: &str, out: &mut Vec<u8>) {
    let mut rest = text;
    while !rest.is_empty() {
        let first_end = rest.chars().next().map_or(0, char::len_utf8);
        let (word, after) = rest.split_at(rest.floor_char_boundary(WORD_OCTETS).max(first_end));
        if rest.len() < text.len() {
            out.extend_from_slice(b"\r\n ");
        }
        out.extend_from_slice(b"=?utf-8?B?");
        out.extend_from_slice(BASE64_STANDARD.encode(word).as_bytes());
        out.extend_from_slice(b"?=");
        rest = after;
    }
}

/// Writes a list of addresses whose names are not all ASCII: names and comments are encoded, everything else
/// is copied.
fn write_addresses(text: &str, out: &mut Vec<u8>) {
    // The offset at which the current name begins.
    let mut name_from = None;
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let token = token(&text[at..], first);
        let is_of_name = match first {
            ' ' | '\t' | '"' => true,
            '(' | '<' | ',' | ';' | ':' => false,
            _ => !token.contains('@'),
        };
        if is_of_name {
            name_from = name_from.or(Some(at));
        } else {
            let name = &text[name_from.take().unwrap_or(at)..at];
            // A quoted word right before the @ is a part of the address.
            match token.starts_with('@') && name.ends_with('"') {
                true => out.extend_from_slice(name.as_bytes()),
                false => write_name(name, out),
            }
            match first {
                '(' if !token.is_ascii() => write_comment(token, out),
                _ if !token.is_ascii() => write_address(token, out),
                _ => out.extend_from_slice(token.as_bytes()),
            }
        }
        at += token.len();
    }
    write_name(&text[name_from.unwrap_or(at)..], out);
}

/// The first token of a text: white space, a quoted string, a comment, an address in brackets, a separator,
/// or a word.
fn token(text: &str, first: char) -> &str {
    let end = match first {
        ' ' | '\t' => text.find(|character| !matches!(character, ' ' | '\t')),
        '"' => closed(text, |_, character| character == '"'),
        '(' => closed(text, |depth, character| {
            match character {
                '(' => *depth += 1,
                ')' if *depth == 0 => return true,
                ')' => *depth -= 1,
                _ => {}
            }
            false
        }),
        '<' => text.find('>').map(|at| at + 1),
        ',' | ';' | ':' => Some(1),
        _ => text.find([' ', '\t', '"', '(', '<', ',', ';', ':']),
    };
    &text[..end.unwrap_or(text.len())]
}

/// The end of the token that the first character opens, backslash escapes considered.
fn closed(text: &str, mut ends: impl FnMut(&mut usize, char) -> bool) -> Option<usize> {
    let (mut depth, mut is_escaped) = (0, false);
    for (at, character) in text.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if character == '\\' {
            is_escaped = true;
        } else if ends(&mut depth, character) {
            return Some(at + character.len_utf8());
        }
    }
    None
}

/// Writes the words of a name and the white space around them.
fn write_name(name: &str, out: &mut Vec<u8>) {
    if name.is_ascii() {
        return out.extend_from_slice(name.as_bytes());
    }
    let mut text = String::with_capacity(name.len());
    let mut rest = name.trim();
    while let Some(first) = rest.chars().next() {
        let word = token(rest, first);
        rest = &rest[word.len()..];
        match first {
            ' ' | '\t' => text.push(' '),
            '"' => text.push_str(&unescaped(word.trim_matches('"'))),
            _ => text.push_str(&unstructured(word.as_bytes())),
        }
    }
    out.extend_from_slice(if name.starts_with([' ', '\t']) { b" " } else { b"" });
    write_words(&text.replace(char::is_control, " "), out);
    out.push(b' ');
}

/// Writes an address, with or without brackets, in its envelope form if that is ASCII, else unchanged.
fn write_address(token: &str, out: &mut Vec<u8>) {
    let bare = token.strip_prefix('<').and_then(|token| token.strip_suffix('>'));
    match bare.unwrap_or(token).trim().parse::<EmailAddress>() {
        Ok(address) if address.as_str().is_ascii() && bare.is_some() => {
            out.extend_from_slice(format!("<{address}>").as_bytes());
        }
        Ok(address) if address.as_str().is_ascii() => out.extend_from_slice(address.as_str().as_bytes()),
        Ok(_) | Err(_) => out.extend_from_slice(token.as_bytes()),
    }
}

fn write_comment(comment: &str, out: &mut Vec<u8>) {
    out.push(b'(');
    let inner = comment.strip_prefix('(').unwrap_or(comment);
    write_words(&unescaped(inner.strip_suffix(')').unwrap_or(inner)), out);
    out.push(b')');
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.extend(characters.next()),
            character => out.push(character),
        }
    }
    out
}

/// Writes a word with parameters; those beyond ASCII are encoded by RFC 2231.
fn write_label(text: &str, out: &mut Vec<u8>) {
    let mut rest = text;
    let mut is_first = true;
    while !rest.is_empty() {
        let mut in_quotes = false;
        let end = rest.find(|character| {
            in_quotes ^= character == '"';
            character == ';' && !in_quotes
        });
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.strip_prefix(';').unwrap_or(after);
        if !is_first {
            out.extend_from_slice(b";");
        }
        match piece.split_once('=') {
            _ if piece.is_ascii() => out.extend_from_slice(piece.as_bytes()),
            Some((name, value)) if !is_first && name.is_ascii() => {
                write_parameter(name.trim(), value.trim(), out)
            }
            _ => out.extend_from_slice(without_odd_octets(piece.as_bytes()).as_bytes()),
        }
        is_first = false;
    }
}

fn write_parameter(name: &str, value: &str, out: &mut Vec<u8>) {
    let value = match value.strip_prefix('"') {
        Some(quoted) => unescaped(quoted.strip_suffix('"').unwrap_or(quoted)),
        None => value.to_owned(),
    };
    let pieces = value.as_bytes().chunks(WORD_OCTETS);
    let count = pieces.len();
    for (number, piece) in pieces.enumerate() {
        if number > 0 {
            out.push(b';');
        }
        let place = if count > 1 { format!("*{number}") } else { String::new() };
        let charset = if number == 0 { "utf-8''" } else { "" };
        out.extend_from_slice(format!("\r\n {name}{place}*={charset}").as_bytes());
        for byte in piece {
            match byte {
                byte if byte.is_ascii_alphanumeric() || b"-._".contains(byte) => out.push(*byte),
                byte => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mail_parser::{MessageParser, MimeHeaders};

    use super::*;

    fn written(name: &str, value: &[u8], charset: Option<&[u8]>) -> String {
        let mut out = Vec::new();
        write_in_ascii(&RawField { name: name.as_bytes(), value }, charset, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_is_read_back_as_it_was_meant() {
        for (value, charset, meant) in [
            (" Gr\u{fc}\u{df}e".as_bytes(), None, "Gr\u{fc}\u{df}e"),
            (b" Gr\xfc\xdfe", None, "Gr\u{fc}\u{df}e"),
            (b" \x93quoted\x94", None, "\u{201c}quoted\u{201d}"),
            (b" \xa3\xf3d\xbc", Some(&b"iso-8859-2"[..]), "\u{141}\u{f3}d\u{17a}"),
            ("=?utf-8?q?=C3=A9?= \u{fc}".as_bytes(), None, "\u{e9} \u{fc}"),
        ] {
            let field = written("Subject", value, charset);
            assert!(field.is_ascii() && field.lines().all(|line| line.len() <= 78), "{field}");
            let mail = format!("{field}\r\n");
            assert_eq!(MessageParser::new().parse(mail.as_bytes()).unwrap().subject(), Some(meant));
        }
    }

    #[test]
    fn names_and_comments_beside_addresses_are_encoded_and_addresses_are_not() {
        for (value, expected) in [
            ("Zo\u{eb} <zoe@example.org>", "From: =?utf-8?B?Wm/Dqw==?= <zoe@example.org>\r\n"),
            (
                "\"Doe, Zo\u{eb}\" <z@x.example>, b@x.example",
                "From: =?utf-8?B?RG9lLCBab8Or?= <z@x.example>, b@x.example\r\n",
            ),
            ("z@x.example (Zo\u{eb})", "From: z@x.example (=?utf-8?B?Wm/Dqw==?=)\r\n"),
            (
                "zo\u{eb}@x.example, \"\u{eb}\"@x.example",
                "From: zo\u{eb}@x.example, \"\u{eb}\"@x.example\r\n",
            ),
            ("Zo\u{eb}: a@x.example;", "From: =?utf-8?B?Wm/Dqw==?= : a@x.example;\r\n"),
        ] {
            assert_eq!(written("From", value.as_bytes(), None), expected);
        }
        let long = format!("{} <a@x.example>", "\u{eb}".repeat(500));
        let field = written("To", long.as_bytes(), None);
        assert!(field.is_ascii() && field.lines().all(|line| line.len() < 100));
        let mail = MessageParser::new().parse(field.as_bytes()).unwrap();
        let to = mail.to().and_then(|to| to.first()).unwrap();
        assert_eq!((to.name(), to.address()), (Some("\u{eb}".repeat(500).as_str()), Some("a@x.example")));
    }

    #[test]
    fn the_name_of_a_file_becomes_a_parameter_that_says_its_charset() {
        let label =
            "attachment; filename=\"Gr\u{fc}\u{df}e; an alle meine Freunde in der Stadt.pdf\"; size=3";
        let field = written("Content-Disposition", label.as_bytes(), None);
        assert!(field.is_ascii() && field.ends_with("; size=3\r\n"), "{field}");
        let mail = format!("{field}\r\nx");
        let mail = MessageParser::new().parse(mail.as_bytes()).unwrap();
        assert_eq!(mail.attachment_name(), Some("Gr\u{fc}\u{df}e; an alle meine Freunde in der Stadt.pdf"));
    }

    #[test]
    fn what_programs_read_is_not_encoded() {
        assert_eq!(written("References", "<\u{fc}@x>".as_bytes(), None), "References: <\u{fc}@x>\r\n");
        assert_eq!(written("References", b"<\xfc@x>", None), "References: <?@x>\r\n");
    }

    #[test]
    fn nothing_hides_in_what_is_encoded() {
        for name in ["Subject", "From", "Content-Type", "References", "X-Any"] {
            for value in [
                "\u{e9} =?utf-8?q?=0D=0ABcc:_x@y?=",
                "\"\u{e9}\r\n\tx\" (\\",
                "\u{e9};a=\"\u{85}\\",
                "(((\u{e9}",
            ] {
                let field = written(name, value.as_bytes(), None);
                assert!(field.ends_with("\r\n"), "{field}");
                assert!(
                    field[..field.len() - 2].split("\r\n").skip(1).all(|line| line.starts_with([' ', '\t'])),
                    "{field}"
                );
            }
        }
    }

    #[test]
    fn the_longest_header_takes_no_longer_than_its_length() {
        let started = std::time::Instant::now();
        for (name, piece) in [
            ("To", "("),
            ("To", "\""),
            ("To", "\\\""),
            ("To", "\u{e9}<"),
            ("To", "\u{e9},"),
            ("Subject", "=?x?q?"),
            ("Content-Type", ";\u{e9}="),
            ("Content-Type", "\""),
        ] {
            let value = format!("\u{e9}{}", piece.repeat(256 * 1024 / piece.len()));
            written(name, value.as_bytes(), None);
        }
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }
}
