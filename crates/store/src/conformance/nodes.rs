//! Nodes that share a store, and what one of them does at a time.

use super::{
    Shared,
    sample::{at, incarnation},
    stage::{all_at_once, beat_of},
};
use crate::{
    error::StoreError,
    record::{NodeBeat, NodeRecord},
};

/// Registers, again where another node was in the way.
async fn beat(store: &Shared, n: u8, now_ms: i64) -> Vec<NodeRecord> {
    loop {
        match store.beat(&NodeBeat { at: at(now_ms), ..beat_of(n) }).await {
            Err(StoreError::Conflict(_)) => {}
            done => return done.unwrap(),
        }
    }
}

/// A counter that moves is all that others need to see.
pub async fn a_heartbeat_registers_and_then_counts(store: &Shared) {
    assert_eq!(store.nodes().await.unwrap(), []);
    let first = beat(store, 1, 10).await;
    let expected = NodeBeat { at: at(10), ..beat_of(1) }.registered(0);
    assert_eq!(first, std::slice::from_ref(&expected));
    let second = beat(store, 1, 20).await;
    assert_eq!(second, [NodeRecord { beat: 2, beat_at: at(20), ..expected }]);
    assert_eq!(store.nodes().await.unwrap(), second);
}

/// However many start together.
pub async fn each_node_has_a_slot_of_its_own(store: &Shared) {
    let starts = (1..=6).map(|n| {
        let store = store.clone();
        async move { beat(&store, n, 10).await }
    });
    all_at_once(starts).await;
    let nodes = store.nodes().await.unwrap();
    let mut slots: Vec<i64> = nodes.iter().map(|node| node.slot).collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 1, 2, 3, 4, 5]);
    let started: Vec<_> = nodes.iter().map(|node| node.incarnation).collect();
    assert_eq!(started, (1..=6).map(incarnation).collect::<Vec<_>>(), "the oldest first");
}

/// A node that was taken for dead and is not comes back by itself.
pub async fn a_struck_node_is_gone_until_it_beats_again(store: &Shared) {
    for n in 1..=3 {
        beat(store, n, 10).await;
    }
    store.strike(&[incarnation(1), incarnation(9)]).await.unwrap();
    store.strike(&[]).await.unwrap();
    let left: Vec<_> = store.nodes().await.unwrap().iter().map(|node| node.incarnation).collect();
    assert_eq!(left, [incarnation(2), incarnation(3)]);
    let back = beat(store, 1, 20).await;
    assert_eq!((back.len(), back[0].beat, back[0].slot), (3, 1, 0), "with the slot that was free");
}

/// A node that leaves in order, or was found dead, makes no other node wait, and takes nothing back with
/// outdated knowledge.
pub async fn the_duties_of_a_struck_node_are_free(store: &Shared) {
    for name in ["sweep", "tell"] {
        assert_eq!(store.take_duty(name, None, incarnation(1), at(5)).await.unwrap(), Some(1));
    }
    assert_eq!(store.take_duty("route", None, incarnation(2), at(5)).await.unwrap(), Some(1));
    let before = store.duty("sweep").await.unwrap().unwrap();
    assert!(!before.is_free());
    store.strike(&[incarnation(1), incarnation(9)]).await.unwrap();
    for name in ["sweep", "tell"] {
        let duty = store.duty(name).await.unwrap().unwrap();
        assert!(duty.is_free() && duty.term == 2, "{duty:?}");
    }
    assert_eq!(store.duty("route").await.unwrap().unwrap().holder, incarnation(2), "another's");
    assert_eq!(store.take_duty("sweep", Some(before), incarnation(1), at(6)).await.unwrap(), None);
    let free = store.duty("sweep").await.unwrap();
    assert_eq!(store.take_duty("sweep", free, incarnation(2), at(7)).await.unwrap(), Some(3));
}

/// A node that takes a duty must have seen its holder.
pub async fn a_duty_changes_hands_once(store: &Shared) {
    assert_eq!(store.duty("sweep").await.unwrap(), None);
    assert_eq!(store.take_duty("sweep", None, incarnation(1), at(5)).await.unwrap(), Some(1));
    assert_eq!(store.take_duty("sweep", None, incarnation(2), at(6)).await.unwrap(), None);
    let seen = store.duty("sweep").await.unwrap().unwrap();
    assert_eq!((seen.holder, seen.term, seen.since), (incarnation(1), 1, at(5)));
    let heirs = (2..=9).map(|n| {
        let store = store.clone();
        async move { store.take_duty("sweep", Some(seen), incarnation(n), at(7)).await.unwrap() }
    });
    let terms: Vec<i64> = all_at_once(heirs).await.into_iter().flatten().collect();
    assert_eq!(terms, [2]);
    assert_eq!(store.duty("sweep").await.unwrap().unwrap().term, 2);
    assert_eq!(store.duty("other").await.unwrap(), None);
}
