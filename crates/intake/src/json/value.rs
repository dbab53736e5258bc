//! The values of a request. They borrow from its bytes if possible, and are bounded while they are read,
//! because three bytes of JSON can become hundreds in memory.

use std::{borrow::Cow, fmt, marker::PhantomData, ops::Deref};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

/// A list with more addresses than this is refused while it is read.
const ADDRESSES_READ_MAX: usize = 20_000;

/// A text, borrowed unless it was escaped. (An `Option<Cow<str>>` would always be copied.)
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct JsonText<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl Deref for JsonText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for JsonText<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

/// An object, and only that: a derived struct alone would also be read from a list, by position.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct JsonObject<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = JsonObject<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(JsonObject)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// A list of at most `MAX` values.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct JsonList<T, const MAX: usize>(pub Vec<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for JsonList<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T, const MAX: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for ListVisitor<T, MAX> {
            type Value = JsonList<T, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                read_list(seq, MAX).map(JsonList)
            }
        }

        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

fn read_list<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(
    mut seq: A,
    max: usize,
) -> Result<Vec<T>, A::Error> {
    let mut list = Vec::new();
    while let Some(item) = seq.next_element()? {
        if list.len() == max {
            return Err(A::Error::custom(format_args!("there are more than {max}: send fewer")));
        }
        list.push(item);
    }
    Ok(list)
}

/// The entries of an object in their order, at most `MAX`.
#[derive(Debug)]
pub(crate) struct JsonEntries<'a, V, const MAX: usize>(pub Vec<(JsonText<'a>, V)>);

impl<'de: 'a, 'a, V: Deserialize<'de>, const MAX: usize> Deserialize<'de> for JsonEntries<'a, V, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<'a, V, const MAX: usize>(PhantomData<(JsonText<'a>, V)>);

        impl<'de: 'a, 'a, V: Deserialize<'de>, const MAX: usize> Visitor<'de> for EntriesVisitor<'a, V, MAX> {
            type Value = JsonEntries<'a, V, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    if entries.len() == MAX {
                        return Err(A::Error::custom(format_args!("there are more than {MAX}: send fewer")));
                    }
                    entries.push(entry);
                }
                Ok(JsonEntries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

impl<V: Serialize, const MAX: usize> Serialize for JsonEntries<'_, V, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// One address or a list of them.
#[derive(Debug, Default)]
pub(crate) struct AddressList<'a> {
    /// The addresses, unchecked.
    pub list: Vec<JsonText<'a>>,
    /// Whether a single text was given instead of a list, so that its path has no index.
    pub single: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for AddressList<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AddressesVisitor<'a>(PhantomData<JsonText<'a>>);

        impl<'de: 'a, 'a> Visitor<'de> for AddressesVisitor<'a> {
            type Value = AddressList<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address or a list of addresses")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(AddressList { list: vec![text.into()], single: true })
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(AddressList { list: vec![JsonText(Cow::Owned(text.to_owned()))], single: true })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Ok(AddressList { list: read_list(seq, ADDRESSES_READ_MAX)?, single: false })
            }
        }

        deserializer.deserialize_any(AddressesVisitor(PhantomData))
    }
}

impl Serialize for AddressList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.list.serialize(serializer)
    }
}

/// A number or a text, such as a time or a priority.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum JsonScalar<'a> {
    /// An integer.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(JsonText<'a>),
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonScalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScalarVisitor<'a>(PhantomData<JsonText<'a>>);

        impl<'de: 'a, 'a> Visitor<'de> for ScalarVisitor<'a> {
            type Value = JsonScalar<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a text")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(JsonScalar::Integer(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(i64::try_from(number).map_or(JsonScalar::Float(number as f64), JsonScalar::Integer))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                Ok(JsonScalar::Float(number))
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(JsonScalar::Text(text.into()))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(JsonScalar::Text(JsonText(Cow::Owned(text.to_owned()))))
            }
        }

        deserializer.deserialize_any(ScalarVisitor(PhantomData))
    }
}

impl JsonScalar<'_> {
    /// The value as text, for parsers that accept both forms.
    pub(crate) fn as_text(&self) -> Cow<'_, str> {
        match self {
            JsonScalar::Integer(number) => number.to_string().into(),
            JsonScalar::Float(number) => number.to_string().into(),
            JsonScalar::Text(text) => Cow::Borrowed(text),
        }
    }
}
