//! A transaction under way, as the areas of the store see it: what a database brings to it, and what is to be done after it.

use std::collections::BTreeSet;

use async_trait::async_trait;
use postway_domain::{Status, TenantId, Time};

use super::{lease_conditions::Terms, packing::PackedMessage};
use crate::{
    error::StoreError,
    journal::Journal,
    record::{Acceptance, AccountKey, AccountWant, Change, ClaimRequest, Claimed, Lease, WireCommit},
    sql::Session,
};

/// What is to be done once a transaction is durable.
#[derive(Default)]
pub(crate) struct After {
    /// Messages handed over to standing claims.
    pub delivered: Vec<Claimed>,
    /// Accounts that have new work, or have changed.
    pub woken: BTreeSet<AccountKey>,
    /// Accounts that have changed: their standing claims were made for what they were before.
    pub changed: BTreeSet<AccountKey>,
    /// Room to leave standing.
    pub parked: Vec<Parking>,
    /// Whether there is something new to prepare.
    pub prepares: bool,
    /// What is told of what was written; it goes into the journal before the commit.
    pub journal: Journal,
    /// Whether there is something new to tell.
    pub reports: bool,
    /// Whether there is mail to deal with.
    pub inbound: bool,
    /// Where messages stand now whose place a newer one took.
    pub superseded: Vec<Status>,
    /// Whether anything was written at all.
    pub wrote: bool,
}

/// Room of one account that a claim could not fill.
pub(crate) struct Parking {
    pub want: AccountWant,
    pub lease: Lease,
    pub now: Time,
}

/// One connection that writes. Between `begin` and `commit` the other methods share a transaction.
#[async_trait]
pub(crate) trait Engine: Send + 'static {
    async fn begin(&mut self) -> Result<(), StoreError>;
    async fn accept(
        &mut self,
        messages: &[&PackedMessage],
        terms: &mut Terms,
    ) -> Result<Vec<Acceptance>, StoreError>;
    async fn wire_commit(&mut self, commits: &[&WireCommit]) -> Result<Vec<bool>, StoreError>;
    async fn apply(&mut self, changes: &[&Change]) -> Result<Vec<bool>, StoreError>;
    async fn claim(&mut self, request: &ClaimRequest, terms: &mut Terms) -> Result<Vec<Claimed>, StoreError>;
    /// Counts a message in at `to`, and out at `from`.
    fn count(&mut self, tenant: &TenantId, from: Option<Status>, to: Status);
    /// Counts a message out that is gone.
    fn count_out(&mut self, tenant: &TenantId, from: Status);
    /// The transaction's connection, for SQL that is written once.
    fn session(&mut self) -> Result<Box<dyn Session + '_>, StoreError>;
    /// What is to be done after the commit, so far.
    fn after(&mut self) -> &mut After;
    /// Makes it durable, and tells what to do then.
    async fn commit(&mut self) -> Result<After, StoreError>;
    /// Forgets it. Must leave the engine fit for the next transaction, whatever went wrong.
    async fn rollback(&mut self);
    async fn close(self);
}
