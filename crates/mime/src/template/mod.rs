//! Templates: a subject, an html or MJML body and a text, made of variables.
//!
//! A [`TemplateSource`] is what a tenant wrote. A [`TemplateSet`] is a template with all it extends, includes and
//! imports, compiled; it renders to a [`Rendered`], which is what a message is composed of. In a part, another template
//! is named without its part: `{% extends "base" %}` in an html part means the html part of `base`.
//!
//! Html and MJML parts escape what variables bring, text and subject do not. A variable that is not given is an error
//! that names it. Nobody need trust a template: each render has a bound of instructions, memory, output and nesting
//! (see `instrument` and `sandbox`), reads no file and asks no clock.
//!
//! What comes out of an html part is not judged here: run [`crate::html::check`] over it.

mod builtin;
mod error;
mod filter;
mod instrument;
mod mjml;
mod mustachio;
mod sandbox;
mod set;
mod source;
mod syntax;

pub use error::{TemplateError, TemplateErrorKind};
pub use mustachio::MustachioHead;
pub use set::{Rendered, TemplateSet};
pub use source::TemplateSource;

use error::TemplateFault;

/// The longest source of a body part.
pub const BODY_BYTES_MAX: usize = 512 * 1024;
/// The longest source of a subject.
const SUBJECT_BYTES_MAX: usize = 4 * 1024;
/// The longest part that may come out.
const OUTPUT_BYTES_MAX: usize = 2 * 1024 * 1024;

#[cfg(test)]
mod tests;
