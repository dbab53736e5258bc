//! What a node's writers know about the other nodes: which node serves an account first.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use postway_domain::Incarnation;

use crate::record::{AccountKey, NodeRecord};

/// The number of writers of one node.
pub(crate) const WRITERS: i64 = 2;

/// The register as of the last heartbeat.
#[derive(Default)]
pub(crate) struct NodePlacement {
    slot: AtomicI64,
    known: Mutex<KnownNodes>,
}

#[derive(Default)]
struct KnownNodes {
    me: Option<Incarnation>,
    all: Vec<Incarnation>,
}

impl NodePlacement {
    fn lock(&self) -> MutexGuard<'_, KnownNodes> {
        // A list that is one heartbeat old is good enough, so a poisoned lock does not matter.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the list from the register.
    pub fn update(&self, me: Incarnation, nodes: &[NodeRecord]) {
        if let Some(own) = nodes.iter().find(|node| node.incarnation == me) {
            self.slot.store(own.slot, Ordering::Relaxed);
        }
        *self.lock() = KnownNodes { me: Some(me), all: nodes.iter().map(|node| node.incarnation).collect() };
    }

    /// The counter shard of this node's n-th writer. No other node uses it, except one that was wrongly
    /// considered dead.
    pub fn shard(&self, writer: i64) -> i64 {
        self.slot.load(Ordering::Relaxed) * WRITERS + writer
    }

    /// Whether this node serves an account first. Nodes that see the same register agree on that without
    /// communicating; if they do not, their transactions only conflict more often.
    pub fn serves_first(&self, key: &AccountKey) -> bool {
        let known = self.lock();
        let rank = |node: &Incarnation| {
            let mut hasher = DefaultHasher::new();
            (node.as_bytes(), key).hash(&mut hasher);
            hasher.finish()
        };
        let first = known.all.iter().max_by_key(|node| rank(node));
        first.is_none() || first == known.me.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::Time;

    use super::*;

    fn node(n: u8) -> NodeRecord {
        NodeRecord {
            incarnation: Incarnation::from_bytes([n; 16]),
            identity: [n; 16],
            slot: i64::from(n),
            name: String::new(),
            address: String::new(),
            version: String::new(),
            started_at: Time::from_millis(0),
            beat: 1,
            beat_at: Time::from_millis(0),
        }
    }

    #[test]
    fn one_node_is_first_for_an_account_and_each_for_some() {
        let nodes = [node(1), node(2), node(3)];
        let peers = nodes.each_ref().map(|node| {
            let peers = NodePlacement::default();
            peers.update(node.incarnation, &nodes);
            peers
        });
        let mut served = [0; 3];
        for n in 0..300 {
            let key = AccountKey {
                tenant: "default".parse().unwrap(),
                account: format!("relay-{n}").parse().unwrap(),
            };
            let firsts: Vec<usize> = (0..3).filter(|&at| peers[at].serves_first(&key)).collect();
            assert_eq!(firsts.len(), 1);
            served[firsts[0]] += 1;
        }
        assert!(served.iter().all(|accounts| *accounts > 50), "{served:?}");
        assert_eq!(peers[2].shard(1), 7);
    }
}
