//! What a node's writers know of the other nodes.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use postway_domain::Incarnation;

use crate::record::{AccountKey, NodeRecord};

/// Writers of one node.
pub(crate) const WRITERS: i64 = 2;

/// The register, as it was at the last heartbeat.
#[derive(Default)]
pub(crate) struct Peers {
    slot: AtomicI64,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    me: Option<Incarnation>,
    all: Vec<Incarnation>,
}

impl Peers {
    fn lock(&self) -> MutexGuard<'_, Known> {
        // A list that is a beat old is as good.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the register.
    pub fn update(&self, me: Incarnation, nodes: &[NodeRecord]) {
        if let Some(own) = nodes.iter().find(|node| node.incarnation == me) {
            self.slot.store(own.slot, Ordering::Relaxed);
        }
        *self.lock() = Known { me: Some(me), all: nodes.iter().map(|node| node.incarnation).collect() };
    }

    /// Where the n-th writer of this node counts. No other node counts there, but for one that came back from the dead.
    pub fn shard(&self, writer: i64) -> i64 {
        self.slot.load(Ordering::Relaxed) * WRITERS + writer
    }

    /// Whether this node is the first to serve an account. Every node finds the same first, without asking, as long as
    /// they see the same register; where they do not, they only meet more often.
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
            let peers = Peers::default();
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
