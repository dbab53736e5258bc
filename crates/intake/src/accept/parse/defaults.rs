//! What a batch gives for all its messages.
//!
//! Defaults stand under each message: the message's own fields win, and `headers` and `metadata` are merged one level deep.
//! Merging works on the JSON text of the fields, which are neither parsed nor copied for it more than once.

use std::{borrow::Cow, collections::HashSet};

use serde_json::value::RawValue;

use crate::{
    accept::parse::parse,
    accept::parse::request::{Entries, MessageRequest, Object},
    refusal::Refusal,
};

/// More fields of an object than this are not even read.
const FIELDS_READ_MAX: usize = 10_000;

type Fields<'a> = Entries<'a, &'a RawValue, FIELDS_READ_MAX>;

/// The fields that stand under each message.
pub(crate) struct Defaults<'a>(Fields<'a>);

impl Default for Defaults<'_> {
    fn default() -> Self {
        Self(Entries(Vec::new()))
    }
}

impl<'a> Defaults<'a> {
    /// Checks their shape once, so that their faults are not found in every message.
    pub(crate) fn read(defaults: &'a RawValue) -> Result<Self, Refusal> {
        let json = defaults.get().as_bytes();
        let inside = |refusal: Refusal| refusal.inside("defaults");
        let Object(request) = parse::<Object<MessageRequest<'_>>>(json).map_err(inside)?;
        if request.id.is_some() {
            return Err(Refusal::field("defaults.id", "an id names one message: give it in the message"));
        }
        parse(json).map_err(inside).map(Self)
    }

    /// About how many bytes they add to a message.
    pub(crate) fn len(&self) -> usize {
        self.0.0.iter().map(|(_, value)| value.get().len()).sum()
    }

    /// A message over them, as JSON text; none where it is as it came: there are no defaults, or it is no object, which
    /// is left for the parser to refuse.
    pub(crate) fn under(&self, message: &RawValue) -> Option<String> {
        let Defaults(defaults) = self;
        if defaults.0.is_empty() {
            return None;
        }
        let own = serde_json::from_str::<Fields<'_>>(message.get()).ok()?;
        let kept = defaults.0.iter().filter(|(name, _)| find(&own, name).is_none());
        let kept = kept.map(|(name, value)| (&**name, Cow::Borrowed(value.get())));
        let own_fields = own.0.iter().map(|(name, value)| {
            let nests = matches!(&**name, "headers" | "metadata");
            let default = nests.then(|| find(defaults, name)).flatten();
            let merged = default.and_then(|default| merge_nested(default, value, &**name == "headers"));
            (&**name, merged.map_or(Cow::Borrowed(value.get()), Cow::Owned))
        });
        Some(write_object(kept.chain(own_fields)))
    }
}

fn find<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a RawValue> {
    fields.0.iter().find(|(other, _)| **other == *name).map(|(_, value)| *value)
}

/// Two objects as one, if both are objects; the second wins. Header names are compared without case.
fn merge_nested(default: &RawValue, own: &RawValue, without_case: bool) -> Option<String> {
    let default: Fields<'_> = serde_json::from_str(default.get()).ok()?;
    let own: Fields<'_> = serde_json::from_str(own.get()).ok()?;
    let folded = |name: &str| {
        if without_case { name.to_ascii_lowercase() } else { name.to_owned() }
    };
    let taken: HashSet<String> = own.0.iter().map(|(name, _)| folded(name)).collect();
    let kept = default.0.iter().filter(|(name, _)| !taken.contains(&folded(name)));
    Some(write_object(kept.chain(&own.0).map(|(name, value)| (&**name, Cow::Borrowed(value.get())))))
}

/// An object of these fields, whose values are JSON already.
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
