//! One stored message: what may be asked of it and how it changes.

use postway_domain::{
    EmailAddress, EventKind, Incarnation, Lane, LaneId, LeaseToken, MessageEvent, MessageState, MessageUid,
    RecipientStatus, Time,
    dsn::DsnWishes,
    message::{OnDoubt, TransitionInput, transition},
};

use super::preparation::WaitingPreparation;
use crate::record::{
    AccountKey, AttemptDialogue, AttemptEnd, AttemptView, BodyLocation, ClaimedMessage, ClaimedRecipient,
    LeaseGrant, MessageChange, MessageRecord, MessageSummary, NewLink, NewMessage, RecipientChange,
    RecipientRecord, StalledMessage, StoredBody, WireCommit, WriteFence,
};

/// A message as readers see it, and what only the queue knows of it.
pub(super) struct StoredMessage {
    pub record: MessageRecord,
    lane_id: LaneId,
    pub(super) addresses: Vec<EmailAddress>,
    pub(super) sender: String,
    pub(super) eight_bit: bool,
    pub(super) smtputf8: bool,
    pub(super) dsn: Option<DsnWishes>,
    pub(super) dialogue: Option<AttemptDialogue>,
    pub(super) size: u64,
    pub raw: Option<StoredBody>,
    pub payload: Option<StoredBody>,
    pub(super) waiting: Option<WaitingPreparation>,
    pub(super) lost_leases: i64,
    holder: Option<LeaseHolder>,
    /// Outlives the holder while the message is in doubt.
    token: Option<LeaseToken>,
}

/// Who works on a message, and until when at most.
struct LeaseHolder {
    incarnation: Incarnation,
    until: Time,
}

impl StoredMessage {
    pub fn new(message: NewMessage) -> Self {
        let NewMessage { content, created_at, .. } = message;
        let lane_id = message.lane.id();
        let waiting = (message.state == MessageState::Accepted)
            .then(|| WaitingPreparation::new(created_at, message.settled));
        let recipients = message.recipients.iter().map(|recipient| RecipientRecord {
            outcome: None,
            bounce: None,
            address: recipient.address.as_str().to_owned(),
            kind: recipient.kind,
            status: RecipientStatus::Pending,
            reply: None,
        });
        let mut stored = Self {
            record: MessageRecord {
                recipients: recipients.collect(),
                attempts: Vec::new(),
                events: Vec::new(),
                summary: MessageSummary {
                    uid: message.uid,
                    client_id: message.client_id,
                    lane: message.lane,
                    state: message.state,
                    version: 1,
                    attempt: 0,
                    retries: 0,
                    doubts: 0,
                    on_doubt: message.on_doubt,
                    created_at,
                    updated_at: created_at,
                    due_at: message.due_at.filter(|_| message.state != MessageState::Accepted),
                    expires_at: message.expires_at,
                    sent_at: None,
                    failed_at: None,
                    exhausted: false,
                    error: message.error,
                    subject: content.subject,
                    message_id: content.message_id,
                    request_id: content.request_id,
                    external_id: content.external_id,
                    tags: content.tags,
                    metadata: content.metadata,
                    provider_message_id: None,
                    sensitive: content.sensitive,
                    recipient: None,
                    recipient_count: 0,
                    trace: message.trace,
                },
                raw: BodyLocation::Nowhere,
                payload: BodyLocation::Nowhere,
                recipient: message.recipient,
            },
            lane_id,
            addresses: message.recipients.into_iter().map(|recipient| recipient.address).collect(),
            sender: content.sender,
            eight_bit: content.eight_bit,
            smtputf8: content.smtputf8,
            dsn: content.dsn,
            dialogue: None,
            size: content.raw.len(),
            raw: Some(content.raw).filter(|raw| !raw.is_empty()),
            payload: content.payload,
            waiting,
            lost_leases: 0,
            holder: None,
            token: None,
        };
        for event in message.events {
            stored.happen(event.kind, event.data, created_at);
        }
        stored
    }

    /// As readers see it.
    pub fn summary(&self) -> MessageSummary {
        let summary = self.record.summary.clone();
        let recipients = &self.record.recipients;
        MessageSummary {
            due_at: summary.due_at.or(self.preparable_at()),
            recipient: recipients.first().map(|first| first.address.clone()),
            recipient_count: recipients.len() as i64,
            ..summary
        }
    }

    /// As readers see it, with its parts.
    pub fn read(&self) -> MessageRecord {
        let kept = |body: &Option<StoredBody>| match body {
            Some(StoredBody::Inline(bytes)) => BodyLocation::Inline(bytes.len() as u64),
            Some(StoredBody::Blob(blob)) => BodyLocation::Blob(blob.clone()),
            None => BodyLocation::Nowhere,
        };
        let (raw, payload) = (kept(&self.raw), kept(&self.payload));
        MessageRecord { summary: self.summary(), raw, payload, ..self.record.clone() }
    }

