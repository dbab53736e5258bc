//! JSON, bounded while it is read.

mod bounded;
mod value;

pub use bounded::{JsonBounds, JsonFault, read_object, read_object_beside};
pub(crate) use value::{Addresses, Entries, List, Object, Scalar, Text};
