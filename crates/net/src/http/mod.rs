//! HTTP requests to URLs that users provide: attachments, endpoints, webhooks.
//!
//! Promises:
//! - only http and https, and only addresses that the [`AddressGuard`](crate::Guard) allows; the checked
//!   address is the one that is connected to, and every redirect is checked again;
//! - every wait is bounded: connecting, a silence and the whole exchange each have a deadline;
//! - a response takes no more memory than its limit: a longer one is refused before it is read if it declares
//!   its length, and otherwise while it is read. Nothing is decompressed;
//! - connections take the [path](crate::EgressPath) that the settings give: direct, through a proxy, or from
//!   one address of this machine;
//! - proxies of the environment, cookies and referrers are not used, and nothing is retried;
//! - credentials are sent only to the origin they are for, and neither credentials nor bodies are in an
//!   error.
//!
//! Functions fail with [`HttpError`], which says whether a retry may help.

mod client;
mod connections;
mod error;
mod fetch;
mod resolver;
mod retry_after;
mod send;
mod target;

pub use client::{HttpAuth, HttpClient, HttpSettings};
pub use connections::{CallError, ConnectionSettings, HttpConnections};
pub use error::HttpError;
pub use fetch::{BodySink, FetchMethod, FetchRequest, FetchedDocument};
pub use resolver::GuardedResolver;
pub use retry_after::retry_after;
pub use send::{HttpAnswer, SendRequest};
pub use target::parse_url;
