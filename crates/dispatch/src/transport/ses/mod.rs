//! Amazon SES: one signed call of the API v2 (`SendEmail` with raw content) per transaction.
//!
//! | file | holds |
//! |---|---|
//! | `settings` | region, endpoint, limits of time |
//! | `credentials` | the key: the account's own, the environment's, or the shared file's |
//! | `sign` | Signature Version 4 |
//! | `client` | one signed call |
//! | `deliver` | one mail: whom the call names, gate, call |
//! | `answer` | what came back, read as far as it can be |
//! | `judge` | what an answer means |
//!
//! There is no dot here: writing the request is the point of no return, so the gate is asked before ([`call`](super::api_call)). An
//! answer of the service is definite.
//!
//! The mail keeps its own headers. `FromEmailAddress` is left out on purpose: with raw content SES would replace the
//! `From` header by it, and lose the display name. The return path is where SES forwards bounces to; in the envelope
//! SES uses an address of its own. A mail with internationalised addresses is refused: SES has no SMTPUTF8.
//!
//! Bounds: 50 recipients a call, the others stay for the next one; 40 MiB a mail.

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
