//! Providers that take mail over HTTP: one call per transaction, as with SES, each with its own form and its own errors.
//!
//! | file | holds |
//! |---|---|
//! | `api` | what one provider's API is like: the trait, and what it is given |
//! | `settings` | which provider, where, as whom, how long to wait |
//! | `client` | one mail: checks, whom the call names, gate, call; and the check of an account |
//! | `mail` | the mail in the form that the provider takes |
//! | `answer` | what came back, and how long the provider asks to be left alone |
//! | `judge` | what an answer means, for all of them |
//! | `sendgrid`, `mailgun`, `postmark`, `resend`, `graph`, `gmail`, `generic` | one provider each |
//!
//! The mail goes out as it is stored where the provider takes MIME (Mailgun, Graph, Gmail, the generic form). The others get
//! the fields that they ask for, made from the stored mail; what has no field is refused before anything is sent.
//!
//! An answer decides as it does for SES: a success counts only with the provider's own id for the mail; an error that the
//! provider names is definite; 500, 502 and 504 that it does not name are doubt, and so is no answer at all. A provider that asks
//! for a pause gets it: the mail goes back without using a retry.

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
