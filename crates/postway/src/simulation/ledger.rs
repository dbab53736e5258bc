//! What the simulation knows about each message apart from the store: which life has its lease, which may
//! write its dot, what an operator decided. It does not use tokens and versions, so that it can find faults
//! of the store's fences.

use std::collections::BTreeMap;

use postway_domain::{MessageState, MessageUid};
use postway_store::record::{ClaimedMessage, MessageChange, WriteFence};

use super::{life::NodeLife, trace::RunTrace};

/// All messages that were handed to the store.
#[derive(Default)]
pub(super) struct MessageLedger {
    fates: BTreeMap<MessageUid, LedgerEntry>,
}

/// One message.
#[derive(Clone, Default)]
pub(super) struct LedgerEntry {
    /// Its number among the messages of the run.
    pub label: usize,
    /// Whether it was acknowledged to its client.
    pub acknowledged: bool,
    /// Whether an operator has called its doubt sent.
    pub called_sent: bool,
    /// The life that has its lease.
    holder: Option<String>,
    /// Claims below this version are over.
    floor: i64,
    /// Durable permissions for the dot that are not used yet, by life. A dot may be long on its way.
    permits: BTreeMap<String, u32>,
}

/// The part of a change that the ledger needs.
pub(super) struct LedgerMove {
    uid: MessageUid,
    to: MessageState,
    fence: WriteFence,
}

impl LedgerMove {
    pub fn from_change(change: &MessageChange) -> Self {
        Self { uid: change.uid, to: change.to, fence: change.fence }
    }
}

impl MessageLedger {
    pub fn add(&mut self, uid: MessageUid, label: usize) {
        self.fates.insert(uid, LedgerEntry { label, ..LedgerEntry::default() });
    }

    pub fn fate(&mut self, uid: MessageUid) -> Option<&mut LedgerEntry> {
        self.fates.get_mut(&uid)
    }

    pub fn iter(&self) -> impl Iterator<Item = (MessageUid, &LedgerEntry)> {
        self.fates.iter().map(|(uid, fate)| (*uid, fate))
    }

    pub fn label(&self, uid: MessageUid) -> String {
        self.fates.get(&uid).map_or_else(|| "m?".to_owned(), |fate| format!("m{}", fate.label))
    }

    /// Notes that a life has claimed these messages.
    pub fn claimed(&mut self, life: &NodeLife, claimed: &[ClaimedMessage], how: &str, trace: &RunTrace) {
        for one in claimed {
            let label = self.label(one.uid);
            trace.note(format_args!("{} {how} {label} attempt {}", life.name, one.attempt));
            if let Some(fate) = self.fates.get_mut(&one.uid)
                && one.version >= fate.floor
            {
                fate.holder = Some(life.name.clone());
                fate.floor = one.version;
            }
        }
    }

    /// The store has answered whether this life may write the dot.
    pub fn permitted(&mut self, life: &NodeLife, uids: &[MessageUid], held: &[bool], trace: &RunTrace) {
        for (uid, held) in uids.iter().zip(held) {
            let (label, word) = (self.label(*uid), if *held { "may end" } else { "may not end" });
            trace.note(format_args!("{} {word} {label}", life.name));
            let Some(fate) = self.fates.get_mut(uid).filter(|_| *held) else { continue };
            if fate.holder.as_ref() != Some(&life.name) {
                trace.violation(format_args!(
                    "{} got leave for the dot of {label}, which it does not hold",
                    life.name
                ));
            }
            *fate.permits.entry(life.name.clone()).or_default() += 1;
        }
    }

    /// The store has answered what of these changes it wrote.
    pub fn changed(&mut self, life: &NodeLife, moves: &[LedgerMove], held: &[bool], trace: &RunTrace) {
        for (one, held) in moves.iter().zip(held) {
            let (label, word) = (self.label(one.uid), if *held { "wrote" } else { "was refused" });
            trace.note(format_args!("{} {word} {label} -> {:?}", life.name, one.to));
            let Some(fate) = self.fates.get_mut(&one.uid).filter(|_| *held) else { continue };
            let is_attempts_own = one.fence.token.is_some();
            if is_attempts_own && fate.holder.as_ref() != Some(&life.name) {
                trace.violation(format_args!(
                    "{} wrote the outcome of {label}, which it does not hold",
                    life.name
                ));
            }
            // A doubt is still its attempt's to settle.
            if one.to != MessageState::InDoubt {
                fate.holder = None;
            }
            fate.floor = fate.floor.max(one.fence.version.unwrap_or(0) + 1);
        }
    }

    /// A relay was sent the final dot.
    pub fn dotted(&mut self, life: &str, uid: MessageUid, trace: &RunTrace) {
        let label = self.label(uid);
        let permits = self.fates.get_mut(&uid).and_then(|fate| fate.permits.get_mut(life));
        match permits.filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None => trace.violation(format_args!("{life} ended {label} without a durable permission")),
        }
    }
}
