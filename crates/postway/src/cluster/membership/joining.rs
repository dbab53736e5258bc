//! Before a node registers, and when it returns after an absence, it listens for a moment and takes over the
//! others' time. Before it registers it also finds out whether another process runs with its identity.

use std::{collections::HashMap, time::Duration};

use postway_domain::{Clock as _, Incarnation};
use postway_store::{
    Store, StoreError,
    record::{NodeBeat, NodeRecord},
};
use tokio::time::Instant;

use crate::cluster::clock::{ClockDistance, ClockFollower, NodeClock};

/// How long to listen for other nodes before they are taken for gone: more than two beats.
const AGREE_WITHIN: Duration = Duration::from_millis(2_500);
/// How often to poll meanwhile.
const POLL_EVERY: Duration = Duration::from_millis(50);
/// Beats that must agree before the machine's time is replaced by theirs: one may have been delayed.
const BEATS: usize = 2;

/// Takes over the time of the other nodes. Polls often for a moment, until one of them moves its counter. If
/// none does, none is alive, and the machine's current time is used: it may have been set while this node
/// waited for the store. Returns the node that is alive under the same identity, if there is one.
pub(super) async fn agree(
    store: &dyn Store,
    clock: &NodeClock,
    identity: &[u8; 16],
) -> Result<Option<NodeRecord>, StoreError> {
    let heard = listen(store, clock, identity, None).await?;
    if !heard.is_agreed {
        clock.shift(clock.machine_ahead_ms());
    }
    Ok(heard.namesake)
}

/// Takes over the others' time on a running node that was frozen or cut off, and has missed changes of it.
/// Returns whether another node is alive.
pub(super) async fn agree_anew(
    store: &dyn Store,
    clock: &NodeClock,
    me: &NodeBeat,
) -> Result<bool, StoreError> {
    Ok(listen(store, clock, &me.identity, Some(me.incarnation)).await?.is_agreed)
}

/// What listening showed.
struct HeardBeats {
    /// A living node with the same identity.
    namesake: Option<NodeRecord>,
    /// Whether another node's time is known.
    is_agreed: bool,
}

async fn listen(
    store: &dyn Store,
    clock: &NodeClock,
    identity: &[u8; 16],
    me: Option<Incarnation>,
) -> Result<HeardBeats, StoreError> {
    let mut heard = HeardBeats { namesake: None, is_agreed: false };
    let mut followers: HashMap<Incarnation, ClockFollower> = HashMap::new();
    let mut own_beats: HashMap<Incarnation, i64> = HashMap::new();
    let started = Instant::now();
    loop {
        let asked = clock.now();
        let mut nodes = store.nodes().await?;
        nodes.retain(|node| Some(node.incarnation) != me);
        let answered = clock.now();
        let (own, others): (Vec<NodeRecord>, Vec<NodeRecord>) =
            nodes.into_iter().partition(|node| node.identity == *identity);
        for node in &others {
            followers.entry(node.incarnation).or_default().hear(node.beat, node.beat_at, (asked, answered));
        }
        let is_over = started.elapsed() > AGREE_WITHIN;
        let enough = if is_over { 1 } else { BEATS };
        // The oldest node with a known distance.
        let said = others.iter().filter_map(|node| followers.get(&node.incarnation));
        let known = said
            .map(|said| (said.distance(1), said.distance(enough)))
            .find(|(first, _)| *first != ClockDistance::Unknown);
        let is_agreed = match known {
            Some((_, ClockDistance::Off(by_ms))) => {
                clock.shift(by_ms);
                tracing::warn!(by_ms, "this machine's clock differs from the other nodes'; theirs is used");
                true
            }
            Some((ClockDistance::Near, _)) => true,
            Some(_) | None => false,
        };
        if is_agreed {
            followers.clear();
            heard.is_agreed = true;
        }
        if let Some(moving) = own
            .iter()
            .find(|node| own_beats.insert(node.incarnation, node.beat).is_some_and(|beat| beat != node.beat))
        {
            return Ok(HeardBeats { namesake: Some(moving.clone()), ..heard });
        }
        // An earlier life that is over does not move; that takes as long to see as for any other.
        let is_known = heard.is_agreed || others.is_empty();
        if is_over || (is_known && own.is_empty()) {
            return Ok(heard);
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

#[cfg(test)]
mod tests;
