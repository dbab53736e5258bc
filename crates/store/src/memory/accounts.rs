//! Tenants and accounts.

use postway_domain::{Account, AccountId, TenantId};

use super::tables::Tables;
use crate::{
    error::StoreError,
    port::DeleteAccount,
    record::{AccountKey, Tenant},
};

impl Tables {
    /// See [`crate::Accounts::tenant`].
    pub fn tenant(&self, id: &TenantId) -> Option<Tenant> {
        self.tenants.get(id).cloned()
    }

    /// See [`crate::Accounts::create_tenant`].
    pub fn create_tenant(&mut self, tenant: Tenant) -> bool {
        let free = !self.tenants.contains_key(&tenant.id);
        if free {
            self.tenants.insert(tenant.id.clone(), tenant);
        }
        free
    }

    /// See [`crate::Accounts::set_default_account`].
    pub fn set_default_account(&mut self, tenant: &TenantId, account: &AccountId) -> Result<(), StoreError> {
        let Some(tenant) = self.tenants.get_mut(tenant) else {
            return Err(StoreError::Unexpected(format!("there is no tenant {tenant}: create it first")));
        };
        tenant.default_account = Some(account.clone());
        Ok(())
    }

    /// See [`crate::Accounts::accounts`].
    pub fn accounts(&self, tenant: Option<&TenantId>) -> Vec<Account> {
        let all = self.accounts.values();
        all.filter(|account| tenant.is_none_or(|tenant| account.tenant == *tenant)).cloned().collect()
    }

    /// See [`crate::Accounts::account`].
    pub fn account(&self, tenant: &TenantId, id: &AccountId) -> Option<Account> {
        self.accounts.get(&AccountKey { tenant: tenant.clone(), account: id.clone() }).cloned()
    }

    /// See [`crate::Accounts::create_account`].
    pub fn create_account(&mut self, account: Account) -> bool {
        let key = AccountKey { tenant: account.tenant.clone(), account: account.id.clone() };
        let free = !self.accounts.contains_key(&key);
        if free {
            self.accounts.insert(key, account);
        }
        free
    }

    /// See [`crate::Accounts::update_account`].
    pub fn update_account(&mut self, account: Account, expected_version: i64) -> bool {
        let key = AccountKey { tenant: account.tenant.clone(), account: account.id.clone() };
        match self.accounts.get_mut(&key) {
            Some(stored) if stored.version == expected_version => {
                *stored = account;
                true
            }
            Some(_) | None => false,
        }
    }

    /// See [`crate::Accounts::delete_account`].
    pub fn delete_account(&mut self, key: &AccountKey) -> DeleteAccount {
        if !self.accounts.contains_key(key) {
            return DeleteAccount::NotFound;
        }
        let default = self.tenants.get(&key.tenant).and_then(|tenant| tenant.default_account.as_ref());
        let unfinished = |summary: &crate::record::MessageSummary| {
            summary.lane.tenant == key.tenant
                && summary.lane.account == key.account
                && !summary.state.status().is_final()
        };
        if default == Some(&key.account)
            || self.messages.values().any(|stored| unfinished(&stored.record.summary))
        {
            return DeleteAccount::InUse;
        }
        self.accounts.remove(key);
        DeleteAccount::Deleted
    }
}
