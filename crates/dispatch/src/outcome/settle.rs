//! Makes an outcome durable: writes it again and again until the store has answered.

use std::{sync::Arc, time::Duration};

use postway_domain::{
    MessageStatus,
    message::{AttemptOutcome, TransitionInput, transition},
};
use postway_store::record::{AccountKey, ClaimedMessage, MessageChange, WriteFence};

use super::{
    AttemptVerdict,
    attempt_metrics::{count_entered, record_attempt},
    outcome_word,
};
use crate::{account::AccountSender, context::DispatchContext};

/// The first wait after a write failed; each further wait is twice as long.
const WAIT_FIRST: Duration = Duration::from_millis(50);
/// The longest wait between two writes.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Writes a verdict, again while the store is unavailable, and then frees the slot. It ends when the outcome
/// is durable or when the fence refuses it, because the lease was taken over. If the process dies first,
/// reclaiming the lease decides: before the wire commit the message is returned, after it the message is in
/// doubt.
pub(crate) async fn settle(
    context: Arc<DispatchContext>,
    sender: Arc<AccountSender>,
    job: ClaimedMessage,
    verdict: AttemptVerdict,
) {
    let changes = [&verdict.change].into_iter().chain(&verdict.then).cloned().collect();
    let durable = write_all(&context, changes).await || settle_late(&context, &verdict).await;
    if durable {
        record_attempt(&job, &verdict);
        move_to_its_lane(&context, &verdict).await;
    } else {
        tracing::warn!(outcome = outcome_word(verdict.outcome), "an outcome came too late and was refused");
    }
    context.in_flight.remove(job.uid);
    sender.queue.note_settled();
    // In an ordered lane the next message waits for this one.
    let has_next = job.lane.is_ordered();
    context.capacity_events.report(&sender.key, has_next);
    if has_next && job.lane.account != sender.key.account {
        let key = AccountKey { tenant: job.lane.tenant, account: job.lane.account };
        context.capacity_events.report(&key, true);
    }
}

/// Moves a message to the lane in which claims pass over it while a receiving domain is busy. Where that
/// fails, it is claimed and returned once more.
async fn move_to_its_lane(context: &DispatchContext, verdict: &AttemptVerdict) {
    let Some(lane) = &verdict.moves_to else { return };
    let moved = context.store.move_messages(vec![(verdict.change.uid, lane.clone())]).await;
    if let Err(error) = moved {
        tracing::debug!(%error, "a message was not moved to the lane of its destination");
    }
}

/// Settles a doubt late: another node took the lease for lost and put the message in doubt, but this attempt
/// has the relay's answer.
async fn settle_late(context: &DispatchContext, verdict: &AttemptVerdict) -> bool {
    match late_change(verdict) {
        Some(late) => write(context, late).await,
        None => false,
    }
}

/// Writes a change. Returns false if the fence refused it.
pub(crate) async fn write(context: &DispatchContext, change: MessageChange) -> bool {
    write_all(context, vec![change]).await
}

/// Writes the return of a message that was not started, and counts its new state.
pub(crate) async fn write_return(context: &DispatchContext, change: MessageChange) {
    let state = change.to.status();
    if write(context, change).await {
        count_entered(state);
    }
}

/// Writes the changes of one message in one transaction, in order. Returns false if a fence refused one.
async fn write_all(context: &DispatchContext, changes: Vec<MessageChange>) -> bool {
    let mut wait = WAIT_FIRST;
    loop {
        match context.store.apply(changes.clone()).await {
            Ok(applied) => return applied.into_iter().all(|applied| applied),
            Err(error) => {
                let uid = changes.first().map(|change| change.uid.to_string());
                tracing::warn!(uid, %error, "an outcome could not be stored yet");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
        }
    }
}

/// The change that settles a doubt with this verdict, if the verdict is definite.
fn late_change(verdict: &AttemptVerdict) -> Option<MessageChange> {
    let (to, effects) =
        transition(postway_domain::MessageState::InDoubt, TransitionInput::Settle(verdict.outcome)).ok()?;
    if !matches!(
        verdict.outcome,
        AttemptOutcome::Sent
            | AttemptOutcome::Captured
            | AttemptOutcome::Failed
            | AttemptOutcome::Retry
            | AttemptOutcome::Exhausted
    ) {
        return None;
    }
    let mut change = verdict.change.clone();
    change.to = to;
    change.fence = WriteFence { status: MessageStatus::InDoubt, version: None, ..change.fence };
    if let (Some(kind), Some(last)) = (effects.event, change.events.last_mut()) {
        last.kind = kind;
    }
    Some(change)
}
