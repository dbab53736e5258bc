//! Tests of certified mail: receipts of invented providers, hostile mail, and signatures made here and by
//! OpenSSL.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

mod hostile;
mod openssl;
mod receipts;
mod signatures;
mod signing;
mod support;
