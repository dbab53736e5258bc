//! This process among the nodes of its database: registers, beats, looks at the others, and holds duties.
//!
//! A node's identity stays in its data folder, under a lock of the operating system. So a node that starts again knows
//! that its earlier life is over and need not wait for it to be declared dead.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Seek, Write},
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use postway_domain::{Clock, Incarnation, liveness::BEAT_EVERY};
use postway_store::{
    Roster, Store, StoreError,
    blob::Depot,
    record::{NodeBeat, NodeRecord},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Follower, NodeClock},
    sharing,
};

/// How long to listen for other nodes before their time is taken for gone: more than a beat.
const AGREE_WITHIN: Duration = Duration::from_millis(1_500);
/// How often to look meanwhile: what is heard is no older.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Unless a look took longer than this, because the store was slow or this process stood still.
const LOOK_MAX: Duration = Duration::from_millis(500);
/// How often registering is tried when other nodes start in the same moment.
const REGISTER_TRIES: u32 = 20;

/// A registered node.
pub struct Membership {
    store: Arc<dyn Store>,
    clock: Arc<NodeClock>,
    roster: Arc<Roster>,
    card: NodeBeat,
    follower: Mutex<Follower>,
    _identity: Option<File>,
}

impl Membership {
    /// Registers this process under the identity that its data folder keeps.
    pub async fn join(
        store: Arc<dyn Store>,
        clock: Arc<NodeClock>,
        data_dir: &Path,
        address: SocketAddr,
        depot: &Depot,
    ) -> anyhow::Result<Self> {
        let (identity, lock) = identity(&data_dir.join("node.id"))?;
        let membership = Self::join_as(identity, store, clock, address, depot).await?;
        Ok(Self { _identity: lock, ..membership })
    }

    /// Registers this process as the present life of a node. Earlier lives of it are struck from the register and known
    /// to be dead.
    pub async fn join_as(
        identity: [u8; 16],
        store: Arc<dyn Store>,
        clock: Arc<NodeClock>,
        address: SocketAddr,
        depot: &Depot,
    ) -> anyhow::Result<Self> {
        agree(&*store, &clock, &identity).await?;
        // Before anybody can look for it.
        sharing::leave_mark(&*store, depot, &identity).await;
        let now = clock.now();
        let incarnation = Incarnation::new(now, &mut rand::rng());
        let card = NodeBeat {
            incarnation,
            identity,
            name: host_name(),
            address: address.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: now,
            at: now,
        };
        let roster = Arc::new(Roster::new(incarnation, store.is_shared()));
        let follower = Mutex::default();
        let membership = Self { store, clock, roster, card, follower, _identity: None };
        let earlier: Vec<Incarnation> = membership
            .store
            .nodes()
            .await?
            .into_iter()
            .filter(|node| node.identity == identity)
            .map(|node| node.incarnation)
            .collect();
        membership.roster.bury(&earlier);
        membership.store.strike(&earlier).await?;
        let mut tries = 1;
        while let Err(error) = membership.beat().await {
            if tries == REGISTER_TRIES || !matches!(error, StoreError::Conflict(_)) {
                return Err(error).context("cannot register with the other nodes");
            }
            tries += 1;
        }
        Ok(membership)
    }

    /// What stays of this node from one life to the next.
    pub fn identity(&self) -> [u8; 16] {
        self.card.identity
    }

    /// Who is alive.
    pub fn roster(&self) -> Arc<Roster> {
        self.roster.clone()
    }

    async fn beat(&self) -> Result<(), StoreError> {
        let (card, began) = (NodeBeat { at: self.clock.now(), ..self.card.clone() }, Instant::now());
        let nodes = self.store.beat(&card).await?;
        self.roster.note_beat(began);
        self.roster.observe(&nodes);
        self.follow(&nodes);
        metrics::gauge!("postway_nodes_alive").set(self.roster.alive().len() as f64);
        Ok(())
    }

    /// Keeps to the clock of the oldest node that is alive, unless that is this one.
    fn follow(&self, nodes: &[NodeRecord]) {
        let oldest = nodes.iter().find(|node| !self.roster.is_dead(node.incarnation));
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        match oldest {
            Some(node) if node.incarnation != self.card.incarnation => {
                follower.follow(&self.clock, node.beat, node.beat_at, false);
            }
            _ => *follower = Follower::default(),
        }
    }

