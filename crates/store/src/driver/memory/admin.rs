//! Tenants, accounts, keys, pauses, suppressions, limits and the audit log.

use std::collections::BTreeMap;

use postway_domain::{
    Account, AccountId, ApiKey, EmailAddress, KeyDigest, LimitSpan, Tenant, TenantId, Time,
    id::{AuditId, SessionId},
    oauth::{OAuthOwner, OAuthState},
    quota::QuotaDay,
};

use super::{
    bulk_actions::BulkTable,
    people::{AuditTable, UserTable},
    routes::RouteRows,
    streams::{ScopedTable, StreamTable},
    tables::MemoryTables,
};
use crate::{
    admin::{SuppressedAddresses, SuspensionGates, quotas},
    queue::rate_limit::ClockBounds,
    record::{
        AccountKey, AuditEntry, ChangeResult, DirectoryChange, OpenCircuit, QuotaLease, QuotaUse,
        SuppressionRecord, SuspensionRecord, SuspensionScope,
    },
};

/// What only operators change.
#[derive(Default)]
pub(super) struct MemoryDirectory {
    pub tenants: BTreeMap<TenantId, Tenant>,
    pub accounts: BTreeMap<AccountKey, Account>,
    keys: Vec<ApiKey>,
    ended_sessions: BTreeMap<SessionId, Time>,
    pub(super) oauth: BTreeMap<OAuthOwner, OAuthState>,
    suspensions: BTreeMap<(TenantId, SuspensionScope), Time>,
    pub(super) suppressions: BTreeMap<(TenantId, String), SuppressionRecord>,
    pub(super) scoped: ScopedTable,
    pub(super) streams: StreamTable,
    pub(super) routes: RouteRows,
    pub(super) bulk: BulkTable,
    circuits: BTreeMap<AccountKey, OpenCircuit>,
    pub(super) quotas: BTreeMap<(TenantId, QuotaDay), QuotaUse>,
    pub(super) audit: AuditTable,
    pub(super) people: UserTable,
    pub(super) spent: BTreeMap<(AccountKey, LimitSpan, i64), i64>,
    pub(super) clock_bounds: ClockBounds,
}

impl MemoryDirectory {
    pub fn gates(&self) -> SuspensionGates {
        let mut gates = SuspensionGates::default();
        for suspension in self.all_suspensions() {
            gates.add(suspension);
        }
        gates
    }

    fn all_suspensions(&self) -> impl Iterator<Item = SuspensionRecord> {
        let suspension = |((tenant, scope), since): (&(TenantId, SuspensionScope), &Time)| SuspensionRecord {
            tenant: tenant.clone(),
            scope: scope.clone(),
            since: *since,
        };
        self.suspensions.iter().map(suspension)
    }

    pub fn suppressed(&self, now: Time) -> SuppressedAddresses {
        let in_force = |one: &&SuppressionRecord| one.expires_at.is_none_or(|at| at > now);
        let in_force = self.suppressions.values().filter(in_force);
        let mut suppressed: SuppressedAddresses =
            in_force.map(|one| (one.tenant.clone(), one.address.clone())).collect();
        for one in self.scoped.in_force(now) {
            suppressed.scoped.add(&one.scope);
        }
        suppressed
    }

    pub fn audit(&self, tenant: Option<&TenantId>, before: Option<AuditId>, limit: u32) -> Vec<AuditEntry> {
        let of_tenant = |entry: &&AuditEntry| tenant.is_none() || entry.tenant.as_ref() == tenant;
        let older = |entry: &&AuditEntry| before.is_none_or(|before| entry.id < before);
        self.audit
            .entries()
            .into_iter()
            .rev()
            .filter(of_tenant)
            .filter(older)
            .take(limit as usize)
            .cloned()
            .collect()
    }

    pub fn list_tenants(&self, after: Option<&TenantId>, limit: u32) -> Vec<Tenant> {
        let later = self.tenants.values().filter(|tenant| after.is_none_or(|after| tenant.id > *after));
        later.take(limit as usize).cloned().collect()
    }

