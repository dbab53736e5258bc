//! A spooled file as a request: the same fields, some under other names.

use std::borrow::Cow;

use serde_json::{json, value::RawValue};

use crate::{
    accept::parse::defaults::write_object,
    json::{Entries, List},
    refusal::{FieldError, Refusal},
};

/// More fields than this are not even read.
const FIELDS_READ_MAX: usize = 1_000;
/// More attachments than this are left for the door to refuse.
const ATTACHMENTS_READ_MAX: usize = 1_000;
/// A file's words for those fields that have another name here.
const RENAMED: [(&str, &str); 3] =
    [("body_html", "html"), ("body_text", "text"), ("custom_headers", "headers")];
/// What a file is called of which nothing else is known.
const NAMELESS: &str = "attachment";

/// The file as a message: its fields under our names, and what they say as it was written. An attachment may be one text
/// that says where it is.
pub(super) fn request(bytes: &[u8]) -> Result<String, Refusal> {
    let fields: Entries<'_, &RawValue, FIELDS_READ_MAX> = serde_json::from_slice(bytes)
        .map_err(|error| Refusal::Malformed { message: format!("the file is no JSON object: {error}") })?;
    let renamed = |name| RENAMED.into_iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new);
    let fields = fields.0.iter().map(|(name, value)| {
        let value = match &**name {
            "attachments" => attachments(value),
            _ => None,
        }
        .map_or(Cow::Borrowed(value.get()), Cow::Owned);
        (renamed(&**name), value)
    });
    Ok(write_object(fields))
}

/// A list of attachments in which none is a mere text; none where it is no list.
fn attachments(list: &RawValue) -> Option<String> {
    let list: List<&RawValue, ATTACHMENTS_READ_MAX> = serde_json::from_str(list.get()).ok()?;
    let files = list.0.into_iter().map(|file| match serde_json::from_str::<String>(file.get()) {
        Ok(place) => json!({ "filename": filename(&place), "storage_path": place }).to_string().into(),
        Err(_) => Cow::Borrowed(file.get()),
    });
    Some(format!("[{}]", files.collect::<Vec<_>>().join(",")))
}

/// What a file is called whose place alone is known: the last part of its path, or what the endpoint is asked for.
fn filename(place: &str) -> &str {
    let is = |prefix: &str| place.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let name = if place.starts_with("base64:") {
        NAMELESS
    } else if is("http://") || is("https://") {
        let address = place.split(['?', '#']).next().unwrap_or(place);
        address.splitn(4, '/').nth(3).and_then(|path| path.rsplit('/').next()).unwrap_or(NAMELESS)
    } else {
        place.rsplit(['/', '=']).next().unwrap_or(place)
    };
    if name.is_empty() { NAMELESS } else { name }
}

/// Why a file was set aside, for the file beside it.
pub(super) fn explain(refusal: &Refusal) -> String {
    let details: &[FieldError] = match refusal {
        Refusal::Invalid { details } => details,
        _ => &[],
    };
    let details = details.iter().map(|FieldError { field, message, code }| {
        json!({ "field": field, "message": message, "code": code.as_str(), "check": code.check() })
    });
    let error = json!({ "message": refusal.to_string(), "details": details.collect::<Vec<_>>() });
    format!("{error:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_file_get_our_names_and_keep_their_values() {
        let file = br#"{"id":"a","body_html":"<p>x</p>","custom_headers":{"X-A":"1"},"metadata":{"n":1.10},
            "attachments":["/srv/a.pdf",{"filename":"b"}]}"#;
        let expected = concat!(
            r#"{"id":"a","html":"<p>x</p>","headers":{"X-A":"1"},"metadata":{"n":1.10},"#,
            r#""attachments":[{"filename":"a.pdf","storage_path":"/srv/a.pdf"},{"filename":"b"}]}"#
        );
        assert_eq!(request(file).unwrap(), expected);
        for bad in ["", "[]", "{", "5", "{}x"] {
            assert!(request(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_is_called_what_its_place_says() {
        for (place, name) in [
            ("/srv/docs/a.pdf", "a.pdf"),
            ("https://example.com/x/a.pdf?token=secret", "a.pdf"),
            ("https://example.com", "attachment"),
            ("https://example.com/", "attachment"),
            ("doc_id=7", "7"),
            ("base64:aGk/aGk=", "attachment"),
            ("", "attachment"),
        ] {
            assert_eq!(filename(place), name, "{place}");
        }
    }
}
