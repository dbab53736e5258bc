//! Takes a finished mail apart into the fields that providers' APIs ask for: author, recipients, subject,
//! text, html, files and the remaining header fields.
//!
//! Some providers do not accept MIME. Their APIs compose the mail again from fields, and content without a
//! field would be lost silently. A mail with such content is refused instead ([`DissectError`]): a second
//! text, a signed or encrypted mail, a report, and mail that passes a limit of the reader. Fields that the
//! provider writes itself are left out: `Date`, the MIME fields, trace fields, and signatures, which cover
//! bytes that no longer exist.

use std::borrow::Cow;

use crate::reader::{
    DecodeBudget, HeaderAddress, MailPart, PartClass, ReadMail, addresses, limit::PARTS_MAX, unstructured,
};

/// The maximum number of addresses read from one field.
const ADDRESSES_MAX: usize = 1_000;
/// The longest subtype that is used as the extension of a file without a name.
const ENDING_CHARS_MAX: usize = 8;

/// Fields that the provider writes itself, or that its API has a property for.
const LEFT_OUT: [&str; 14] = [
    "from",
    "to",
    "cc",
    "bcc",
    "subject",
    "reply-to",
    "date",
    "mime-version",
    "received",
    "return-path",
    "dkim-signature",
    "domainkey-signature",
    "authentication-results",
    "delivered-to",
];
/// Prefixes of further such fields.
const LEFT_OUT_FAMILIES: [&str; 2] = ["content-", "arc-"];

/// A mail as fields.
#[derive(Debug, Clone)]
pub struct DissectedMail<'a> {
    /// Its author, always with an address.
    pub from: HeaderAddress,
    /// The addresses that replies go to.
    pub reply_to: Vec<HeaderAddress>,
    /// The people in `To` who have an address.
    pub to: Vec<HeaderAddress>,
    /// The people in `Cc` who have an address.
    pub cc: Vec<HeaderAddress>,
    /// Its subject; empty if it has none.
    pub subject: String,
    /// Its text.
    pub text: Option<Cow<'a, str>>,
    /// Its html.
    pub html: Option<Cow<'a, str>>,
    /// Alternatives of the text, each with its media type, such as `text/calendar`.
    pub alternatives: Vec<(String, Cow<'a, str>)>,
    /// Files that are attached or shown inside the html.
    pub files: Vec<DissectedFile<'a>>,
    /// All other fields in their order, with decoded values.
    pub headers: Vec<(String, String)>,
}

/// A file of a mail.
#[derive(Debug, Clone)]
pub struct DissectedFile<'a> {
    /// Its name. A file without one gets a made-up name, because APIs require it.
    pub name: String,
    /// Its media type without parameters.
    pub content_type: String,
    /// The content id that html refers to.
    pub content_id: Option<&'a str>,
    /// Whether it is shown inside the html rather than attached.
    pub is_inline: bool,
    /// Its bytes.
    pub content: Cow<'a, [u8]>,
}

/// Why a mail cannot be expressed as fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DissectError {
    /// There is not exactly one author.
    #[error("its From names {0} addresses; exactly one is needed")]
    Authors(usize),
    /// A multipart whose meaning would be lost.
    #[error("its part {0} must be sent byte for byte")]
    Structure(String),
    /// More than one text body, or more than one html body.
    #[error("it has {1} {0} parts one after the other, and one is possible")]
    Bodies(&'static str, usize),
    /// The mail passes a limit of the reader.
    #[error("it has more than is read of a mail: {0}")]
    Limit(String),
}

/// Takes a mail apart.
pub fn dissect(raw: &[u8]) -> Result<DissectedMail<'_>, DissectError> {
    let mail = ReadMail::read(raw);
    if let Some(limit) = mail.passed().iter().next() {
        return Err(DissectError::Limit(limit.to_string()));
    }
    check_structure(&mail)?;
    let mut made = dissect_header(&mail)?;
    let mut budget = DecodeBudget::default();
    dissect_body(&mail, &mut made, &mut budget)?;
    match budget.is_passed() {
        true => Err(DissectError::Limit("its decoded content is too large".to_owned())),
        false => Ok(made),
    }
}

/// Checks the structure: multiparts of other types depend on the exact bytes inside them.
fn check_structure(mail: &ReadMail<'_>) -> Result<(), DissectError> {
    for part in mail.parts() {
        let media = part.media_type();
        let is_known =
            ["mixed", "alternative", "related"].iter().any(|subtype| media.is("multipart", subtype));
        let is_sealed = ["pkcs7-mime", "x-pkcs7-mime"].iter().any(|subtype| media.is("application", subtype));
        if (media.is_kind("multipart") && !is_known) || (is_sealed && part.parent().is_none()) {
            return Err(DissectError::Structure(media_name(&part)));
        }
    }
    Ok(())
}

