//! Nodes: the processes that share a database.

use postway_domain::{Incarnation, Time};

/// What a node reports with each heartbeat.
#[derive(Clone, Debug)]
pub struct NodeBeat {
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Its identity, which is the same in every incarnation.
    pub identity: [u8; 16],
    /// Its name, for display.
    pub name: String,
    /// The address it listens on.
    pub address: String,
    /// The program's version.
    pub version: String,
    /// When this incarnation started.
    pub started_at: Time,
    /// The current time by its own clock. For display only; it is never compared.
    pub at: Time,
}

/// A registered node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Its identity, which is the same in every incarnation.
    pub identity: [u8; 16],
    /// The smallest number that no other node had when this one registered.
    pub slot: i64,
    /// Its name, for display.
    pub name: String,
    /// The address it listens on.
    pub address: String,
    /// The program's version.
    pub version: String,
    /// When this incarnation started.
    pub started_at: Time,
    /// The number of its heartbeats.
    pub beat: i64,
    /// The time of its last heartbeat by its own clock.
    pub beat_at: Time,
}

impl NodeBeat {
    /// The node's first record in the register.
    pub(crate) fn registered(self, slot: i64) -> NodeRecord {
        let Self { incarnation, identity, name, address, version, started_at, at } = self;
        NodeRecord { incarnation, identity, slot, name, address, version, started_at, beat: 1, beat_at: at }
    }
}

/// A duty, and the node that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DutyRecord {
    /// The incarnation that has it.
    pub holder: Incarnation,
    /// The term: it rises each time the duty changes hands, and fences late writes of a former holder.
    pub term: i64,
    /// When the holder took it, by the holder's clock.
    pub since: Time,
}

impl DutyRecord {
    /// The holder of duties whose nodes were removed from the register. No process has this id, so a node
    /// that does not know it considers the holder dead after ten seconds.
    pub(crate) const NOBODY: Incarnation = Incarnation::from_bytes([0; 16]);

    /// Whether the duty is free because its holder has left the register.
    pub fn is_free(&self) -> bool {
        self.holder == Self::NOBODY
    }
}

/// The smallest number that no node in `nodes` has.
pub(crate) fn free_slot(nodes: &[NodeRecord]) -> i64 {
    (0..).find(|slot| nodes.iter().all(|node| node.slot != *slot)).unwrap_or(0)
}
