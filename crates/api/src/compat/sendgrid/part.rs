//! The parts of a mail of SendGrid's API: addresses, the forms of its content, files.

use std::borrow::Cow;

use postway_domain::{EmailAddress, NamedAddress};
use serde_json::{Value, value::RawValue};

use crate::{
    compat::translate::{MessageWriter, RawFields, RawItems, expect_text, is_blank, text},
    http::error::FieldError,
};

/// A text as JSON.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The fields of a nested object.
pub(super) fn object<'a>(field: &str, value: &'a RawValue) -> Result<RawFields<'a>, FieldError> {
    serde_json::from_str(value.get()).map_err(|_| FieldError::new(field, "must be an object"))
}

/// `{email, name}` as our text in JSON. Some clients write the address alone.
pub(super) fn address(field: &str, value: &RawValue) -> Result<String, FieldError> {
    let (email, name) = match text(value) {
        Some(email) => (Some(email), None),
        None => {
            let mut fields = object(field, value)?;
            (fields.take("email").and_then(text), fields.take("name").and_then(text))
        }
    };
    let at = format!("{field}.email");
    let Some(email) = email else {
        return Err(FieldError::new(at, "The email parameter is required."));
    };
    let wrong = |error: String| FieldError::new(&*at, format!("Does not contain a valid address: {error}."));
    let address = email.trim().parse::<EmailAddress>().map_err(|error| wrong(error.to_string()))?;
    let named = NamedAddress::new(name.as_deref(), address)
        .map_err(|error| FieldError::new(format!("{field}.name"), error.to_string()))?;
    Ok(quoted(&named.to_string()))
}

/// A list of addresses as JSON.
pub(super) fn addresses(field: &str, value: &RawValue) -> Result<String, FieldError> {
    let items = match value.get().as_bytes().first() {
        Some(b'[') => RawItems::read(field, value)?.0,
        _ => vec![value],
    };
    let each = items.into_iter().enumerate();
    let list: Result<Vec<String>, FieldError> =
        each.map(|(place, item)| address(&format!("{field}.{place}"), item)).collect();
    list.map(|list| format!("[{}]", list.join(",")))
}

/// The forms of a mail's content.
#[derive(Default)]
pub(super) struct MailForms<'a> {
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) html: Option<Cow<'a, str>>,
    /// Invitations and AMP, as a list of ours without its brackets.
    pub(super) alternatives: String,
}

impl<'a> MailForms<'a> {
    /// Reads `[{type, value}]`.
    pub(super) fn read(&mut self, value: &'a RawValue) -> Result<(), FieldError> {
        for (place, item) in RawItems::read("content", value)?.0.into_iter().enumerate() {
            let field = |name: &str| format!("content.{place}.{name}");
            let mut fields = object(&format!("content.{place}"), item)?;
            let missing = |name: &str| FieldError::new(field(name), "is missing");
            let kind = fields.take("type").ok_or_else(|| missing("type"))?;
            let kind = expect_text(&field("type"), kind)?;
            let value = fields.take("value").ok_or_else(|| missing("value"))?;
            let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            let form = match &*essence {
                "text/plain" => &mut self.text,
                "text/html" => &mut self.html,
                "text/calendar" | "text/x-amp-html" | "text/watch-html" => {
                    let mut ours = MessageWriter::with_capacity(value.get().len() + 64);
                    ours.text("content_type", &kind);
                    ours.json("content", value.get());
                    let comma = if self.alternatives.is_empty() { "" } else { "," };
                    self.alternatives.extend([comma, &*ours.into_json()]);
                    continue;
                }
                _ => {
                    let message = "must be text/plain, text/html, text/calendar or text/x-amp-html";
                    return Err(FieldError::new(field("type"), message));
                }
            };
            if form.is_some() {
                return Err(FieldError::new(field("type"), "is given twice"));
            }
            *form = Some(expect_text(&field("value"), value)?);
        }
        Ok(())
    }
}

/// `[{content, type, filename, disposition, content_id}]` as our attachments.
pub(super) fn attachments(value: &RawValue) -> Result<String, FieldError> {
    let mut list = Vec::new();
    for (place, item) in RawItems::read("attachments", value)?.0.into_iter().enumerate() {
        let mut fields = object(&format!("attachments.{place}"), item)?;
        let mut ours = MessageWriter::with_capacity(item.get().len() + 32);
        for (theirs, name) in [("filename", "filename"), ("content", "content"), ("type", "content_type")] {
            // A file may be empty.
            if let Some(value) = fields.take(theirs).filter(|value| theirs == "content" || !is_blank(value)) {
                ours.json(name, value.get());
            }
        }
        // An id without a place in the html is no reason to show a file there.
        let is_inline = fields.take("disposition").and_then(text).as_deref() == Some("inline");
        if let Some(id) = fields.take("content_id").filter(|id| is_inline && !is_blank(id)) {
            ours.json("content_id", id.get());
            ours.json("inline", "true");
        }
        list.push(ours.into_json());
    }
    Ok(format!("[{}]", list.join(",")))
}