fn dissect_header<'a>(mail: &ReadMail<'a>) -> Result<DissectedMail<'a>, DissectError> {
    let header = mail.root().header();
    let named = |name: &[u8]| -> Vec<HeaderAddress> {
        let all = header.all(name).flat_map(|value| addresses(value, ADDRESSES_MAX));
        all.filter(|one| one.address.as_deref().is_some_and(|address| address.contains('@'))).collect()
    };
    let mut authors = named(b"from");
    let from = match (authors.pop(), authors.len()) {
        (Some(from), 0) => from,
        (last, others) => return Err(DissectError::Authors(others + usize::from(last.is_some()))),
    };
    let is_carried = |name: &str| {
        !LEFT_OUT.contains(&name) && !LEFT_OUT_FAMILIES.iter().any(|family| name.starts_with(family))
    };
    let mut headers = Vec::new();
    for field in header.iter() {
        let name = String::from_utf8_lossy(field.name).into_owned();
        if is_carried(&name.to_ascii_lowercase()) {
            headers.push((name, unstructured(field.value)));
        }
    }
    Ok(DissectedMail {
        from,
        reply_to: named(b"reply-to"),
        to: named(b"to"),
        cc: named(b"cc"),
        subject: header.get(b"subject").map(unstructured).unwrap_or_default(),
        text: None,
        html: None,
        alternatives: Vec::new(),
        files: Vec::new(),
        headers,
    })
}

fn dissect_body<'a>(
    mail: &ReadMail<'a>,
    made: &mut DissectedMail<'a>,
    budget: &mut DecodeBudget,
) -> Result<(), DissectError> {
    let roles = mail.roles();
    let of_class = |indexes: &[usize], class: PartClass| -> Vec<usize> {
        let is_class = |index: &usize| mail.part(*index).is_some_and(|part| PartClass::of(&part) == class);
        indexes.iter().copied().filter(is_class).collect()
    };
    let texts = of_class(&roles.text, PartClass::Plain);
    let htmls = of_class(&roles.html, PartClass::Html);
    for (form, parts) in [("text", &texts), ("html", &htmls)] {
        if parts.len() > 1 {
            return Err(DissectError::Bodies(form, parts.len()));
        }
    }
    let mut body = |parts: &[usize]| -> Option<Cow<'a, str>> {
        let part = parts.first().and_then(|index| mail.part(*index))?;
        Some(part.text(budget))
    };
    (made.text, made.html) = (body(&texts), body(&htmls));
    for part in roles.attachments.iter().filter_map(|index| mail.part(*index)) {
        let is_alternative =
            part.parent().is_some_and(|parent| parent.media_type().is("multipart", "alternative"));
        if is_alternative && PartClass::of(&part).is_text() && !part.is_attachment() {
            made.alternatives.push((media_name(&part), part.text(budget)));
            continue;
        }
        let content_id = part.content_id();
        let in_related = part.parent().is_some_and(|parent| parent.media_type().is("multipart", "related"));
        made.files.push(DissectedFile {
            name: part.file_name().filter(|name| !name.is_empty()).unwrap_or_else(|| made_up_name(&part)),
            content_type: media_name(&part),
            content_id,
            is_inline: content_id.is_some() && !part.is_attachment() && (in_related || made.html.is_some()),
            content: part.content(budget),
        });
    }
    Ok(())
}

fn media_name(part: &MailPart<'_, '_>) -> String {
    let media = part.media_type();
    match media.subtype.is_empty() {
        true => "application/octet-stream".to_owned(),
        false => String::from_utf8_lossy(&[media.kind, b"/", media.subtype].concat()).to_ascii_lowercase(),
    }
}

