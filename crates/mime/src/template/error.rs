//! Errors of templates, for the person who wrote the template or gave the variables.

use std::fmt;

use minijinja::{Error, ErrorKind};

use super::allowance::RenderBound;
use super::part::TemplatePart;

const MESSAGE_CHARS_MAX: usize = 300;

/// What went wrong, for callers that treat the cases apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TemplateErrorKind {
    /// The source is not a template, or uses an unknown filter, test or function.
    Syntax,
    /// A template, or a part of one, does not exist.
    UnknownTemplate,
    /// Templates extend, include or import each other in a circle.
    Cyclic,
    /// A variable that the template needs is missing.
    MissingVariable,
    /// The template takes too many steps.
    TooLong,
    /// A source, the variables, a value or the output is too large.
    TooLarge,
    /// Macros, includes or values are nested too deeply.
    TooDeep,
    /// A filter, an operator or the subject cannot take a value.
    Value,
    /// The MJML part does not render to MJML.
    Mjml,
}

impl From<RenderBound> for TemplateErrorKind {
    fn from(bound: RenderBound) -> Self {
        match bound {
            RenderBound::Value | RenderBound::Allowance => Self::TooLarge,
            RenderBound::Depth => Self::TooDeep,
        }
    }
}

/// Why a template could not be stored or rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TemplateError {
    /// `subject`, `html`, `text` or `mjml`; `None` if it is about the whole template.
    pub part: Option<&'static str>,
    /// The template's name, which may be one that the rendered template extends or includes.
    pub template: String,
    /// The line of the part.
    pub line: Option<usize>,
    /// The kind of error.
    pub kind: TemplateErrorKind,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "template {}", self.template)?;
        if let Some(part) = self.part {
            write!(f, ", {part}")?;
        }
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl TemplateError {
    pub(super) fn new(template: &str, part: Option<TemplatePart>, fault: TemplateFault) -> Self {
        let message = match fault.message.char_indices().nth(MESSAGE_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &fault.message[..end]),
            None => fault.message,
        };
        let part = part.map(TemplatePart::name);
        Self { part, template: template.to_owned(), line: fault.line, kind: fault.kind, message }
    }

    /// An error of the engine, with its location, which may be in an included template.
    pub(super) fn from_engine(template: &str, part: TemplatePart, error: &Error) -> Self {
        let innermost = innermost(error);
        let place = innermost.name().and_then(|name| name.rsplit_once('.'));
        let (template, part) = match place {
            Some((template, name)) => (template, TemplatePart::named(name).unwrap_or(part)),
            None => (template, part),
        };
        Self::new(template, Some(part), TemplateFault::from_engine(innermost))
    }
}

/// The last error of the engine in a chain of causes: includes and blocks wrap the errors inside them.
fn innermost(error: &Error) -> &Error {
    let mut innermost = error;
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        if let Some(error) = next.downcast_ref::<Error>() {
            innermost = error;
        }
        cause = next.source();
    }
    innermost
}

/// A [`TemplateError`] without the template that it is in.
#[derive(Debug)]
pub(super) struct TemplateFault {
    pub(super) kind: TemplateErrorKind,
    pub(super) line: Option<usize>,
    pub(super) message: String,
}

impl TemplateFault {
    pub(super) fn new(kind: TemplateErrorKind, message: impl Into<String>) -> Self {
        Self { kind, line: None, message: message.into() }
    }

    pub(super) fn at(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    pub(super) fn from_engine(error: &Error) -> Self {
        let (kind, message) = describe(error);
        Self { kind, line: error.line(), message }
    }
}

fn describe(error: &Error) -> (TemplateErrorKind, String) {
    use TemplateErrorKind as ReportKind;
    let source = std::error::Error::source(error);
    if let Some(bound) = source.and_then(|source| source.downcast_ref::<RenderBound>()) {
        return ((*bound).into(), bound.to_string());
    }
    let detail = error.detail().unwrap_or_default();
    if let Some(variable) = undefined_name(detail) {
        return (
            ReportKind::MissingVariable,
            format!("variable \"{variable}\" is not given: add it to the variables"),
        );
    }
    match error.kind() {
        ErrorKind::OutOfFuel => {
            (ReportKind::TooLong, "takes too many steps: use fewer or shorter loops".to_owned())
        }
        ErrorKind::WriteFailure => {
            (ReportKind::TooLarge, "gives too much output: make it shorter".to_owned())
        }
        ErrorKind::UndefinedError => {
            (ReportKind::MissingVariable, "a variable is not given: add it to the variables".to_owned())
        }
        ErrorKind::TemplateNotFound => (ReportKind::UnknownTemplate, detail.to_owned()),
        ErrorKind::SyntaxError
        | ErrorKind::BadEscape
        | ErrorKind::UnknownFilter
        | ErrorKind::UnknownTest
        | ErrorKind::UnknownFunction
        | ErrorKind::UnknownMethod
        | ErrorKind::UnknownBlock => (ReportKind::Syntax, engine_message(error)),
        _ if detail == "recursion limit exceeded" => (
            ReportKind::TooDeep,
            "macros, loops or includes are nested too deeply: use fewer levels".to_owned(),
        ),
        _ => (ReportKind::Value, engine_message(error)),
    }
}

fn engine_message(error: &Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()))
}

/// The name of an undefined value: the engine's message contains `` `user.name` is undefined ``.
fn undefined_name(detail: &str) -> Option<&str> {
    let (before, _) = detail.split_once("` is undefined")?;
    before.rsplit_once('`').map(|(_, name)| name)
}
