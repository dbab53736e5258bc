//! JSON values, bounded while they are built.
//!
//! Two bytes of JSON can become seventy in memory, and more while a list grows, so the size of a text does
//! not bound its values. The values and the bytes of their texts are counted as they are read, and reading
//! stops at the first one too many. The parser itself limits nesting to 128 levels.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, value::RawValue};

/// Limits on the values built from a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonBounds {
    /// The most values, including those in lists and objects.
    pub values_max: usize,
    /// The most bytes of texts and field names.
    pub text_bytes_max: usize,
}

/// Why a text could not be read as an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonReadError {
    /// The text is a JSON value of another type.
    #[error("must be a JSON object")]
    NotObject,
    /// The text is not JSON.
    #[error("is not JSON: {0}")]
    Malformed(String),
    /// The object exceeds the limits.
    #[error(
        "has more than {} values, or more than {} bytes of text: send less", .0.values_max, .0.text_bytes_max
    )]
    TooMuch(JsonBounds),
}

/// Reads an object within bounds.
pub fn read_object(json: &[u8], bounds: JsonBounds) -> Result<Map<String, Value>, JsonReadError> {
    read_object_except(json, None, bounds).map(|(object, _)| object)
}

/// Reads an object within bounds, except for one field, which stays JSON text and does not count.
pub fn read_object_except<'a>(
    json: &'a [u8],
    apart: Option<&str>,
    bounds: JsonBounds,
) -> Result<(Map<String, Value>, Option<&'a RawValue>), JsonReadError> {
    if json.trim_ascii_start().first() != Some(&b'{') {
        // Text that is not JSON at all gets that error instead.
        return match serde_json::from_slice::<serde::de::IgnoredAny>(json) {
            Ok(_) => Err(JsonReadError::NotObject),
            Err(error) => Err(JsonReadError::Malformed(error.to_string())),
        };
    }
    let left = BoundsLeft { values: Cell::new(bounds.values_max), bytes: Cell::new(bounds.text_bytes_max) };
    let spent = Cell::new(false);
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let read = deserializer
        .deserialize_map(OutermostVisitor { apart, within: BoundedValue { left: &left, spent: &spent } })
        .and_then(|read| deserializer.end().map(|()| read));
    read.map_err(|error| match spent.get() {
        true => JsonReadError::TooMuch(bounds),
        false => JsonReadError::Malformed(error.to_string()),
    })
}

/// What is left of the limits.
struct BoundsLeft {
    values: Cell<usize>,
    bytes: Cell<usize>,
}

/// Builds one value.
#[derive(Clone, Copy)]
struct BoundedValue<'c> {
    left: &'c BoundsLeft,
    spent: &'c Cell<bool>,
}

impl BoundedValue<'_> {
    fn take<E: serde::de::Error>(self, values: usize, bytes: usize) -> Result<(), E> {
        let enough = |cell: &Cell<usize>, wanted: usize| {
            cell.get().checked_sub(wanted).inspect(|left| cell.set(*left)).is_some()
        };
        if enough(&self.left.values, values) && enough(&self.left.bytes, bytes) {
            return Ok(());
        }
        self.spent.set(true);
        Err(E::custom("there is too much of it"))
    }
}

impl<'de> DeserializeSeed<'de> for BoundedValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.take(1, 0)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.take(0, value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            self.take(0, name.len())?;
            object.insert(name, map.next_value_seed(self)?);
        }
        Ok(Value::Object(object))
    }
}

/// Builds the outermost object, with one field left as JSON text.
struct OutermostVisitor<'n, 'c> {
    apart: Option<&'n str>,
    within: BoundedValue<'c>,
}

impl<'de> Visitor<'de> for OutermostVisitor<'_, '_> {
    type Value = (Map<String, Value>, Option<&'de RawValue>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut object, mut apart) = (Map::new(), None);
        while let Some(name) = map.next_key::<String>()? {
            self.within.take(0, name.len())?;
            if self.apart != Some(name.as_str()) {
                object.insert(name, map.next_value_seed(self.within)?);
            } else if apart.replace(map.next_value::<&RawValue>()?).is_some() {
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
        }
        Ok((object, apart))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const ROOMY: JsonBounds = JsonBounds { values_max: 10_000, text_bytes_max: 100_000 };

    fn few(values_max: usize) -> JsonBounds {
        JsonBounds { values_max, ..ROOMY }
    }

    #[test]
    fn values_are_counted_while_they_are_built() {
        let json = br#"{"a": [0, 0, 0], "b": {"c": null}}"#;
        assert!(read_object(json, few(6)).is_ok());
        assert_eq!(read_object(json, few(5)), Err(JsonReadError::TooMuch(few(5))));
        let hostile = format!(r#"{{"a":[{}0]}}"#, "0,".repeat(1_000_000));
        assert_eq!(read_object(hostile.as_bytes(), ROOMY), Err(JsonReadError::TooMuch(ROOMY)));
    }

    #[test]
    fn texts_and_names_are_counted_too() {
        let bounds = JsonBounds { values_max: 10, text_bytes_max: 8 };
        assert!(read_object(br#"{"abc": "defgh"}"#, bounds).is_ok());
        for json in [&br#"{"abc": "defghi"}"#[..], br#"{"abcdefghi": 1}"#, br#"{"a": {"bcdefghi": 1}}"#] {
            assert_eq!(read_object(json, bounds), Err(JsonReadError::TooMuch(bounds)));
        }
    }

    #[test]
    fn what_is_no_object_is_told_so() {
        assert_eq!(read_object(b" [1]", ROOMY), Err(JsonReadError::NotObject));
        for broken in [&b"{\"a\": }"[..], b"", b"nonsense", b"{} {}"] {
            assert!(matches!(read_object(broken, ROOMY), Err(JsonReadError::Malformed(_))), "{broken:?}");
        }
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(read_object(deep.as_bytes(), ROOMY), Err(JsonReadError::Malformed(_))));
    }

    #[test]
    fn one_field_may_stay_as_it_is() {
        let large = "x".repeat(200_000);
        let json = format!(r#"{{"rule": {{"a": 1}}, "raw": "{large}"}}"#);
        let (rest, raw) = read_object_except(json.as_bytes(), Some("raw"), ROOMY).unwrap();
        assert_eq!(Value::Object(rest), json!({"rule": {"a": 1}}));
        assert_eq!(raw.map(|raw| raw.get().len()), Some(large.len() + 2));
        assert_eq!(read_object(json.as_bytes(), ROOMY), Err(JsonReadError::TooMuch(ROOMY)));
        let twice = read_object_except(br#"{"raw": "a", "raw": "b"}"#, Some("raw"), ROOMY);
        assert!(matches!(twice, Err(JsonReadError::Malformed(message)) if message.contains("duplicate")));
    }

    proptest! {
        #[test]
        fn within_bounds_it_reads_what_the_parser_reads(
            json in r#"(\{|\}|\[|\]|,|:|"[a-b]"|[0-9]{1,3}|-1|1e9|null|true| ){0,12}"#
        ) {
            let json = format!("{{\"k\":{json}}}");
            let ours = read_object(json.as_bytes(), ROOMY).ok();
            prop_assert_eq!(ours, serde_json::from_str::<Map<String, Value>>(&json).ok());
        }
    }
}
