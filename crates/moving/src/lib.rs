//! The databases of the five reference systems, read for whoever moves here.
//!
//! Each row gets a verdict: it carries over, in the old system's words or in ours; it is left behind and somebody should
//! know; it stays as history; or it is wrong, with table, key, field and a sentence. Reading decides nothing else: whether
//! what carries over is taken is for the gateway to say.
//!
//! Promises: the old database is only read, by connections that cannot write. No statement is made of its texts. A row is
//! held one at a time, and a cell of more than 40 MiB not at all. Passwords go where accounts go and into no error.

mod column;
mod database;
mod error;
mod payload;
mod row;
mod system;
mod verdict;

pub use database::OldDatabase;
pub use error::MovingError;
pub use payload::PayloadFolder;
pub use system::{ImapHosts, MovingOptions, OldSystem, ReferenceSystem};
pub use verdict::{Carried, Fault, Form, Kind, Left, Place, Stayed, Verdict};
