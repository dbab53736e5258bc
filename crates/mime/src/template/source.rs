//! A template as it was written and is stored.

use std::collections::BTreeSet;

use super::instrument::{Instrumented, instrument};
use super::{BODY_BYTES_MAX, Fault, SUBJECT_BYTES_MAX, TemplateError, TemplateErrorKind as Kind, sandbox};

const NAME_CHARS_MAX: usize = 128;

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Subject,
    Html,
    Text,
    Mjml,
}

impl Part {
    /// As it ends the part's name in the engine: `welcome.html`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Part::Subject => "subject",
            Part::Html => "html",
            Part::Text => "text",
            Part::Mjml => "mjml",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        [Part::Subject, Part::Html, Part::Text, Part::Mjml].into_iter().find(|part| part.name() == name)
    }

    fn bytes_max(self) -> usize {
        if self == Part::Subject { SUBJECT_BYTES_MAX } else { BODY_BYTES_MAX }
    }
}

/// A template as its author wrote it; `html` and `mjml` exclude each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateSource {
    /// Its name among the tenant's templates: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// May be empty where the template is only extended or included.
    pub subject: String,
    /// The html body.
    pub html: Option<String>,
    /// The text body; made of the html where absent.
    pub text: Option<String>,
    /// The html body as MJML.
    pub mjml: Option<String>,
}

impl TemplateSource {
    /// Says what is wrong with this template by itself: its name, sizes and syntax. Others that it names are not asked.
    pub fn check(&self) -> Result<(), TemplateError> {
        self.instrumented().map(drop)
    }

    /// The templates that it extends, includes or imports. A name that is computed is an error.
    pub fn references(&self) -> Result<BTreeSet<String>, TemplateError> {
        let parts = self.instrumented()?;
        let references = parts.into_iter().flat_map(|(_, part)| part.references);
        Ok(references.flat_map(|reference| reference.names).collect())
    }

    /// Its parts, checked and ready to be compiled.
    pub(super) fn instrumented(&self) -> Result<Vec<(Part, Instrumented)>, TemplateError> {
        let whole =
            |kind, message: &str| Err(TemplateError::new(&self.name, None, Fault::new(kind, message)));
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if self.name.is_empty() || self.name.len() > NAME_CHARS_MAX || !self.name.chars().all(allowed) {
            return whole(Kind::Syntax, "the name must be 1 to 128 letters, digits, '-', '_' or '.'");
        }
        if self.html.is_some() && self.mjml.is_some() {
            return whole(Kind::Syntax, "has both html and mjml: give one of them");
        }
        if self.html.is_none() && self.mjml.is_none() && self.text.is_none() {
            return whole(Kind::Syntax, "has no body: give html, mjml or text");
        }
        self.parts().map(|(part, source)| Ok((part, self.instrument(part, source)?))).collect()
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = (Part, &str)> {
        let bodies = [(Part::Html, &self.html), (Part::Mjml, &self.mjml), (Part::Text, &self.text)];
        let bodies = bodies.into_iter().filter_map(|(part, source)| Some((part, source.as_deref()?)));
        std::iter::once((Part::Subject, self.subject.as_str())).chain(bodies)
    }

    fn instrument(&self, part: Part, source: &str) -> Result<Instrumented, TemplateError> {
        let told = |fault| TemplateError::new(&self.name, Some(part), fault);
        if source.len() > part.bytes_max() {
            let message = format!("is longer than {} bytes: make it shorter", part.bytes_max());
            return Err(told(Fault::new(Kind::TooLarge, message)));
        }
        let instrumented = instrument(source).map_err(told)?;
        sandbox::compiles(&instrumented).map_err(told)?;
        Ok(instrumented)
    }
}