    pub fn uid(&self) -> MessageUid {
        self.record.summary.uid
    }

    /// Moves the message to another lane if it waits to be claimed.
    pub fn move_to(&mut self, lane: Lane) -> bool {
        let waits = self.claimable_at().is_some();
        if waits {
            (self.lane_id, self.record.summary.lane) = (lane.id(), lane);
        }
        waits
    }

    pub fn lane_id(&self) -> LaneId {
        self.lane_id
    }

    pub fn account_key(&self) -> AccountKey {
        let lane = &self.record.summary.lane;
        AccountKey { tenant: lane.tenant.clone(), account: lane.account.clone() }
    }

    /// When it is due, if a claim may take it at all.
    pub fn claimable_at(&self) -> Option<Time> {
        let summary = &self.record.summary;
        summary.due_at.filter(|_| transition(summary.state, TransitionInput::Claim).is_ok())
    }

    pub fn expired(&self, now: Time) -> bool {
        self.record.summary.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// Whether its worker is gone: its process died, or its lease is past the backstop.
    pub fn abandoned(&self, alive: &[Incarnation], now: Time) -> bool {
        match &self.holder {
            Some(holder) => !alive.contains(&holder.incarnation) || holder.until <= now,
            None => true,
        }
    }

    pub fn stalled(&self) -> StalledMessage {
        let summary = &self.record.summary;
        let has = |status| self.record.recipients.iter().any(|one| one.status == status);
        StalledMessage {
            uid: summary.uid,
            state: summary.state,
            version: summary.version,
            attempt: summary.attempt,
            doubts: summary.doubts,
            lost_leases: self.lost_leases,
            on_doubt: summary.on_doubt,
            expires_at: summary.expires_at,
            retries: summary.retries,
            has_open: has(RecipientStatus::Pending),
            has_doubtful: has(RecipientStatus::InDoubt),
            has_sent: has(RecipientStatus::Sent),
            sensitive: summary.sensitive,
            key: self.account_key(),
            holder: self.holder.as_ref().map(|holder| holder.incarnation),
        }
    }

    pub(super) fn happen(&mut self, kind: EventKind, data: Option<String>, at: Time) {
        let seq = self.record.events.len() as i64 + 1;
        self.record.events.push(MessageEvent { seq, at, kind, data });
    }

    /// Leases it for an attempt; `None` if its state forbids it.
    pub fn take(&mut self, lease: &LeaseGrant, now: Time, inline_bytes_max: u32) -> Option<ClaimedMessage> {
        let (state, effects) = transition(self.record.summary.state, TransitionInput::Claim).ok()?;
        self.lease(state, lease, now);
        self.record.summary.attempt += 1;
        if let Some(kind) = effects.event {
            let data = format!("{{\"attempt\":{}}}", self.record.summary.attempt);
            self.happen(kind, Some(data), now);
        }
        Some(self.claimed(lease.token, now, inline_bytes_max))
    }

    /// Gives it to a worker.
    pub(super) fn lease(&mut self, state: MessageState, lease: &LeaseGrant, now: Time) {
        let summary = &mut self.record.summary;
        summary.state = state;
        summary.due_at = None;
        summary.version += 1;
        summary.updated_at = now;
        self.holder = Some(LeaseHolder { incarnation: lease.incarnation, until: lease.until });
        self.token = Some(lease.token);
    }

    fn claimed(&self, token: LeaseToken, now: Time, inline_bytes_max: u32) -> ClaimedMessage {
        let count = |status| self.record.recipients.iter().filter(|one| one.status == status).count() as u32;
        // A resend goes to recipients in doubt, but only once none waits for a first try.
        let (aim, doubtful_before) = match count(RecipientStatus::Pending) {
            0 => (RecipientStatus::InDoubt, 0),
            _ => (RecipientStatus::Pending, count(RecipientStatus::InDoubt)),
        };
        let recipients = self.record.recipients.iter().zip(&self.addresses).zip(0..);
        let summary = &self.record.summary;
        let size = u32::try_from(self.size).unwrap_or(u32::MAX);
        let raw = self.raw.as_ref().and_then(StoredBody::inline);
        let resend = aim == RecipientStatus::InDoubt && count(aim) > 0;
        ClaimedMessage {
            uid: summary.uid,
            lane: summary.lane.clone(),
            token,
            version: summary.version,
            attempt: summary.attempt,
            retries: summary.retries,
            doubts: summary.doubts,
            lost_leases: self.lost_leases,
            on_doubt: summary.on_doubt,
            created_at: summary.created_at,
            claimed_at: now,
            expires_at: summary.expires_at,
            request_id: summary.request_id.clone(),
            sender: self.sender.clone(),
            recipients: recipients
                .filter(|((recipient, _), _)| recipient.status == aim)
                .map(|((recipient, address), position)| ClaimedRecipient {
                    position,
                    address: address.clone(),
                    kind: recipient.kind,
                })
                .collect(),
            resend,
            sent_before: count(RecipientStatus::Sent),
            doubtful_before,
            eight_bit: self.eight_bit,
            smtputf8: self.smtputf8,
            size,
            raw: raw.filter(|_| size <= inline_bytes_max).cloned(),
            via: None,
            permit: None,
            over_limit: false,
            suppressed: Vec::new(),
            sensitive: summary.sensitive,
            recipient_deleted: false,
            dsn: self.dsn.clone(),
            trace: summary.trace,
        }
    }

    /// Writes the permission for the dot; `false` where it no longer holds.
    pub fn wire_commit(&mut self, commit: WireCommit) -> bool {
        let expired = self.expired(commit.at);
        let summary = &mut self.record.summary;
        let fenced = summary.version == commit.version && self.token == Some(commit.token);
        let Ok((state, _)) = transition(summary.state, commit.input()) else {
            return false;
        };
        if !fenced || expired {
            return false;
        }
        summary.state = state;
        summary.version += 1;
        summary.updated_at = commit.at;
        if let Some(event) = commit.event() {
            self.happen(event.kind, event.data, commit.at);
        }
        self.change_recipients(commit.recipients);
        true
    }

    /// Writes a change; `false` where its fence does not hold. Files that it links to are added to `links`.
    pub fn apply(&mut self, change: MessageChange, links: &mut Vec<NewLink>) -> bool {
        if !self.admits(&change.fence) {
            return false;
        }
        let at = change.at;
        let summary = &mut self.record.summary;
        summary.state = change.to;
        // A newer message may have taken its place since it was claimed.
        let held = change.to == MessageState::InDoubt && summary.on_doubt == OnDoubt::Hold;
        let events = change.events_to_write(held).into_owned();
        summary.due_at = change.claimable_at().filter(|_| !held);
        summary.retries = change.retries.unwrap_or(summary.retries);
        summary.doubts = change.doubts.unwrap_or(summary.doubts);
        summary.version += 1;
        summary.updated_at = at;
        if change.to == MessageState::Sent {
            summary.sent_at = Some(at);
        }
        summary.failed_at = (change.to == MessageState::Failed).then_some(at);
        summary.exhausted = change.exhausted;
        summary.error = change.error;
        self.lost_leases = change.lost_leases.unwrap_or(self.lost_leases);
        self.holder = None;
        self.token = self.token.filter(|_| change.keep_token);
        for event in events {
            self.happen(event.kind, event.data, at);
        }
        self.change_recipients(change.recipients);
        if let Some(end) = change.ends_open_recipients {
            let open = self.record.recipients.iter_mut().filter(|one| one.status == RecipientStatus::Pending);
            open.for_each(|one| one.status = end);
        }
        if let Some(attempt) = change.attempt {
            self.end_attempt(attempt);
        }
        if let Some(preparation) = change.preparation {
            links.extend(self.settle(preparation));
        }
        if change.erases_bodies {
            (self.raw, self.payload) = (None, None);
        }
        true
    }

    /// A newer message has taken its place: if it may have left, it is not sent again by itself.
    pub fn outdate(&mut self) {
        let summary = &mut self.record.summary;
        if matches!(summary.state, MessageState::Sending { .. } | MessageState::InDoubt) {
            summary.on_doubt = OnDoubt::Hold;
        }
    }

    fn admits(&self, fence: &WriteFence) -> bool {
        let summary = &self.record.summary;
        summary.state.status() == fence.status
            && fence.token.is_none_or(|token| self.token == Some(token))
            && fence.version.is_none_or(|version| summary.version == version)
    }

    fn change_recipients(&mut self, changes: Vec<RecipientChange>) {
        for change in changes {
            if let Some(recipient) = self.record.recipients.get_mut(change.position as usize) {
                recipient.status = change.status;
                recipient.reply = change.reply;
            }
        }
    }

    /// An attempt's late answer says more than the doubt that was written in its place.
    fn end_attempt(&mut self, attempt: AttemptEnd) {
        if let Some(content) = attempt.dialogue {
            self.dialogue = Some(AttemptDialogue { attempt: attempt.number, content });
        }
        self.record.attempts.retain(|ended| ended.number != attempt.number);
        if attempt.provider_message_id.is_some() {
            self.record.summary.provider_message_id.clone_from(&attempt.provider_message_id);
        }
        self.record.attempts.push(AttemptView {
            number: attempt.number,
            started_at: attempt.started_at,
            duration_ms: attempt.duration_ms,
            account: attempt.account.as_str().to_owned(),
            remote: attempt.remote,
            outcome: attempt.outcome.to_owned(),
            reply: attempt.reply,
            provider_message_id: attempt.provider_message_id,
        });
    }
}
