//! The state of the messages that notifications report on, and what blocks them.
//!
//! The messages of a claim are read together. What blocks messages depends on their tenant and accounts, so
//! it is read once for each tenant, and not at all if none of the tenant's messages waits.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use futures::future::join_all;
use postway_domain::{MessageUid, TenantId, Time};
use postway_store::{
    MessageBlockers, Store, StoreError,
    record::{MessageBrief, MessageKey, ToNotify},
};

/// A message as it was read, and what blocks it.
#[derive(Clone, Debug)]
pub(crate) struct MessageSnapshot {
    /// The message.
    pub brief: MessageBrief,
    /// What blocks it, in the vocabulary of the API.
    pub held_by: Vec<String>,
}

/// Reads the messages of all claimed notifications. If that fails for a tenant, its messages are missing here
/// and each is read before its call.
pub(crate) async fn read(
    store: &dyn Store,
    claimed: &[ToNotify],
    now: Time,
) -> HashMap<MessageUid, Arc<MessageSnapshot>> {
    let mut by_tenant: BTreeMap<&TenantId, BTreeSet<MessageUid>> = BTreeMap::new();
    for ToNotify { key, .. } in claimed {
        by_tenant.entry(&key.tenant).or_default().insert(key.uid);
    }
    let reads = by_tenant.into_iter().map(|(tenant, uids)| async move {
        let uids: Vec<_> = uids.into_iter().collect();
        read_of(store, tenant, &uids, now).await.unwrap_or_else(|error| {
            tracing::debug!(%error, %tenant, "the messages of notifications could not be read together");
            Vec::new()
        })
    });
    let all = join_all(reads).await.into_iter().flatten();
    all.map(|snapshot| (snapshot.brief.summary.uid, Arc::new(snapshot))).collect()
}

async fn read_of(
    store: &dyn Store,
    tenant: &TenantId,
    uids: &[MessageUid],
    now: Time,
) -> Result<Vec<MessageSnapshot>, StoreError> {
    let briefs = store.briefs(tenant, uids).await?;
    let holds = MessageBlockers::read(store, tenant, briefs.iter().map(|brief| &brief.summary), now).await?;
    let snapshot = |brief: MessageBrief| MessageSnapshot { held_by: holds.of(&brief.summary), brief };
    Ok(briefs.into_iter().map(snapshot).collect())
}

/// Reads one message; `None` if it is gone.
pub(crate) async fn read_one(
    store: &dyn Store,
    tenant: &TenantId,
    uid: MessageUid,
    now: Time,
) -> Result<Option<MessageSnapshot>, StoreError> {
    let Some(record) = store.message(tenant, &MessageKey::Uid(uid)).await? else { return Ok(None) };
    let brief = MessageBrief::from(record);
    let holds = MessageBlockers::read(store, tenant, [&brief.summary], now).await?;
    Ok(Some(MessageSnapshot { held_by: holds.of(&brief.summary), brief }))
}
