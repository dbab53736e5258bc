//! What a mail says, apart from how it was written down.
//!
//! A program that makes its mail anew when it tries again, as most do, gives it another Date, another Message-ID, other
//! boundaries and other ids of its parts. By its gist it is the same mail: who wrote it to whom, its subject, and its parts with
//! what is in them.

use std::collections::HashMap;

use crate::reader::{DecodeBudget, PartClass, ReadMail};

/// Fields that say something.
const SAID: [&str; 6] = ["From", "Sender", "Reply-To", "To", "Cc", "Subject"];
/// Where the id of a part ends that html refers to.
const ID_ENDS: [char; 7] = ['"', '\'', '>', ' ', ')', '\r', '\n'];

/// The gist of a mail, to be compared with that of another. Of one whose parts cannot all be told, or hold nothing, all of it.
pub fn gist(raw: &[u8]) -> Vec<u8> {
    let mail = ReadMail::read(raw);
    let mut leaves = mail.parts().filter(|part| !part.has_children());
    if !mail.passed().is_empty() || leaves.all(|part| part.body().is_empty()) {
        return raw.to_vec();
    }
    let mut gist = Vec::with_capacity(raw.len());
    for field in mail.root().header().iter() {
        if let Some(said) = SAID.iter().find(|said| field.name.eq_ignore_ascii_case(said.as_bytes())) {
            let value = String::from_utf8_lossy(field.value);
            tell(&mut gist, said.as_bytes());
            tell(&mut gist, value.split_whitespace().collect::<Vec<_>>().join(" ").as_bytes());
        }
    }
    let places = places(&mail);
    let mut budget = DecodeBudget::default();
    for part in mail.parts().filter(|part| !part.has_children()) {
        let media = part.content_type().map(|label| label.media_type());
        let word = |of: Option<&[u8]>| of.unwrap_or_default().to_ascii_lowercase();
        tell(&mut gist, &word(media.map(|media| media.kind)));
        tell(&mut gist, &word(media.map(|media| media.subtype)));
        tell(&mut gist, part.file_name().unwrap_or_default().as_bytes());
        match PartClass::of(&part) {
            PartClass::Html => tell(&mut gist, without_ids(&part.text(&mut budget), &places).as_bytes()),
            class if class.is_text() => tell(&mut gist, part.text(&mut budget).as_bytes()),
            _ => tell(&mut gist, &part.content(&mut budget)),
        }
    }
    if budget.is_passed() { raw.to_vec() } else { gist }
}

/// One thing after another, so that none can be taken for a part of its neighbour.
fn tell(gist: &mut Vec<u8>, said: &[u8]) {
    gist.extend_from_slice(&(said.len() as u64).to_le_bytes());
    gist.extend_from_slice(said);
}

/// Where the parts stand that html may refer to, by their ids.
fn places<'a>(mail: &ReadMail<'a>) -> HashMap<&'a str, usize> {
    mail.parts().filter_map(|part| Some((part.content_id()?, part.index()))).collect()
}

/// Html with the places of parts for their ids.
fn without_ids(html: &str, places: &HashMap<&str, usize>) -> String {
    let mut pieces = html.split("cid:");
    let mut written = String::with_capacity(html.len());
    written.extend(pieces.next());
    for piece in pieces {
        let (id, rest) = piece.split_at(piece.find(ID_ENDS).unwrap_or(piece.len()));
        match places.get(id) {
            Some(place) => written += &format!("cid:{place}{rest}"),
            None => written += &format!("cid:{piece}"),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a program makes it: what it says, and what it makes up.
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
    fn a_mail_in_a_mail_and_text_alone_are_told_apart() {
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
