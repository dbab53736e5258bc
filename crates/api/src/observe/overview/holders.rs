//! What holds a tenant's mail back now, each with its reason, its age and how much it holds.

use postway_domain::{AccountId, TenantId, Time};
use postway_store::{
    Store, StoreError,
    record::{AccountGate, Filter, LaneHolders, Suspension, SuspensionScope},
};
use serde::Serialize;
use utoipa::ToSchema;

/// The most holders that the overview lists.
const HOLDERS_MAX: usize = 20;
/// Messages that are counted of one.
const COUNTED_MAX: u32 = 2_000;

/// Something that holds mail.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = MailHolder)]
pub(crate) struct HolderView {
    /// As messages name it: `tenant`, `batch:CODE`, `account:ID`, `limit:ID` or `circuit:ID`. `GET /v1/messages` takes it as `held_by`.
    #[schema(example = "circuit:relay-1")]
    held_by: String,
    /// How many messages it holds. Counting stops at 2,000, which then means 2,000 or more.
    messages: u64,
    /// Since when.
    #[schema(value_type = Option<String>, format = DateTime)]
    since: Option<Time>,
    /// When it ends by itself, or is tried again; null where somebody must act.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Time>,
    /// Why, where the holder says.
    reason: Option<String>,
}

/// A holder before its messages are counted.
struct Holding {
    view: HolderView,
    lanes: Option<LaneHolders>,
}

/// Those that hold something, what holds most of all first.
pub(super) async fn holders(
    store: &dyn Store,
    tenant: &TenantId,
    now: Time,
) -> Result<Vec<HolderView>, StoreError> {
    let mut found: Vec<Holding> = store.suspensions(tenant).await?.iter().map(suspended).collect();
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
        let lanes = LaneHolders { accounts: [id].into(), ..LaneHolders::default() };
        found.push(Holding { view, lanes: Some(lanes) });
    }
    let mut holders = Vec::new();
    for Holding { view, lanes } in found.into_iter().take(HOLDERS_MAX) {
        let filter = Filter { waits: true, behind: lanes, ..Filter::default() };
        let messages = store.count(tenant, &filter, COUNTED_MAX).await?.messages;
        // A tenant that is suspended is worth a word also while nothing waits.
        if messages > 0 || view.held_by == "tenant" {
            holders.push(HolderView { messages, ..view });
        }
    }
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.messages));
    Ok(holders)
}

fn suspended(suspension: &Suspension) -> Holding {
    let (held_by, lanes) = match &suspension.scope {
        SuspensionScope::Tenant => ("tenant".to_owned(), None),
        SuspensionScope::Batch(code) => {
            let lanes = LaneHolders { batches: [code.to_string()].into(), ..LaneHolders::default() };
            (format!("batch:{code}"), Some(lanes))
        }
        SuspensionScope::Account(id) => {
            let lanes = LaneHolders { accounts: [id.clone()].into(), ..LaneHolders::default() };
            (format!("account:{id}"), Some(lanes))
        }
    };
    let view = HolderView { held_by, messages: 0, since: Some(suspension.since), until: None, reason: None };
    Holding { view, lanes }
}
