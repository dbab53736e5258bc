//! Headers of a mail that another API names one by one, in ours.
//!
//! Headers that occur once in a mail and that Postway writes are passed over; the envelope's sender is taken
//! from `Return-Path`.

use std::borrow::Cow;

use serde_json::{Value, value::RawValue};

use super::translate::{MessageWriter, RawFields, is_empty_list, text};
use crate::http::error::FieldError;

/// Headers that are not passed on.
const OURS_TO_WRITE: [&str; 4] = ["Return-Path", "Sender", "Date", "Message-ID"];
/// The most headers that are read.
const HEADERS_MAX: usize = 200;

/// Headers, and the envelope's sender if they name one.
#[derive(Debug, Default, PartialEq)]
pub(super) struct MailHeaders {
    /// Names and values, the values as JSON.
    fields: Vec<(String, String)>,
    return_path: Option<String>,
}

impl MailHeaders {
    /// The headers of both objects; those of the second replace those of the first.
    pub(super) fn merged(field: &str, objects: [Option<&RawValue>; 2]) -> Result<Self, FieldError> {
        let mut headers = Self::default();
        // PHP has one kind of empty array, and writes it as a list.
        for value in objects.into_iter().flatten().filter(|value| !is_empty_list(value)) {
            let fields: RawFields<'_> =
                serde_json::from_str(value.get()).map_err(|_| FieldError::new(field, "must be an object"))?;
            if headers.fields.len() + fields.0.len() > HEADERS_MAX {
                return Err(FieldError::new(field, format!("there are more than {HEADERS_MAX}")));
            }
            for (name, value) in fields.0 {
                headers.set(&name, text(value), value.get());
            }
        }
        Ok(headers)
    }

    /// Sets a header to a text.
    pub(super) fn set_text(&mut self, name: &str, value: &str) {
        self.set(name, Some(Cow::Borrowed(value)), &Value::from(value).to_string());
    }

    fn set(&mut self, name: &str, value: Option<Cow<'_, str>>, json: &str) {
        if name.eq_ignore_ascii_case("Return-Path") {
            let path = value.as_deref().unwrap_or_default().trim();
            let bare = path.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(path);
            self.return_path = Some(bare.to_owned()).filter(|_| !path.is_empty());
        }
        if OURS_TO_WRITE.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
            return;
        }
        self.fields.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.fields.push((name.to_owned(), json.to_owned()));
    }

    /// Adds them to a message, if there are any.
    pub(super) fn write(&self, ours: &mut MessageWriter) {
        if let Some(path) = &self.return_path {
            ours.text("return_path", path);
        }
        if self.fields.is_empty() {
            return;
        }
        let parts = self.fields.iter().map(|(name, json)| format!("{}:{json}", Value::from(name.as_str())));
        ours.json("headers", &format!("{{{}}}", parts.collect::<Vec<_>>().join(",")));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(objects: [Option<&str>; 2]) -> Value {
        let raw = objects.map(|json| json.map(|json| serde_json::from_str::<&RawValue>(json).unwrap()));
        let mut ours = MessageWriter::with_capacity(64);
        MailHeaders::merged("headers", raw).unwrap().write(&mut ours);
        serde_json::from_str(&ours.into_json()).unwrap()
    }

    #[test]
    fn later_ones_replace_earlier_ones_and_ours_are_passed_over() {
        let first = r#"{"X-A": "1", "X-B\"": "2", "date": "today", "Message-Id": "<a@b>"}"#;
        assert_eq!(
            written([Some(first), Some(r#"{"x-a": "3", "return-path": "<b@example.com>"}"#)]),
            json!({"headers": {"X-B\"": "2", "x-a": "3"}, "return_path": "b@example.com"})
        );
        assert_eq!(written([Some("[]"), None]), json!({}));
        assert_eq!(written([Some(r#"{"Sender": "x"}"#), None]), json!({}));
    }
}
