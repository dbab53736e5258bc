//! The wire gate on the store: the permission for the final dot, made durable.

use std::sync::Arc;

use async_trait::async_trait;
use postway_domain::RecipientStatus;
use postway_store::{
    Store,
    record::{Claimed, RecipientChange, WireCommit},
};
use tokio::task::JoinHandle;

use crate::{
    outcome::{reply_of, suppressed},
    transport::{GateRefused, RecipientReply, WireGate},
};

/// What is durable of an attempt before its final word; lives outside the transport, so that it survives a panic in it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wire {
    /// The permission for the final word.
    pub committed: bool,
    /// With it, which recipients may be in doubt and which the relay refused; otherwise all may be.
    pub marked: bool,
}

/// Asks the store once per attempt.
pub(crate) struct StoreGate<'a> {
    pub store: &'a Arc<dyn Store>,
    pub clock: &'a Arc<dyn postway_domain::Clock>,
    pub job: &'a Claimed,
    /// The settling of this courier's previous message: it shares this commit, and must be durable with it.
    pub settling: &'a mut Option<JoinHandle<()>>,
    /// What it has said.
    pub wire: &'a mut Wire,
}

/// After a crash, only recipients that the relay accepted may be in doubt. Usually that is all of them, and nothing need be
/// written; otherwise each is marked. Those of a resend are, and stay, in doubt.
pub(crate) fn marks(job: &Claimed, replies: &[RecipientReply]) -> Vec<RecipientChange> {
    let all_accepted = replies.iter().all(RecipientReply::is_accepted);
    let all_alike = all_accepted && job.doubtful_before == 0 && job.suppressed.is_empty();
    if all_alike || job.resend {
        return Vec::new();
    }
    let of_attempt = job.recipients.iter().zip(replies);
    let mut changes: Vec<RecipientChange> = of_attempt
        .filter_map(|(recipient, reply)| {
            let (status, reply) = match reply {
                RecipientReply::Accepted(_) => (RecipientStatus::InDoubt, None),
                RecipientReply::Refused(failure) if failure.is_permanent() => {
                    (RecipientStatus::Failed, Some(reply_of(failure)))
                }
                RecipientReply::Refused(failure) | RecipientReply::Deferred(failure) => {
                    (RecipientStatus::Pending, Some(reply_of(failure)))
                }
                RecipientReply::NotTried => return None,
            };
            Some(RecipientChange { position: recipient.position, status, reply })
        })
        .collect();
    changes.extend(suppressed(job));
    changes
}

#[async_trait]
impl WireGate for StoreGate<'_> {
    async fn commit(&mut self, replies: &[RecipientReply]) -> Result<(), GateRefused> {
        let recipients = marks(self.job, replies);
        let marked = !recipients.is_empty();
        let commit = WireCommit {
            uid: self.job.uid,
            lane: self.job.lane.clone(),
            via: self.job.via.clone(),
            token: self.job.token,
            version: self.job.version,
            at: self.clock.now(),
            recipients,
            resend: self.job.resend.then_some(self.job.attempt),
        };
        let held = self.store.wire_commit(vec![commit]).await;
        if let Some(settling) = self.settling.take()
            && let Err(error) = settling.await
        {
            tracing::error!(%error, "settling a message ended badly");
        }
        match held {
            Ok(held) if held == [true] => {
                *self.wire = Wire { committed: true, marked };
                Ok(())
            }
            Ok(_) => Err(GateRefused),
            Err(error) => {
                tracing::warn!(uid = %self.job.uid, %error, "the permission to send could not be stored");
                Err(GateRefused)
            }
        }
    }
}
