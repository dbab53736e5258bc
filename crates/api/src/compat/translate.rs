//! Translation from their JSON to ours, field by field, without parsing more than necessary.
//!
//! A value that means the same in both is copied as raw text: a body of megabytes is neither unescaped nor
//! checked here, because the intake does that. The intake names faults by our fields; [`renamed`] translates
//! the names back.

use std::{borrow::Cow, collections::HashSet, fmt};

pub(crate) use postway_domain::address::split_list as split_addresses;
use postway_intake::{RefusalCode, count_refused};
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::http::error::{ApiError, FieldError};

/// An object with more fields than this is not read to its end.
const FIELDS_MAX: usize = 1_000;
/// Up to this many names are compared pairwise; beyond, they are looked up in a set.
const FEW: usize = 32;
/// The longest id that a refused message is reported by.
const ID_CHARS_MAX: usize = 128;
/// A list with more items than this is not read to its end.
const ITEMS_MAX: usize = 100_000;

/// A text, borrowed unless it was escaped.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct CompatText<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// An object's fields in their order, each as raw text.
pub(crate) struct RawFields<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawFields<'a> {
    /// The fields of a JSON object, each of which occurs once.
    pub(crate) fn read(json: &'a [u8]) -> Result<Self, ApiError> {
        serde_json::from_slice::<Self>(json).map_err(|error| unreadable(json, &error))?.once()
    }

    /// Refuses fields that occur twice.
    pub(crate) fn once(self) -> Result<Self, ApiError> {
        let twice = match self.0.len() {
            0..=FEW => {
                (1..self.0.len()).find(|&at| self.0[..at].iter().any(|(name, _)| *name == self.0[at].0))
            }
            _ => {
                let mut seen = HashSet::with_capacity(self.0.len());
                self.0.iter().position(|(name, _)| !seen.insert(&**name))
            }
        };
        match twice {
            Some(at) => Err(ApiError::field(&*self.0[at].0, "is given twice")),
            None => Ok(self),
        }
    }

    /// A field, unless it is absent or null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| *value)
            .filter(|value| !is_null(value))
    }

    /// The approximate size as JSON, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.get().len() + 4).sum()
    }

    /// Takes a field out, unless it is absent or null.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(other, _)| other == name)?;
        Some(self.0.swap_remove(at).1).filter(|value| !is_null(value))
    }

    /// Refuses all remaining fields.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(ApiError::invalid(self.0.iter().map(|(name, _)| unknown(name)).collect())),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = RawFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((CompatText(name), value)) = map.next_entry()? {
                    if fields.len() == FIELDS_MAX {
                        return Err(A::Error::custom(format_args!(
                            "there are more than {FIELDS_MAX} fields"
                        )));
                    }
                    fields.push((name, value));
                }
                Ok(RawFields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// A list's items, each as raw text.
pub(crate) struct RawItems<'a>(pub(crate) Vec<&'a RawValue>);

impl<'a> RawItems<'a> {
    /// The items of the list that `field` must be.
    pub(crate) fn read(field: &str, list: &'a RawValue) -> Result<Self, FieldError> {
        serde_json::from_str(list.get()).map_err(|error| FieldError::new(field, reason(&error)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawItems<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ItemsVisitor;

        impl<'de> Visitor<'de> for ItemsVisitor {
            type Value = RawItems<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    if items.len() == ITEMS_MAX {
                        return Err(A::Error::custom(format_args!("there are more than {ITEMS_MAX} items")));
                    }
                    items.push(item);
                }
                Ok(RawItems(items))
            }
        }

        deserializer.deserialize_seq(ItemsVisitor)
    }
}

/// Writes our message as JSON.
pub(crate) struct MessageWriter(String);

impl MessageWriter {
    /// A writer with capacity for `bytes` bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut json = String::with_capacity(bytes);
        json.push('{');
        Self(json)
    }

    /// Adds a field whose value is JSON already.
    pub(crate) fn json(&mut self, name: &str, json: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        // The names are ours: they need no escaping.
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
        self.0.push_str(json);
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.json(name, &serde_json::Value::from(text).to_string());
    }

    /// Adds addresses: a list as it is, and a text with commas as a list. A blank text counts as absent,
    /// except for `to`: a caller who fills that in from nothing did not mean a mail to the other recipients
    /// alone.
    pub(crate) fn addresses(&mut self, name: &str, value: &RawValue) {
        match text(value) {
            Some(line) if name != "to" && line.trim().is_empty() => {}
            Some(line) if line.contains(',') => {
                self.json(name, &serde_json::Value::from(split_addresses(&line)).to_string());
            }
            _ => self.json(name, value.get()),
        }
    }

    /// The complete JSON.
    pub(crate) fn into_json(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Whether a value is `null`, which means the same as absent.
pub(crate) fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// Whether a value is `null` or a blank text. Programs that fill in forms send such fields; for an optional
/// field it means absent.
pub(crate) fn is_blank(value: &RawValue) -> bool {
    is_null(value) || text(value).is_some_and(|text| text.trim().is_empty())
}

/// Whether a value is an empty list, which PHP also writes for an object without fields.
pub(crate) fn is_empty_list(value: &RawValue) -> bool {
    let inner = value.get().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| inner.trim_ascii().is_empty())
}

