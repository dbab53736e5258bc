//! Settings that several resources share: the URL of a callback, an OAuth grant, a proxy, and the rule that a
//! secret stays with its destination.

pub(crate) mod callback_url;
pub(crate) mod oauth;
pub(crate) mod proxy;
pub(crate) mod secret_destination;
