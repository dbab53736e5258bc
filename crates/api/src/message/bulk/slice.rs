//! A slice of messages, and what a bulk action does to each: the same for a dry run and for the real one.

use std::collections::{BTreeMap, HashMap};

use postway_domain::{EventKind, MessageUid, TenantId, Time};
use postway_store::{
    Store, StoreError,
    record::{
        BulkAction, MessageBrief, MessageChange, MessageFilter, MessageKey, RecipientRecord,
        SuppressionReason, SuppressionRecord,
    },
};
use serde_json::json;

use crate::message::{
    bulk::task::{BulkDeed, BulkTask},
    operate::transition::{OperatorAction, change_of},
};

/// Messages of one slice: one transaction, which other writes wait for.
pub(super) const SLICE_MESSAGES: usize = 100;

/// Some messages in the order of a bulk action, and whether there are more.
#[derive(Debug, Default)]
pub(super) struct BulkSlice {
    pub(super) uids: Vec<MessageUid>,
    /// The message before which the next slice begins; `None` if this is the last.
    pub(super) next: Option<MessageUid>,
}

impl BulkSlice {
    /// The next of selected messages, which are ordered from the newest to the oldest.
    pub(super) fn of_selected(selected: &[MessageUid], reached: Option<MessageUid>) -> Self {
        let mut left = selected.iter().copied().filter(|uid| reached.is_none_or(|reached| *uid < reached));
        let uids: Vec<MessageUid> = left.by_ref().take(SLICE_MESSAGES).collect();
        let next = left.next().and(uids.last().copied());
        Self { uids, next }
    }

    /// The next of the messages that match. The store may find none for a while and still have more.
    pub(super) async fn of_filter(
        store: &dyn Store,
        tenant: &TenantId,
        filter: &MessageFilter,
        reached: Option<MessageUid>,
        limit: u32,
    ) -> Result<Self, StoreError> {
        let page = store.search(tenant, filter, reached, limit).await?;
        Ok(Self { uids: page.messages.iter().map(|message| message.uid).collect(), next: page.next })
    }
}

/// What a slice comes to.
#[derive(Debug, Default)]
pub(super) struct SliceEffects {
    pub(super) changes: Vec<MessageChange>,
    pub(super) suppressed: Vec<SuppressionRecord>,
    /// Messages that are done without a change of their own.
    pub(super) done: i64,
    /// Messages that stay as they are.
    pub(super) skipped: i64,
    /// How many messages have which status, and whether they stay as they are.
    pub(super) by_status: BTreeMap<(&'static str, bool), u64>,
}

/// Decides about these messages.
pub(super) async fn decide(
    store: &dyn Store,
    action: &BulkAction,
    task: &BulkTask,
    uids: &[MessageUid],
    now: Time,
) -> Result<SliceEffects, StoreError> {
    let mut effects = SliceEffects::default();
    let Some(deed) = task.deed() else {
        effects.skipped = uids.len() as i64;
        return Ok(effects);
    };
    let briefs = store.briefs(&action.tenant, uids).await?;
    let mut briefs: HashMap<MessageUid, MessageBrief> =
        briefs.into_iter().map(|brief| (brief.summary.uid, brief)).collect();
    for uid in uids {
        // A message with many recipients is read alone, and a removed one is not there any more.
        let brief = match briefs.remove(uid) {
            Some(brief) => Some(brief),
            None => store.message(&action.tenant, &MessageKey::Uid(*uid)).await?.map(MessageBrief::from),
        };
        let Some(brief) = brief else {
            effects.skipped += 1;
            continue;
        };
        let status = brief.summary.state.status().as_str();
        let is_left = !effects.add(action, task, deed, &brief, now);
        effects.skipped += i64::from(is_left);
        *effects.by_status.entry((status, is_left)).or_default() += 1;
    }
    Ok(effects)
}

impl SliceEffects {
    /// Adds what is done to one message; `false` if nothing is.
    fn add(
        &mut self,
        action: &BulkAction,
        task: &BulkTask,
        deed: BulkDeed,
        brief: &MessageBrief,
        now: Time,
    ) -> bool {
        let MessageBrief { summary, recipients } = brief;
        match deed {
            BulkDeed::Operate(asked) => {
                let is_too_late = |send_at| summary.expires_at.is_some_and(|end| end <= send_at);
                if matches!(asked, OperatorAction::Reschedule(send_at) if is_too_late(send_at)) {
                    return false;
                }
                let told = json!({
                    "by": "operator", "request_id": task.request_id, "bulk_action": action.id.to_string(),
                });
                let change = change_of(summary, recipients, asked, now, told).ok();
                self.changes.extend(change.clone());
                change.is_some()
            }
            BulkDeed::Suppress => {
                let outcome = task.outcome_of_recipients();
                let meant = recipients.iter().filter(|recipient| is_meant(recipient, outcome));
                let before = self.suppressed.len();
                self.suppressed.extend(meant.map(|recipient| SuppressionRecord {
                    tenant: action.tenant.clone(),
                    address: recipient.address.to_lowercase(),
                    reason: SuppressionReason::Manual,
                    note: task.note.clone(),
                    created_at: now,
                    expires_at: None,
                }));
                let any = self.suppressed.len() > before;
                self.done += i64::from(any);
                any
            }
        }
    }
}

fn is_meant(recipient: &RecipientRecord, outcome: Option<EventKind>) -> bool {
    outcome.is_none() || recipient.outcome == outcome
}
