//! Making an outcome durable, whatever it takes.

use std::{sync::Arc, time::Duration};

use postway_domain::{
    Status,
    message::{Input, Outcome, transition},
};
use postway_store::record::{AccountKey, Change, Claimed, Fence};

use super::{
    Verdict,
    attempt_metrics::{count_entered, report},
    word,
};
use crate::{account::Post, context::Shared};

/// The first wait when the store does not answer; doubles up to the last.
const WAIT_FIRST: Duration = Duration::from_millis(50);
/// The longest wait between tries.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Writes a verdict, retrying while the store is away, then frees the slot. Ends only when the outcome is durable, when
/// the fence says that the message is no longer ours, or with the process: then the lease and, after the dot, the doubt
/// speak for it.
pub(crate) async fn settle(shared: Arc<Shared>, post: Arc<Post>, job: Claimed, verdict: Verdict) {
    let changes = [&verdict.change].into_iter().chain(&verdict.then).cloned().collect();
    let durable = write_all(&shared, changes).await || settle_late(&shared, &verdict).await;
    if durable {
        report(&job, &verdict);
    } else {
        tracing::warn!(outcome = word(verdict.outcome), "an outcome came too late and was refused");
    }
    shared.in_hand.put_down(job.uid);
    post.queue.done();
    // The next of a lane that is in order waits for this one.
    let has_next = job.lane.is_ordered();
    shared.freed.tell(&post.key, has_next);
    if has_next && job.lane.account != post.key.account {
        let key = AccountKey { tenant: job.lane.tenant, account: job.lane.account };
        shared.freed.tell(&key, true);
    }
}

/// Somebody took the lease for lost and called it doubt: this attempt's answer still settles it.
async fn settle_late(shared: &Shared, verdict: &Verdict) -> bool {
    match late_change(verdict) {
        Some(late) => write(shared, late).await,
        None => false,
    }
}

/// Writes a change; false if the fence refused it.
pub(crate) async fn write(shared: &Shared, change: Change) -> bool {
    write_all(shared, vec![change]).await
}

/// Gives mail back that was not begun.
pub(crate) async fn give_back(shared: &Shared, change: Change) {
    let state = change.to.status();
    if write(shared, change).await {
        count_entered(state);
    }
}

/// Writes changes of one message together, one after the other; false if a fence refused one.
async fn write_all(shared: &Shared, changes: Vec<Change>) -> bool {
    let mut wait = WAIT_FIRST;
    loop {
        match shared.store.apply(changes.clone()).await {
            Ok(held) => return held.into_iter().all(|held| held),
            Err(error) => {
                let uid = changes.first().map(|change| change.uid.to_string());
                tracing::warn!(uid, %error, "an outcome could not be stored yet");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
        }
    }
}

/// The same verdict as the answer to a doubt, where the answer is definite.
fn late_change(verdict: &Verdict) -> Option<Change> {
    let (to, effects) = transition(postway_domain::State::InDoubt, Input::Settle(verdict.outcome)).ok()?;
    if !matches!(
        verdict.outcome,
        Outcome::Sent | Outcome::Captured | Outcome::Failed | Outcome::Retry | Outcome::Exhausted
    ) {
        return None;
    }
    let mut change = verdict.change.clone();
    change.to = to;
    change.fence = Fence { status: Status::InDoubt, version: None, ..change.fence };
    if let (Some(kind), Some(last)) = (effects.event, change.events.last_mut()) {
        last.kind = kind;
    }
    Some(change)
}
