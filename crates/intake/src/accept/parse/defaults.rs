//! The defaults of a batch, which apply to all its messages.
//!
//! A message's own fields win; `headers` and `metadata` are merged one level deep. Merging works on the JSON
//! text of the fields, which is parsed and copied at most once.

use std::{borrow::Cow, collections::HashSet};

use serde_json::value::RawValue;

use crate::{
    accept::parse::parse,
    accept::parse::request::{JsonEntries, JsonObject, MessageInput},
    refusal::Refusal,
};

/// An object with more fields than this is refused while it is read.
const FIELDS_READ_MAX: usize = 10_000;

type Fields<'a> = JsonEntries<'a, &'a RawValue, FIELDS_READ_MAX>;

/// The default fields.
pub(crate) struct BatchDefaults<'a>(Fields<'a>);

impl Default for BatchDefaults<'_> {
    fn default() -> Self {
        Self(JsonEntries(Vec::new()))
    }
}

impl<'a> BatchDefaults<'a> {
    /// Checks the shape of the defaults once, so that their faults do not appear in every message.
    pub(crate) fn read(defaults: &'a RawValue) -> Result<Self, Refusal> {
        let json = defaults.get().as_bytes();
        let inside = |refusal: Refusal| refusal.inside("defaults");
        let JsonObject(request) = parse::<JsonObject<MessageInput<'_>>>(json).map_err(inside)?;
        if request.id.is_some() {
            return Err(Refusal::field("defaults.id", "an id names one message: give it in the message"));
        }
        parse(json).map_err(inside).map(Self)
    }

    /// The approximate number of bytes that the defaults add to a message.
    pub(crate) fn len(&self) -> usize {
        self.0.0.iter().map(|(_, value)| value.get().len()).sum()
    }

    /// The JSON text of a message merged with the defaults; `None` if nothing changes, because there are no
    /// defaults, or because the message is not an object, which the parser will refuse.
    pub(crate) fn merge_under(&self, message: &RawValue) -> Option<String> {
        let BatchDefaults(defaults) = self;
        if defaults.0.is_empty() {
            return None;
        }
        let own = serde_json::from_str::<Fields<'_>>(message.get()).ok()?;
        let inherited = defaults.0.iter().filter(|(name, _)| find(&own, name).is_none());
        let inherited = inherited.map(|(name, value)| (&**name, Cow::Borrowed(value.get())));
        let control_fields = own.0.iter().map(|(name, value)| {
            let nests = matches!(&**name, "headers" | "metadata");
            let default = nests.then(|| find(defaults, name)).flatten();
            let merged = default.and_then(|default| merge_nested(default, value, &**name == "headers"));
            (&**name, merged.map_or(Cow::Borrowed(value.get()), Cow::Owned))
        });
        Some(write_object(inherited.chain(control_fields)))
    }
}

fn find<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a RawValue> {
    fields.0.iter().find(|(other, _)| **other == *name).map(|(_, value)| *value)
}

/// Merges two JSON objects; the second wins. Header names are compared without case. `None` if one is not an
/// object.
fn merge_nested(default: &RawValue, own: &RawValue, without_case: bool) -> Option<String> {
    let default: Fields<'_> = serde_json::from_str(default.get()).ok()?;
    let own: Fields<'_> = serde_json::from_str(own.get()).ok()?;
    let folded = |name: &str| {
        if without_case { name.to_ascii_lowercase() } else { name.to_owned() }
    };
    let taken: HashSet<String> = own.0.iter().map(|(name, _)| folded(name)).collect();
    let inherited = default.0.iter().filter(|(name, _)| !taken.contains(&folded(name)));
    Some(write_object(inherited.chain(&own.0).map(|(name, value)| (&**name, Cow::Borrowed(value.get())))))
}

/// Writes an object from fields whose values are JSON already.
pub(crate) fn write_object<'a>(fields: impl Iterator<Item = (&'a str, Cow<'a, str>)>) -> String {
    let mut json = String::from("{");
    for (name, value) in fields {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&serde_json::Value::from(name).to_string());
        json.push(':');
        json.push_str(&value);
    }
    json.push('}');
    json
}
