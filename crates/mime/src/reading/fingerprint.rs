//! A fingerprint of a mail's content that does not depend on how the mail was encoded.
//!
//! Most programs compose a mail again when they retry, with a new Date, Message-ID, boundaries and content
//! ids. The fingerprint stays the same: it contains author, recipients, subject, and the parts with their
//! decoded content.

use std::collections::HashMap;

use crate::reader::{DecodeBudget, PartClass, ReadMail};

/// The header fields that are compared.
const COMPARED_FIELDS: [&str; 6] = ["From", "Sender", "Reply-To", "To", "Cc", "Subject"];
/// The characters that end a content id in html.
const ID_ENDS: [char; 7] = ['"', '\'', '>', ' ', ')', '\r', '\n'];

/// The fingerprint of a mail, to be compared with that of another. If the mail passes a limit of the reader
/// or has no content, this is the whole mail.
pub fn gist(raw: &[u8]) -> Vec<u8> {
    let mail = ReadMail::read(raw);
    let mut leaves = mail.parts().filter(|part| !part.has_children());
    if !mail.passed().is_empty() || leaves.all(|part| part.body().is_empty()) {
        return raw.to_vec();
    }
    let mut fingerprint = Vec::with_capacity(raw.len());
    for field in mail.root().header().iter() {
        if let Some(name) =
            COMPARED_FIELDS.iter().find(|name| field.name.eq_ignore_ascii_case(name.as_bytes()))
        {
            let value = String::from_utf8_lossy(field.value);
            append_item(&mut fingerprint, name.as_bytes());
            append_item(&mut fingerprint, value.split_whitespace().collect::<Vec<_>>().join(" ").as_bytes());
        }
    }
    let positions = part_positions(&mail);
    let mut budget = DecodeBudget::default();
    for part in mail.parts().filter(|part| !part.has_children()) {
        let media = part.content_type().map(|label| label.media_type());
        let word = |of: Option<&[u8]>| of.unwrap_or_default().to_ascii_lowercase();
        append_item(&mut fingerprint, &word(media.map(|media| media.kind)));
        append_item(&mut fingerprint, &word(media.map(|media| media.subtype)));
        append_item(&mut fingerprint, part.file_name().unwrap_or_default().as_bytes());
        match PartClass::of(&part) {
            PartClass::Html => append_item(
                &mut fingerprint,
                replace_content_ids(&part.text(&mut budget), &positions).as_bytes(),
            ),
            class if class.is_text() => append_item(&mut fingerprint, part.text(&mut budget).as_bytes()),
            _ => append_item(&mut fingerprint, &part.content(&mut budget)),
        }
    }
    if budget.is_passed() { raw.to_vec() } else { fingerprint }
}

/// Appends an item with its length, so that it cannot be confused with its neighbours.
fn append_item(fingerprint: &mut Vec<u8>, item: &[u8]) {
    fingerprint.extend_from_slice(&(item.len() as u64).to_le_bytes());
    fingerprint.extend_from_slice(item);
}

/// The positions of the parts that html may refer to, by content id.
fn part_positions<'a>(mail: &ReadMail<'a>) -> HashMap<&'a str, usize> {
    mail.parts().filter_map(|part| Some((part.content_id()?, part.index()))).collect()
}

/// Replaces content ids in html by the positions of the parts.
fn replace_content_ids(html: &str, positions: &HashMap<&str, usize>) -> String {
    let mut pieces = html.split("cid:");
    let mut written = String::with_capacity(html.len());
    written.extend(pieces.next());
    for piece in pieces {
        let (id, rest) = piece.split_at(piece.find(ID_ENDS).unwrap_or(piece.len()));
        match positions.get(id) {
            Some(position) => written += &format!("cid:{position}{rest}"),
            None => written += &format!("cid:{piece}"),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mail as a program composes it: the content, and the generated ids.
    fn mail(subject: &str, text: &str, file: &str, made_up: &str) -> Vec<u8> {
        format!(
            "From: Shop <shop@example.com>\r\nTo: ada@example.net\r\nSubject: {subject}\r\nDate: {made_up}\r\n\
             Message-ID: <{made_up}@host>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=\"{made_up}\"\r\n\r\n\
             --{made_up}\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>{text}</p><img src=\"cid:{made_up}@host\">\r\n\
             --{made_up}\r\nContent-Type: image/png; name=\"logo.png\"\r\nContent-Transfer-Encoding: base64\r\n\
             Content-ID: <{made_up}@host>\r\n\r\n{file}\r\n--{made_up}--\r\n"
        )
        .into_bytes()
    }

    #[test]
    fn a_mail_that_was_made_anew_is_the_same() {
        let first = gist(&mail("Hi", "Hello", "aGk=", "one"));
        assert_eq!(gist(&mail("Hi", "Hello", "aGk=", "two")), first);
        assert_eq!(gist(&mail("Hi", "Hello", "aG\r\nk=", "three")), first, "encoded in other lines");
        for other in [
            mail("Ho", "Hello", "aGk=", "one"),
            mail("Hi", "Hallo", "aGk=", "one"),
            mail("Hi", "Hello", "aG8=", "one"),
        ] {
            assert_ne!(gist(&other), first, "{}", other.escape_ascii());
        }
    }

    #[test]
    fn a_mail_in_a_mail_and_text_alone_are_distinguished() {
        let plain = |text: &str| format!("From: a@b.example\r\nDate: {text}\r\n\r\nHi\r\n").into_bytes();
        assert_eq!(gist(&plain("x")), gist(&plain("y")));
        let around = |inner: &[u8]| {
            let start = b"From: a@b.example\r\nContent-Type: message/rfc822\r\n\r\n";
            gist(&[&start[..], inner].concat())
        };
        assert_ne!(around(&plain("x")), around(&plain("y")), "a mail that is sent along is a file");
        let unparted = |text: &str| {
            gist(
                format!("From: a@b.example\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n{text}\r\n")
                    .as_bytes(),
            )
        };
        assert_ne!(unparted("Hello"), unparted("Hallo"), "what cannot be taken apart counts as it is");
    }
}
