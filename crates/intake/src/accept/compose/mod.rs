//! Step 4, compose: from a checked request to the message that is stored. Pure, except for new ids.
//!
//! [`MailBuilder`] names the mail, chooses the envelope sender and adds unsubscribe fields; the rest
//! composes, signs and assembles.
//!
//! May refuse: a finished mail that is larger than allowed, and a mail that cannot be signed.

mod assemble;
mod builder;
pub(crate) mod links;
pub(crate) mod unsubscribe;

pub(crate) use assemble::*;
pub(crate) use builder::MailBuilder;
