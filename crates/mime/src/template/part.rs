//! The parts of a template, and their names in the engine.

use super::{BODY_BYTES_MAX, SUBJECT_BYTES_MAX};

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TemplatePart {
    Subject,
    Html,
    Text,
    Mjml,
}

impl TemplatePart {
    /// The suffix of the part's name in the engine: `welcome.html`.
    pub(super) fn name(self) -> &'static str {
        match self {
            TemplatePart::Subject => "subject",
            TemplatePart::Html => "html",
            TemplatePart::Text => "text",
            TemplatePart::Mjml => "mjml",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        [TemplatePart::Subject, TemplatePart::Html, TemplatePart::Text, TemplatePart::Mjml]
            .into_iter()
            .find(|part| part.name() == name)
    }

    /// The longest source of the part.
    pub(super) fn bytes_max(self) -> usize {
        if self == TemplatePart::Subject { SUBJECT_BYTES_MAX } else { BODY_BYTES_MAX }
    }
}
