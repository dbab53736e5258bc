//! What outgoing mail is sent by and made of: accounts, batches, streams, routes, templates, recipients,
//! suppressions, DKIM keys and checks of domains.

pub(crate) mod account;
pub(crate) mod batch;
pub(crate) mod dkim;
pub(crate) mod domain;
pub(crate) mod recipient;
pub(crate) mod route;
pub(crate) mod stream;
pub(crate) mod suppression;
pub(crate) mod template;
