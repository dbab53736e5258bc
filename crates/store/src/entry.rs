//! A message on its way into the tables, whichever they are.

use postway_domain::{EventKind, Lane, LaneId, State, Time};

use crate::{
    handover::{HANDOVER_BYTES_MAX, HandOver},
    record::{AccountKey, Claimed, ClaimedRecipient, Lease, NewEvent, NewMessage},
};

/// The particulars of a first attempt's `sending` event.
const ATTEMPT_ONE: &str = "{\"attempt\":1}";

/// A new message with its lane's id and, where a standing claim took it, the lease.
pub(crate) struct Entry<'m> {
    pub message: &'m NewMessage,
    pub lane: LaneId,
    pub lease: Option<Lease>,
}

impl Entry<'_> {
    pub fn state(&self) -> State {
        if self.lease.is_some() { State::Sending { wire_committed: false } } else { self.message.state }
    }

    pub fn key(&self) -> AccountKey {
        account_key(self.message)
    }

    pub fn due_at(&self) -> Option<Time> {
        self.message.due_at.filter(|_| self.lease.is_none())
    }

    /// 1 where it is leased already, else 0.
    pub fn attempt(&self) -> i64 {
        i64::from(self.lease.is_some())
    }

    pub fn version(&self) -> i64 {
        1 + self.attempt()
    }

    /// Its first events; one more where it is leased already.
    pub fn events(&self) -> impl Iterator<Item = NewEvent> {
        let sending = NewEvent { kind: EventKind::Sending, data: Some(ATTEMPT_ONE.to_owned()) };
        self.message.events.iter().cloned().chain(self.lease.map(|_| sending))
    }

    pub fn event_count(&self) -> i64 {
        self.message.events.len() as i64 + self.attempt()
    }

    /// What the dispatcher gets, where a standing claim took it.
    pub fn claimed(&self) -> Option<Claimed> {
        let (message, lease) = (self.message, self.lease?);
        let recipients = (0..).zip(&message.recipients).map(|(position, recipient)| ClaimedRecipient {
            position,
            address: recipient.address.clone(),
            kind: recipient.kind,
        });
        Some(Claimed {
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
            sent_before: 0,
            doubtful_before: 0,
            eight_bit: message.content.eight_bit,
            smtputf8: message.content.smtputf8,
            size: message.content.raw.len() as u32,
            raw: Some(message.content.raw.clone()),
        })
    }
}

fn account_key(message: &NewMessage) -> AccountKey {
    AccountKey { tenant: message.lane.tenant.clone(), account: message.lane.account.clone() }
}

/// A slot for a message that could go at once. Slots are parked only where nothing else was due.
pub(crate) fn hand_over(handover: &HandOver, message: &NewMessage) -> Option<Lease> {
    let due_now = message.due_at.is_some_and(|due| due <= message.created_at);
    let small = message.content.raw.len() <= HANDOVER_BYTES_MAX;
    if message.state != State::Ready || !due_now || !small {
        return None;
    }
    handover.take(&account_key(message), message.created_at)
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
