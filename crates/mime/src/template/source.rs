//! A template as its author wrote it and as it is stored.

use std::collections::BTreeSet;

use super::instrument::{InstrumentedSource, instrument};
use super::layout::{in_layout, is_name};
use super::mustachio::{MustachioHead, translate_body, translate_subject};
use super::part::TemplatePart;
use super::{TemplateError, TemplateErrorKind as ReportKind, TemplateFault, sandbox};

/// How many times longer than the longest source a translated source may be.
const TRANSLATED_TIMES_MAX: usize = 4;

/// A template as its author wrote it; `html` and `mjml` exclude each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateSource {
    /// Its name among the tenant's templates: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// The subject. It may be empty if the template is only extended or included.
    pub subject: String,
    /// The html body.
    pub html: Option<String>,
    /// The text body; made from the html if it is absent.
    pub text: Option<String>,
    /// The html body as MJML.
    pub mjml: Option<String>,
    /// The template whose block `content` each of its bodies fills.
    pub layout: Option<String>,
}

impl TemplateSource {
    /// Checks this template by itself: its name, sizes and syntax. Templates that it refers to are not
    /// checked.
    pub fn check(&self) -> Result<(), TemplateError> {
        self.instrumented().map(drop)
    }

    /// The templates that it extends, includes or imports. A computed name is an error.
    pub fn references(&self) -> Result<BTreeSet<String>, TemplateError> {
        let parts = self.instrumented()?;
        let references = parts.into_iter().flat_map(|(_, part)| part.references);
        Ok(references.flat_map(|reference| reference.names).collect())
    }

    /// Its parts, checked and ready to be compiled.
    pub(super) fn instrumented(&self) -> Result<Vec<(TemplatePart, InstrumentedSource)>, TemplateError> {
        let whole = |kind, message: &str| {
            Err(TemplateError::new(&self.name, None, TemplateFault::new(kind, message)))
        };
        if !is_name(&self.name) {
            return whole(ReportKind::Syntax, "the name must be 1 to 128 letters, digits, '-', '_' or '.'");
        }
        if self.html.is_some() && self.mjml.is_some() {
            return whole(ReportKind::Syntax, "has both html and mjml: give one of them");
        }
        if let Some((MustachioHead { stands_for: Some(name), .. }, _)) = MustachioHead::split(&self.subject) {
            return whole(
                ReportKind::UnknownTemplate,
                &format!("only stands for the template {name}: use that name"),
            );
        }
        if self.html.is_none() && self.mjml.is_none() && self.text.is_none() {
            return whole(ReportKind::Syntax, "has no body: give html, mjml or text");
        }
        if self.layout.as_deref().is_some_and(|layout| !is_name(layout)) {
            return whole(ReportKind::Syntax, "the layout must be the name of a template");
        }
        let Some((head, subject)) = MustachioHead::split(&self.subject) else {
            return self.parts().map(|(part, source)| Ok((part, self.instrument(part, source)?))).collect();
        };
        let layout = self.layout_name();
        let translated = |(part, source): (TemplatePart, &str)| {
            let with_location = |fault| TemplateError::new(&self.name, Some(part), fault);
            let translated = match part {
                TemplatePart::Subject => translate_subject(subject),
                TemplatePart::Html | TemplatePart::Text | TemplatePart::Mjml => {
                    check_length(source, part.bytes_max())
                        .and_then(|()| translate_body(source, &head))
                        .map(|body| in_layout(body, layout.as_deref()))
                }
            };
            let translated = translated.map_err(with_location)?;
            check_length(&translated, TRANSLATED_TIMES_MAX * part.bytes_max()).map_err(with_location)?;
            Ok((part, prepare(&translated).map_err(with_location)?))
        };
        self.parts().map(translated).collect()
    }

    /// The template that wraps its bodies.
    pub(super) fn layout_name(&self) -> Option<String> {
        let of_head = || MustachioHead::split(&self.subject).and_then(|(head, _)| head.layout);
        self.layout.clone().or_else(of_head)
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = (TemplatePart, &str)> {
        let bodies = [
            (TemplatePart::Html, &self.html),
            (TemplatePart::Mjml, &self.mjml),
            (TemplatePart::Text, &self.text),
        ];
        let bodies = bodies.into_iter().filter_map(|(part, source)| Some((part, source.as_deref()?)));
        std::iter::once((TemplatePart::Subject, self.subject.as_str())).chain(bodies)
    }

    fn instrument(&self, part: TemplatePart, source: &str) -> Result<InstrumentedSource, TemplateError> {
        let prepared = || {
            check_length(source, part.bytes_max())?;
            let Some(layout) = self.layout.as_deref().filter(|_| part != TemplatePart::Subject) else {
                return prepare(source);
            };
            let alone = instrument(source)?;
            if alone.extends {
                let message =
                    format!("extends a template and has the layout {layout}: leave one of them out");
                return Err(TemplateFault::new(ReportKind::Syntax, message));
            }
            prepare(&in_layout(source.to_owned(), Some(layout)))
        };
        prepared().map_err(|fault| TemplateError::new(&self.name, Some(part), fault))
    }
}

fn check_length(source: &str, bytes_max: usize) -> Result<(), TemplateFault> {
    match source.len() > bytes_max {
        true => Err(TemplateFault::new(
            ReportKind::TooLarge,
            format!("is longer than {bytes_max} bytes: make it shorter"),
        )),
        false => Ok(()),
    }
}

fn prepare(source: &str) -> Result<InstrumentedSource, TemplateFault> {
    let instrumented = instrument(source)?;
    sandbox::check_compiles(&instrumented.source)?;
    Ok(instrumented)
}
