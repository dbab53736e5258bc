//! Nodes: the processes that share a database.

use postway_domain::{Incarnation, Time};

/// What a node says of itself with each heartbeat.
#[derive(Clone, Debug)]
pub struct NodeBeat {
    /// This life of it.
    pub incarnation: Incarnation,
    /// What stays the same over its lives: the place it runs at.
    pub identity: [u8; 16],
    /// Its name for people.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// The program's version.
    pub version: String,
    /// When this life began.
    pub started_at: Time,
    /// Now, by its own clock. For people; nobody compares it.
    pub at: Time,
}

/// A registered node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// This life of it.
    pub incarnation: Incarnation,
    /// What stays the same over its lives.
    pub identity: [u8; 16],
    /// The smallest number that no other node had when it registered.
    pub slot: i64,
    /// Its name for people.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// The program's version.
    pub version: String,
    /// When this life began.
    pub started_at: Time,
    /// How often it has said that it is alive: a counter that moves.
    pub beat: i64,
    /// When it last did, by its own clock.
    pub beat_at: Time,
}

impl NodeBeat {
    /// Its first entry in the register.
    pub(crate) fn registered(self, slot: i64) -> NodeRecord {
        let Self { incarnation, identity, name, address, version, started_at, at } = self;
        NodeRecord { incarnation, identity, slot, name, address, version, started_at, beat: 1, beat_at: at }
    }
}

/// Something that one node at a time does, and who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DutyRecord {
    /// Who has it.
    pub holder: Incarnation,
    /// Rises each time it changes hands: fences what a former holder still writes.
    pub term: i64,
    /// Since when, by the holder's clock.
    pub since: Time,
}

impl DutyRecord {
    /// Holds the duties of nodes that were struck from the register. No process is given this id, so whoever does not know
    /// it finds its holder dead, ten seconds later.
    pub(crate) const NOBODY: Incarnation = Incarnation::from_bytes([0; 16]);

    /// Whether it was given up: its holder has left the register.
    pub fn is_free(&self) -> bool {
        self.holder == Self::NOBODY
    }
}

/// The smallest number that none of these nodes has.
pub(crate) fn free_slot(nodes: &[NodeRecord]) -> i64 {
    (0..).find(|slot| nodes.iter().all(|node| node.slot != *slot)).unwrap_or(0)
}
