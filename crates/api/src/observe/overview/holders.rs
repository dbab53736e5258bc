//! What blocks a tenant's mail now, each with its reason, its age and the number of messages.

use postway_domain::{AccountId, TenantId, Time};
use postway_store::{
    Store, StoreError,
    record::{AccountGate, BlockedLanes, MessageFilter, SuspensionRecord, SuspensionScope},
};
use serde::Serialize;
use utoipa::ToSchema;

/// The most blockers that the overview lists.
const HOLDERS_MAX: usize = 20;
/// The most messages counted for one blocker.
const COUNTED_MAX: u32 = 2_000;

/// Something that blocks mail.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = MailHolder)]
pub(crate) struct HolderView {
    /// Its name as in messages: `tenant`, `batch:CODE`, `account:ID`, `limit:ID` or `circuit:ID`. `GET
    /// /v1/messages` accepts it as `held_by`.
    #[schema(example = "circuit:relay-1")]
    held_by: String,
    /// How many messages it blocks. Counting stops at 2,000, which then means "at least".
    messages: u64,
    /// When it began.
    #[schema(value_type = Option<String>, format = DateTime)]
    since: Option<Time>,
    /// When it ends by itself, or is tried again; null if someone must act.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Time>,
    /// The reason, if one is known.
    reason: Option<String>,
}

/// A blocker before its messages are counted.
struct UncountedHolder {
    view: HolderView,
    lanes: Option<BlockedLanes>,
}

/// The current blockers, the largest first.
pub(super) async fn holders(
    store: &dyn Store,
    tenant: &TenantId,
    now: Time,
) -> Result<Vec<HolderView>, StoreError> {
    let mut found: Vec<UncountedHolder> = store.suspensions(tenant).await?.iter().map(suspended).collect();
    let accounts: Vec<AccountId> =
        store.accounts(Some(tenant)).await?.into_iter().map(|account| account.id).collect();
    let circuits = store.circuits(Some(tenant)).await?;
    for (id, gate) in store.account_gates(tenant, &accounts, now).await? {
        let circuit = circuits.iter().find(|one| one.key.account == id && gate == AccountGate::Circuit);
        let view = HolderView {
            held_by: format!("{}:{id}", gate.as_str()),
            messages: 0,
            since: circuit.map(|circuit| circuit.opened_at),
            until: circuit.map(|circuit| circuit.open_until.max(now)),
            reason: circuit.map(|circuit| circuit.reason.clone()),
        };
        let lanes = BlockedLanes { accounts: [id].into(), ..BlockedLanes::default() };
        found.push(UncountedHolder { view, lanes: Some(lanes) });
    }
    let mut holders = Vec::new();
    for UncountedHolder { view, lanes } in found.into_iter().take(HOLDERS_MAX) {
        let filter = MessageFilter { waits: true, behind: lanes, ..MessageFilter::default() };
        let messages = store.count(tenant, &filter, COUNTED_MAX).await?.messages;
        // A suspended tenant is shown even if nothing waits.
        if messages > 0 || view.held_by == "tenant" {
            holders.push(HolderView { messages, ..view });
        }
    }
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.messages));
    Ok(holders)
}

fn suspended(suspension: &SuspensionRecord) -> UncountedHolder {
    let (held_by, lanes) = match &suspension.scope {
        SuspensionScope::Tenant => ("tenant".to_owned(), None),
        SuspensionScope::Batch(code) => {
            let lanes = BlockedLanes { batches: [code.to_string()].into(), ..BlockedLanes::default() };
            (format!("batch:{code}"), Some(lanes))
        }
        SuspensionScope::Account(id) => {
            let lanes = BlockedLanes { accounts: [id.clone()].into(), ..BlockedLanes::default() };
            (format!("account:{id}"), Some(lanes))
        }
    };
    let view = HolderView { held_by, messages: 0, since: Some(suspension.since), until: None, reason: None };
    UncountedHolder { view, lanes }
}
