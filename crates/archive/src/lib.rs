//! Archives: a copy of each mail that a tenant sent, in storage or as a mail to an address.
//!
//! Fan-out makes a notification for the archive of each message that was sent, in the transaction in which it
//! makes those for subscribers. The [`Archiver`] leases them, makes the copies, and settles them. So every sent
//! message gets its copy, however long the archive is away, and retention removes no message before; and no
//! message waits for its copy to be sent.
//!
//! A copy has a name that follows from its message. A crash between writing it and noting it writes it once
//! more under the same name, and a copy to an address is accepted under a key that the second try finds.

mod archiver;
mod crash;
mod expiry;
mod letter;
mod making;
mod stored_copy;

#[cfg(test)]
mod tests;

pub use archiver::{ArchiveNode, Archiver, ArchiverParts};
