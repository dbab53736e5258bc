//! JSON readers that bound what they build: plain objects, and the values of requests.

mod bounded;
mod value;

pub use bounded::{JsonBounds, JsonReadError, read_object, read_object_except};
pub(crate) use value::{AddressList, JsonEntries, JsonList, JsonObject, JsonScalar, JsonText};
