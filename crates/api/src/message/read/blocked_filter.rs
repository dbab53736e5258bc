//! The filter `held_by`: the messages that something blocks, named as in the field `held_by`.

use std::str::FromStr;

use postway_domain::{AccountId, MessageStatus, TenantId, Time, id::BatchCode};
use postway_store::{
    Store, StoreError,
    record::{AccountGate, BlockedLanes, MessageFilter, SuspensionRecord, SuspensionScope},
};

/// What blocks messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BlockedBy {
    /// Anything of the following, except a doubt.
    Anything,
    /// A message in doubt that waits for an operator.
    Doubt,
    /// A suspension of the tenant.
    Tenant,
    /// A suspension of this batch.
    Batch(BatchCode),
    /// A suspension of this account.
    Account(AccountId),
    /// A used-up limit or an open circuit of this account.
    Gate(AccountGate, AccountId),
}

impl FromStr for BlockedBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        let account = || name.parse::<AccountId>().map_err(|error| error.to_string());
        match (kind, name) {
            ("any", "") => Ok(Self::Anything),
            ("doubt", "") => Ok(Self::Doubt),
            ("tenant", "") => Ok(Self::Tenant),
            ("batch", code) => code.parse().map(Self::Batch).map_err(|error| format!("{error}")),
            ("account", _) => account().map(Self::Account),
            ("limit", _) => account().map(|id| Self::Gate(AccountGate::Limit, id)),
            ("circuit", _) => account().map(|id| Self::Gate(AccountGate::Circuit, id)),
            _ => Err("must be any, doubt, tenant, batch:CODE, account:ID, limit:ID or circuit:ID".to_owned()),
        }
    }
}

impl BlockedBy {
    /// The filter, narrowed to what is blocked by this now. Nothing matches while it blocks nothing.
    pub(crate) async fn narrow(
        &self,
        store: &dyn Store,
        tenant: &TenantId,
        filter: MessageFilter,
        now: Time,
    ) -> Result<MessageFilter, StoreError> {
        if *self == Self::Doubt {
            let is_possible = filter.status.is_none_or(|status| status == MessageStatus::InDoubt);
            let behind = if is_possible { filter.behind.clone() } else { Some(BlockedLanes::default()) };
            return Ok(MessageFilter {
                status: Some(MessageStatus::InDoubt),
                unresolved: true,
                behind,
                ..filter
            });
        }
        let suspensions = store.suspensions(tenant).await?;
        let is_suspended = |scope: SuspensionScope| suspensions.iter().any(|one| one.scope == scope);
        let is_whole = is_suspended(SuspensionScope::Tenant);
        let mut holders = BlockedLanes::default();
        match self {
            Self::Tenant | Self::Anything if is_whole => return Ok(MessageFilter { waits: true, ..filter }),
            Self::Tenant | Self::Doubt => {}
            Self::Batch(code) => {
                let is_held = is_suspended(SuspensionScope::Batch(code.clone()));
                holders.batches.extend(is_held.then(|| code.to_string()));
            }
            Self::Account(id) => {
                let is_held = is_suspended(SuspensionScope::Account(id.clone()));
                holders.accounts.extend(is_held.then(|| id.clone()));
            }
            Self::Gate(gate, id) => {
                let shut = store.account_gates(tenant, std::slice::from_ref(id), now).await?;
                holders
                    .accounts
                    .extend(shut.into_iter().filter(|(_, found)| found == gate).map(|(id, _)| id));
            }
            Self::Anything => holders = all(store, tenant, &suspensions, now).await?,
        }
        Ok(MessageFilter { waits: true, behind: Some(holders), ..filter })
    }
}

/// All accounts and batches of a tenant that block something.
async fn all(
    store: &dyn Store,
    tenant: &TenantId,
    suspensions: &[SuspensionRecord],
    now: Time,
) -> Result<BlockedLanes, StoreError> {
    let mut holders = BlockedLanes::default();
    for suspension in suspensions {
        match &suspension.scope {
            SuspensionScope::Tenant => {}
            SuspensionScope::Batch(code) => drop(holders.batches.insert(code.to_string())),
            SuspensionScope::Account(id) => drop(holders.accounts.insert(id.clone())),
        }
    }
    let accounts: Vec<AccountId> =
        store.accounts(Some(tenant)).await?.into_iter().map(|account| account.id).collect();
    let shut = store.account_gates(tenant, &accounts, now).await?;
    holders.accounts.extend(shut.into_iter().map(|(id, _)| id));
    Ok(holders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_messages() {
        for right in
            ["any", "doubt", "tenant", "batch:spring", "account:relay-1", "limit:relay-1", "circuit:relay-1"]
        {
            assert!(right.parse::<BlockedBy>().is_ok(), "{right}");
        }
        for wrong in ["", "held", "tenant:acme", "account:", "account", "batch", "circuit:", "limit: x"] {
            assert!(wrong.parse::<BlockedBy>().is_err(), "{wrong}");
        }
    }
}
