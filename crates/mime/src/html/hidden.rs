//! Removes hidden elements of an html body before text is made of it.
//!
//! Mails hide the preview text that inboxes show beside the subject, and second layouts for small screens.
//! Only the element's own attributes count (`hidden`, `style`); style sheets are not read.

use html2text::{Element, Handle, RcDom};
use html5ever::Attribute;

/// Removes hidden elements from a document, without recursion.
pub(super) fn remove_hidden(dom: &RcDom) {
    let mut open: Vec<Handle> = vec![dom.document.clone()];
    while let Some(node) = open.pop() {
        let mut children = node.children.borrow_mut();
        children.retain(|child| match &child.data {
            Element { attrs, .. } => !attrs.borrow().iter().any(hides),
            _ => true,
        });
        open.extend(children.iter().cloned());
    }
}

fn hides(attribute: &Attribute) -> bool {
    match &*attribute.name.local {
        "hidden" => true,
        "style" => style_hides(&attribute.value),
        _ => false,
    }
}

/// Whether a style makes its element invisible. `font-size:0` does not count: layouts use it around visible
/// text.
fn style_hides(style: &str) -> bool {
    let (mut has_no_height, mut is_cut) = (false, false);
    for declaration in style.split(';') {
        let Some((name, value)) = declaration.split_once(':') else { continue };
        let value = value.split('!').next().unwrap_or_default().trim();
        let is = |wanted: &str| value.eq_ignore_ascii_case(wanted);
        let name = name.trim();
        let named = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        if named("display") && is("none")
            || named("visibility") && (is("hidden") || is("collapse"))
            || named("opacity") && is_zero(value)
        {
            return true;
        }
        has_no_height |= (named("max-height") || named("height")) && is_zero(value);
        is_cut |= named("overflow") && is("hidden");
    }
    has_no_height && is_cut
}

/// `0`, `0.0` or `0px`.
fn is_zero(value: &str) -> bool {
    value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%').parse::<f32>() == Ok(0.0)
}

/// White space, and the invisible characters that pad a preview text.
pub(super) fn is_padding(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_that_hide_are_known_and_others_are_not() {
        for style in [
            "display:none",
            " Display : NONE !important ; color:red",
            "visibility:hidden",
            "opacity:0",
            "opacity: 0.0",
            "max-height:0;overflow:hidden",
            "mso-hide:all;height:0px;overflow:hidden",
        ] {
            assert!(style_hides(style), "{style}");
        }
        for style in
            ["", "display:block", "font-size:0px", "overflow:hidden", "max-height:0", "opacity:0.9", "x"]
        {
            assert!(!style_hides(style), "{style}");
        }
    }
}
