//! A message as it stands when it is told of: itself, and what holds it back.
//!
//! Read for all of a claim at once. What may hold messages is a fact of their tenant and of their accounts, so it is read
//! once for all of a tenant's, and not at all where none of them waits.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use futures::future::join_all;
use postway_domain::{MessageUid, TenantId, Time};
use postway_store::{
    Holds, Store, StoreError,
    record::{MessageBrief, MessageKey, ToNotify},
};

/// A message, and what holds it.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// The message.
    pub brief: MessageBrief,
    /// What holds it, as the API names it.
    pub held_by: Vec<String>,
}

/// Reads the messages of what was claimed, many at once. Those of a tenant for which that fails are not among them: each
/// is read before its call.
pub(crate) async fn read(
    store: &dyn Store,
    claimed: &[ToNotify],
    now: Time,
) -> HashMap<MessageUid, Arc<Standing>> {
    let mut by_tenant: BTreeMap<&TenantId, BTreeSet<MessageUid>> = BTreeMap::new();
    for ToNotify { key, .. } in claimed {
        by_tenant.entry(&key.tenant).or_default().insert(key.uid);
    }
    let reads = by_tenant.into_iter().map(|(tenant, uids)| async move {
        let uids: Vec<_> = uids.into_iter().collect();
        read_of(store, tenant, &uids, now).await.unwrap_or_else(|error| {
            tracing::debug!(%error, %tenant, "messages to tell of could not be read at once");
            Vec::new()
        })
    });
    let all = join_all(reads).await.into_iter().flatten();
    all.map(|standing| (standing.brief.summary.uid, Arc::new(standing))).collect()
}

async fn read_of(
    store: &dyn Store,
    tenant: &TenantId,
    uids: &[MessageUid],
    now: Time,
) -> Result<Vec<Standing>, StoreError> {
    let briefs = store.briefs(tenant, uids).await?;
    let holds = Holds::read(store, tenant, briefs.iter().map(|brief| &brief.summary), now).await?;
    let standing = |brief: MessageBrief| Standing { held_by: holds.of(&brief.summary), brief };
    Ok(briefs.into_iter().map(standing).collect())
}

/// Reads one message; `None` where it is gone.
pub(crate) async fn read_one(
    store: &dyn Store,
    tenant: &TenantId,
    uid: MessageUid,
    now: Time,
) -> Result<Option<Standing>, StoreError> {
    let Some(record) = store.message(tenant, &MessageKey::Uid(uid)).await? else { return Ok(None) };
    let brief = MessageBrief::from(record);
    let holds = Holds::read(store, tenant, [&brief.summary], now).await?;
    Ok(Some(Standing { held_by: holds.of(&brief.summary), brief }))
}
