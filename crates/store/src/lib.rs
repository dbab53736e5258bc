//! The store: the only queue, the only place where rooms meet, and the only SQL in the project.
//!
//! [`port`] says what every database must do, [`record`] in which words, [`conformance`] proves that it does. Nothing
//! of a database crosses the port: no transaction, no row id, no driver type.
//!
//! Promises, whichever database is behind it:
//! - what a method acknowledges is durable before the method returns;
//! - a state change, its events and its counters are one transaction;
//! - every write of claimed work is fenced, and says which messages it changed;
//! - concurrent callers share transactions (group commit), and one caller's mistake does not fail another.

mod allowance;
pub mod blob;
mod catalogue;
mod claiming;
mod collapse;
pub mod copy;
mod crash;
mod decode;
mod dedup;
mod directory;
pub mod durability;
mod durable_write;
mod entry;
pub mod error;
mod event_row;
pub mod facts;
mod group;
pub mod handover;
pub mod holds;
mod inbound;
mod journal;
mod local_nodes;
pub mod memory;
pub mod mysql;
mod packing;
mod peers;
pub mod port;
pub mod postgres;
mod preparation;
mod pulse;
pub mod record;
mod register;
mod reports;
mod retention;
pub mod roster;
mod rows;
pub mod schema;
mod search;
mod silence;
mod sql;
pub mod sqlite;
mod standing;
mod terms;
pub mod views;
#[cfg(test)]
mod waits;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use durable_write::until_durable;
pub use error::StoreError;
pub use holds::Holds;
pub use port::{
    Blobs, Catalogue, Directory, Inbound, Intake, Nodes, Operate, Prepare, Read, Report, Retain, Store,
    Streams, Work,
};
pub use reports::hears_of;
pub use roster::Roster;