fn made_up_name(part: &MailPart<'_, '_>) -> String {
    let media = part.media_type();
    let is_plain =
        media.subtype.len() <= ENDING_CHARS_MAX && media.subtype.iter().all(u8::is_ascii_alphanumeric);
    let ending = match is_plain && !media.subtype.is_empty() {
        _ if media.is_message() => "eml".to_owned(),
        true => String::from_utf8_lossy(media.subtype).to_ascii_lowercase(),
        false => "bin".to_owned(),
    };
    format!("part-{}.{ending}", part.index().min(PARTS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "From: =?utf-8?q?Ren=C3=A9e?= <renee@example.org>\r\nTo: \"A, B\" <a@example.net>, b@example.net\r\n\
        Cc: c@example.net\r\nReply-To: desk@example.org\r\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\r\nDate: now\r\n\
        Message-ID: <1@example.org>\r\nX-Tag: =?utf-8?q?=C3=BC?=\r\nList-Unsubscribe: <https://x.example/u>\r\n\
        DKIM-Signature: v=1\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n\
        Content-Type: multipart/related; boundary=r\r\n\r\n--r\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n\
        --a\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
        Gr=FC=DFe\r\n--a\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<img src=\"cid:logo@x\">\r\n--a--\r\n--r\r\n\
        Content-Type: image/png\r\nContent-ID: <logo@x>\r\nContent-Disposition: inline\r\n\
        Content-Transfer-Encoding: base64\r\n\r\niVBORw0=\r\n--r--\r\n--m\r\nContent-Type: application/pdf\r\n\
        Content-Disposition: attachment; filename*=utf-8''%C3%A9.pdf\r\n\r\n%PDF\r\n--m--\r\n";

    #[test]
    fn a_mail_is_taken_apart_with_names_texts_files_and_headers() {
        let mail = dissect(WHOLE.as_bytes()).unwrap();
        assert_eq!(
            (mail.from.name.as_deref(), mail.from.address.as_deref()),
            (Some("Renée"), Some("renee@example.org"))
        );
        let listed: Vec<_> =
            mail.to.iter().map(|one| (one.name.as_deref(), one.address.as_deref().unwrap())).collect();
        assert_eq!(listed, [(Some("A, B"), "a@example.net"), (None, "b@example.net")]);
        assert_eq!((mail.cc.len(), mail.reply_to.len(), mail.subject.as_str()), (1, 1, "Grüße"));
        assert_eq!(mail.text.as_deref(), Some("Grüße"));
        assert_eq!(mail.html.as_deref(), Some("<img src=\"cid:logo@x\">"));
        let files: Vec<_> = mail
            .files
            .iter()
            .map(|file| (file.name.as_str(), file.content_type.as_str(), file.content_id, file.is_inline))
            .collect();
        assert_eq!(
            files,
            [("part-5.png", "image/png", Some("logo@x"), true), ("é.pdf", "application/pdf", None, false)]
        );
        assert_eq!(mail.files[0].content.as_ref(), b"\x89PNG\r");
        let headers: Vec<_> =
            mail.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            headers,
            [
                ("Message-ID", "<1@example.org>"),
                ("X-Tag", "ü"),
                ("List-Unsubscribe", "<https://x.example/u>")
            ]
        );
    }

    #[test]
    fn an_alternative_of_the_text_is_not_a_file() {
        let raw = "From: a@x.example\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n--a\r\n\r\nhi\r\n--a\r\n\
            Content-Type: text/calendar; method=REQUEST\r\n\r\nBEGIN:VCALENDAR\r\n--a--\r\n";
        let mail = dissect(raw.as_bytes()).unwrap();
        assert_eq!(mail.alternatives, [("text/calendar".to_owned(), Cow::from("BEGIN:VCALENDAR"))]);
        assert!(mail.files.is_empty());
    }

    #[test]
    fn what_would_be_lost_is_refused_by_name() {
        let head = "From: a@x.example\r\nContent-Type: ";
        for (raw, says) in [
            ("To: b@x.example\r\n\r\nhi".to_owned(), "0 addresses"),
            ("From: a@x.example, b@x.example\r\n\r\nhi".to_owned(), "2 addresses"),
            (
                format!("{head}multipart/signed; boundary=s\r\n\r\n--s\r\n\r\nhi\r\n--s--\r\n"),
                "multipart/signed",
            ),
            (format!("{head}application/pkcs7-mime\r\n\r\nhi"), "application/pkcs7-mime"),
            (
                format!("{head}multipart/report; boundary=s\r\n\r\n--s\r\n\r\nhi\r\n--s--\r\n"),
                "multipart/report",
            ),
            (
                format!(
                    "{head}multipart/mixed; boundary=s\r\n\r\n--s\r\n\r\none\r\n--s\r\n\r\ntwo\r\n--s--\r\n"
                ),
                "2 text parts",
            ),
            (
                format!("{head}multipart/mixed; boundary=s\r\n\r\n{}", "--s\r\n\r\nx\r\n".repeat(2_000)),
                "more than is read",
            ),
        ] {
            let error = dissect(raw.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{error} should say {says}");
        }
    }

    #[test]
    fn a_mail_of_a_file_alone_has_no_text() {
        let mail = dissect(b"From: a@x.example\r\nContent-Type: application/pdf\r\n\r\n%PDF").unwrap();
        assert_eq!((mail.text, mail.html), (None, None));
        assert_eq!(mail.files[0].name, "part-0.pdf");
    }
}
