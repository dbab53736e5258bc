//! Layouts: templates that wrap others.
//!
//! A layout is a template with a block `content`. A template that names it as its layout is compiled as one
//! that extends the layout and fills that block, part by part. Layouts in Mustachio have the same block, so
//! templates of either language can wrap each other.

const NAME_CHARS_MAX: usize = 128;
/// The block of a layout that contains the content.
pub(super) const CONTENT: &str = "content";

/// Whether this can be a template's name: it has no character that the engine interprets.
pub(super) fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=NAME_CHARS_MAX).contains(&text.len()) && text.chars().all(allowed)
}

/// A body as the content of its layout, if it has one. It begins on the same line, so that line numbers in
/// errors are the author's.
pub(super) fn in_layout(body: String, layout: Option<&str>) -> String {
    match layout {
        Some(layout) => {
            format!("{{% extends \"{layout}\" %}}{{% block {CONTENT} %}}{body}{{% endblock %}}")
        }
        None => body,
    }
}
