//! Decides which parts of a mail are its text, its html, and its attachments.
//!
//! The rules are those of JMAP (RFC 8621, 4.1.4): a text among other parts belongs to both bodies, of
//! alternatives each body takes its own, and every other part is an attachment. This is one pass over the
//! parts, with a stack as deep as the multiparts are.

use super::{MailPart, ReadMail};

/// The class of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartClass {
    /// A part that contains other parts.
    Multipart,
    /// `text/plain`, or no type.
    Plain,
    /// `text/html`
    Html,
    /// Any other text, and a multipart without parts.
    OtherText,
    /// An image, audio or video.
    Media,
    /// A mail in a mail.
    Message,
    /// Anything else.
    File,
}

impl PartClass {
    /// Classifies a part.
    pub fn of(part: &MailPart<'_, '_>) -> Self {
        let media = part.media_type();
        if part.has_children() {
            Self::Multipart
        } else if media.is("text", "plain") {
            Self::Plain
        } else if media.is("text", "html") {
            Self::Html
        } else if media.is_kind("text") || media.is_kind("multipart") {
            Self::OtherText
        } else if ["image", "audio", "video"].iter().any(|kind| media.is_kind(kind)) {
            Self::Media
        } else if media.is_message() {
            Self::Message
        } else {
            Self::File
        }
    }

    /// Whether it is text, which has a charset.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Plain | Self::Html | Self::OtherText)
    }
}

/// Indexes of parts by role, each list in the order of the mail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartRoles {
    /// The parts shown as text: text, html if there is no text, and media between them.
    pub text: Vec<usize>,
    /// The parts shown as html.
    pub html: Vec<usize>,
    /// The attachments, including media that is shown.
    pub attachments: Vec<usize>,
}

/// The state of a multipart whose parts are being assigned.
struct PartSurroundings {
    multipart: Option<usize>,
    is_alternative: bool,
    is_related: bool,
    in_alternative: bool,
    wants_text: bool,
    wants_html: bool,
    /// The number of parts seen so far.
    seen: usize,
    /// The lengths of the lists when it began.
    text_before: usize,
    html_before: usize,
}

impl PartRoles {
    pub(super) fn from_mail(mail: &ReadMail<'_>) -> Self {
        let mut roles = Self::default();
        let mut around = vec![PartSurroundings {
            multipart: None,
            is_alternative: false,
            is_related: false,
            in_alternative: false,
            wants_text: true,
            wants_html: true,
            seen: 0,
            text_before: 0,
            html_before: 0,
        }];
        for part in mail.parts() {
            let parent = part.parent().map(|parent| parent.index());
            while around.len() > 1 && around.last().is_some_and(|last| last.multipart != parent) {
                around.pop().iter().for_each(|ended| roles.complete(ended));
            }
            let Some(surroundings) = around.last_mut() else { break };
            surroundings.seen += 1;
            match PartClass::of(&part) {
                PartClass::Multipart => {
                    let media = part.media_type();
                    let is_alternative = media.is("multipart", "alternative");
                    let inner = PartSurroundings {
                        multipart: Some(part.index()),
                        is_alternative,
                        is_related: media.is("multipart", "related"),
                        in_alternative: surroundings.in_alternative || is_alternative,
                        wants_text: surroundings.wants_text,
                        wants_html: surroundings.wants_html,
                        seen: 0,
                        text_before: roles.text.len(),
                        html_before: roles.html.len(),
                    };
                    around.push(inner);
                }
                class => roles.assign_part(&part, class, surroundings),
            }
        }
        around.iter().rev().for_each(|ended| roles.complete(ended));
        roles
    }

    fn assign_part(&mut self, part: &MailPart<'_, '_>, class: PartClass, around: &mut PartSurroundings) {
        let is_named = || part.content_type().is_some_and(|label| label.text("name").is_some());
        let is_shown = matches!(class, PartClass::Plain | PartClass::Html | PartClass::Media)
            && !part.is_attachment()
            && (around.seen == 1 || !around.is_related && (class == PartClass::Media || !is_named()));
        let (to_html, to_text) = if around.is_alternative {
            (class == PartClass::Html, class == PartClass::Plain)
        } else if is_shown {
            if around.in_alternative && (around.wants_text || around.wants_html) {
                around.wants_text &= class != PartClass::Html;
                around.wants_html &= class != PartClass::Plain;
            }
            (around.wants_html, around.wants_text)
        } else {
            (false, false)
        };
        if to_html {
            self.html.push(part.index());
        }
        if to_text {
            self.text.push(part.index());
        }
        let is_body = match class {
            PartClass::Html => to_html,
            PartClass::Plain | PartClass::OtherText => to_text,
            PartClass::Media | PartClass::Message | PartClass::File | PartClass::Multipart => false,
        };
        if !is_body {
            self.attachments.push(part.index());
        }
    }

    /// If the alternatives have only text or only html, they are used for both bodies.
    fn complete(&mut self, ended: &PartSurroundings) {
        if !ended.is_alternative || !ended.wants_text || !ended.wants_html {
            return;
        }
        match (self.text.len() == ended.text_before, self.html.len() == ended.html_before) {
            (true, false) => self.text.extend_from_slice(&self.html[ended.html_before..]),
            (false, true) => self.html.extend_from_slice(&self.text[ended.text_before..]),
            _ => {}
        }
    }
}
