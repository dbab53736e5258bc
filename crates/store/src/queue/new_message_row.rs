//! A new message with everything its rows need, the same for every database.

use postway_domain::{AccountId, EventKind, Lane, LaneId, MessageState, RecipientStatus, Time};

use crate::{
    journal::{
        AppendedEvent,
        event_row::{EventRow, close_list},
    },
    queue::{
        hand_over::{HANDOVER_BYTES_MAX, HandOver},
        lease_conditions::{LeaseConditions, StandingSlot},
        packing::PackedMessage,
    },
    record::{
        Acceptance, AccountKey, ClaimedMessage, ClaimedRecipient, LeaseGrant, NewMessage, SendingPermit,
        StoredBody,
    },
};

/// The data of a first attempt's `sending` event.
const ATTEMPT_ONE: &str = "{\"attempt\":1}";

/// A new message with its lane's id and, if a standing claim took it, the lease.
pub(crate) struct NewMessageRow<'m> {
    pub message: &'m PackedMessage,
    pub lane: LaneId,
    pub lease: Option<LeaseGrant>,
    permit: Option<SendingPermit>,
    via: Option<AccountId>,
    /// Whether each recipient is suppressed; empty if none is.
    suppressed: Vec<bool>,
}

impl<'m> NewMessageRow<'m> {
    /// Applies the lease conditions; takes a slot of a standing claim if there is one for it.
    pub fn new(
        message: &'m PackedMessage,
        lane: LaneId,
        handover: &HandOver,
        terms: &mut LeaseConditions,
    ) -> Self {
        let mut suppressed: Vec<bool> = message
            .recipients
            .iter()
            .map(|recipient| terms.suppressed.contains(&message.lane, recipient.address.as_str()))
            .collect();
        // A message that starts in a final state is not sent.
        if !suppressed.contains(&true) || message.state.status().is_final() {
            suppressed.clear();
        }
        let mut entry = Self { message, lane, lease: None, permit: None, via: None, suppressed };
        if entry.could_go()
            && let Some(StandingSlot { lease, permit, via }) = terms.take_slot(handover, message)
        {
            (entry.lease, entry.permit, entry.via) = (Some(lease), permit, via);
        }
        entry
    }

    /// Whether it could be sent at once. Standing claims exist only if nothing else was due.
    fn could_go(&self) -> bool {
        let message = self.message;
        let due_now = message.due_at.is_some_and(|due| due <= message.created_at);
        let raw = message.content.raw.inline();
        let small = raw.is_some_and(|raw| raw.len() <= HANDOVER_BYTES_MAX);
        // A claim checks whether a known recipient still exists, and ordered mail waits for its turn.
        self.state() == MessageState::Ready
            && due_now
            && small
            && message.recipient.is_none()
            && !message.lane.is_ordered()
    }

    /// Whether every recipient is suppressed.
    fn is_suppressed(&self) -> bool {
        !self.suppressed.is_empty() && self.suppressed.iter().all(|suppressed| *suppressed)
    }

    /// The first status of a recipient.
    pub fn recipient_status(&self, position: usize) -> RecipientStatus {
        match self.suppressed.get(position) {
            Some(true) => RecipientStatus::Suppressed,
            _ if self.message.state == MessageState::Invalid => RecipientStatus::Failed,
            _ => RecipientStatus::Pending,
        }
    }
}

