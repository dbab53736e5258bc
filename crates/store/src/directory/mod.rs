//! Tenants, accounts, keys, pauses, suppressions and the audit log: the same for every SQL database.
//!
//! A change and its audit entry are one transaction. Reads run on connections of their own.

mod accounts;
mod ahead;
mod audit;
mod departed;
mod held;
mod keys;
mod oauth;
mod pauses;
mod purge;
mod scoped;
mod sessions;
mod streams;
mod suppressions;
mod tenants;

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{
    Account, AccountId, AccountLimits, ApiKey, KeyDigest, Span, Status, Tenant, TenantId, Time,
    id::{AuditId, BatchCode, SessionId},
    oauth::{OAuthOwner, OAuthState},
};

pub(crate) use accounts::there as accounts_there;
#[cfg(test)]
pub(crate) use accounts::{AMONG_UNFINISHED, HAS_WAITING};
pub(crate) use departed::mark_departed;
pub(crate) use held::is_used_up;
#[cfg(test)]
pub(crate) use held::{BEHIND, WAITED_FOR};
#[cfg(test)]
pub(crate) use pauses::STATES as BATCH_STATES;
pub(crate) use pauses::{GateQuestion, Gates, is_suspended, suspended_batches, suspensions_of};
pub(crate) use scoped::{add_new as add_scoped, remove_for as remove_scoped};
pub(crate) use suppressions::{Recipients, Suppressed, report as suppress_reported, suppressed_of};

use crate::{
    allowance,
    catalogue::{dkim_keys, links, recipients, templates},
    error::StoreError,
    group::{After, Writers},
    handover::HandOver,
    inbound,
    port::Directory,
    record::{
        AccountGate, AccountKey, AuditEntry, BatchView, Changed, Circuit, DirectoryChange, Suppression,
        Suspension, Used,
    },
    reports,
    retention::Walks,
    sql::Session,
};

