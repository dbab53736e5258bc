//! The API as its users see it: requests in, answers out, on the store in memory.

// A test that cannot go on stops where it is.
#![allow(clippy::unwrap_used)]

mod accept;
mod account;
mod arrival;
mod batch;
mod bounds;
mod conformance;
mod content;
mod dkim;
mod document;
mod feed;
mod find;
mod forget;
mod inbound;
mod isolation;
mod isolation_doors;
mod json_schema;
mod limits;
mod mailbox;
mod memory;
mod moved;
mod oauth;
mod operate;
mod operations;
mod outbox;
mod pec;
mod query;
mod read;
mod recipient;
mod refuse;
mod rule;
mod schema;
mod secrets;
mod session;
mod support;
mod suppression;
mod template;
mod tenant;
mod unsubscribe;
mod webhook;
mod wrong_keys;
