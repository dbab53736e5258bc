//! Before a node registers: it listens for a moment, takes over the others' time, and finds out whether somebody else already
//! runs as this very node.

use std::{collections::HashMap, time::Duration};

use postway_domain::{Clock as _, Incarnation};
use postway_store::{Store, StoreError, record::NodeRecord};
use tokio::time::Instant;

use crate::clock::{Distance, Follower, NodeClock};

/// How long to listen for other nodes before they are taken for gone: more than two beats.
const AGREE_WITHIN: Duration = Duration::from_millis(2_500);
/// How often to look meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Beats that must say the same before the machine's time is given up for theirs: one may have been long on its way.
const BEATS: usize = 2;

/// Takes over the time of the other nodes. Looks often for a moment, until one of them moves its counter; where none does,
/// none is alive, and the machine's clock is as good as any. Returns the node that is alive under the same identity, if there is
/// one.
pub(super) async fn agree(
    store: &dyn Store,
    clock: &NodeClock,
    identity: &[u8; 16],
) -> Result<Option<NodeRecord>, StoreError> {
    let mut followers: HashMap<Incarnation, Follower> = HashMap::new();
    let mut own_beats: HashMap<Incarnation, i64> = HashMap::new();
    let started = Instant::now();
    loop {
        let asked = clock.now();
        let nodes = store.nodes().await?;
        let told = clock.now();
        let (own, others): (Vec<NodeRecord>, Vec<NodeRecord>) =
            nodes.into_iter().partition(|node| node.identity == *identity);
        for node in &others {
            followers.entry(node.incarnation).or_default().hear(node.beat, node.beat_at, (asked, told));
        }
        let is_over = started.elapsed() > AGREE_WITHIN;
        let enough = if is_over { 1 } else { BEATS };
        // The oldest that says anything.
        let said = others.iter().filter_map(|node| followers.get(&node.incarnation));
        let known = said
            .map(|said| (said.distance(1), said.distance(enough)))
            .find(|(first, _)| *first != Distance::Unknown);
        let is_agreed = match known {
            Some((_, Distance::Off(by_ms))) => {
                clock.shift(by_ms);
                tracing::warn!(by_ms, "this machine's clock differs from the other nodes'; theirs is used");
                true
            }
            Some((Distance::Near, _)) => true,
            Some(_) | None => others.is_empty(),
        };
        if is_agreed {
            followers.clear();
        }
        if let Some(moving) = own
            .iter()
            .find(|node| own_beats.insert(node.incarnation, node.beat).is_some_and(|beat| beat != node.beat))
        {
            return Ok(Some(moving.clone()));
        }
        // An earlier life that is over does not move; that takes as long to see as for any other.
        if is_over || (is_agreed && own.is_empty()) {
            return Ok(None);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests;