/// Makes a change inside the transaction under way.
pub(crate) async fn change(
    session: &mut dyn Session,
    change: &DirectoryChange,
    after: &mut After,
) -> Result<Changed, StoreError> {
    let changed = match change {
        DirectoryChange::CreateTenant(tenant, accounts) => {
            let created = tenants::create(session, tenant).await?;
            if created == Changed::Done {
                for account in accounts {
                    accounts::create(session, account).await?;
                }
                reports::keep_client(session, tenant).await?;
            }
            created
        }
        DirectoryChange::UpdateTenant(tenant, expected) => {
            let updated = tenants::update(session, tenant, *expected).await?;
            if updated == Changed::Done {
                reports::keep_client(session, tenant).await?;
            }
            updated
        }
        DirectoryChange::DeleteTenant(id, at) => tenants::delete(session, id, *at).await?,
        DirectoryChange::PurgeTenant(id, limit) => purge::purge(session, id, *limit).await?,
        DirectoryChange::SetDefaultAccount(tenant, account) => {
            tenants::set_default(session, tenant, account).await?
        }
        DirectoryChange::CreateAccount(account) => accounts::create(session, account).await?,
        DirectoryChange::UpdateAccount(account, expected) => {
            accounts::update(session, account, *expected).await?
        }
        DirectoryChange::DeleteAccount(key) => accounts::delete(session, key).await?,
        DirectoryChange::PutOAuthState(state, expected) => oauth::put(session, state, *expected).await?,
        DirectoryChange::CreateKey(key) => keys::create(session, key).await?,
        DirectoryChange::RevokeKey(tenant, id, at) => keys::revoke(session, tenant, id, *at).await?,
        DirectoryChange::TouchKeys(used) => keys::touch(session, used).await?,
        DirectoryChange::EndSession(id, ends_at) => sessions::end(session, *id, *ends_at).await?,
        DirectoryChange::Suspend(suspension) => pauses::suspend(session, suspension).await?,
        DirectoryChange::Activate(tenant, scope) => pauses::activate(session, tenant, scope).await?,
        DirectoryChange::Suppress(list) => suppressions::add(session, list).await?,
        DirectoryChange::Unsuppress(tenant, addresses) => {
            suppressions::remove(session, tenant, addresses).await?
        }
        DirectoryChange::SuppressScoped(list) => scoped::add(session, list).await?,
        DirectoryChange::UnsuppressScoped(scopes) => scoped::remove(session, scopes).await?,
        DirectoryChange::CreateStream(stream) => streams::create(session, stream).await?,
        DirectoryChange::UpdateStream(stream, expected) => {
            streams::update(session, stream, *expected).await?
        }
        DirectoryChange::DeleteStream(tenant, id) => streams::delete(session, tenant, id).await?,
        DirectoryChange::OpenCircuit(circuit) => pauses::open_circuit(session, circuit).await?,
        DirectoryChange::CloseCircuit(key) => pauses::close_circuit(session, key).await?,
        DirectoryChange::RedactAudit { tenant, target, digest } => {
            audit::redact(session, tenant, target, digest).await?
        }
        DirectoryChange::CreateTemplate(template) => templates::create(session, template).await?,
        DirectoryChange::DeleteTemplate(tenant, name) => templates::delete(session, tenant, name).await?,
        DirectoryChange::CreateRecipient(recipient) => recipients::create(session, recipient).await?,
        DirectoryChange::UpdateRecipient(recipient, expected) => {
            recipients::update(session, recipient, *expected).await?
        }
        DirectoryChange::DeleteRecipient(tenant, id, at) => {
            recipients::delete(session, tenant, id, *at).await?
        }
        DirectoryChange::CreateDkimKey(key) => dkim_keys::create(session, key).await?,
        DirectoryChange::SwitchDkimKey(tenant, domain, selector, active) => {
            dkim_keys::switch(session, tenant, domain, selector, *active).await?
        }
        DirectoryChange::ResealDkimKey(key, was) => dkim_keys::reseal(session, key, was).await?,
        DirectoryChange::DeleteDkimKey(tenant, domain, selector) => {
            dkim_keys::delete(session, tenant, domain, selector).await?
        }
        DirectoryChange::CreateSubscriber(subscriber) => reports::create(session, subscriber).await?,
        DirectoryChange::UpdateSubscriber(subscriber, expected) => {
            reports::update(session, subscriber, *expected).await?
        }
        DirectoryChange::DeleteSubscriber(tenant, id) => reports::delete(session, tenant, id).await?,
        DirectoryChange::QuietSubscriber(tenant, id, until) => {
            reports::quiet(session, tenant, id, *until).await?
        }
        DirectoryChange::DeleteMailbox(key) => {
            let deleted = inbound::change(session, change).await?;
            if deleted == Changed::Done {
                oauth::delete(session, &OAuthOwner::mailbox(&key.tenant, &key.mailbox)).await?;
            }
            deleted
        }
        DirectoryChange::CreateMailbox(_)
        | DirectoryChange::UpdateMailbox(..)
        | DirectoryChange::CreateRule(_)
        | DirectoryChange::UpdateRule(..)
        | DirectoryChange::DeleteRule(..)
        | DirectoryChange::CreateContact(_)
        | DirectoryChange::UpdateContact(..)
        | DirectoryChange::DeleteContact(..) => inbound::change(session, change).await?,
        DirectoryChange::Forget(now) => {
            reports::forget(session).await?;
            inbound::forget(session).await?;
            suppressions::forget(session, *now).await?;
            scoped::forget(session, *now).await?;
            sessions::forget(session, *now).await?;
            links::forget(session, *now).await?
        }
        DirectoryChange::ForgetUse(now, limit) => allowance::forget(session, *now, *limit).await?,
        DirectoryChange::PullReady(now, limit) => ahead::pull(session, *now, *limit).await?,
        DirectoryChange::PullBeyond(latest, now, limit) => {
            ahead::pull_beyond(session, latest, *now, *limit).await?
        }
        DirectoryChange::PullPreparation { now, latest, limit } => {
            ahead::pull_preparation(session, *now, *latest, *limit).await?
        }
        DirectoryChange::ShiftUse(now, by_ms) => allowance::shift(session, *now, *by_ms).await?,
        DirectoryChange::RedateUse(now) => allowance::redate(session, *now).await?,
        DirectoryChange::RenewPermit(permit, now) => allowance::renew(session, permit, *now).await?,
    };
    if changed == Changed::Done {
        after.woken.extend(woken_by(change));
        after.changed.extend(woken_by(change));
        after.reports |= wakes_reports(change);
        if let DirectoryChange::Activate(tenant, scope) = change {
            after.woken.extend(pauses::accounts_in(session, tenant, scope).await?);
        }
    }
    // Even what found nothing to do may have taken locks.
    after.wrote = true;
    Ok(changed)
}