    /// Beats until told to stop, then leaves the register and its duties to the others. To be told when all else has
    /// stopped: what this node still does would be taken for a dead one's.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        tokio::join!(self.keep_beating(&stop), self.keep_telling(&stop));
        if let Err(error) = self.store.strike(&[self.card.incarnation]).await {
            tracing::debug!(%error, "this node could not leave the register; the others will notice");
        }
    }

    /// Tells when this node stops sending because others may take its work over, and when it goes on. Apart from the beats:
    /// one that hangs must not keep it from being told.
    async fn keep_telling(&self, stop: &CancellationToken) {
        let mut was_isolated = false;
        loop {
            let is_isolated = self.roster.is_isolated();
            metrics::gauge!("postway_node_isolated").set(f64::from(u8::from(is_isolated)));
            match (was_isolated, is_isolated) {
                (false, true) => tracing::error!(
                    "this node is isolated and begins no more sends: its heartbeat fails, and other nodes may take its mail over"
                ),
                (true, false) => tracing::info!("this node is not isolated any more, and sends again"),
                (true, true) | (false, false) => {}
            }
            was_isolated = is_isolated;
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(BEAT_EVERY) => {}
            }
        }
    }

    async fn keep_beating(&self, stop: &CancellationToken) {
        let mut is_well = true;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = tokio::time::sleep(BEAT_EVERY) => {}
            }
            let beaten = self.beat().await;
            match &beaten {
                Ok(()) if is_well => {}
                Ok(()) => tracing::info!("the other nodes see this one again"),
                // Told once, not every second.
                Err(error) if is_well => tracing::error!(%error, "this node cannot say that it is alive"),
                Err(_) => {}
            }
            is_well = beaten.is_ok();
        }
    }

    /// Strikes the dead from the register. Their work must have been taken back before.
    pub async fn strike_dead(&self) -> Result<(), StoreError> {
        let nodes = self.store.nodes().await?;
        let dead: Vec<&NodeRecord> =
            nodes.iter().filter(|node| self.roster.is_dead(node.incarnation)).collect();
        for node in &dead {
            tracing::warn!(node = %node.incarnation, name = node.name, "a node is dead; its work was taken over");
        }
        if dead.is_empty() {
            return Ok(());
        }
        self.store.strike(&dead.iter().map(|node| node.incarnation).collect::<Vec<_>>()).await
    }

    /// Whether this node has a duty now: it had it, it was free, or its holder is dead.
    pub async fn holds(&self, duty: &str) -> Result<bool, StoreError> {
        let seen = self.store.duty(duty).await?;
        match seen {
            Some(held) if held.holder == self.card.incarnation => Ok(true),
            Some(held) if !held.is_free() && !self.roster.is_dead(held.holder) => Ok(false),
            _ => {
                let taken = self.store.take_duty(duty, seen, self.card.incarnation, self.clock.now()).await?;
                if let Some(term) = taken {
                    tracing::info!(duty, term, "this node has the duty now");
                }
                Ok(taken.is_some())
            }
        }
    }
}

/// Takes over the time of the other nodes. Looks often for a moment, until one of them moves its counter; where none does,
/// none is alive, and the machine's clock is as good as any.
async fn agree(store: &dyn Store, clock: &NodeClock, identity: &[u8; 16]) -> Result<(), StoreError> {
    let mut followers: HashMap<Incarnation, Follower> = HashMap::new();
    let started = Instant::now();
    let mut last_asked = started;
    loop {
        let asked = Instant::now();
        let mut others = store.nodes().await?;
        // A counter that moved between two looks may have done so right after the first was asked for: the time that came
        // with it is as old as that.
        if last_asked.elapsed() > LOOK_MAX {
            followers.clear();
        }
        last_asked = asked;
        others.retain(|node| node.identity != *identity);
        let has_said = |node: &NodeRecord, followers: &mut HashMap<Incarnation, Follower>| {
            followers.entry(node.incarnation).or_default().follow(clock, node.beat, node.beat_at, true)
        };
        let heard = others.iter().any(|node| has_said(node, &mut followers));
        if heard || others.is_empty() || started.elapsed() > AGREE_WITHIN {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The node's identity from its file, made on first start; with the lock that keeps it. A second process in the same
/// folder is another node, and gets an identity for its life only.
fn identity(path: &Path) -> anyhow::Result<([u8; 16], Option<File>)> {
    let read = || -> io::Result<([u8; 16], Option<File>)> {
        let mut file =
            fs::OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        if file.try_lock().is_err() {
            return Ok((rand::random(), None));
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        if let Ok(id) = text.trim().parse::<Incarnation>() {
            return Ok((*id.as_bytes(), Some(file)));
        }
        let fresh: [u8; 16] = rand::random();
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", Incarnation::from_bytes(fresh))?;
        file.sync_all()?;
        Ok((fresh, Some(file)))
    };
    read().with_context(|| format!("cannot use {}", path.display()))
}

fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().take(64).collect();
    format!("{}:{}", if name.is_empty() { "node" } else { &name }, std::process::id())
}

#[cfg(test)]
mod tests {
    use postway_domain::Time;
    use postway_store::{Nodes as _, memory::MemoryStore};

    use super::*;

    /// A machine whose clock goes with tokio's.
    struct Machine(Instant);

    impl Clock for Machine {
        fn now(&self) -> Time {
            Time::from_millis(1_000_000).plus(self.0.elapsed())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_stood_still_while_it_joined_takes_over_no_old_time() {
        let store = MemoryStore::shared();
        let machine = Arc::new(Machine(Instant::now()));
        let clock = NodeClock::of(machine.clone());
        let beat = async || {
            let now = machine.now();
            let other = NodeBeat {
                incarnation: Incarnation::from_bytes([2; 16]),
                identity: [2; 16],
                name: "other".to_owned(),
                address: String::new(),
                version: String::new(),
                started_at: now,
                at: now,
            };
            store.beat(&other).await.unwrap();
        };
        beat().await;
        let stands_still = async {
            tokio::time::sleep(LOOK_EVERY / 2).await;
            beat().await;
            tokio::time::advance(Duration::from_secs(36)).await;
        };
        let (agreed, ()) = tokio::join!(agree(&store, &clock, &[1; 16]), stands_still);
        agreed.unwrap();
        assert_eq!(clock.now(), machine.now(), "the beat was 36 seconds old when it was heard");
    }

    #[test]
    fn an_identity_stays_and_a_second_process_gets_its_own() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("node.id");
        let (first, lock) = identity(&path).unwrap();
        assert!(lock.is_some());
        let (second, none) = identity(&path).unwrap();
        assert!(none.is_none());
        assert_ne!(first, second);
        drop(lock);
        assert_eq!(identity(&path).unwrap().0, first);
    }
}
