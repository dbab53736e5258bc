//! Recognises repeats when nothing is stored.
//!
//! A client that did not receive its answer asks again, and by then its request might not pass any more:
//! `expires_at` has passed, the account or template was deleted, a limit was lowered. It still gets the first
//! answer, because the mail is on its way. So before a request is refused, its id and its idempotency key are
//! looked up.

use postway_domain::{ClientId, MessageUid};
use postway_store::record::{Acceptance, DedupKind, NewMessage};

use super::{
    super::context::{AcceptReceipt, RequestContext},
    MessageWriter,
};
use crate::refusal::Refusal;

/// The keys that identify a message, in the order in which they are looked up.
#[derive(Clone, Debug, Default)]
pub(crate) struct DedupKeys {
    idempotency: Option<(DedupKind, String)>,
    client_id: Option<ClientId>,
}

impl DedupKeys {
    /// The keys of a request; a malformed id is ignored.
    pub(crate) fn new(idempotency: Option<(DedupKind, String)>, id: Option<&str>) -> Self {
        Self { idempotency, client_id: id.and_then(|id| id.parse().ok()) }
    }

    fn for_message(message: &NewMessage) -> Self {
        Self { idempotency: message.idempotency.clone(), client_id: message.client_id.clone() }
    }

    /// Whether the message has no key.
    pub(crate) fn is_empty(&self) -> bool {
        self.idempotency.is_none() && self.client_id.is_none()
    }

    fn list(&self) -> Vec<(DedupKind, String)> {
        let client_id = self.client_id.as_ref().map(|id| (DedupKind::ClientId, id.to_string()));
        self.idempotency.iter().cloned().chain(client_id).collect()
    }
}

impl MessageWriter {
    /// The receipt of the message that a refused request repeats, or the refusal if it repeats none.
    pub(crate) async fn repeat_or_refusal(
        &self,
        ctx: &RequestContext,
        keys: DedupKeys,
        fingerprint: impl FnOnce() -> Result<[u8; 32], Refusal>,
        refusal: Refusal,
    ) -> Result<AcceptReceipt, Refusal> {
        if keys.is_empty() || refusal.is_transient() {
            return Err(refusal);
        }
        let now = self.clock.now();
        match self.store.seen_before(&ctx.tenant, &keys.list(), &fingerprint()?, now).await? {
            Some(Acceptance::Repeat { uid }) => {
                Ok(AcceptReceipt::again(keys.client_id, uid, ctx.passed_status()))
            }
            Some(Acceptance::Conflict { kind }) => Err(conflict(kind)),
            Some(Acceptance::Accepted { .. } | Acceptance::Suppressed | Acceptance::AccountGone) | None => {
                Err(refusal)
            }
        }
    }

    /// The receipts of messages of which each repeats an earlier one, or the refusal if one is new.
    pub(super) async fn repeats_or_refusal(
        &self,
        ctx: &RequestContext,
        messages: &[NewMessage],
        refusal: Refusal,
    ) -> Result<Vec<Result<AcceptReceipt, Refusal>>, Refusal> {
        if messages.iter().any(|message| DedupKeys::for_message(message).is_empty()) {
            return Err(refusal);
        }
        let answers = self.dry_run_store(ctx, messages).await?;
        let is_known = |answer: &Result<AcceptReceipt, Refusal>| {
            answer.as_ref().map_or(true, |receipt| receipt.is_repeat)
        };
        if answers.iter().all(is_known) { Ok(answers) } else { Err(refusal) }
    }

    /// The answers that storing these messages would give; nothing is stored.
    pub(super) async fn dry_run_store(
        &self,
        ctx: &RequestContext,
        messages: &[NewMessage],
    ) -> Result<Vec<Result<AcceptReceipt, Refusal>>, Refusal> {
        if let Some(batch_key) = messages.first().and_then(|message| message.batch_key.as_deref()) {
            let key = [(DedupKind::Batch, batch_key.key.clone())];
            let seen =
                self.store.seen_before(&ctx.tenant, &key, &batch_key.fingerprint, self.clock.now()).await?;
            if let Some(Acceptance::Conflict { kind }) = seen {
                return Err(conflict(kind));
            }
        }
        let mut answers = Vec::with_capacity(messages.len());
        for message in messages {
            let keys = DedupKeys::for_message(message).list();
            let seen = match keys.is_empty() {
                true => None,
                false => {
                    let now = message.created_at;
                    self.store.seen_before(&ctx.tenant, &keys, &message.fingerprint, now).await?
                }
            };
            let seen = seen.unwrap_or(Acceptance::Accepted { handed_over: false });
            answers.push(receipt(message.client_id.clone(), message.uid, seen, ctx.passed_status()));
        }
        Ok(answers)
    }
}

/// Turns the store's answer into one for the sender.
pub(super) fn receipt(
    client_id: Option<ClientId>,
    own: MessageUid,
    answer: Acceptance,
    status: &'static str,
) -> Result<AcceptReceipt, Refusal> {
    match answer {
        Acceptance::Accepted { .. } | Acceptance::Suppressed => {
            Ok(AcceptReceipt::new(client_id, own, status))
        }
        Acceptance::Repeat { uid } => Ok(AcceptReceipt::again(client_id, uid, status)),
        Acceptance::Conflict { kind } => Err(conflict(kind)),
        Acceptance::AccountGone => {
            let message =
                "the account was deleted meanwhile; create it with POST /v1/accounts, or name another";
            Err(Refusal::field("account", message))
        }
    }
}

/// The refusal of a message whose key belongs to another.
pub(super) fn conflict(kind: DedupKind) -> Refusal {
    let (name, what) = match kind {
        DedupKind::ClientId => ("id", "message"),
        DedupKind::Request | DedupKind::BatchItem => ("Idempotency-Key", "message"),
        DedupKind::Batch => ("Idempotency-Key", "batch"),
    };
    Refusal::Conflict { message: format!("this {name} was used for another {what}: use a new one") }
}
