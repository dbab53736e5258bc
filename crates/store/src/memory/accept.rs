//! Taking messages in.

use std::collections::BTreeSet;

use postway_domain::{State, Time};

use super::{
    message::Stored,
    tables::{Key, Tables},
};
use crate::{
    error::StoreError,
    handover::HANDOVER_BYTES_MAX,
    record::{Acceptance, AccountKey, Claimed, DedupKind, Lease, NewMessage},
};

/// What one accept did, to be told after its commit.
pub(super) struct Accepted {
    pub answers: Vec<Acceptance>,
    pub handed_over: Vec<Claimed>,
    pub woken: Vec<AccountKey>,
}

impl Tables {
    /// Stores what is new; `take_slot` gives the lease of a standing claim of an account, if there is one.
    pub fn accept(
        &mut self,
        messages: Vec<NewMessage>,
        take_slot: impl Fn(&AccountKey, Time) -> Option<Lease>,
    ) -> Result<Accepted, StoreError> {
        self.check_uids(&messages)?;
        let mut accepted = Accepted {
            answers: Vec::with_capacity(messages.len()),
            handed_over: Vec::new(),
            woken: Vec::new(),
        };
        for message in messages {
            let answer = match self.seen_before(&message) {
                Some(answer) => answer,
                None => self.store(message, &take_slot, &mut accepted),
            };
            accepted.answers.push(answer);
        }
        Ok(accepted)
    }

    /// Before anything is written: a message is never overwritten, and a call is refused as a whole.
    fn check_uids(&self, messages: &[NewMessage]) -> Result<(), StoreError> {
        let mut uids = BTreeSet::new();
        for message in messages {
            let stored = self.messages.contains_key(&message.uid) && self.seen_before(message).is_none();
            if stored || !uids.insert(message.uid) {
                return Err(StoreError::Unexpected(format!("the message id {} is taken", message.uid)));
            }
        }
        Ok(())
    }

    fn seen_before(&self, message: &NewMessage) -> Option<Acceptance> {
        keys_of(message).find_map(|(kind, key)| {
            let Key { uid, fingerprint } = self.key(&message.lane.tenant, kind, key)?;
            let same = fingerprint == message.fingerprint;
            Some(if same { Acceptance::Repeat { uid } } else { Acceptance::Conflict { kind } })
        })
    }

    fn store(
        &mut self,
        message: NewMessage,
        take_slot: impl Fn(&AccountKey, Time) -> Option<Lease>,
        accepted: &mut Accepted,
    ) -> Acceptance {
        let now = message.created_at;
        let stands_for = Key { uid: message.uid, fingerprint: message.fingerprint };
        for (kind, key) in keys_of(&message) {
            self.remember(&message.lane.tenant, kind, key, stands_for);
        }
        let due = message.state == State::Ready && message.due_at.is_some_and(|due_at| due_at <= now);
        let small = message.content.raw.len() <= HANDOVER_BYTES_MAX;
        let mut stored = Stored::new(message);
        let account = stored.account_key();
        let lease = if due && small { take_slot(&account, now) } else { None };
        let claimed = lease.and_then(|lease| stored.take(&lease, now, u32::MAX));
        let handed_over = claimed.is_some();
        if stored.claimable_at().is_some() {
            accepted.woken.push(account);
        }
        accepted.handed_over.extend(claimed);
        self.insert(stored);
        Acceptance::Accepted { handed_over }
    }
}

/// A message's keys, in the order in which they are asked.
fn keys_of(message: &NewMessage) -> impl Iterator<Item = (DedupKind, &str)> {
    let request = message.idempotency.as_ref().map(|(kind, key)| (*kind, key.as_str()));
    let client = message.client_id.as_ref().map(|id| (DedupKind::ClientId, id.as_str()));
    request.into_iter().chain(client)
}
