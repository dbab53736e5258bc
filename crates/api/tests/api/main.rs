//! The API as its users see it: requests in, answers out, on the store in memory.

// A test that cannot go on stops where it is.
#![allow(clippy::unwrap_used)]

mod accept;
mod account;
mod account_egress;
mod archive;
mod arrival;
mod batch;
mod bounds;
mod bulk;
mod conformance;
mod content;
mod dkim;
mod document;
mod domain;
mod domain_reports;
mod feed;
mod find;
mod forget;
mod hook;
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
mod passkeys;
mod pec;
mod provider_sign_in;
mod query;
mod read;
mod recipient;
mod refuse;
mod route;
mod rule;
mod schema;
mod secrets;
mod session;
mod streams;
mod support;
mod suppression;
mod template;
mod tenant;
mod unsubscribe;
mod user_rights;
mod users;
mod webhook;
mod wrong_keys;
