//! Taking messages in.

use std::collections::BTreeSet;

use postway_domain::{EventKind, MessageState, MessageUid, TenantId, Time, message::OtherRecipients};

use super::{
    stored_message::StoredMessage,
    tables::{DedupOwner, MemoryTables},
};
use crate::{
    error::StoreError,
    queue::{
        collapse::{Older, count_entered, withdrawal},
        hand_over::HandOver,
        lease_conditions::LeaseConditions,
        new_message_row::NewMessageRow,
        packing::{PackedMessage, Packing},
    },
    record::{
        Acceptance, AccountKey, BatchKey, ClaimedMessage, DedupKind, MessageChange, NewEvent, NewMessage,
        WriteFence,
    },
};

/// What one accept did, to be delivered after its commit.
pub(super) struct AcceptEffects {
    pub answers: Vec<Acceptance>,
    pub handed_over: Vec<ClaimedMessage>,
    pub woken: Vec<AccountKey>,
    pub prepares: bool,
}

impl MemoryTables {
    /// Stores what is new, and hands over to standing claims what may go at once.
    pub fn accept(
        &mut self,
        messages: Vec<NewMessage>,
        hand_over: &HandOver,
    ) -> Result<AcceptEffects, StoreError> {
        self.check_uids(&messages)?;
        let mut accepted = AcceptEffects {
            answers: Vec::with_capacity(messages.len()),
            handed_over: Vec::new(),
            woken: Vec::new(),
            prepares: false,
        };
        let Some(now) = messages.first().map(|message| message.created_at) else { return Ok(accepted) };
        let mut terms = LeaseConditions {
            gates: self.directory.gates(),
            suppressed: self.directory.suppressed(now),
            ..LeaseConditions::default()
        };
        for message in messages {
            let key =
                AccountKey { tenant: message.lane.tenant.clone(), account: message.lane.account.clone() };
            if let Some(want) = hand_over.standing(&key) {
                self.directory.open(&mut terms.allowances, &want.sender(), want.limits, now);
            }
            let is_gone = !message.state.status().is_final() && !self.directory.accounts.contains_key(&key);
            let answer = match self.seen(&message) {
                Some(answer) => answer,
                None if is_gone => Acceptance::AccountGone,
                None => self.store(message, hand_over, &mut terms, &mut accepted),
            };
            accepted.answers.push(answer);
        }
        self.directory.debit(&terms.allowances);
        Ok(accepted)
    }

    /// Before anything is written: a message is never overwritten, and a call is refused as a whole.
    fn check_uids(&self, messages: &[NewMessage]) -> Result<(), StoreError> {
        let mut uids = BTreeSet::new();
        for message in messages {
            let stored = self.messages.contains_key(&message.uid) && self.seen(message).is_none();
            if stored || !uids.insert(message.uid) {
                return Err(StoreError::Unexpected(format!("the message id {} is taken", message.uid)));
            }
        }
        Ok(())
    }

    fn seen(&self, message: &NewMessage) -> Option<Acceptance> {
        let (tenant, now) = (&message.lane.tenant, message.created_at);
        let of_another = message.batch_key.as_deref().and_then(|BatchKey { key, fingerprint }| {
            let seen = self.key_seen(tenant, DedupKind::Batch, key, fingerprint, now);
            seen.filter(|seen| matches!(seen, Acceptance::Conflict { .. }))
        });
        let of_itself = || {
            keys_of(message)
                .find_map(|(kind, key)| self.key_seen(tenant, kind, key, &message.fingerprint, now))
        };
        of_another.or_else(of_itself)
    }

    /// Whether a key is held, by the same or by something else.
    pub fn key_seen(
        &self,
        tenant: &TenantId,
        kind: DedupKind,
        key: &str,
        fingerprint: &[u8; 32],
        now: Time,
    ) -> Option<Acceptance> {
        let DedupOwner { uid, fingerprint: held, .. } = self.key(tenant, kind, key)?.held_at(now)?;
        let is_same = held == *fingerprint;
        Some(if is_same { Acceptance::Repeat { uid } } else { Acceptance::Conflict { kind } })
    }

