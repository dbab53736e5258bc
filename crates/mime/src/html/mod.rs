//! HTML bodies: what may not be in them, and the plain text that stands for them.
//!
//! [`check`] judges what a browser would see, not the letters: entities are decoded, `<svg><script>` counts, and
//! so does whatever hides in a `<template>`. It promises an answer in time and memory proportional to the input:
//! nesting, elements and attributes have a maximum, and reading stops where one is passed. Nothing recurses.
//!
//! `<script type="application/ld+json">` is data that receivers read and nobody runs: it passes (see `json_ld`).
//!
//! It is no sanitizer. It refuses what no mail client would run and every spam filter dislikes; it never changes
//! a byte. CSS is not read.

mod attributes;
mod fault;
mod hidden;
mod json_ld;
mod outline;
mod parse;
mod prefilter;
mod rules;
mod text;

pub use fault::{FaultKind, HtmlFault};
pub use text::{TextError, to_text};

use fault::Faults;
use rules::Judge;

/// The most html that is looked at; tenants' own limits are far below.
const HTML_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How deep elements may be nested; browsers flatten what is deeper.
pub const DEPTH_MAX: u32 = 512;
/// How many elements a document may have, those a browser adds included.
const ELEMENTS_MAX: u32 = 100_000;
/// How many attributes one tag may have.
const ATTRIBUTES_MAX: u32 = 4_000;

/// Refuses scripts in all their forms, and html too large or too deep to be looked at.
///
/// The list holds each fault once and is cut after a few; it is never empty.
pub fn check(html: &str) -> Result<(), Vec<HtmlFault>> {
    if html.len() > HTML_BYTES_MAX {
        return Err(vec![HtmlFault::new(FaultKind::TooLong, format!("{} bytes", html.len()))]);
    }
    if prefilter::certainly_clean(html) {
        return Ok(());
    }
    check_parsed(html)
}

fn check_parsed(html: &str) -> Result<(), Vec<HtmlFault>> {
    let mut faults = Faults::default();
    // The inside of <noscript> is markup where scripts are off and text where they are on: both must be clean.
    let modes: &[bool] =
        if prefilter::contains_ignoring_case(html, b"noscript") { &[false, true] } else { &[false] };
    for &scripting in modes {
        let mut judge = Judge::default();
        let passed = parse::walk(html, scripting, |token| judge.see(&token));
        let mut visited = judge.finish();
        passed.err().into_iter().for_each(|fault| visited.add(fault));
        faults.extend(visited);
    }
    faults.into_result()
}

#[cfg(test)]
mod tests;
