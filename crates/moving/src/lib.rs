//! Reads the databases of the five reference systems, for users who migrate to Postway.
//!
//! Each row gets a verdict: it carries over, in the old system's format or in ours; it is left behind and an
//! operator must decide; it stays as history; or it is wrong, with table, key, field and a message. Whether
//! the gateway accepts a row that carries over is not decided here.
//!
//! Promises: the old database is only read, by read-only connections. No statement contains its data. One row
//! is in memory at a time, and a cell of more than 40 MiB is not read. Passwords are part of accounts and
//! never of an error.

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
pub use verdict::{
    CarriedKind, CarriedRow, HistoryRows, MovingVerdict, RowFault, RowFormat, RowLocation, UndecidedRow,
};