/// Writes an audit entry inside the transaction under way.
pub(crate) async fn record_audit(session: &mut dyn Session, entry: &AuditEntry) -> Result<(), StoreError> {
    audit::insert(session, entry).await
}

/// Removes the oldest entries of the audit log, older than `before`, inside the transaction under way; how many.
pub(crate) async fn trim_audit(
    session: &mut dyn Session,
    before: Time,
    limit: u32,
) -> Result<usize, StoreError> {
    audit::trim(session, before, limit).await
}

/// Whoever dispatches for this account must look again.
pub(crate) fn woken_by(change: &DirectoryChange) -> Option<AccountKey> {
    match change {
        DirectoryChange::CreateAccount(account) | DirectoryChange::UpdateAccount(account, _) => {
            Some(AccountKey { tenant: account.tenant.clone(), account: account.id.clone() })
        }
        DirectoryChange::DeleteAccount(key) | DirectoryChange::CloseCircuit(key) => Some(key.clone()),
        _ => None,
    }
}

/// Whoever tells subscribers must look again.
pub(crate) fn wakes_reports(change: &DirectoryChange) -> bool {
    use DirectoryChange::{CreateSubscriber, QuietSubscriber, UpdateSubscriber, UpdateTenant};
    matches!(change, CreateSubscriber(_) | UpdateSubscriber(..) | QuietSubscriber(..) | UpdateTenant(..))
}

/// A database that speaks SQL through [`Session`].
#[async_trait]
pub(crate) trait Portable: Send + Sync {
    /// Where changes go.
    fn writers(&self) -> &Writers;
    /// Where hints come from.
    fn handover(&self) -> &HandOver;
    /// How far retention has walked.
    fn walks(&self) -> &Walks;
    /// A connection to read from.
    async fn reader(&self) -> Result<Box<dyn Session + '_>, StoreError>;
}

#[async_trait]
impl<T: Portable> Directory for T {
    async fn change(
        &self,
        change: DirectoryChange,
        audit: Option<AuditEntry>,
    ) -> Result<Changed, StoreError> {
        self.writers().change(change, audit).await
    }

    fn generation(&self) -> u64 {
        self.writers().generation()
    }

    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, StoreError> {
        tenants::find(&mut *self.reader().await?, id).await
    }

    async fn tenants(&self, after: Option<&TenantId>, limit: u32) -> Result<Vec<Tenant>, StoreError> {
        tenants::list(&mut *self.reader().await?, after, limit).await
    }

    async fn accounts(&self, tenant: Option<&TenantId>) -> Result<Vec<Account>, StoreError> {
        accounts::list(&mut *self.reader().await?, tenant).await
    }

    async fn account(&self, tenant: &TenantId, id: &AccountId) -> Result<Option<Account>, StoreError> {
        accounts::find(&mut *self.reader().await?, tenant, id).await
    }

    async fn key(&self, digest: &KeyDigest) -> Result<Option<ApiKey>, StoreError> {
        keys::find(&mut *self.reader().await?, digest).await
    }

    async fn key_by_id(&self, id: &str) -> Result<Option<ApiKey>, StoreError> {
        keys::find_by_id(&mut *self.reader().await?, id).await
    }

    async fn keys(&self, tenant: &TenantId) -> Result<Vec<ApiKey>, StoreError> {
        keys::list(&mut *self.reader().await?, tenant).await
    }

    async fn is_session_ended(&self, id: SessionId) -> Result<bool, StoreError> {
        sessions::is_ended(&mut *self.reader().await?, id).await
    }

