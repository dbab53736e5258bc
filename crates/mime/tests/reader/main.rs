//! The one reader of strangers' mail: against mail that we compose, against any bytes, and in little memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

mod agreement;
mod memory;
