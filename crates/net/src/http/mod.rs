//! HTTP to places that somebody else names: attachments, endpoints, webhooks.
//!
//! Promises:
//! - only http and https, to addresses that the [`Guard`](crate::Guard) lets through; the address that was checked is the
//!   address connected to, and every redirect is checked from scratch;
//! - every wait ends: a connection, a silence and the whole exchange each have their deadline;
//! - an answer takes no more memory than its cap: a longer one is refused before it is read if it says its length, and
//!   while it is read if it does not. Nothing is decompressed;
//! - proxies of the environment, cookies and referrers play no part, and nothing is retried;
//! - credentials leave only for the origin they were given for, and neither they nor a body are in an error.
//!
//! Fails with [`HttpError`], which tells what may work later from what will not.

mod client;
mod error;
mod fetch;
mod resolver;
mod retry_after;
mod send;
mod target;

pub use client::{Auth, HttpClient, HttpSettings};
pub use error::HttpError;
pub use fetch::{FetchMethod, FetchRequest, Fetched, Sink};
pub use resolver::GuardedResolver;
pub use retry_after::retry_after;
pub use send::{Answer, SendRequest};
pub use target::parse_url;
