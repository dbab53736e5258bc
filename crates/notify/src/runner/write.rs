//! Writes the outcomes of calls: all that arrive while a write runs are written together by the next one.
//!
//! Tries until the store has them. An outcome that could not be written when the process stops is lost with
//! its lease: another node delivers the notification again, under the same id.

use std::sync::Arc;

use postway_store::{
    Store,
    record::{DueSubscriber, NotificationResult, NotificationState},
    until_durable,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::notification::target::subscriber_of;

/// The most outcomes of one write.
const AT_ONCE_MAX: usize = 256;
/// Writes outcomes until the channel is closed.
pub(crate) async fn write_outcomes(
    store: Arc<dyn Store>,
    mut outcomes: mpsc::Receiver<NotificationResult>,
    written: mpsc::UnboundedSender<Vec<DueSubscriber>>,
    stop: CancellationToken,
) {
    let mut batch = Vec::with_capacity(AT_ONCE_MAX);
    while outcomes.recv_many(&mut batch, AT_ONCE_MAX).await > 0 {
        let subscribers = batch.iter().map(|one| subscriber_of(&one.key)).collect();
        write_batch(&*store, std::mem::take(&mut batch), &stop).await;
        // The runner outlives this task, unless the runner panics.
        let _ = written.send(subscribers);
    }
}

async fn write_batch(store: &dyn Store, batch: Vec<NotificationResult>, stop: &CancellationToken) {
    let write = || store.settle_notifications(batch.clone());
    match until_durable("outcomes of notifications", stop.cancelled(), write).await {
        Ok(applied) => count(&batch, &applied),
        // The lease ends by itself, and the notification is delivered again under the same id.
        Err(error) if error.is_transient() => {}
        // One outcome that the store does not understand must not hold up the others.
        Err(_) if batch.len() > 1 => {
            for one in batch {
                Box::pin(write_batch(store, vec![one], stop)).await;
            }
        }
        Err(error) => {
            tracing::error!(%error, "the outcome of a notification cannot be stored; it is delivered again later");
        }
    }
}

fn count(batch: &[NotificationResult], applied: &[bool]) {
    for (one, applied) in batch.iter().zip(applied) {
        let outcome = match (applied, one.state) {
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
