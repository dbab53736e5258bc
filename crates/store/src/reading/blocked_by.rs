//! What blocks waiting messages, in the words of the API, the page and notifications.
//!
//! It depends on tenant and account only, so it is read once for many messages, and not at all if none of
//! them waits.

use std::collections::BTreeSet;

use postway_domain::{AccountId, TenantId, Time};

use crate::{
    error::StoreError,
    port::Store,
    record::{AccountGate, MessageSummary, SuspensionRecord, SuspensionScope},
};

/// What may block messages of one tenant.
#[derive(Clone, Debug, Default)]
pub struct MessageBlockers {
    suspensions: Vec<SuspensionRecord>,
    accounts: Vec<(AccountId, AccountGate)>,
}

impl MessageBlockers {
    /// Reads what may block those of these messages that wait.
    pub async fn read<'a>(
        store: &dyn Store,
        tenant: &TenantId,
        messages: impl IntoIterator<Item = &'a MessageSummary>,
        now: Time,
    ) -> Result<Self, StoreError> {
        let waiting = messages.into_iter().filter(|message| message.waits());
        let accounts: BTreeSet<&AccountId> = waiting.map(|message| &message.lane.account).collect();
        if accounts.is_empty() {
            return Ok(Self::default());
        }
        let accounts: Vec<AccountId> = accounts.into_iter().cloned().collect();
        Ok(Self {
            suspensions: store.suspensions(tenant).await?,
            accounts: store.account_gates(tenant, &accounts, now).await?,
        })
    }

    /// What blocks this message: `tenant`, `batch:CODE`, `account:ID`, `limit:ID`, `circuit:ID`.
    pub fn of(&self, message: &MessageSummary) -> Vec<String> {
        if !message.waits() {
            return Vec::new();
        }
        let lane = &message.lane;
        let holding = self.suspensions.iter().filter(|suspension| suspension.scope.holds(lane));
        let suspended = holding.map(|suspension| match &suspension.scope {
            SuspensionScope::Tenant => "tenant".to_owned(),
            SuspensionScope::Batch(code) => format!("batch:{code}"),
            SuspensionScope::Account(id) => format!("account:{id}"),
        });
        let shut = self.accounts.iter().filter(|(id, _)| *id == lane.account);
        suspended.chain(shut.map(|(id, gate)| format!("{}:{id}", gate.as_str()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        conformance::{
            sample::{Sample, at, tenant},
            stage,
        },
        driver::memory::MemoryStore,
        record::{DirectoryChange, OpenCircuit},
    };

    #[tokio::test]
    async fn whatever_holds_a_message_is_named_once_each() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        stage::open(&store).await;
        let uid = stage::accept(&store, Sample::new(1).batch("spring")).await;
        let claimed = stage::accept_and_claim(&store, Sample::new(2).created(-5), 1).await;
        for code in ["spring", "autumn"] {
            stage::suspend(&store, SuspensionScope::Batch(code.parse().unwrap())).await;
        }
        let circuit = OpenCircuit {
            key: crate::conformance::sample::relay(),
            code: "auth_failed".to_owned(),
            reason: "535".to_owned(),
            opened_at: at(0),
            open_until: at(9),
            faults: 1,
        };
        stage::direct(&store, DirectoryChange::OpenCircuit(circuit)).await;
        let waiting = stage::record(&store, uid).await.summary;
        let leased = stage::record(&store, claimed.uid).await.summary;
        let holds = MessageBlockers::read(&*store, &tenant(), [&waiting, &leased], at(1)).await.unwrap();
        assert_eq!(holds.of(&waiting), ["batch:spring", "circuit:relay"]);
        assert!(holds.of(&leased).is_empty(), "nothing holds what is on its way");
    }
}