    async fn oauth_state(&self, owner: &OAuthOwner) -> Result<Option<OAuthState>, StoreError> {
        oauth::find(&mut *self.reader().await?, owner).await
    }

    async fn oauth_states(&self) -> Result<Vec<OAuthState>, StoreError> {
        oauth::list(&mut *self.reader().await?).await
    }

    async fn suspensions(&self, tenant: &TenantId) -> Result<Vec<Suspension>, StoreError> {
        pauses::list(&mut *self.reader().await?, tenant).await
    }

    async fn batches(
        &self,
        tenant: &TenantId,
        after: Option<&BatchCode>,
        limit: u32,
    ) -> Result<Vec<BatchView>, StoreError> {
        pauses::batches(&mut *self.reader().await?, tenant, after, limit).await
    }

    async fn batch_states(
        &self,
        tenant: &TenantId,
        code: &BatchCode,
    ) -> Result<BTreeMap<Status, i64>, StoreError> {
        pauses::batch_states(&mut *self.reader().await?, tenant, code).await
    }

    async fn account_gates(
        &self,
        tenant: &TenantId,
        accounts: &[AccountId],
        now: Time,
    ) -> Result<Vec<(AccountId, AccountGate)>, StoreError> {
        held::gates(&mut *self.reader().await?, tenant, accounts, now).await
    }

    async fn held(&self, tenant: &TenantId, now: Time) -> Result<i64, StoreError> {
        held::held(&mut *self.reader().await?, tenant, now).await
    }

    async fn suppressions(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Suppression>, StoreError> {
        suppressions::list(&mut *self.reader().await?, tenant, after, limit).await
    }

    async fn suppression(&self, tenant: &TenantId, address: &str) -> Result<Option<Suppression>, StoreError> {
        suppressions::find(&mut *self.reader().await?, tenant, address).await
    }

    async fn audit(
        &self,
        tenant: Option<&TenantId>,
        before: Option<AuditId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        audit::list(&mut *self.reader().await?, tenant, before, limit).await
    }

    async fn circuit(&self, key: &AccountKey) -> Result<Option<Circuit>, StoreError> {
        pauses::circuit(&mut *self.reader().await?, key).await
    }

    async fn circuits(&self, tenant: Option<&TenantId>) -> Result<Vec<Circuit>, StoreError> {
        pauses::circuits(&mut *self.reader().await?, tenant).await
    }

    async fn used(
        &self,
        key: &AccountKey,
        limits: &AccountLimits,
        now: Time,
    ) -> Result<Vec<(Span, Used)>, StoreError> {
        allowance::used(&mut *self.reader().await?, key, limits, now).await
    }
}

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::Sql> {
    let listed = [
        accounts::STATEMENTS,
        ahead::STATEMENTS,
        audit::STATEMENTS,
        keys::STATEMENTS,
        oauth::STATEMENTS,
        pauses::STATEMENTS,
        scoped::STATEMENTS,
        sessions::STATEMENTS,
        streams::STATEMENTS,
        suppressions::STATEMENTS,
        tenants::STATEMENTS,
        allowance::STATEMENTS,
        &crate::collapse::statements(),
        crate::preparation::STATEMENTS,
        crate::blob::STATEMENTS,
        crate::pulse::STATEMENTS,
        crate::standing::STATEMENTS,
    ];
    let multi = crate::preparation::multi().into_iter().chain([&departed::DEPARTED]).chain(pauses::multi());
    let multi: Vec<crate::sql::Sql> = multi.map(|multi| multi.sample().into()).collect();
    [
        listed.concat(),
        multi,
        vec![suppressions::multi(), scoped::multi(), accounts::multi()],
        held::statements(),
        purge::statements(),
        reports::statements(),
        crate::catalogue::statements(),
        crate::retention::statements(),
        crate::search::statements(),
        inbound::statements(),
    ]
    .concat()
}

/// For an insert that says whether the row is new.
pub(crate) fn is_new(new: bool) -> Changed {
    if new { Changed::Done } else { Changed::Exists }
}

/// For an update or a deletion that says whether there was a row.
pub(crate) fn was_there(rows: u64) -> Changed {
    if rows == 0 { Changed::Missing } else { Changed::Done }
}