impl NewMessageRow<'_> {
    pub fn state(&self) -> MessageState {
        if self.is_suppressed() {
            MessageState::Suppressed
        } else if self.lease.is_some() {
            MessageState::Sending { wire_committed: false }
        } else {
            self.message.state
        }
    }

    /// The answer to its sender.
    pub fn acceptance(&self) -> Acceptance {
        match self.is_suppressed() {
            true => Acceptance::Suppressed,
            false => Acceptance::Accepted { handed_over: self.lease.is_some() },
        }
    }

    pub fn key(&self) -> AccountKey {
        account_key(self.message)
    }

    pub fn due_at(&self) -> Option<Time> {
        let waits = self.lease.is_none() && !self.is_suppressed() && !self.awaits_preparation();
        self.message.due_at.filter(|_| waits)
    }

    /// Whether it is not composed yet.
    pub fn awaits_preparation(&self) -> bool {
        self.state() == MessageState::Accepted
    }

    /// 1 if it is leased already, else 0.
    pub fn attempt(&self) -> i64 {
        i64::from(self.lease.is_some())
    }

    pub fn version(&self) -> i64 {
        1 + self.attempt()
    }

    /// Its first events: one more if it is leased already, and another final one if every recipient is
    /// suppressed.
    pub fn events(&self) -> impl Iterator<Item = (EventKind, Option<&str>)> {
        let is_suppressed = self.is_suppressed();
        let first = self.message.events.iter().map(|event| (event.kind, event.data.as_deref()));
        let kept = first.filter(move |(kind, _)| !is_suppressed || *kind == EventKind::Accepted);
        let end = is_suppressed.then_some((EventKind::Suppressed, None));
        kept.chain(end).chain(self.lease.map(|_| (EventKind::Sending, Some(ATTEMPT_ONE))))
    }

    /// The rows of these events.
    pub fn event_rows(&self) -> Vec<EventRow<'_>> {
        let (uid, at) = (self.message.uid, self.message.created_at);
        let row = |seq, (kind, data), more| EventRow { uid, seq, at, kind, data, more };
        if let Some(open) = self.message.followers().filter(|_| !self.is_suppressed())
            && let Some(first) = self.events().next()
        {
            let sending = self.lease.map(|_| (EventKind::Sending, ATTEMPT_ONE));
            return vec![row(1, first, close_list(open, sending))];
        }
        (1..).zip(self.events()).map(|(seq, event)| row(seq, event, None)).collect()
    }

    /// One of its first events as a journal entry.
    pub fn happening(&self, seq: i64, kind: EventKind) -> AppendedEvent {
        AppendedEvent { uid: self.message.uid, seq, at: self.message.created_at, kind, to: self.state() }
    }

    pub fn event_count(&self) -> i64 {
        self.events().count() as i64
    }

    /// The claimed message for the dispatcher, if a standing claim took it.
    pub fn claimed(&self) -> Option<ClaimedMessage> {
        let (message, lease) = (self.message, self.lease?);
        let pending = (0..)
            .zip(&message.recipients)
            .filter(|(position, _)| self.recipient_status(*position as usize) == RecipientStatus::Pending);
        let recipients = pending.map(|(position, recipient)| ClaimedRecipient {
            position,
            address: recipient.address.clone(),
            kind: recipient.kind,
        });
        Some(ClaimedMessage {
            uid: message.uid,
            lane: message.lane.clone(),
            token: lease.token,
            version: self.version(),
            attempt: 1,
            retries: 0,
            doubts: 0,
            lost_leases: 0,
            on_doubt: message.on_doubt,
            created_at: message.created_at,
            claimed_at: message.created_at,
            expires_at: message.expires_at,
            request_id: message.content.request_id.clone(),
            sender: message.content.sender.clone(),
            recipients: recipients.collect(),
            resend: false,
            sent_before: 0,
            doubtful_before: 0,
            eight_bit: message.content.eight_bit,
            smtputf8: message.content.smtputf8,
            size: u32::try_from(message.content.raw.len()).unwrap_or(u32::MAX),
            raw: message.content.raw.inline().cloned(),
            via: self.via.clone(),
            permit: self.permit.clone(),
            over_limit: false,
            suppressed: Vec::new(),
            sensitive: message.content.sensitive,
            recipient_deleted: false,
            dsn: message.content.dsn.clone(),
            trace: message.trace,
        })
    }
}

/// The bytes that go into a row.
pub(crate) fn inline(body: &StoredBody) -> Option<&[u8]> {
    body.inline().map(|bytes| bytes.as_ref())
}

fn account_key(message: &NewMessage) -> AccountKey {
    AccountKey { tenant: message.lane.tenant.clone(), account: message.lane.account.clone() }
}

/// Lane ids are digests; messages of one group mostly share a lane.
#[derive(Default)]
pub(crate) struct LaneIds<'m>(Vec<(&'m Lane, LaneId)>);

impl<'m> LaneIds<'m> {
    pub fn id(&mut self, lane: &'m Lane) -> LaneId {
        const LOOKED_AT: usize = 8;
        if let Some((_, id)) = self.0.iter().rev().take(LOOKED_AT).find(|(known, _)| *known == lane) {
            return *id;
        }
        let id = lane.id();
        self.0.push((lane, id));
        id
    }
}
