//! Converts MJML to html.
//!
//! mrml recurses into nested elements on the native stack, so nesting is counted first, with the tokenizer
//! that mrml uses. Nothing is included or fetched, and no web fonts are linked, because a mail should not
//! contact other servers.

use std::collections::HashMap;
use std::panic::catch_unwind;

use htmlparser::{ElementEnd, Token, Tokenizer};
use mrml::prelude::render::RenderOptions;

use super::{OUTPUT_BYTES_MAX, TemplateErrorKind as ReportKind, TemplateFault};

/// The longest MJML that is read; its html is ten times as long or more.
pub(super) const SOURCE_BYTES_MAX: usize = 512 * 1024;
const DEPTH_MAX: usize = 48;
const ELEMENTS_MAX: usize = 10_000;
const ELEMENTS: [&str; 35] = [
    "mj-accordion",
    "mj-accordion-element",
    "mj-accordion-text",
    "mj-accordion-title",
    "mj-all",
    "mj-attributes",
    "mj-body",
    "mj-breakpoint",
    "mj-button",
    "mj-carousel",
    "mj-carousel-image",
    "mj-class",
    "mj-column",
    "mj-divider",
    "mj-font",
    "mj-group",
    "mj-head",
    "mj-hero",
    "mj-image",
    "mj-include",
    "mj-navbar",
    "mj-navbar-link",
    "mj-preview",
    "mj-raw",
    "mj-section",
    "mj-social",
    "mj-social-element",
    "mj-spacer",
    "mj-style",
    "mj-table",
    "mj-text",
    "mj-title",
    "mj-wrapper",
    "mj-html-attributes",
    "mj-selector",
];

/// Converts MJML to html.
pub(super) fn to_html(source: &str) -> Result<String, TemplateFault> {
    check_nesting(source)?;
    let rendered = catch_unwind(|| {
        let parsed = mrml::parse(source).map_err(|error| format!("the MJML cannot be read: {error}"))?;
        let options = RenderOptions { fonts: HashMap::new(), ..RenderOptions::default() };
        parsed.element.render(&options).map_err(|error| format!("the MJML cannot be rendered: {error}"))
    });
    let rendered = rendered.unwrap_or_else(|_| Err("the MJML cannot be rendered: simplify it".to_owned()));
    let html = rendered.map_err(|message| TemplateFault::new(ReportKind::Mjml, message))?;
    if html.len() > OUTPUT_BYTES_MAX {
        return Err(TemplateFault::new(
            ReportKind::TooLarge,
            "the MJML gives too much html: make it shorter",
        ));
    }
    Ok(html)
}

fn check_nesting(source: &str) -> Result<(), TemplateFault> {
    let (mut depth, mut elements) = (0usize, 0usize);
    let mut void = false;
    for token in Tokenizer::from(source) {
        // mrml stops at the same error.
        let Ok(token) = token else { return Ok(()) };
        match token {
            Token::ElementStart { prefix, local, .. } => {
                elements += 1;
                void = prefix.is_empty() && is_void(local.as_str());
                // mrml would copy a misspelled element into the html, where it has no effect.
                if local.starts_with("mj-") && !ELEMENTS.contains(&local.as_str()) {
                    let message = format!("there is no element <{local}> in MJML: correct its name");
                    return Err(TemplateFault::new(ReportKind::Mjml, message));
                }
            }
            Token::ElementEnd { end: ElementEnd::Open, .. } if !void => depth += 1,
            Token::ElementEnd { end: ElementEnd::Close(..), .. } => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            let message = format!("the MJML is nested deeper than {DEPTH_MAX} levels: use fewer");
            return Err(TemplateFault::new(ReportKind::TooDeep, message));
        }
        if elements > ELEMENTS_MAX {
            let message = format!("the MJML has more than {ELEMENTS_MAX} elements: make it shorter");
            return Err(TemplateFault::new(ReportKind::TooLarge, message));
        }
    }
    Ok(())
}

/// Elements that html never closes.
fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}
