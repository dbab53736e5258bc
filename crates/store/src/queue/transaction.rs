//! A transaction under way, as the areas of the store see it: what a database brings to it, and what is to be done after it.

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

/// What is to be done once a transaction is durable.
#[derive(Default)]
pub(crate) struct CommitEffects {
    /// Messages handed over to standing claims.
    pub delivered: Vec<ClaimedMessage>,
    /// Accounts that have new work, or have changed.
    pub woken: BTreeSet<AccountKey>,
    /// Accounts that have changed: their standing claims were made for what they were before.
    pub changed: BTreeSet<AccountKey>,
    /// Room to leave standing.
    pub parked: Vec<StandingCapacity>,
    /// Whether there is something new to prepare.
    pub prepares: bool,
    /// What is told of what was written; it goes into the journal before the commit.
    pub journal: EventJournal,
    /// Whether there is something new to tell.
    pub reports: bool,
    /// Whether there is mail to deal with.
    pub inbound: bool,
    /// Where messages stand now whose place a newer one took.
    pub superseded: Vec<MessageStatus>,
    /// Whether anything was written at all.
    pub wrote: bool,
}

/// Room of one account that a claim could not fill.
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
    /// Counts a message in at `to`, and out at `from`.
    fn count(&mut self, tenant: &TenantId, from: Option<MessageStatus>, to: MessageStatus);
    /// Counts a message out that is gone.
    fn count_out(&mut self, tenant: &TenantId, from: MessageStatus);
    /// The transaction's connection, for SQL that is written once.
    fn session(&mut self) -> Result<Box<dyn SqlSession + '_>, StoreError>;
    /// What is to be done after the commit, so far.
    fn after(&mut self) -> &mut CommitEffects;
    /// Makes it durable, and tells what to do then.
    async fn commit(&mut self) -> Result<CommitEffects, StoreError>;
    /// Forgets it. Must leave the engine fit for the next transaction, whatever went wrong.
    async fn rollback(&mut self);
    async fn close(self);
}
