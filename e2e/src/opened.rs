//! A received mail, opened by a parser that is not ours.

use anyhow::Context;
use mail_parser::{MessageParser, MimeHeaders};
use postway_testkit::ReceivedMail;

/// What a reader sees of a mail.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The subject.
    pub subject: String,
    /// The first plain text.
    pub text: String,
    /// The first HTML.
    pub html: String,
    /// Attachments: name and bytes.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Opened {
    /// Opens a mail that a relay has received.
    pub fn of(mail: &ReceivedMail) -> anyhow::Result<Self> {
        let parsed = MessageParser::default().parse(&mail.raw).context("it is no mail")?;
        let file = |part: &mail_parser::MessagePart<'_>| {
            (part.attachment_name().unwrap_or_default().to_owned(), part.contents().to_vec())
        };
        Ok(Self {
            subject: parsed.subject().unwrap_or_default().to_owned(),
            text: parsed.body_text(0).unwrap_or_default().into_owned(),
            html: parsed.body_html(0).unwrap_or_default().into_owned(),
            files: parsed.attachments().map(file).collect(),
        })
    }
}
