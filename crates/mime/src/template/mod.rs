//! Templates: a subject, an html or MJML body and a text, rendered with variables.
//!
//! A [`TemplateSource`] is a template as a tenant wrote it. A [`TemplateSet`] is a compiled template with all
//! that it extends, includes and imports; it renders to a [`RenderedTemplate`], from which a message is
//! composed. A part names another template without its part: `{% extends "base" %}` in an html part means the
//! html part of `base`. A layout is a template that wraps others (see `layout`).
//!
//! Html and MJML parts escape the values of variables, text and subject do not. A missing variable is an
//! error that names it. Templates need not be trusted: each render is bounded in instructions, memory, output
//! and nesting (see `instrument`, `allowance` and `sandbox`), and uses neither files nor a clock.
//!
//! The html is not checked here: callers run [`crate::html::check`] on it.

mod allowance;
mod builtin;
mod error;
mod filter;
mod instrument;
mod layout;
mod mjml;
mod mustachio;
mod part;
mod sandbox;
mod set;
mod source;
mod syntax;

pub use error::{TemplateError, TemplateErrorKind};
pub use mustachio::MustachioHead;
pub use set::{RenderedTemplate, TemplateSet};
pub use source::TemplateSource;

use error::TemplateFault;

/// The longest source of a body part.
pub const BODY_BYTES_MAX: usize = 512 * 1024;
/// The longest source of a subject.
const SUBJECT_BYTES_MAX: usize = 4 * 1024;
/// The longest rendered part.
const OUTPUT_BYTES_MAX: usize = 2 * 1024 * 1024;

#[cfg(test)]
mod tests;
