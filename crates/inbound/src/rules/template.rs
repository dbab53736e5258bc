//! `{name}` in a rule's texts is replaced by what a condition captured.
//!
//! Braces around anything but a name stay unchanged. A name without a capture makes the whole text unusable:
//! an address or a contact with a gap in it would be somebody else's.

use std::collections::BTreeMap;

/// The captures of conditions, by name.
pub(crate) type Captures = BTreeMap<String, String>;

/// A name in braces without a capture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing was captured as {{{0}}}")]
pub(crate) struct UncapturedName(pub String);

/// Replaces the names in a text.
pub(crate) fn fill(template: &str, captures: &Captures) -> Result<String, UncapturedName> {
    let mut text = String::with_capacity(template.len());
    for piece in pieces(template) {
        match piece {
            TemplatePiece::Text(plain) => text.push_str(plain),
            TemplatePiece::Name(name) => match captures.get(name).map(|value| value.trim()) {
                Some(value) if !value.is_empty() => text.push_str(value),
                _ => return Err(UncapturedName(name.to_owned())),
            },
        }
    }
    Ok(text)
}

/// The names in a text.
pub(crate) fn names(template: &str) -> impl Iterator<Item = &str> {
    pieces(template).filter_map(|piece| match piece {
        TemplatePiece::Name(name) => Some(name),
        TemplatePiece::Text(_) => None,
    })
}

enum TemplatePiece<'t> {
    Text(&'t str),
    Name(&'t str),
}

fn pieces(template: &str) -> impl Iterator<Item = TemplatePiece<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(name) =
            rest.strip_prefix('{').and_then(|inner| inner.split_once('}')).map(|(name, _)| name)
            && is_name(name)
        {
            rest = &rest[name.len() + 2..];
            return Some(TemplatePiece::Name(name));
        }
        // The first character is text even if it is a brace: it begins no name.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find('{').map_or(rest.len(), |brace| first + brace);
        let (text, after) = rest.split_at(end);
        rest = after;
        Some(TemplatePiece::Text(text))
    })
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_and_other_braces_stay() {
        let captures: Captures =
            [("who", " ada "), ("nothing", "")].map(|(name, value)| (name.into(), value.into())).into();
        assert_eq!(fill("{who}@example.org", &captures).unwrap(), "ada@example.org");
        assert_eq!(fill("{}{ x{1}{who{who}é{", &captures).unwrap(), "{}{ x{1}{whoadaé{");
        for hole in ["{nothing}", "a{nobody}"] {
            assert!(fill(hole, &captures).is_err(), "{hole}");
        }
        assert_eq!(names("{a}-{b_2}{3}").collect::<Vec<_>>(), ["a", "b_2"]);
    }
}
