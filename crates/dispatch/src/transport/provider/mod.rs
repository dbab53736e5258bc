//! Providers that accept mail over HTTP: one call per transaction, each with its own form and errors.
//!
//! | file | content |
//! |---|---|
//! | `api` | the trait that describes one provider's API |
//! | `settings` | which provider, where, with which credentials, how long to wait |
//! | `client` | one mail: checks, recipients, gate, call; and the check of an account |
//! | `mail` | the mail in the form that the provider accepts |
//! | `answer` | an answer, and the pause that it asks for |
//! | `judge` | what an answer means, for all providers |
//! | `sendgrid`, `mailgun`, `postmark`, `resend`, `graph`, `gmail`, `generic` | one provider each |
//!
//! If the provider accepts MIME (Mailgun, Graph, Gmail, the generic form), the mail goes out as it is stored.
//! The others get the fields that they ask for, made from the stored mail; a mail with content that has no
//! field is refused before anything is sent.
//!
//! Answers decide as they do for SES: a success counts only with the provider's own id for the mail; an error
//! that the provider names is definite; a 500, 502 or 504 without a name is in doubt, and so is a missing
//! answer. A provider that asks for a pause gets it: the message is returned without using a retry.

mod answer;
mod api;
mod client;
mod generic;
mod gmail;
mod graph;
mod judge;
mod mail;
mod mailgun;
mod postmark;
mod resend;
mod sendgrid;
mod settings;

pub use client::ProviderClient;
pub use settings::{ProviderCredentials, ProviderSettings};
