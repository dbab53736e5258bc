//! Writing what came of mails: whatever has come in while the last write ran is written in one.
//!
//! Tries until the store has it. What could not be written when the process stops is taken back by others and dealt with
//! once more; what was sent because of it is found again by its key.

use std::{sync::Arc, time::Duration};

use postway_domain::InboundState;
use postway_store::{
    Store,
    record::{MailboxKey, Routed},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{crash::crash_point, mailbox_metrics};

/// Outcomes of one write.
const AT_ONCE_MAX: usize = 64;
/// The first wait when the store does not answer; doubles up to the last.
const WAIT_FIRST: Duration = Duration::from_millis(50);
/// The longest wait between tries.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// An outcome, and of which mailbox.
pub(super) struct Settled {
    key: MailboxKey,
    routed: Routed,
    /// Dropped once the outcome is written, or given up.
    _writing: oneshot::Sender<()>,
}

impl Settled {
    /// An outcome to send to [`settle`], and what ends when it is written, or given up.
    pub(super) fn new(key: MailboxKey, routed: Routed) -> (Self, oneshot::Receiver<()>) {
        let (writing, written) = oneshot::channel();
        (Self { key, routed, _writing: writing }, written)
    }
}

/// Writes outcomes until there is nobody left to send any.
pub(super) async fn settle(
    store: Arc<dyn Store>,
    mut outcomes: mpsc::Receiver<Settled>,
    stop: CancellationToken,
) {
    let mut batch = Vec::with_capacity(AT_ONCE_MAX);
    while outcomes.recv_many(&mut batch, AT_ONCE_MAX).await > 0 {
        write(&*store, std::mem::take(&mut batch), &stop).await;
    }
}

async fn write(store: &dyn Store, batch: Vec<Settled>, stop: &CancellationToken) {
    let mut wait = WAIT_FIRST;
    loop {
        let is_last = stop.is_cancelled();
        crash_point("inbound_before_settle");
        match store.settle_inbound(batch.iter().map(|one| one.routed.clone()).collect()).await {
            Ok(held) => return count(&batch, &held),
            // One that the store does not understand must not hold up the others.
            Err(error) if !error.is_transient() && batch.len() > 1 => {
                for one in batch {
                    Box::pin(write(store, vec![one], stop)).await;
                }
                return;
            }
            Err(error) if !error.is_transient() => {
                tracing::error!(%error, "what came of a mail cannot be stored; it is dealt with again later");
                return;
            }
            Err(error) => tracing::warn!(%error, "what came of mails could not be stored yet"),
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

fn count(batch: &[Settled], held: &[bool]) {
    for (Settled { key, routed, .. }, _) in batch.iter().zip(held).filter(|(_, held)| **held) {
        mailbox_metrics::tried(key, routed.to == InboundState::Waiting);
        match routed.to {
            InboundState::Routed | InboundState::NoMatch => mailbox_metrics::processed(key),
            InboundState::Dead => mailbox_metrics::failed(key, 1),
            InboundState::Received | InboundState::Routing | InboundState::Gone | InboundState::Waiting => {}
        }
        let (tenant, mailbox, state) = (&key.tenant, &key.mailbox, routed.to.as_str());
        tracing::debug!(uid = %routed.uid, %tenant, %mailbox, state, kind = routed.kind, "dealt with");
    }
}
