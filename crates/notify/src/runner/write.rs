//! Writing what came of calls: whatever has come in while the last write ran is written in one.
//!
//! Tries until the store has it. What could not be written when the process stops is taken back by others and told once
//! more, under the same id.

use std::{sync::Arc, time::Duration};

use postway_store::{
    Store,
    record::{DueSubscriber, NotificationState, Notified},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::runner::subscriber_of;

/// Outcomes of one write.
const AT_ONCE_MAX: usize = 256;
/// The first wait when the store does not answer; doubles up to the last.
const WAIT_FIRST: Duration = Duration::from_millis(50);
/// The longest wait between tries.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Writes outcomes until there is nobody left to send any.
pub(crate) async fn settle(
    store: Arc<dyn Store>,
    mut outcomes: mpsc::Receiver<Notified>,
    written: mpsc::UnboundedSender<Vec<DueSubscriber>>,
    stop: CancellationToken,
) {
    let mut batch = Vec::with_capacity(AT_ONCE_MAX);
    while outcomes.recv_many(&mut batch, AT_ONCE_MAX).await > 0 {
        let subscribers = batch.iter().map(|one| subscriber_of(&one.key)).collect();
        write(&*store, std::mem::take(&mut batch), &stop).await;
        // The runner outlives this task, but for a panic of its own.
        let _ = written.send(subscribers);
    }
}

async fn write(store: &dyn Store, batch: Vec<Notified>, stop: &CancellationToken) {
    let mut wait = WAIT_FIRST;
    loop {
        let is_last = stop.is_cancelled();
        match store.settle_notifications(batch.clone()).await {
            Ok(held) => return count(&batch, &held),
            // One that the store does not understand must not hold up the others.
            Err(error) if !error.is_transient() && batch.len() > 1 => {
                for one in batch {
                    Box::pin(write(store, vec![one], stop)).await;
                }
                return;
            }
            Err(error) if !error.is_transient() => {
                tracing::error!(%error, "what came of a notification cannot be stored; it is told again later");
                return;
            }
            Err(error) => tracing::warn!(%error, "what came of notifications could not be stored yet"),
        }
        if is_last {
            return;
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
        wait = (wait * 2).min(WAIT_MAX);
    }
}

fn count(batch: &[Notified], held: &[bool]) {
    for (one, held) in batch.iter().zip(held) {
        let outcome = match (held, one.state) {
            (false, _) => "late",
            (true, NotificationState::Pending | NotificationState::Calling) => "given_back",
            (true, state) => state.as_str(),
        };
        metrics::counter!("postway_notifications_total", "outcome" => outcome).increment(1);
        let status = one.call.as_ref().and_then(|call| call.status);
        let (uid, subscriber, sequence) = (one.key.uid, &one.key.subscriber, one.key.seq);
        tracing::debug!(%uid, tenant = %one.key.tenant, %subscriber, sequence, status, outcome, "notified");
    }
}
