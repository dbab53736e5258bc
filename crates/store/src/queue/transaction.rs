//! A transaction under way, as the areas of the store see it: what a database provides for it, and what to do
//! after its commit.

use std::collections::BTreeSet;

use async_trait::async_trait;
use postway_domain::{MessageStatus, TenantId, Time};

use super::{lease_conditions::LeaseConditions, packing::PackedMessage};
use crate::{
    error::StoreError,
    journal::EventJournal,
    record::{
        Acceptance, AccountKey, AccountWant, ClaimRequest, ClaimedMessage, LeaseGrant, MessageChange,
        WireCommit,
    },
    sql::SqlSession,
};

/// What to do once a transaction is durable.
#[derive(Default)]
pub(crate) struct CommitEffects {
    /// Messages handed over to standing claims.
    pub delivered: Vec<ClaimedMessage>,
    /// Accounts that have new work, or have changed.
    pub woken: BTreeSet<AccountKey>,
    /// Accounts that have changed: their standing claims were made for the old settings.
    pub changed: BTreeSet<AccountKey>,
    /// Capacity for standing claims.
    pub parked: Vec<StandingCapacity>,
    /// Whether there is something new to prepare.
    pub prepares: bool,
    /// Events of this transaction; written to the journal just before the commit.
    pub journal: EventJournal,
    /// Whether there is something new to report.
    pub reports: bool,
    /// Whether there is inbound mail to process.
    pub inbound: bool,
    /// Whether there are reported events to process.
    pub provider_events: bool,
    /// The new states of superseded messages.
    pub superseded: Vec<MessageStatus>,
    /// Whether anything was written at all.
    pub wrote: bool,
}

/// Capacity of one account that a claim could not fill.
pub(crate) struct StandingCapacity {
    pub want: AccountWant,
    pub lease: LeaseGrant,
    pub now: Time,
}

/// One connection that writes. Between `begin` and `commit` the other methods share a transaction.
#[async_trait]
pub(crate) trait WriteTransaction: Send + 'static {
    async fn begin(&mut self) -> Result<(), StoreError>;
    async fn accept(
        &mut self,
        messages: &[&PackedMessage],
        terms: &mut LeaseConditions,
    ) -> Result<Vec<Acceptance>, StoreError>;
    async fn wire_commit(&mut self, commits: &[&WireCommit]) -> Result<Vec<bool>, StoreError>;
    async fn apply(&mut self, changes: &[&MessageChange]) -> Result<Vec<bool>, StoreError>;
    async fn claim(
        &mut self,
        request: &ClaimRequest,
        terms: &mut LeaseConditions,
    ) -> Result<Vec<ClaimedMessage>, StoreError>;
    /// Moves a message from `from` to `to` in the counters.
    fn count(&mut self, tenant: &TenantId, from: Option<MessageStatus>, to: MessageStatus);
    /// Removes a message from the counters.
    fn count_out(&mut self, tenant: &TenantId, from: MessageStatus);
    /// Makes this transaction conflict with every other that stores mail for an account, if the database does
    /// not do so by the locks of rows. Call it before the check that no mail is there.
    async fn exclude_accepts(&mut self, _: &AccountKey) -> Result<(), StoreError> {
        Ok(())
    }
    /// The transaction's connection, for SQL that is written once.
    fn session(&mut self) -> Result<Box<dyn SqlSession + '_>, StoreError>;
    /// What to do after the commit, so far.
    fn after(&mut self) -> &mut CommitEffects;
    /// Commits. Returns what to do then.
    async fn commit(&mut self) -> Result<CommitEffects, StoreError>;
    /// Rolls back. Must leave the engine usable for the next transaction, whatever went wrong.
    async fn rollback(&mut self);
    async fn close(self);
}
