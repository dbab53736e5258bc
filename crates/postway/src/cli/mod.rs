//! What commands, doctor and top share: the HTTP client, failures and their exit codes, printing, progress,
//! and the reading of files, secrets and pages of a list.

pub mod amount;
pub mod client;
pub mod failure;
pub mod input;
pub mod output;
pub mod pages;
pub mod progress;
pub mod secret_input;
