//! A request body with many messages, read in one pass: a list of objects, and the other fields.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::translate::{CompatText, RawFields, misshapen};
use crate::http::error::ApiError;

/// A list with more messages than this is not read to its end.
const MESSAGES_MAX: usize = 1_000;
/// More other fields than this are not read.
const BESIDE_MAX: usize = 100;

/// The messages, and the other fields.
pub(crate) struct MessageListBody<'a> {
    /// One for each item of the list, in order; `None` if an item is not an object.
    pub(crate) messages: Vec<Option<RawFields<'a>>>,
    /// All fields but the list.
    pub(crate) beside: RawFields<'a>,
}

impl<'a> MessageListBody<'a> {
    /// Reads an object whose field `list` contains the messages.
    pub(crate) fn read(json: &'a [u8], list: &'static str) -> Result<Self, ApiError> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let read = MessageListSeed(list).deserialize(&mut deserializer);
        let read = read.and_then(|read| deserializer.end().map(|()| read));
        let (messages, beside) = read.map_err(|error| {
            misshapen(json, &error, |reason| match json.trim_ascii_start().first() {
                // Of an object, only the list must have a certain form here.
                Some(b'{') => ApiError::field(list, reason),
                _ => ApiError::field("", format!("the body must be an object: {reason}")),
            })
        })?;
        let Some(messages) = messages else {
            return Err(ApiError::field(list, "is missing: give a list of messages"));
        };
        Ok(Self { messages, beside: beside.once()? })
    }
}

struct MessageListSeed(&'static str);

type Read<'de> = (Option<Vec<Option<RawFields<'de>>>>, RawFields<'de>);

impl<'de> DeserializeSeed<'de> for MessageListSeed {
    type Value = Read<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MessageListSeed {
    type Value = Read<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut messages, mut beside) = (None, Vec::new());
        while let Some(CompatText(name)) = map.next_key()? {
            if name == self.0 {
                if messages.is_some() {
                    return Err(A::Error::custom("is given twice"));
                }
                messages = map.next_value::<Option<ObjectList<'de>>>()?.map(|ObjectList(objects)| objects);
            } else if beside.len() == BESIDE_MAX {
                return Err(A::Error::custom(format_args!(
                    "there are more than {BESIDE_MAX} fields beside it"
                )));
            } else {
                beside.push((name, map.next_value()?));
            }
        }
        Ok((messages, RawFields(beside)))
    }
}

/// A list of objects; an item of another type leaves its position empty.
struct ObjectList<'a>(Vec<Option<RawFields<'a>>>);

impl<'de: 'a, 'a> Deserialize<'de> for ObjectList<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectsVisitor;

        impl<'de> Visitor<'de> for ObjectsVisitor {
            type Value = ObjectList<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut objects = Vec::new();
                while let Some(OptionalObject(object)) = seq.next_element()? {
                    if objects.len() == MESSAGES_MAX {
                        let message =
                            format_args!("there are more than {MESSAGES_MAX}: send fewer in one request");
                        return Err(A::Error::custom(message));
                    }
                    objects.push(object);
                }
                Ok(ObjectList(objects))
            }
        }

        deserializer.deserialize_seq(ObjectsVisitor)
    }
}

/// An object, or nothing.
struct OptionalObject<'a>(Option<RawFields<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for OptionalObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OptionalObjectVisitor;

        impl<'de> Visitor<'de> for OptionalObjectVisitor {
            type Value = OptionalObject<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                RawFields::deserialize(MapAccessDeserializer::new(map))
                    .map(|fields| OptionalObject(Some(fields)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(OptionalObject(None))
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(OptionalObject(None))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
                Ok(OptionalObject(None))
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
                Ok(OptionalObject(None))
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
                Ok(OptionalObject(None))
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
                Ok(OptionalObject(None))
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
                Ok(OptionalObject(None))
            }
        }

        deserializer.deserialize_any(OptionalObjectVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> (u16, String) {
        let error = MessageListBody::read(json.as_bytes(), "data").err().unwrap();
        (error.status().as_u16(), error.details().first().map(|one| one.field.clone()).unwrap_or_default())
    }

    #[test]
    fn objects_are_read_and_others_leave_their_place_empty() {
        let json =
            br#"{"x": 1, "data": [{"a": [1, {"b": 2}]}, 7, "t", null, true, 1.5, -3, [[1]], {}], "y": {}}"#;
        let bundle = MessageListBody::read(json, "data").ok().unwrap();
        let are: Vec<Option<usize>> =
            bundle.messages.iter().map(|one| one.as_ref().map(|fields| fields.0.len())).collect();
        assert_eq!(are, [Some(1), None, None, None, None, None, None, None, Some(0)]);
        assert_eq!(bundle.messages[0].as_ref().unwrap().0[0].1.get(), r#"[1, {"b": 2}]"#);
        assert_eq!(bundle.beside.0.len(), 2);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (json, status, field) in [
            ("{", 400, ""),
            (r#"{"data": []} x"#, 400, ""),
            ("[]", 422, ""),
            ("[1", 400, ""),
            ("{}", 422, "data"),
            (r#"{"data": null}"#, 422, "data"),
            (r#"{"data": {}}"#, 422, "data"),
            (r#"{"data": {}"#, 400, ""),
            (r#"{"data": [], "data": []}"#, 422, "data"),
            (r#"{"data": [], "x": 1, "x": 2}"#, 422, "x"),
        ] {
            assert_eq!(refused(json), (status, field.to_owned()), "{json}");
        }
        let many = format!(r#"{{"data": [{}{{}}]}}"#, "{},".repeat(MESSAGES_MAX));
        assert_eq!(refused(&many), (422, "data".to_owned()));
    }
}
