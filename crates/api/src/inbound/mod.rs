//! Inbound mail: the mailboxes that are watched, the rules for what arrives, the contacts rules forward to,
//! and the mail itself.

pub(crate) mod contact;
pub(crate) mod mail;
pub(crate) mod mailbox;
pub(crate) mod rule;
