//! Composing: from a checked request to the message that is stored.

mod assemble;
mod builder;
pub(crate) mod links;
pub(crate) mod unsubscribe;

pub(crate) use assemble::*;
pub(crate) use builder::MailBuilder;
