//! The parts of HTTP that every endpoint shares: bodies and their budget, queries, paths, pages of lists,
//! ids, and the one shape of an error.
//!
//! This folder knows no endpoint. It may use [`crate::state`] and nothing else of this crate.

pub(crate) mod address_spelling;
pub(crate) mod body;
pub(crate) mod body_budget;
pub(crate) mod error;
pub(crate) mod error_style;
pub(crate) mod fallback;
pub(crate) mod hex_digest;
pub(crate) mod json_fields;
pub(crate) mod new_id;
pub(crate) mod origin;
pub(crate) mod pagination;
pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod recent_map;
pub(crate) mod request_id;
pub(crate) mod request_span;
pub(crate) mod resource;
pub(crate) mod schema_form;
