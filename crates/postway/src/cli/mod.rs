//! What the commands share: the client of a running server, the exit codes, printing, and reading of files.

pub mod client;
pub mod failure;
pub mod input;
pub mod output;
pub mod pages;
pub mod progress;
pub mod secret_input;
