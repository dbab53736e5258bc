//! The store: the only queue, and the only place where subsystems pass work to each other. Apart from the
//! outbox sources, it has all SQL of the project.
//!
//! [`port`] says what every database must do, [`record`] has the types for it, and [`conformance`] proves it.
//! Nothing of a database crosses the port: no transaction, no row id, no driver type. `README.md` explains
//! the folders.
//!
//! Promises, whichever database is behind it:
//! - what a method acknowledges is durable before the method returns;
//! - a state change, its events and its counters are one transaction;
//! - every write of claimed work is fenced, and says which messages it was applied to;
//! - concurrent callers share transactions (group commit), and one caller's error does not fail another.

// Only the store in memory shares some of what the drivers do.
#![cfg_attr(not(any(test, feature = "conformance")), allow(dead_code, unused_imports))]

mod admin;
pub mod blob;
mod content;
mod driver;
mod durable_write;
mod engine;
pub mod error;
mod failpoint;
mod hook;
mod inbound;
mod journal;
mod nodes;
pub mod port;
mod queue;
mod reading;
pub mod record;
mod reporting;
mod retention;
mod sql;
mod sql_store;
mod text_block;
mod tools;
mod view_definitions;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

#[cfg(any(test, feature = "conformance"))]
pub use driver::memory;
pub use driver::{mysql, postgres, sqlite};
pub use durable_write::until_durable;
pub use error::StoreError;
pub use nodes::liveness::{self as roster, LivenessRoster};
pub use port::{
    ArchiveStore, BlobNameStore, BulkActionStore, CatalogueStore, DirectoryStore, DomainReportStore,
    HookStore, InboundStore, IntakeStore, NodeStore, OperationStore, PeopleStore, PreparationStore, Read,
    ReportStore, RetentionStore, RouteStore, Store, StreamStore, WorkStore,
};
pub use queue::hand_over as handover;
pub use reading::blocked_by::{self as holds, MessageBlockers};
pub use reporting::hears_of;
pub use sql::{durability, schema, server_info as facts};
pub use tools::{transfer as copy, views};
