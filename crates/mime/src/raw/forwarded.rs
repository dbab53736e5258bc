//! Sends received mail on.
//!
//! [`resend`] adds a block of `Resent-` fields (RFC 5322, 3.6.6) in front of a mail that is otherwise
//! unchanged: author, date and Message-ID stay the author's, so that replies, threads and the author's
//! signature still work. Our own Message-ID is in `Resent-Message-ID`, our id in `X-Postway-ID`. The
//! result must never be signed with a tenant's key: anybody can claim to be an author of the tenant's domain.
//! [`compose_around`] attaches a mail, octet for octet, to a new one.
//!
//! Received mail need not conform to SMTP. [`resend`] folds and encodes what no server would accept, and
//! refuses such a mail if it is signed; [`compose_around`] encodes the mail as a file.

use mail_builder::headers::date::Date;
use memchr::memmem;
use postway_domain::address::NamedAddress;

use super::{
    header::{RawError, RawField, RawHeader},
    writer::{RawChange, RawWriter, WrittenRaw},
};
use crate::{
    compose::{ComposeError, ComposedMail, MailDraft, check_ids, compose},
    header::write::write_mailboxes,
    wire::lines::{TextLines, are_short},
};

/// The last field of every composed header that does not describe the body.
const HEADER_END: &[u8] = b"MIME-Version: 1.0\r\n";
/// Octets on a line of base64.
const BASE64_LINE_OCTETS: usize = 76;

/// The `Resent-` fields of a mail: who sends it on, to whom, and as which message.
#[derive(Debug, Clone, Copy)]
pub struct ResentFields<'a> {
    /// The mailbox that sends it on.
    pub from: &'a NamedAddress,
    /// The mailboxes that it is sent to.
    pub to: &'a [NamedAddress],
    /// Our Message-ID, `uid@domain`, without angle brackets.
    pub message_id: &'a str,
    /// The message's uid, for `X-Postway-ID`.
    pub uid: &'a str,
    /// The time for `Resent-Date`, in seconds since 1970.
    pub date_unix: i64,
    /// An ASCII text to put in front of the subject, which breaks the author's signature.
    pub subject_prefix: Option<&'a str>,
}

/// Puts `Resent-` fields in front of the mail.
pub fn resend(bytes: &[u8], resent: &ResentFields<'_>) -> Result<ComposedMail, RawError> {
    check_ids(resent.message_id, resent.uid)?;
    let header = RawHeader::read_whole(bytes)?;
    let mut writer = RawWriter::new(bytes, &header);
    let out = &mut writer.out;
    write_mailboxes("Resent-From", std::slice::from_ref(resent.from), out);
    write_mailboxes("Resent-To", resent.to, out);
    let date = Date::new(resent.date_unix).to_rfc822();
    let ResentFields { message_id, uid, .. } = resent;
    let mut fields =
        format!("Resent-Date: {date}\r\nResent-Message-ID: <{message_id}>\r\nX-Postway-ID: {uid}\r\n");
    if let Some(prefix) = resent.subject_prefix.filter(|_| header.first("Subject").is_none()) {
        fields += &format!("Subject: {}\r\n", prefix.trim_end());
    }
    if writer.lacks(&header, "Date") {
        fields += &format!("Date: {date}\r\n");
    }
    if writer.lacks(&header, "Message-ID") {
        fields += &format!("Message-ID: <{message_id}>\r\n");
    }
    writer.out.extend_from_slice(fields.as_bytes());
    for field in header.fields.iter().filter(|field| !is_ours_to_write(field)) {
        write_field(field, resent.subject_prefix, &mut writer);
    }
    let WrittenRaw { bytes, eight_bit, smtputf8, changes } = writer.finish(header.body, false);
    match changes.contains(&RawChange::SignedContentChanged) {
        true => Err(RawError::Signed),
        false => Ok(ComposedMail { bytes, eight_bit, smtputf8 }),
    }
}

