//! Step 5, store: hands composed messages to the store, all of a call in one transaction.
//!
//! Large bodies become blobs first, so that they are there before the message is. Until its messages are
//! stored, a call occupies a share of a budget that all tenants share. A dry run asks for duplicates and
//! stores nothing.
//!
//! May refuse: an id or a key that belongs to another message, an account that was deleted meanwhile, a call
//! whose messages are too large together, and everything while the store does not answer.

mod dedup;
pub(crate) mod state_metrics;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use postway_domain::{Clock, MessageStatus, TenantId, Time, quota::MailAmount};
use postway_store::{
    Store, StoreError,
    blob::BlobStorage,
    record::{Acceptance, DedupKind, NewMessage, StoredBody},
};
use postway_trace::{Span, SpanKind};

pub(crate) use dedup::DedupKeys;
use dedup::{conflict, receipt};

use super::{
    context::{AcceptReceipt, RequestContext, RequestTrace},
    quota::QuotaLeases,
};
use crate::{
    budget::{FairBudget, FairShare},
    cache::settings_cache::SettingsCache,
    refusal::Refusal,
};
use state_metrics::count_entered;

/// The memory that composed messages may occupy until they are stored.
const UNSTORED_BYTES_MAX: usize = 128 * 1024 * 1024;
/// One tenant's part of it, which is also the most that the messages of one call may occupy together.
pub(crate) const UNSTORED_TENANT_BYTES_MAX: usize = UNSTORED_BYTES_MAX / 2;
/// A message that occupies less is not counted: the number of connections bounds those.
const UNCOUNTED_BYTES_MAX: usize = 16 * 1024;
/// The memory that one recipient occupies, roughly.
const RECIPIENT_BYTES: usize = 256;

/// Writes messages to the store.
pub(crate) struct MessageWriter {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    depot: Arc<BlobStorage>,
    inline_bytes_max: usize,
    unstored: Arc<FairBudget>,
    settings: Arc<SettingsCache>,
    quotas: QuotaLeases,
}

impl MessageWriter {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        depot: Arc<BlobStorage>,
        inline_bytes_max: usize,
        settings: Arc<SettingsCache>,
    ) -> Self {
        let quotas = QuotaLeases::new(Arc::clone(&store));
        let unstored = FairBudget::new(UNSTORED_BYTES_MAX, UNSTORED_TENANT_BYTES_MAX);
        Self { store, clock, depot, inline_bytes_max, unstored, settings, quotas }
    }

    /// An empty share of the budget for messages that are not stored yet.
    pub(crate) fn unstored_share(&self, tenant: &TenantId) -> FairShare {
        self.unstored.share(Some(tenant.clone()))
    }

    /// Stores one message, unless this is a dry run.
    pub(crate) async fn store_one(
        &self,
        ctx: &RequestContext,
        message: NewMessage,
    ) -> Result<AcceptReceipt, Refusal> {
        let _unstored = self.count_unstored(ctx, &message)?;
        let mut receipts = self.store_all(ctx, vec![message]).await?;
        receipts.pop().unwrap_or_else(|| Err(StoreError::Unexpected("it gave no answer".to_owned()).into()))
    }

    /// Counts a composed message until it is stored.
    fn count_unstored(
        &self,
        ctx: &RequestContext,
        message: &NewMessage,
    ) -> Result<Option<FairShare>, Refusal> {
        let bytes = unstored_bytes(message);
        if bytes <= UNCOUNTED_BYTES_MAX {
            return Ok(None);
        }
        let share = self.unstored.take(&ctx.tenant, bytes.min(self.unstored.tenant_max()));
        share.map(Some).ok_or_else(|| Refusal::busy("too many messages wait to be stored at once"))
    }

    /// Stores messages together, unless this is a dry run; one answer each, in order.
    pub(crate) async fn store_all(
        &self,
        ctx: &RequestContext,
        mut messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<AcceptReceipt, Refusal>>, Refusal> {
        if ctx.dry_run {
            return self.dry_run_store(ctx, &messages).await;
        }
        let amounts: Vec<MailAmount> = messages.iter().map(amount).collect();
        let total = amounts.iter().fold(MailAmount::default(), |total, one| total.plus(*one));
        let quota = self.settings.profile(&ctx.tenant).await?.settings.daily_quota;
        let counted = match self.quotas.count(&ctx.tenant, &quota, total, self.clock.now()).await {
            Ok(counted) => counted,
            Err(refusal @ Refusal::OverQuota { .. }) => {
                return self.repeats_or_refusal(ctx, &messages, refusal).await;
            }
            Err(refusal) => return Err(refusal),
        };
        let _spans = message_spans(ctx, &mut messages);
        let names: Vec<_> = messages.iter().map(|message| (message.client_id.clone(), message.uid)).collect();
        for message in &mut messages {
            let stored = self.store_large_bodies(message).await;
            if let (Err(_), Some(counted)) = (&stored, &counted) {
                self.quotas.give_back(counted, total);
            }
            stored?;
        }
        let starts: Vec<_> = messages.iter().map(|message| message.state.status()).collect();
        let stored = self.store.accept(messages).await;
        if let Some(counted) = &counted {
            self.quotas.give_back(counted, unstored_amount(&stored, &amounts, total));
        }
        let answers = stored?;
        if answers.len() != names.len() {
            return Err(StoreError::Unexpected("it did not answer for every message".to_owned()).into());
        }
        // The key belongs to the call, so the conflict refuses all its messages.
        if answers.contains(&Acceptance::Conflict { kind: DedupKind::Batch }) {
            return Err(conflict(DedupKind::Batch));
        }
        count_states(answers.iter().zip(starts).filter_map(|(answer, start)| match answer {
            Acceptance::Accepted { .. } => Some(start),
            Acceptance::Suppressed => Some(MessageStatus::Suppressed),
            Acceptance::Repeat { .. } | Acceptance::Conflict { .. } | Acceptance::AccountGone => None,
        }));
        let receipts = names.into_iter().zip(answers);
        Ok(receipts.map(|((id, uid), answer)| receipt(id, uid, answer, ctx.passed_status())).collect())
    }

    /// Stores large bodies as blobs, before the message that refers to them.
    async fn store_large_bodies(&self, message: &mut NewMessage) -> Result<(), StoreError> {
        let content = &mut message.content;
        for body in [Some(&mut content.raw), content.payload.as_mut()].into_iter().flatten() {
            if let StoredBody::Inline(bytes) = body {
                let bytes = std::mem::take(bytes);
                *body = self.keep_body(&message.lane.tenant, bytes, message.created_at).await?;
            }
        }
        Ok(())
    }

    /// Stores the bytes inline or as a blob, depending on their number.
    pub(crate) async fn keep_body(
        &self,
        tenant: &TenantId,
        bytes: Bytes,
        now: Time,
    ) -> Result<StoredBody, StoreError> {
        Ok(self.depot.keep(&*self.store, tenant, bytes, self.inline_bytes_max, now).await?)
    }
}