    pub fn list_accounts(&self, tenant: Option<&TenantId>) -> Vec<Account> {
        let all = self.accounts.values();
        all.filter(|account| tenant.is_none_or(|tenant| account.tenant == *tenant)).cloned().collect()
    }

    pub fn account(&self, tenant: &TenantId, id: &AccountId) -> Option<Account> {
        self.accounts.get(&AccountKey { tenant: tenant.clone(), account: id.clone() }).cloned()
    }

    pub fn key(&self, digest: &KeyDigest) -> Option<ApiKey> {
        self.keys.iter().find(|key| key.digest == *digest).cloned()
    }

    pub fn key_by_id(&self, id: &str) -> Option<ApiKey> {
        self.keys.iter().find(|key| key.id == id).cloned()
    }

    pub fn is_session_ended(&self, id: SessionId) -> bool {
        self.ended_sessions.contains_key(&id)
    }

    pub fn list_keys(&self, tenant: &TenantId) -> Vec<ApiKey> {
        let mut keys: Vec<ApiKey> = self.keys.iter().filter(|key| key.tenant == *tenant).cloned().collect();
        keys.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        keys
    }

    pub fn list_suspensions(&self, tenant: &TenantId) -> Vec<SuspensionRecord> {
        self.all_suspensions().filter(|suspension| suspension.tenant == *tenant).collect()
    }

