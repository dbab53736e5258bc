//! The register of a store that only one process can use. It is in memory, because no other process could
//! read it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use postway_domain::{Incarnation, Time};

use crate::record::{DutyRecord, NodeBeat, NodeRecord, free_slot};

#[derive(Default)]
struct NodeTable {
    nodes: Vec<NodeRecord>,
    duties: BTreeMap<String, DutyRecord>,
}

/// See [`crate::NodeStore`].
#[derive(Default)]
pub(crate) struct LocalNodes(Mutex<NodeTable>);

impl LocalNodes {
    fn lock(&self) -> MutexGuard<'_, NodeTable> {
        // Every critical section leaves the lists consistent, so a poisoned lock is still usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn beat(&self, node: &NodeBeat) -> Vec<NodeRecord> {
        let mut inner = self.lock();
        match inner.nodes.iter_mut().find(|known| known.incarnation == node.incarnation) {
            Some(known) => {
                known.beat += 1;
                known.beat_at = node.at;
            }
            None => {
                let slot = free_slot(&inner.nodes);
                inner.nodes.push(node.clone().registered(slot));
                inner.nodes.sort_by_key(|node| (node.started_at, node.incarnation));
            }
        }
        inner.nodes.clone()
    }

    pub fn all(&self) -> Vec<NodeRecord> {
        self.lock().nodes.clone()
    }

    pub fn strike(&self, gone: &[Incarnation]) {
        let mut inner = self.lock();
        inner.nodes.retain(|node| !gone.contains(&node.incarnation));
        for duty in inner.duties.values_mut().filter(|duty| gone.contains(&duty.holder)) {
            (duty.holder, duty.term) = (DutyRecord::NOBODY, duty.term + 1);
        }
    }

    pub fn duty(&self, name: &str) -> Option<DutyRecord> {
        self.lock().duties.get(name).copied()
    }

    pub fn take_duty(&self, name: &str, seen: Option<DutyRecord>, by: Incarnation, at: Time) -> Option<i64> {
        let mut inner = self.lock();
        if inner.duties.get(name).map(|duty| duty.term) != seen.map(|duty| duty.term) {
            return None;
        }
        let term = seen.map_or(1, |duty| duty.term + 1);
        inner.duties.insert(name.to_owned(), DutyRecord { holder: by, term, since: at });
        Some(term)
    }
}
