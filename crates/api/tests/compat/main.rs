//! The compatibility APIs, called as their own users call them.

// A test that cannot go on stops where it is.
#![allow(clippy::unwrap_used)]

#[path = "../api/conformance.rs"]
mod conformance;
#[allow(dead_code, reason = "shared with the tests of our own surface")]
#[path = "../api/json_schema.rs"]
mod json_schema;
#[allow(dead_code, reason = "shared with the tests of our own surface")]
#[path = "../api/support.rs"]
mod support;

mod doors;
mod mailgun;
mod postmark;
mod postmark_lists;
mod postmark_templates;
mod reference_000;
mod reference_001;
mod reference_001_clients;
mod reference_001_words;
mod reference_004;
mod resend;
mod sendgrid;
