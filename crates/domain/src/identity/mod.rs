//! Identifiers and credentials: ids, API keys, secrets at rest, and SCRAM verifiers.

pub mod attachment_link;
pub mod client;
pub mod id;
pub mod key;
pub mod scram;
pub mod secret;
