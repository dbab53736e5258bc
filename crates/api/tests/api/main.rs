//! The surface as its users see it: requests in, answers out, on the store in memory.

// A test that cannot go on stops where it is.
#![allow(clippy::unwrap_used)]

mod accept;
mod account;
mod batch;
mod bounds;
mod content;
mod dkim;
mod feed;
mod forget;
mod isolation;
mod operate;
mod operations;
mod read;
mod recipient;
mod refuse;
mod secrets;
mod support;
mod suppression;
mod template;
mod tenant;
mod webhook;
