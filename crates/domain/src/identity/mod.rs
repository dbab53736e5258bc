//! Names and credentials: ids of everything, API keys, secrets at rest, and what a sign-in proves.

pub mod client;
pub mod id;
pub mod key;
pub mod scram;
pub mod secret;