/// A value as text, if it is one.
pub(crate) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<CompatText<'_>>(value.get()).ok().map(|CompatText(text)| text)
}

/// The id of a refused message, shortened for display.
pub(crate) fn shown_id(id: &RawValue) -> Option<String> {
    Some(text(id)?.chars().take(ID_CHARS_MAX).collect())
}

/// A field that must be text.
pub(crate) fn expect_text<'a>(field: &str, value: &'a RawValue) -> Result<Cow<'a, str>, FieldError> {
    text(value).ok_or_else(|| FieldError::new(field, "must be a text"))
}

/// The fault of an unknown field.
pub(crate) fn unknown(name: &str) -> FieldError {
    let shown: String = name.chars().take(100).collect();
    FieldError::new(shown, "is no field of this call: remove it or correct its name")
}

/// The refusal of a mail that cannot be translated, counted like a refusal by the intake's checks.
pub(crate) fn refuse_mail(faults: Vec<FieldError>) -> ApiError {
    count_refused(faults.iter().map(|fault| fault.check.unwrap_or(RefusalCode::InvalidPayload.check())));
    ApiError::invalid(faults)
}

/// The path of one of our fields, such as `attachments[0].content_type`, in their names.
pub(crate) fn renamed(path: &str, names: &[(&str, &str)]) -> String {
    let rename = |part: &str| {
        let (name, rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        let theirs = names.iter().find(|(ours, _)| *ours == name).map_or(name, |(_, theirs)| theirs);
        format!("{theirs}{rest}")
    };
    path.split('.').map(rename).collect::<Vec<_>>().join(".")
}

fn unreadable(json: &[u8], error: &serde_json::Error) -> ApiError {
    misshapen(json, error, |reason| ApiError::field("", format!("the body must be an object: {reason}")))
}

/// Why a body could not be read: it is not JSON, or `shape` describes another fault.
pub(super) fn misshapen(
    json: &[u8],
    error: &serde_json::Error,
    shape: impl FnOnce(String) -> ApiError,
) -> ApiError {
    let broken =
        |error: &serde_json::Error| ApiError::malformed(format!("the body is not valid JSON: {error}"));
    match error.is_data() {
        false => broken(error),
        // A wrong type ended the reading; the rest may not be JSON either.
        true => match serde_json::from_slice::<IgnoredAny>(json) {
            Ok(IgnoredAny) => shape(reason(error)),
            Err(error) => broken(&error),
        },
    }
}

fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_text_and_are_there_once() {
        let mut fields = RawFields::read(br#"{"a": [1, 2],"b":null,"\u0063":"x\n"}"#).ok().unwrap();
        assert_eq!(fields.take("a").unwrap().get(), "[1, 2]");
        assert!(fields.take("b").is_none() && fields.take("d").is_none());
        assert_eq!(text(fields.take("c").unwrap()).unwrap(), "x\n");
        assert!(fields.finish().is_ok());
        for (bad, status) in
            [("{", 400), ("[]", 422), ("[1", 400), ("7 8", 400), (r#"{"a":1,"a":2}"#, 422), ("", 400)]
        {
            assert_eq!(RawFields::read(bad.as_bytes()).err().unwrap().status().as_u16(), status, "{bad}");
        }
    }

    #[test]
    fn a_blank_text_is_no_address_and_no_value() {
        let fields = RawFields::read(br#"{"to": "", "cc": " \t", "bcc": [], "reply_to": "a@x.example"}"#);
        let mut ours = MessageWriter::with_capacity(64);
        for (name, value) in fields.ok().unwrap().0 {
            ours.addresses(&name, value);
        }
        assert_eq!(ours.into_json(), r#"{"to":"","bcc":[],"reply_to":"a@x.example"}"#, "to must be there");
        for (json, is_none) in
            [(r#""""#, true), (r#"" \u00a0""#, true), ("null", true), (r#""a""#, false), ("0", false)]
        {
            assert_eq!(is_blank(serde_json::from_str(json).unwrap()), is_none, "{json}");
        }
    }

    #[test]
    fn a_path_is_said_in_their_names() {
        let names = [("send_at", "deferred_ts"), ("content_type", "mime_type")];
        assert_eq!(renamed("send_at", &names), "deferred_ts");
        assert_eq!(renamed("attachments[3].content_type", &names), "attachments[3].mime_type");
        assert_eq!(renamed("to[1]", &names), "to[1]");
    }
}
