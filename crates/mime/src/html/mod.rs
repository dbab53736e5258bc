//! HTML bodies: checks for scripts, conversion to plain text, and style sheets written into elements.
//!
//! [`check`] checks the document that a browser would see, not its source text: entities are decoded, and
//! `<svg><script>` and the content of a `<template>` count. Time and memory are proportional to the input:
//! nesting, elements and attributes have a maximum, and reading stops when one is passed. Nothing recurses.
//!
//! `<script type="application/ld+json">` is data that mail programs read and do not run, so it is allowed
//! (see `json_ld`).
//!
//! It is not a sanitizer: it refuses scripts, which no mail client runs and every spam filter dislikes, and
//! never changes a byte. It does not read CSS.

mod attributes;
mod fault;
mod hidden;
mod inline_css;
mod json_ld;
mod outline;
mod parse;
mod prefilter;
mod rules;
mod text;

pub use fault::{HtmlFault, HtmlFaultKind};
pub use inline_css::{InlineCssError, inline_css};
pub use text::{HtmlTextError, to_text};

use fault::HtmlFaults;
use rules::HtmlJudge;

/// The longest html that is checked; tenants' own limits are far lower.
const HTML_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How deep elements may be nested; browsers flatten deeper nesting.
pub const DEPTH_MAX: u32 = 512;
/// How many elements a document may have, including those that a browser adds.
const ELEMENTS_MAX: u32 = 100_000;
/// How many attributes one tag may have.
const ATTRIBUTES_MAX: u32 = 4_000;

/// Refuses scripts in all their forms, and html that is too large or too deep to be checked.
///
/// The list holds each fault once and is cut after a few; it is never empty.
pub fn check(html: &str) -> Result<(), Vec<HtmlFault>> {
    if html.len() > HTML_BYTES_MAX {
        return Err(vec![HtmlFault::new(HtmlFaultKind::TooLong, format!("{} bytes", html.len()))]);
    }
    if prefilter::is_certainly_clean(html) {
        return Ok(());
    }
    check_parsed(html)
}

fn check_parsed(html: &str) -> Result<(), Vec<HtmlFault>> {
    let mut faults = HtmlFaults::default();
    // The inside of <noscript> is markup if scripts are off and text if they are on: both must be clean.
    let modes: &[bool] =
        if prefilter::contains_ignoring_case(html, b"noscript") { &[false, true] } else { &[false] };
    for &scripting in modes {
        let mut judge = HtmlJudge::default();
        let passed = parse::walk(html, scripting, |token| judge.take_token(&token));
        let mut visited = judge.finish();
        passed.err().into_iter().for_each(|fault| visited.add(fault));
        faults.extend(visited);
    }
    faults.into_result()
}

#[cfg(test)]
mod tests;