/// Composes a new mail with the text of the draft and the original as an attachment named `filename`. The
/// html and the files of the draft are ignored.
pub fn compose_around(
    draft: &MailDraft<'_>,
    original: &[u8],
    filename: &str,
) -> Result<ComposedMail, ComposeError> {
    let words = compose(&MailDraft { html: None, alternatives: &[], attachments: &[], ..*draft })?;
    let end = memmem::find(&words.bytes, HEADER_END).map_or(0, |at| at + HEADER_END.len());
    let (header, text) = words.bytes.split_at(end);
    let boundary = format!("=_{}_0", draft.uid);
    let original_form = original_encoding(original, &boundary);
    let mut out = Vec::with_capacity(words.bytes.len() + original.len() / 2 * 3 + 1024);
    out.extend_from_slice(header);
    let mut write = |text: &str| out.extend_from_slice(text.as_bytes());
    write(&format!("Content-Type: multipart/mixed;\r\n boundary=\"{boundary}\"\r\n"));
    if original_form == OriginalEncoding::EightBit {
        // The multipart around an 8bit part must declare 8bit, too (RFC 2045, 6.4).
        write("Content-Transfer-Encoding: 8bit\r\n");
    }
    write(&format!("\r\n--{boundary}\r\n"));
    out.extend_from_slice(text.strip_suffix(b"\r\n").unwrap_or(text));
    let mut write = |text: &str| out.extend_from_slice(text.as_bytes());
    let (kind, encoding) = match original_form {
        OriginalEncoding::SevenBit => ("message/rfc822", "7bit"),
        OriginalEncoding::EightBit => ("message/rfc822", "8bit"),
        OriginalEncoding::Encoded => ("application/octet-stream", "base64"),
    };
    write(&format!("\r\n--{boundary}\r\nContent-Type: {kind}\r\n"));
    write(&format!("Content-Disposition: attachment;\r\n filename=\"{}\"\r\n", plain_file_name(filename)));
    write(&format!("Content-Transfer-Encoding: {encoding}\r\n\r\n"));
    match original_form {
        OriginalEncoding::SevenBit | OriginalEncoding::EightBit => write_lines(original, &mut out),
        OriginalEncoding::Encoded => write_base64(original, &mut out),
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let eight_bit = words.eight_bit || original_form == OriginalEncoding::EightBit;
    Ok(ComposedMail { bytes: out, eight_bit, smtputf8: words.smtputf8 })
}

/// Fields of an earlier hop that must not be sent again, and fields that we write ourselves. A stranger's
/// `X-Postway-` field would select an option at the next gateway in the tenant's name, so they are removed;
/// loop marks stay.
fn is_ours_to_write(field: &RawField<'_>) -> bool {
    let is_of_a_hop = ["Bcc", "Resent-Bcc", "Return-Path"].iter().any(|name| field.is(name));
    is_of_a_hop || (field.is_ours() && !field.is_mark())
}

fn write_field(field: &RawField<'_>, subject_prefix: Option<&str>, writer: &mut RawWriter) {
    match subject_prefix {
        Some(prefix) if field.is("Subject") => {
            let mut value = Vec::with_capacity(field.value.len() + prefix.len() + 3);
            value.extend_from_slice(b" ");
            value.extend_from_slice(prefix.as_bytes());
            // On a separate line, so that no line becomes too long.
            value.extend_from_slice(b"\r\n ");
            value.extend_from_slice(field.value.trim_ascii_start());
            writer.write(&RawField { name: field.name, value: &value });
        }
        _ => writer.write(field),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OriginalEncoding {
    SevenBit,
    EightBit,
    Encoded,
}

/// How a mail can be attached to another: unencoded if the wire allows it, because a `message/` part may not
/// be encoded.
fn original_encoding(original: &[u8], boundary: &str) -> OriginalEncoding {
    let Ok(RawHeader { fields, body, .. }) = RawHeader::read_whole(original) else {
        return OriginalEncoding::Encoded;
    };
    let is_plain = fields.iter().all(|field| field.name.is_ascii() && field.value.is_ascii());
    if !is_plain || !are_short(original) || memmem::find(original, boundary.as_bytes()).is_some() {
        return OriginalEncoding::Encoded;
    }
    if body.is_ascii() { OriginalEncoding::SevenBit } else { OriginalEncoding::EightBit }
}

fn write_lines(bytes: &[u8], out: &mut Vec<u8>) {
    for (line, _) in TextLines::new(bytes) {
        out.extend_from_slice(line);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    use base64::{Engine, prelude::BASE64_STANDARD};
    for line in bytes.chunks(BASE64_LINE_OCTETS / 4 * 3) {
        out.extend_from_slice(BASE64_STANDARD.encode(line).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// A file name that needs no quoting.
fn plain_file_name(name: &str) -> String {
    let is_plain =
        |character: &char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_');
    name.chars().filter(is_plain).take(64).collect()
}

#[cfg(test)]
mod tests {
    use mail_parser::{MessageParser, MimeHeaders, PartType};

    use super::*;

    const ORIGINAL: &[u8] = b"Return-Path: <x@y.example>\nDKIM-Signature: v=1; a=b\nFrom: Ada <ada@example.org>\n\
        To: shop@example.net\nBcc: hidden@example.net\nX-Postway-ID: other\nX-Postway-Client-ID: theirs\nX-Postway-Forwarded: 00112233445566778899aabbccddeeff\nSubject: Hello\n world\n\
        Message-ID: <m@example.org>\nDate: Tue, 1 Jul 2003 10:52:37 +0200\n\nHi\n";

    fn mailbox(text: &str) -> NamedAddress {
        text.parse().unwrap()
    }

    fn resent(original: &[u8], subject_prefix: Option<&str>) -> Result<ComposedMail, RawError> {
        let (from, to) = (mailbox("Shop <shop@example.net>"), [mailbox("bob@example.com")]);
        let date_unix = 1_700_000_000;
        resend(
            original,
            &ResentFields {
                from: &from,
                to: &to,
                message_id: "u@example.net",
                uid: "u",
                date_unix,
                subject_prefix,
            },
        )
    }

    #[test]
    fn a_redirect_keeps_the_mail_and_adds_a_block_in_front() {
        let sent = resent(ORIGINAL, None).unwrap();
        assert!(!sent.eight_bit && !sent.smtputf8);
        assert_eq!(
            String::from_utf8(sent.bytes).unwrap(),
            "Resent-From: \"Shop\" <shop@example.net>\r\nResent-To: <bob@example.com>\r\n\
             Resent-Date: Tue, 14 Nov 2023 22:13:20 +0000\r\nResent-Message-ID: <u@example.net>\r\nX-Postway-ID: u\r\n\
             DKIM-Signature: v=1; a=b\r\nFrom: Ada <ada@example.org>\r\nTo: shop@example.net\r\nX-Postway-Forwarded: 00112233445566778899aabbccddeeff\r\n\
             Subject: Hello\r\n world\r\nMessage-ID: <m@example.org>\r\nDate: Tue, 1 Jul 2003 10:52:37 +0200\r\n\r\nHi\r\n"
        );
    }

    #[test]
    fn a_reminder_says_so_in_the_subject() {
        let sent = resent(ORIGINAL, Some("Reminder 1: ")).unwrap();
        let mail = MessageParser::new().parse(&sent.bytes).unwrap();
        assert_eq!(mail.subject(), Some("Reminder 1: Hello world"));
        let bare = resent(b"From: a@b.example\n\nx", Some("Reminder 1: ")).unwrap();
        let mail = MessageParser::new().parse(&bare.bytes).unwrap();
        assert_eq!((mail.subject(), mail.message_id()), (Some("Reminder 1:"), Some("u@example.net")));
    }

    #[test]
    fn mail_that_no_server_takes_is_not_redirected() {
        assert!(resent(b"no header", None).is_err());
        let long = [b"A: b\n\n", &[b'x'; 2_000][..]].concat();
        let signed = b"DKIM-Signature: v=1; h=Subject : From; b=x\n";
        assert_eq!(resent(&[signed, &long[..]].concat(), None), Err(RawError::Signed));
        assert_eq!(resent(&[signed, &b"Subject: \xff\n\n"[..]].concat(), None), Err(RawError::Signed));
        let signed = resent(&[signed, "Subject: é\n\n".as_bytes()].concat(), None).unwrap();
        assert!(signed.smtputf8, "what is signed is not encoded");
        for unsigned in [&long[..], b"Subject: \xff\n\n", "Subject: é\n\n".as_bytes()] {
            let sent = resent(unsigned, None).unwrap();
            assert!(sent.bytes.is_ascii() && !sent.smtputf8 && are_short(&sent.bytes));
        }
    }

    fn around(original: &[u8]) -> ComposedMail {
        let (from, to) = (mailbox("shop@example.net"), [mailbox("bob@example.com")]);
        let draft = MailDraft {
            from: &from,
            sender: None,
            to: &to,
            cc: &[],
            reply_to: &[],
            subject: "Fwd: Hello",
            text: Some("See below.\n"),
            html: None,
            alternatives: &[],
            headers: &[],
            attachments: &[],
            message_id: "u@example.net",
            uid: "u",
            date_unix: 1_700_000_000,
        };
        compose_around(&draft, original, "original.eml").unwrap()
    }

    #[test]
    fn a_mail_inside_another_comes_out_as_it_was() {
        let long = [b"From: a@b.example\r\n\r\n", &[b'x'; 2_000][..], b"\r\n"].concat();
        let eight = b"From: a@b.example\r\nSubject: in\r\n\r\ncaf\xc3\xa9\r\n";
        let crlf = String::from_utf8_lossy(ORIGINAL).replace('\n', "\r\n");
        for (original, is_message, eight_bit) in [
            (crlf.as_bytes(), true, false),
            (eight, true, true),
            (&long, false, false),
            (b"\0", false, false),
        ] {
            let sent = around(original);
            assert_eq!(sent.eight_bit, eight_bit);
            let mail = MessageParser::new().parse(&sent.bytes).unwrap();
            assert_eq!(mail.subject(), Some("Fwd: Hello"));
            assert_eq!(mail.body_text(0).unwrap().trim(), "See below.");
            let part = mail.attachment(0).unwrap();
            assert_eq!(part.attachment_name(), Some("original.eml"));
            match &part.body {
                PartType::Message(inner) => {
                    assert!(is_message);
                    assert_eq!(inner.raw_message().trim_ascii_end(), original.trim_ascii_end());
                }
                _ => {
                    assert!(!is_message);
                    assert_eq!(part.contents(), original);
                }
            }
        }
    }

    #[test]
    fn no_line_of_what_is_sent_is_too_long_and_each_ends_as_it_must() {
        for original in [ORIGINAL, &[b'x'; 5_000][..], b"a: b\r\rc\n\n"] {
            let sent = around(original).bytes;
            assert!(sent.ends_with(b"\r\n"));
            assert!(sent.split(|byte| *byte == b'\n').all(|line| line.len() <= 999));
            assert!(!sent.windows(2).any(|two| two[1] == b'\n' && two[0] != b'\r'));
        }
    }
}
