//! What every database must show: one rule per function, one file per theme.
//!
//! A rule gets a fresh store and panics where the store breaks it.
//! [`conformance_tests!`](crate::conformance_tests) turns the rules into tests, so that each database shows
//! the same names and none can skip one; [`again`] has those for databases that can be opened again.
//! [`sample`] makes the values and [`stage`] the acts; other crates' tests use them too.

// A rule fails by panicking.
#![allow(clippy::unwrap_used)]

pub mod accept;
pub mod accounts;
pub mod again;
pub mod archive;
pub mod audit;
pub mod blobs;
pub mod bodies;
pub mod bulk;
pub mod circuits;
pub mod claim;
pub mod collapse;
pub mod dedup;
pub mod destinations;
pub mod dkim;
pub mod domain_reports;
pub mod erase;
pub mod fan_out;
pub mod fates;
pub mod fence;
pub mod findings;
pub mod handover;
pub mod held;
pub mod hooks;
pub mod inbound;
mod inbound_rules;
pub mod journal;
pub mod keys;
pub mod lanes;
pub mod lease;
pub mod limits;
pub mod links;
pub mod mailboxes;
pub mod nodes;
pub mod notifications;
pub mod oauth;
pub mod pauses;
pub mod people;
pub mod permits;
pub mod preparation;
pub mod proofs;
pub mod property;
pub mod quotas;
pub mod read;
pub mod recipients;
pub mod replays;
pub mod retention;
pub mod revive;
pub mod routes;
pub mod routing;
mod rules;
pub mod sample;
pub mod search;
pub mod sessions;
pub mod settle;
pub mod stage;
pub mod streams;
pub mod subscribers;
pub mod suppress;
pub mod suppression_changes;
pub mod templates;
pub mod tenants;
pub mod text_blocks;
pub mod traces;
pub mod windows;
pub mod wire;

#[cfg(test)]
mod listed;

use std::sync::Arc;

use crate::port::Store;

/// A store under test. Shared, because many rules are about callers that meet.
pub type Shared = Arc<dyn Store>;
