//! Writes the outcomes of mails: all that arrive while a write runs are written together by the next one.
//!
//! Tries until the store has them. An outcome that could not be written when the process stops is lost with
//! its lease: another node processes the mail again, and mail that was forwarded is recognised by its key.

use std::sync::Arc;

use postway_domain::InboundState;
use postway_store::{
    Store,
    record::{InboundMailResult, MailboxKey},
    until_durable,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{crash::crash_point, mailbox_metrics};

/// The most outcomes of one write.
const AT_ONCE_MAX: usize = 64;
/// An outcome, and its mailbox.
pub(super) struct MailOutcome {
    key: MailboxKey,
    routed: InboundMailResult,
    /// Dropped once the outcome is written or given up.
    _writing: oneshot::Sender<()>,
}

impl MailOutcome {
    /// An outcome to send to [`write_outcomes`], and a receiver that ends when it is written or given up.
    pub(super) fn new(key: MailboxKey, routed: InboundMailResult) -> (Self, oneshot::Receiver<()>) {
        let (writing, written) = oneshot::channel();
        (Self { key, routed, _writing: writing }, written)
    }
}

/// Writes outcomes until the channel is closed.
pub(super) async fn write_outcomes(
    store: Arc<dyn Store>,
    mut outcomes: mpsc::Receiver<MailOutcome>,
    stop: CancellationToken,
) {
    let mut batch = Vec::with_capacity(AT_ONCE_MAX);
    while outcomes.recv_many(&mut batch, AT_ONCE_MAX).await > 0 {
        write_batch(&*store, std::mem::take(&mut batch), &stop).await;
    }
}

async fn write_batch(store: &dyn Store, batch: Vec<MailOutcome>, stop: &CancellationToken) {
    let write = || {
        crash_point("inbound_before_settle");
        store.settle_inbound(batch.iter().map(|one| one.routed.clone()).collect())
    };
    match until_durable("outcomes of inbound mail", stop.cancelled(), write).await {
        Ok(applied) => count(&batch, &applied),
        // The lease ends by itself, and the mail is processed again.
        Err(error) if error.is_transient() => {}
        // One outcome that the store does not understand must not hold up the others.
        Err(_) if batch.len() > 1 => {
            for one in batch {
                Box::pin(write_batch(store, vec![one], stop)).await;
            }
        }
        Err(error) => {
            tracing::error!(%error, "the outcome of a mail cannot be stored; the mail is processed again later");
        }
    }
}

fn count(batch: &[MailOutcome], applied: &[bool]) {
    for (MailOutcome { key, routed, .. }, _) in batch.iter().zip(applied).filter(|(_, applied)| **applied) {
        mailbox_metrics::tried(key, routed.to == InboundState::Waiting);
        match routed.to {
            InboundState::Routed => mailbox_metrics::processed(key),
            InboundState::NoMatch => {
                mailbox_metrics::processed(key);
                mailbox_metrics::no_match(key);
            }
            InboundState::Dead => mailbox_metrics::failed(key, 1),
            InboundState::Received | InboundState::Routing | InboundState::Gone | InboundState::Waiting => {}
        }
        let (tenant, mailbox, state) = (&key.tenant, &key.mailbox, routed.to.as_str());
        tracing::debug!(uid = %routed.uid, %tenant, %mailbox, state, kind = routed.kind, "processed");
    }
}
