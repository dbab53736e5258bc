//! Turns a spooled file into a request: the same fields, some under other names.

use std::borrow::Cow;

use serde_json::{json, value::RawValue};

use crate::{
    accept::parse::defaults::write_object,
    json::{JsonEntries, JsonList},
    refusal::{FieldFault, Refusal},
};

/// A file with more fields than this is refused while it is read.
const FIELDS_READ_MAX: usize = 1_000;
/// A list with more attachments than this is left for the door to refuse.
const ATTACHMENTS_READ_MAX: usize = 1_000;
/// Field names in files that differ from those of the API.
const RENAMED: [(&str, &str); 3] =
    [("body_html", "html"), ("body_text", "text"), ("custom_headers", "headers")];
/// The file name of an attachment whose source gives none.
const NAMELESS: &str = "attachment";

/// Reads a file as a message: renames its fields and leaves their values unchanged. An attachment may be a
/// single text with its source.
pub(super) fn request(bytes: &[u8]) -> Result<String, Refusal> {
    let fields: JsonEntries<'_, &RawValue, FIELDS_READ_MAX> = serde_json::from_slice(bytes)
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

/// Turns attachments that are single texts into objects; `None` if the value is not a list.
fn attachments(list: &RawValue) -> Option<String> {
    let list: JsonList<&RawValue, ATTACHMENTS_READ_MAX> = serde_json::from_str(list.get()).ok()?;
    let files = list.0.into_iter().map(|file| match serde_json::from_str::<String>(file.get()) {
        Ok(path) => json!({ "filename": filename(&path), "storage_path": path }).to_string().into(),
        Err(_) => Cow::Borrowed(file.get()),
    });
    Some(format!("[{}]", files.collect::<Vec<_>>().join(",")))
}

/// The file name for a source: the last part of its path, or what the endpoint is asked for.
fn filename(path: &str) -> &str {
    let is = |prefix: &str| path.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let name = if path.starts_with("base64:") {
        NAMELESS
    } else if is("http://") || is("https://") {
        let address = path.split(['?', '#']).next().unwrap_or(path);
        address.splitn(4, '/').nth(3).and_then(|path| path.rsplit('/').next()).unwrap_or(NAMELESS)
    } else {
        path.rsplit(['/', '=']).next().unwrap_or(path)
    };
    if name.is_empty() { NAMELESS } else { name }
}

/// The text of the `.error` file of a file that was set aside.
pub(super) fn explain(refusal: &Refusal) -> String {
    let details: &[FieldFault] = match refusal {
        Refusal::Invalid { details } => details,
        _ => &[],
    };
    let details = details.iter().map(|FieldFault { field, message, code }| {
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
        for (path, name) in [
            ("/srv/docs/a.pdf", "a.pdf"),
            ("https://example.com/x/a.pdf?token=secret", "a.pdf"),
            ("https://example.com", "attachment"),
            ("https://example.com/", "attachment"),
            ("doc_id=7", "7"),
            ("base64:aGk/aGk=", "attachment"),
            ("", "attachment"),
        ] {
            assert_eq!(filename(path), name, "{path}");
        }
    }
}
