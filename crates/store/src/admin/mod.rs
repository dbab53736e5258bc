//! Tenants, users, accounts, keys, suspensions, circuits, suppressions, streams, routes, bulk actions, checks of
//! domains and the audit log: the same for every SQL database.
//!
//! A change and its audit entry are one transaction. Reads use separate connections.

pub(crate) mod accounts;
pub(crate) mod archive;
pub(crate) mod audit;
pub(crate) mod blocked;
pub(crate) mod bulk_actions;
pub(crate) mod deleted_recipients;
pub(crate) mod domain_checks;
pub(crate) mod keys;
pub(crate) mod oauth;
pub(crate) mod provider_hooks;
pub(crate) mod quotas;
pub(crate) mod routes;
pub(crate) mod scoped_suppressions;
pub(crate) mod sessions;
pub(crate) mod streams;
pub(crate) mod suppressions;
pub(crate) mod suspensions;
pub(crate) mod tenants;
pub(crate) mod user_sessions;
pub(crate) mod users;

use postway_domain::Time;

pub(crate) use accounts::there as accounts_there;
#[cfg(test)]
pub(crate) use accounts::{AMONG_UNFINISHED, HAS_MISPLACED};
#[cfg(test)]
pub(crate) use blocked::WAITING as WAITING_IN_LANES;
pub(crate) use blocked::is_used_up;
pub(crate) use bulk_actions::BulkProgress;
pub(crate) use deleted_recipients::mark_departed;
pub(crate) use scoped_suppressions::{add_new as add_scoped, remove_for as remove_scoped};
pub(crate) use suppressions::{Recipients, SuppressedAddresses, report as suppress_reported, suppressed_of};
#[cfg(test)]
pub(crate) use suspensions::STATES as BATCH_STATES;
pub(crate) use suspensions::{
    GateQuestion, SuspensionGates, is_suspended, suspended_batches, suspensions_of,
};

use crate::{error::StoreError, record::AuditEntry, sql::SqlSession};

/// Writes an audit entry inside the transaction under way.
pub(crate) async fn record_audit(session: &mut dyn SqlSession, entry: &AuditEntry) -> Result<(), StoreError> {
    audit::insert(session, entry).await
}

/// Removes at most `limit` of the oldest audit entries that are older than `before`, inside the transaction
/// under way. Returns the number of entries.
pub(crate) async fn trim_audit(
    session: &mut dyn SqlSession,
    before: Time,
    limit: u32,
) -> Result<usize, StoreError> {
    audit::trim(session, before, limit).await
}