    pub fn list_suppressions(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Vec<SuppressionRecord> {
        let of_tenant = self.suppressions.values().filter(|one| one.tenant == *tenant);
        let later = of_tenant.filter(|one| after.is_none_or(|after| one.address.as_str() > after));
        later.take(limit as usize).cloned().collect()
    }

    pub fn suppression(&self, tenant: &TenantId, address: &str) -> Option<SuppressionRecord> {
        let of = |address| self.suppressions.get(&(tenant.clone(), address)).cloned();
        EmailAddress::spellings_of(address).find_map(of)
    }

    pub fn circuit(&self, key: &AccountKey) -> Option<OpenCircuit> {
        self.circuits.get(key).cloned()
    }

    pub fn circuits(&self, tenant: Option<&TenantId>) -> Vec<OpenCircuit> {
        let wanted = |circuit: &&OpenCircuit| tenant.is_none_or(|tenant| circuit.key.tenant == *tenant);
        self.circuits.values().filter(wanted).cloned().collect()
    }

    fn create_tenant(&mut self, tenant: Tenant) -> ChangeResult {
        if self.tenants.contains_key(&tenant.id) {
            return ChangeResult::Exists;
        }
        self.tenants.insert(tenant.id.clone(), tenant);
        ChangeResult::Done
    }

    fn update_tenant(&mut self, tenant: Tenant, expected: i64) -> ChangeResult {
        match self.tenants.get_mut(&tenant.id) {
            Some(stored) if stored.version == expected && stored.deleted_at.is_none() => {
                *stored = tenant;
                ChangeResult::Done
            }
            Some(_) | None => ChangeResult::Stale,
        }
    }

    fn create_account(&mut self, account: Account) -> ChangeResult {
        let key = AccountKey { tenant: account.tenant.clone(), account: account.id.clone() };
        if self.accounts.contains_key(&key) {
            return ChangeResult::Exists;
        }
        self.accounts.insert(key, account);
        ChangeResult::Done
    }

    fn update_account(&mut self, account: Account, expected: i64) -> ChangeResult {
        let key = AccountKey { tenant: account.tenant.clone(), account: account.id.clone() };
        match self.accounts.get_mut(&key) {
            Some(stored) if stored.version == expected => {
                *stored = account;
                ChangeResult::Done
            }
            Some(_) | None => ChangeResult::Stale,
        }
    }

    fn create_key(&mut self, key: ApiKey) -> ChangeResult {
        let is_taken = self.keys.iter().any(|other| other.id == key.id || other.digest == key.digest);
        if !is_taken {
            self.keys.push(key);
        }
        done_if(!is_taken, ChangeResult::Exists)
    }

    fn revoke(&mut self, tenant: &TenantId, id: &str, at: Time) -> ChangeResult {
        let found = self
            .keys
            .iter_mut()
            .find(|key| key.tenant == *tenant && key.id == *id && key.revoked_at.is_none());
        match found {
            Some(key) => {
                key.revoked_at = Some(at);
                ChangeResult::Done
            }
            None => ChangeResult::Missing,
        }
    }

    fn lease_quota(&mut self, lease: QuotaLease) -> ChangeResult {
        let entry = self.quotas.entry((lease.tenant, lease.day)).or_default();
        let total = entry.used.plus(lease.amount);
        let fits = lease.quota.covers(total);
        if fits {
            entry.used = total;
        }
        done_if(fits, ChangeResult::Stale)
    }

    fn warn_of_quota(&mut self, tenant: TenantId, day: QuotaDay, level: u8) -> ChangeResult {
        let found = self.quotas.get_mut(&(tenant, day)).filter(|found| found.warned < level);
        let is_new = found.map(|found| found.warned = level).is_some();
        done_if(is_new, ChangeResult::Already)
    }

    fn touch(&mut self, used: Vec<(String, Time)>) -> ChangeResult {
        for (id, at) in used {
            for key in self.keys.iter_mut().filter(|key| key.id == id) {
                key.last_used_at = key.last_used_at.max(Some(at));
            }
        }
        ChangeResult::Done
    }
}

pub(super) fn done_if(done: bool, otherwise: ChangeResult) -> ChangeResult {
    if done { ChangeResult::Done } else { otherwise }
}

impl MemoryTables {
    /// See [`crate::DirectoryStore::change`].
    pub fn change(&mut self, change: DirectoryChange) -> ChangeResult {
        let directory = &mut self.directory;
        match change {
            DirectoryChange::CreateTenant(tenant, accounts) => {
                let created = directory.create_tenant(tenant.clone());
                if created == ChangeResult::Done {
                    self.reports.keep_client(&tenant);
                    for account in accounts {
                        directory.create_account(account);
                    }
                }
                created
            }
            DirectoryChange::UpdateTenant(tenant, expected) => {
                let updated = directory.update_tenant(tenant.clone(), expected);
                if updated == ChangeResult::Done {
                    self.reports.keep_client(&tenant);
                }
                updated
            }
            DirectoryChange::DeleteTenant(id, at) => match directory.tenants.get_mut(&id) {
                Some(tenant) if tenant.deleted_at.is_none() => {
                    tenant.deleted_at = Some(at);
                    tenant.version += 1;
                    directory.suspensions.entry((id, SuspensionScope::Tenant)).or_insert(at);
                    ChangeResult::Done
                }
                Some(_) | None => ChangeResult::Missing,
            },
            DirectoryChange::PurgeTenant(id, limit) => self.purge(&id, limit),
            DirectoryChange::SetDefaultAccount(tenant, account) => match directory.tenants.get_mut(&tenant) {
                Some(tenant) if tenant.deleted_at.is_none() => {
                    tenant.default_account = Some(account);
                    tenant.version += 1;
                    ChangeResult::Done
                }
                Some(_) | None => ChangeResult::Missing,
            },
            DirectoryChange::CreateAccount(account) => directory.create_account(account),
            DirectoryChange::UpdateAccount(account, expected) => directory.update_account(account, expected),
            DirectoryChange::DeleteAccount(key) => self.delete_account(&key),
            DirectoryChange::PutProviderHook(hook, expected) => self.put_provider_hook(hook, expected),
            DirectoryChange::DeleteProviderHook(key) => self.hooks.delete(&key),
            DirectoryChange::CreateKey(key) => directory.create_key(key),
            DirectoryChange::RevokeKey(tenant, id, at) => directory.revoke(&tenant, &id, at),
            DirectoryChange::TouchKeys(used) => directory.touch(used),
            DirectoryChange::EndSession(id, ends_at) => {
                let is_new = !directory.ended_sessions.contains_key(&id);
                directory.ended_sessions.entry(id).or_insert(ends_at);
                done_if(is_new, ChangeResult::Already)
            }
            DirectoryChange::PutOAuthState(state, expected) => {
                let stored = directory.oauth.get(&state.owner).map(|stored| stored.version);
                let misfit = if expected.is_none() { ChangeResult::Exists } else { ChangeResult::Stale };
                let fits = stored == expected;
                if fits {
                    directory.oauth.insert(state.owner.clone(), state);
                }
                done_if(fits, misfit)
            }
            DirectoryChange::CreateUser(user) => directory.people.create(user),
            DirectoryChange::UpdateUser(user, expected) => directory.people.update(user, expected),
            DirectoryChange::DeleteUser(id) => directory.people.delete(id),
            DirectoryChange::BeginUserSession(begun) => directory.people.begin(begun),
            DirectoryChange::TouchUserSession(id, at) => directory.people.touch(id, at),
            DirectoryChange::EndUserSession(id) => directory.people.end(id),
            DirectoryChange::EndUserSessions(user) => directory.people.end_all(user),
            DirectoryChange::Suspend(suspension) => {
                let place = (suspension.tenant, suspension.scope);
                let free = !directory.suspensions.contains_key(&place);
                directory.suspensions.entry(place).or_insert(suspension.since);
                done_if(free, ChangeResult::Already)
            }
            DirectoryChange::Activate(tenant, scope) => {
                done_if(directory.suspensions.remove(&(tenant, scope)).is_some(), ChangeResult::Already)
            }
            DirectoryChange::Suppress(list) => {
                let placed = |one: SuppressionRecord| ((one.tenant.clone(), one.address.clone()), one);
                directory.suppressions.extend(list.into_iter().map(placed));
                ChangeResult::Done
            }
            DirectoryChange::Unsuppress(tenant, addresses) => {
                let spellings = addresses.iter().flat_map(|address| EmailAddress::spellings_of(address));
                let removed = spellings.filter(|address| {
                    directory.suppressions.remove(&(tenant.clone(), address.clone())).is_some()
                });
                done_if(removed.count() > 0, ChangeResult::Missing)
            }
            DirectoryChange::SuppressScoped(list) => directory.scoped.add(list),
            DirectoryChange::UnsuppressScoped(scopes) => directory.scoped.remove(&scopes),
            DirectoryChange::CreateStream(stream) => directory.streams.create(stream),
            DirectoryChange::UpdateStream(stream, expected) => directory.streams.update(stream, expected),
            DirectoryChange::DeleteStream(tenant, id) => directory.streams.delete(tenant, id),
            DirectoryChange::CreateRoute(route) => directory.routes.create(route),
            DirectoryChange::UpdateRoute(route, expected) => directory.routes.update(route, expected),
            DirectoryChange::DeleteRoute(tenant, id) => directory.routes.delete(tenant, id),
            DirectoryChange::OrderRoutes(tenant, order, now) => directory.routes.order(&tenant, &order, now),
            DirectoryChange::CreateBulkAction(action) => directory.bulk.create(action),
            DirectoryChange::StopBulkAction(tenant, id, at) => directory.bulk.stop(tenant, id, at),
            DirectoryChange::PutDomainCheck(check) => self.catalogue.put_check(check),
            DirectoryChange::DeleteDomainCheck(tenant, domain) => self.catalogue.delete_check(tenant, domain),
            DirectoryChange::OpenCircuit(circuit) => {
                let opened_at = directory.circuits.get(&circuit.key).map(|open| open.opened_at);
                let opened_at = opened_at.unwrap_or(circuit.opened_at);
                directory.circuits.insert(circuit.key.clone(), OpenCircuit { opened_at, ..circuit });
                ChangeResult::Done
            }
            DirectoryChange::RedactAudit { tenant, target, digest } => {
                let named = |entry: &&mut AuditEntry| {
                    entry.tenant.as_ref() == Some(&tenant)
                        && entry.action.starts_with("suppression.")
                        && entry.target == target
                };
                directory.audit.entries_mut().filter(named).for_each(|entry| {
                    entry.target.clone_from(&digest);
                    entry.salt = None;
                });
                ChangeResult::Done
            }
            DirectoryChange::CloseCircuit(key) => {
                done_if(directory.circuits.remove(&key).is_some(), ChangeResult::Missing)
            }
            DirectoryChange::CreateTemplate(template) => self.catalogue.create_template(template),
            DirectoryChange::DeleteTemplate(tenant, name) => self.catalogue.delete_template(&tenant, &name),
            DirectoryChange::CreateRecipient(recipient) => self.catalogue.create_recipient(recipient),
            DirectoryChange::UpdateRecipient(recipient, expected) => {
                self.catalogue.update_recipient(recipient, expected)
            }
            DirectoryChange::DeleteRecipient(tenant, id, at) => {
                self.catalogue.delete_recipient(tenant, id, at)
            }
            DirectoryChange::CreateDkimKey(key) => self.catalogue.create_key(key),
            DirectoryChange::SwitchDkimKey(tenant, domain, selector, active) => {
                self.catalogue.switch_key(tenant, &domain, selector, active)
            }
            DirectoryChange::ResealDkimKey(key, was) => self.catalogue.reseal_key(key, &was),
            DirectoryChange::DeleteDkimKey(tenant, domain, selector) => {
                self.catalogue.delete_key(tenant, &domain, selector)
            }
            DirectoryChange::CreateSubscriber(subscriber) => self.reports.create(subscriber),
            DirectoryChange::UpdateSubscriber(subscriber, expected) => {
                self.reports.update(subscriber, expected)
            }
            DirectoryChange::DeleteSubscriber(tenant, id) => self.reports.delete(&tenant, &id),
            DirectoryChange::QuietSubscriber(tenant, id, until) => self.reports.quiet(&tenant, &id, until),
            DirectoryChange::CreateMailbox(mailbox) => self.inbound.create_mailbox(mailbox),
            DirectoryChange::UpdateMailbox(mailbox, expected) => {
                self.inbound.update_mailbox(mailbox, expected)
            }
            DirectoryChange::DeleteMailbox(key) => self.delete_mailbox(&key),
            DirectoryChange::CreateRule(rule) => self.inbound.create_rule(rule),
            DirectoryChange::UpdateRule(rule, expected) => self.inbound.update_rule(rule, expected),
            DirectoryChange::DeleteRule(tenant, id) => self.inbound.delete_rule(tenant, id),
            DirectoryChange::CreateContact(contact) => self.inbound.create_contact(contact),
            DirectoryChange::UpdateContact(contact, expected) => {
                self.inbound.update_contact(contact, expected)
            }
            DirectoryChange::DeleteContact(tenant, id) => self.inbound.delete_contact(tenant, id),
            DirectoryChange::Forget(now) => {
                self.catalogue.forget_links(now);
                directory.suppressions.retain(|_, one| one.expires_at.is_none_or(|at| at > now));
                directory.scoped.forget(now);
                directory.bulk.forget(now);
                directory.people.forget(now);
                directory.ended_sessions.retain(|_, ends_at| *ends_at > now);
                let oldest = QuotaDay(QuotaDay::of(now).0 - quotas::DAYS_KEPT);
                directory.quotas.retain(|(_, day), _| *day >= oldest);
                ChangeResult::Done
            }
            DirectoryChange::ForgetUse(now, limit) => directory.forget_use(now, limit as usize),
            DirectoryChange::PullReady(now, limit) => self.pull_ready(now, limit as usize),
            DirectoryChange::PullBeyond(latest, now, limit) => self.pull_beyond(&latest, now, limit as usize),
            DirectoryChange::PullPreparation { now, latest, limit } => {
                self.pull_preparation(now, latest, limit as usize)
            }
            DirectoryChange::ShiftUse(now, by_ms) => self.directory.shift_use(now, by_ms),
            DirectoryChange::SetUseBack(now, by_ms) => self.directory.set_use_back(now, by_ms),
            DirectoryChange::RedateUse(now) => self.directory.redate_use(now),
            DirectoryChange::RenewPermit(permit, now) => self.directory.renew(&permit, now),
            DirectoryChange::LeaseQuota(lease) => directory.lease_quota(lease),
            DirectoryChange::WarnOfQuota(tenant, day, level) => directory.warn_of_quota(tenant, day, level),
        }
    }

