//! Identifiers and credentials: ids, API keys, users, secrets at rest, and SCRAM verifiers.

pub mod attachment_link;
pub mod client;
pub mod id;
pub mod key;
pub mod scram;
pub mod sealed_copy;
pub mod secret;
pub mod user;
