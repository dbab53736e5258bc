//! Amazon SES: one signed call of the API v2 (`SendEmail` with raw content) per transaction.
//!
//! | file | content |
//! |---|---|
//! | `settings` | region, endpoint, timeouts |
//! | `credentials` | the key: the account's own, the environment's, or the shared file's |
//! | `role` | keys of the machine's role |
//! | `sign` | Signature Version 4 |
//! | `client` | one signed call |
//! | `deliver` | one mail: recipients, gate, call |
//! | `answer` | reads an answer |
//! | `judge` | decides what an answer means |
//!
//! A call has no final dot: writing the request body is the point of no return, so the gate is asked before
//! it ([`api_call`](super::api_call)). An answer that the service itself gives is definite.
//!
//! The mail keeps its headers. `FromEmailAddress` is left out on purpose: with raw content SES would replace
//! the `From` header by it and lose the display name. SES forwards bounces to the return path; the envelope
//! sender is an address of SES. A mail with internationalised addresses is refused, because SES has no
//! SMTPUTF8.
//!
//! Bounds: 50 recipients per call, the others wait for the next one; 40 MiB per mail.

mod answer;
mod client;
mod credentials;
mod deliver;
mod judge;
mod role;
mod settings;
mod sign;

pub use client::SesClient;
pub use credentials::SesCredentials;
pub use settings::SesSettings;