    fn delete_account(&mut self, key: &AccountKey) -> ChangeResult {
        if !self.directory.accounts.contains_key(key) {
            return ChangeResult::Missing;
        }
        let tenant = self.directory.tenants.get(&key.tenant);
        let is_default = tenant.and_then(|tenant| tenant.default_account.as_ref()) == Some(&key.account);
        let unfinished = |summary: &crate::record::MessageSummary| {
            summary.lane.tenant == key.tenant
                && summary.lane.account == key.account
                && !summary.state.status().is_final()
        };
        if is_default || self.messages.values().any(|stored| unfinished(&stored.record.summary)) {
            return ChangeResult::InUse;
        }
        self.hooks.delete(key);
        let directory = &mut self.directory;
        directory.accounts.remove(key);
        directory.circuits.remove(key);
        directory.oauth.remove(&OAuthOwner::account(&key.tenant, &key.account));
        directory.suspensions.remove(&(key.tenant.clone(), SuspensionScope::Account(key.account.clone())));
        ChangeResult::Done
    }

    fn purge(&mut self, tenant: &TenantId, limit: u32) -> ChangeResult {
        if self.directory.tenants.get(tenant).is_none_or(|tenant| tenant.deleted_at.is_none()) {
            return ChangeResult::Missing;
        }
        let of_tenant = |uid: &postway_domain::MessageUid, tables: &Self| {
            tables.messages.get(uid).is_some_and(|stored| stored.record.summary.lane.tenant == *tenant)
        };
        let uids: Vec<_> =
            self.messages.keys().copied().filter(|uid| of_tenant(uid, self)).take(limit as usize).collect();
        for uid in &uids {
            self.remove(*uid);
        }
        if !uids.is_empty() {
            return ChangeResult::Done;
        }
        self.forget_tenant(tenant);
        let directory = &mut self.directory;
        if let Some(stored) = directory.tenants.get_mut(tenant) {
            let (version, deleted_at) = (stored.version, stored.deleted_at);
            let bare = Tenant::new(tenant.clone(), "", stored.created_at);
            *stored = Tenant { version, deleted_at, updated_at: stored.updated_at, ..bare };
        }
        directory.accounts.retain(|key, _| key.tenant != *tenant);
        directory.oauth.retain(|owner, _| owner.tenant != *tenant);
        directory.keys.retain(|key| key.tenant != *tenant);
        directory.suspensions.retain(|(of, _), _| of != tenant);
        directory.suppressions.retain(|(of, _), _| of != tenant);
        directory.scoped.forget_tenant(tenant);
        directory.streams.forget_tenant(tenant);
        directory.routes.forget_tenant(tenant);
        directory.bulk.forget_tenant(tenant);
        directory.circuits.retain(|key, _| key.tenant != *tenant);
        directory.spent.retain(|(key, ..), _| key.tenant != *tenant);
        directory.quotas.retain(|(of, _), _| of != tenant);
        self.catalogue.forget_tenant(tenant);
        self.inbound.forget_tenant(tenant);
        self.hooks.forget_tenant(tenant);
        self.reports.forget_tenant(tenant);
        ChangeResult::Already
    }
}