    fn store(
        &mut self,
        message: NewMessage,
        hand_over: &HandOver,
        terms: &mut LeaseConditions,
        accepted: &mut AcceptEffects,
    ) -> Acceptance {
        let now = message.created_at;
        let stands_for = DedupOwner { uid: message.uid, fingerprint: message.fingerprint, expires_at: None };
        for (kind, key) in keys_of(&message) {
            self.remember(&message.lane.tenant, kind, key, stands_for);
        }
        if let Some(BatchKey { key, fingerprint }) = message.batch_key.as_deref() {
            let tenant = &message.lane.tenant;
            if self.key_seen(tenant, DedupKind::Batch, key, fingerprint, now).is_none() {
                let stands_for = DedupOwner { fingerprint: *fingerprint, ..stands_for };
                self.remember(tenant, DedupKind::Batch, key, stands_for);
            }
        }
        let superseded = self.supersede(&message);
        let message = PackedMessage::new(message, Packing::Plain);
        let entry = NewMessageRow::new(&message, message.lane.id(), hand_over, terms);
        let (claimed, acceptance) = (entry.claimed(), entry.acceptance());
        let lease = entry.lease;
        let statuses: Vec<_> = (0..message.recipients.len()).map(|at| entry.recipient_status(at)).collect();
        let suppressed = (entry.state() == MessageState::Suppressed).then(|| {
            let owned =
                |(kind, data): (EventKind, Option<&str>)| NewEvent { kind, data: data.map(str::to_owned) };
            entry.events().map(owned).collect()
        });
        let mut message = message.into_message();
        if let Some(events) = suppressed {
            (message.state, message.due_at, message.events) = (MessageState::Suppressed, None, events);
        }
        let mut stored = StoredMessage::new(message);
        accepted.prepares |= stored.preparable_at().is_some();
        for (recipient, status) in stored.record.recipients.iter_mut().zip(statuses) {
            recipient.status = status;
        }
        if let Some(lease) = lease {
            stored.take(&lease, now, u32::MAX);
        }
        if stored.claimable_at().is_some() {
            accepted.woken.push(stored.account_key());
        }
        accepted.handed_over.extend(claimed);
        self.reports.note(&stored, 0);
        self.insert(stored);
        if let Some((uid, change)) = superseded {
            if let Some(change) = change {
                let moved = change.moves().then_some(change.to.status());
                if self.apply(change, &mut accepted.woken)
                    && let Some(state) = moved
                {
                    count_entered(state);
                }
            }
            self.edit(uid, StoredMessage::outdate);
        }
        acceptance
    }

    /// The message before this one with the same collapse key, and the change that withdraws it, if it has
    /// not left.
    fn supersede(&mut self, message: &NewMessage) -> Option<(MessageUid, Option<MessageChange>)> {
        let name = message.collapse_key.clone()?;
        let previous = self.collapse.insert((message.lane.tenant.clone(), name), message.uid)?;
        let record = &self.messages.get(&previous)?.record;
        let summary = &record.summary;
        let older = Older {
            uid: previous,
            state: summary.state,
            fence: WriteFence { status: summary.state.status(), token: None, version: Some(summary.version) },
            rest: OtherRecipients::beside_open(record.recipients.iter().map(|one| one.status)),
            sensitive: summary.sensitive,
            due_at: summary.due_at,
        };
        Some((previous, withdrawal(older, message)))
    }
}

/// A message's keys, in the order in which they are asked.
fn keys_of(message: &NewMessage) -> impl Iterator<Item = (DedupKind, &str)> {
    let request = message.idempotency.as_ref().map(|(kind, key)| (*kind, key.as_str()));
    let client = message.client_id.as_ref().map(|id| (DedupKind::ClientId, id.as_str()));
    request.into_iter().chain(client)
}
