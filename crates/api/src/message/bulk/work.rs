//! The work of bulk actions: slice by slice, by one node at a time.
//!
//! A slice is read, decided about, and written in one transaction together with how far the action is. So a
//! process that dies leaves an action that goes on where it was, and no message is changed twice. Tenants
//! take turns, and of each tenant one action is done after the other.

use std::sync::Arc;

use postway_domain::{Clock, MessageState, TenantId, Time, id::AuditId};
use postway_store::{
    Store, StoreError,
    record::{AuditEntry, BulkAction, BulkStep},
};
use serde_json::json;

use crate::message::{
    bulk::{
        slice::{BulkSlice, SLICE_MESSAGES, SliceEffects, decide},
        task::BulkTask,
    },
    operate::transition::count_transition,
};

/// The most tenants that one round does a slice for.
const TENANTS_AT_ONCE: u32 = 16;

/// Does the running bulk actions of all tenants.
pub struct BulkWorker {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The tenant whose turn was last.
    last: Option<TenantId>,
}

impl BulkWorker {
    /// Nothing runs until [`BulkWorker::round`] is called.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, last: None }
    }

    /// Does one slice for each tenant of this turn, and says whether there may be more to do.
    pub async fn round(&mut self) -> Result<bool, StoreError> {
        let running = self.store.running_bulk_actions(self.last.as_ref(), TENANTS_AT_ONCE).await?;
        let began_at_the_first = self.last.is_none();
        self.last = running.last().map(|action| action.tenant.clone());
        for action in &running {
            self.advance(action).await?;
        }
        Ok(!running.is_empty() || !began_at_the_first)
    }

    async fn advance(&self, action: &BulkAction) -> Result<(), StoreError> {
        let now = self.clock.now();
        let task = match serde_json::from_str::<BulkTask>(&action.task) {
            Ok(task) if task.deed().is_some() => task,
            Ok(_) | Err(_) => {
                tracing::error!(id = %action.id, tenant = %action.tenant, "a bulk action cannot be read; it ends");
                return self.finish(self.step(action, SliceEffects::default(), now), action).await.map(drop);
            }
        };
        if !action.again.is_empty() {
            let effects = decide(&*self.store, action, &task, &action.again, now).await?;
            let step = BulkStep { tries_again: false, ..self.step(action, effects, now) };
            return self.write(step).await.map(drop);
        }
        let slice = self.next_slice(action, &task, now).await?;
        let effects = decide(&*self.store, action, &task, &slice.uids, now).await?;
        let step = BulkStep { reached: slice.next.or(action.reached), ..self.step(action, effects, now) };
        match slice.next {
            Some(_) => self.write(step).await.map(drop),
            // Nothing is left before the last message, whatever else is tried again.
            None => {
                let reached = slice.uids.last().copied().or(action.reached);
                self.finish(BulkStep { reached, ..step }, action).await.map(drop)
            }
        }
    }

    async fn next_slice(
        &self,
        action: &BulkAction,
        task: &BulkTask,
        now: Time,
    ) -> Result<BulkSlice, StoreError> {
        let Some(asked) = task.asked_filter() else {
            return Ok(BulkSlice::of_selected(&action.selected, action.reached));
        };
        let Ok(asked) = asked else { return Ok(BulkSlice::default()) };
        let store = &*self.store;
        let mut filter = asked.search_in(store, &action.tenant, now).await?.filter;
        // What was accepted later was not meant.
        let ends = Time::from_millis(action.created_at.as_millis() + 1);
        filter.until = Some(filter.until.map_or(ends, |until| until.min(ends)));
        BulkSlice::of_filter(store, &action.tenant, &filter, action.reached, SLICE_MESSAGES as u32).await
    }

    fn step(&self, action: &BulkAction, effects: SliceEffects, now: Time) -> BulkStep {
        BulkStep {
            tenant: action.tenant.clone(),
            id: action.id,
            version: action.version,
            reached: action.reached,
            changes: effects.changes,
            tries_again: true,
            suppressed: effects.suppressed,
            done: effects.done,
            skipped: effects.skipped,
            ends: None,
            at: now,
        }
    }

    /// Writes the last slice, unless a message of it changed meanwhile.
    async fn finish(&self, step: BulkStep, action: &BulkAction) -> Result<bool, StoreError> {
        let changed = action.changed + step.done + step.changes.len() as i64;
        let skipped = action.skipped + step.skipped;
        let ends = AuditEntry {
            id: AuditId::new(step.at, &mut rand::rng()),
            at: step.at,
            actor: action.actor.clone(),
            tenant: Some(action.tenant.clone()),
            action: "bulk_action.finish".to_owned(),
            target: action.id.to_string(),
            request_id: None,
            detail: Some(json!({"changed": changed, "skipped": skipped}).to_string()),
            salt: Some(rand::random()),
        };
        self.write(BulkStep { ends: Some(ends), ..step }).await
    }

    /// Whether it was written, and not stopped meanwhile.
    async fn write(&self, step: BulkStep) -> Result<bool, StoreError> {
        let moves: Vec<Option<MessageState>> =
            step.changes.iter().map(|change| change.moves().then_some(change.to)).collect();
        let Some(applied) = self.store.advance_bulk_action(step).await? else { return Ok(false) };
        let moved = moves.into_iter().zip(applied).filter_map(|(to, held)| to.filter(|_| held));
        moved.for_each(count_transition);
        Ok(true)
    }
}