/// Places the messages in traces. One that named a place of its own, or came without any, has a span of its
/// own; the others are under that of their call.
fn message_spans(ctx: &RequestContext, messages: &mut [NewMessage]) -> Vec<Span> {
    let mut spans = Vec::new();
    if !postway_trace::is_on() {
        return spans;
    }
    for message in messages {
        let mut span = match (message.trace, ctx.trace) {
            (own @ Some(_), _) => Span::child(own, SpanKind::Producer, "accept"),
            (None, RequestTrace::Undecided) => Span::begin(None, SpanKind::Producer, "accept"),
            (None, RequestTrace::Decided(place)) => {
                message.trace = place;
                continue;
            }
        };
        span.set("postway.tenant", || ctx.tenant.to_string());
        span.set("postway.request_id", || ctx.request_id.clone());
        span.set("postway.message", || message.uid.to_string());
        message.trace = span.context();
        spans.push(span);
    }
    spans
}

/// What a message counts in its tenant's quota: its mail, or its request while files are still to be fetched.
fn amount(message: &NewMessage) -> MailAmount {
    let content = &message.content;
    let bytes = content.raw.len().max(content.payload.as_ref().map_or(0, StoredBody::len));
    MailAmount { messages: 1, bytes, recipients: message.recipients.len() as u64 }
}

/// How much of what was counted was not stored. A commit that nobody can settle may have stored all of it.
fn unstored_amount(
    stored: &Result<Vec<Acceptance>, StoreError>,
    amounts: &[MailAmount],
    total: MailAmount,
) -> MailAmount {
    match stored {
        Ok(answers) => {
            let unstored = answers.iter().zip(amounts).filter(|(answer, _)| !is_new(answer));
            unstored.fold(MailAmount::default(), |sum, (_, amount)| sum.plus(*amount))
        }
        Err(StoreError::Unsettled(_)) => MailAmount::default(),
        Err(_) => total,
    }
}

/// Whether an answer says that the message was stored now.
fn is_new(answer: &Acceptance) -> bool {
    match answer {
        Acceptance::Accepted { .. } | Acceptance::Suppressed => true,
        Acceptance::Repeat { .. } | Acceptance::Conflict { .. } | Acceptance::AccountGone => false,
    }
}

/// The memory that a composed message occupies besides the request that it came with.
pub(crate) fn unstored_bytes(message: &NewMessage) -> usize {
    let raw = match &message.content.raw {
        StoredBody::Inline(bytes) => bytes.len(),
        StoredBody::Blob(_) => 0,
    };
    raw + message.recipients.len() * RECIPIENT_BYTES
}

/// Counts the states that new messages entered: `accepted` for each, and the state that it was stored in.
fn count_states(starts: impl Iterator<Item = MessageStatus>) {
    let mut entered: BTreeMap<MessageStatus, u64> = BTreeMap::new();
    for start in starts {
        *entered.entry(MessageStatus::Accepted).or_default() += 1;
        if start != MessageStatus::Accepted {
            *entered.entry(start).or_default() += 1;
        }
    }
    for (status, count) in entered {
        count_entered(status, count);
    }
}
