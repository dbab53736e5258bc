//! This process among the nodes of its database: it registers, beats, watches the others, and takes duties.
//!
//! A node's identity stays in its data folder, under a lock of the operating system. So a node that starts
//! again knows that its earlier life is over and need not wait for it to be declared dead.

mod joining;

use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    net::SocketAddr,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use postway_domain::{Clock, Incarnation, Time, liveness::BEAT_EVERY};
use postway_store::{
    LivenessRoster, Store, StoreError,
    blob::BlobStorage,
    record::{DirectoryChange, NodeBeat, NodeRecord},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::joining::{agree, agree_anew};
use super::{
    clock::{ClockDistance, ClockFollower, ClockNote, KernelUptime, NodeClock},
    shared_storage_check,
};

/// Beats that must agree before a node that runs moves its clock.
const FOLLOW_AFTER: usize = 8;
/// A machine's clock that differs by less was nudged, and is followed by and by.
const STEP_MS: i64 = 3_000;
/// How much of such a difference is corrected in a second, and below which it is ignored: no limit's window
/// notices that.
const NUDGE_MS: i64 = 10;
/// The database's clock confirms a machine's clock that differs from it by less.
const CONFIRMED_MS: i64 = 5_000;
/// How often registering is tried when other nodes start in the same moment.
const REGISTER_TRIES: u32 = 20;

/// A registered node.
pub struct ClusterMembership {
    store: Arc<dyn Store>,
    clock: Arc<NodeClock>,
    roster: Arc<LivenessRoster>,
    card: NodeBeat,
    /// Follows the oldest node, unless that is this one.
    follower: Mutex<Option<(Incarnation, ClockFollower)>>,
    /// Whether limits go by this node's time since it became the oldest.
    has_led: AtomicBool,
    /// The time of this node for its next life, if it has a folder.
    note: Option<ClockNote>,
    _identity: Option<File>,
}

impl ClusterMembership {
    /// Registers this process under the identity that its data folder keeps.
    pub async fn join(
        store: Arc<dyn Store>,
        clock: Arc<NodeClock>,
        data_dir: &Path,
        address: SocketAddr,
        depot: &BlobStorage,
    ) -> anyhow::Result<Self> {
        let (identity, lock) = read_identity(&data_dir.join("node.id"))?;
        let membership = Self::join_as(identity, store, clock, address, depot).await?;
        let note = lock.is_some().then(|| ClockNote::of(data_dir));
        let membership = Self { note, _identity: lock, ..membership };
        membership.follow_since_last_life().await?;
        Ok(membership)
    }

    /// Moves the use of limits with a clock that was set while no node ran. Whoever finds others has their
    /// time, and they have seen to it.
    async fn follow_since_last_life(&self) -> Result<(), StoreError> {
        let (Some(note), Some(uptime)) = (&self.note, KernelUptime::read()) else { return Ok(()) };
        let now = self.clock.now();
        if self.is_oldest()
            && let Some(expected) = note.expected(&uptime)
        {
            let set_by_ms = now.as_millis() - expected.as_millis();
            if set_by_ms >= STEP_MS {
                tracing::warn!(set_by_ms, "the clock was set while this node was away: limits follow it");
                self.store.change(DirectoryChange::ShiftUse(expected, set_by_ms), None).await?;
            } else if set_by_ms <= -STEP_MS {
                self.store.change(DirectoryChange::SetUseBack(now, -set_by_ms), None).await?;
            }
        }
        note.keep(&uptime, now);
        Ok(())
    }

    /// Keeps the time for the next life.
    fn note_time(&self) {
        if let (Some(note), Some(uptime)) = (&self.note, KernelUptime::read()) {
            note.keep(&uptime, self.clock.now());
        }
    }

    /// Registers this process as the present life of a node. Its earlier lives are removed from the register
    /// and known to be dead.
    pub async fn join_as(
        identity: [u8; 16],
        store: Arc<dyn Store>,
        clock: Arc<NodeClock>,
        address: SocketAddr,
        depot: &BlobStorage,
    ) -> anyhow::Result<Self> {
        if let Some(other) = agree(&*store, &clock, &identity).await? {
            anyhow::bail!(
                "the node {} at {} runs under this node's identity, and its heartbeat moves: the data folder was copied with \
                 its node.id. Delete the file node.id in this data folder and start again; a new one is made",
                other.name,
                other.address
            );
        }
        // Before other nodes can search for the mark.
        shared_storage_check::leave_mark(&*store, depot, &identity).await;
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
        let roster = Arc::new(LivenessRoster::new(incarnation, store.is_shared()));
        let follower = Mutex::default();
        let has_led = AtomicBool::new(false);
        let membership = Self { store, clock, roster, card, follower, has_led, note: None, _identity: None };
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

    /// The nodes that are alive.
    pub fn roster(&self) -> Arc<LivenessRoster> {
        self.roster.clone()
    }

    async fn beat(&self) -> Result<(), StoreError> {
        let (card, began) = (NodeBeat { at: self.clock.now(), ..self.card.clone() }, Instant::now());
        let was_away = self.roster.is_isolated() && self.roster.has_beaten();
        let nodes = self.store.beat(&card).await?;
        // Before this node counts as back: nothing starts at a time that the others do not agree on.
        if was_away && (nodes.len() == 1 || !agree_anew(&*self.store, &self.clock, &card).await?) {
            if self.is_oldest() {
                self.follow_own_machine().await?;
            }
            self.has_led.store(false, Ordering::Relaxed);
        }
        self.roster.note_beat(began);
        self.roster.observe(&nodes);
        self.follow(&nodes, card.at).await;
        metrics::gauge!("postway_nodes_alive").set(self.roster.alive().len() as f64);
        Ok(())
    }

    /// Keeps to the clock of the oldest node that is alive, unless that is this one.
    async fn follow(&self, nodes: &[NodeRecord], asked: Time) {
        let Some(by_ms) = self.behind_the_oldest(nodes, asked) else { return };
        // Whoever set the time has moved the use with it, and no limit is debited by the time before.
        self.clock.shift(by_ms);
        tracing::warn!(by_ms, "this node's clock differs from the oldest node's; that one is followed");
    }

    /// How far the oldest node's clock is ahead, if that is known and too far.
    fn behind_the_oldest(&self, nodes: &[NodeRecord], asked: Time) -> Option<i64> {
        let oldest = nodes.iter().find(|node| !self.roster.is_dead(node.incarnation));
        let mut following = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(node) = oldest.filter(|node| node.incarnation != self.card.incarnation) else {
            *following = None;
            return None;
        };
        if following.as_ref().is_none_or(|(followed, _)| *followed != node.incarnation) {
            *following = Some((node.incarnation, ClockFollower::default()));
        }
        let (_, follower) = following.as_mut()?;
        follower.hear(node.beat, node.beat_at, (asked, self.clock.now()));
        // If this machine was set by the same amount, one beat is enough: the oldest node has followed its
        // own machine.
        let machine_ms = self.clock.machine_ahead_ms();
        let is_alike = |by_ms: &i64| by_ms.abs() >= STEP_MS && (machine_ms - by_ms).abs() < STEP_MS;
        let by_ms = match (follower.last(), follower.distance(FOLLOW_AFTER)) {
            (ClockDistance::Off(by_ms), _) if is_alike(&by_ms) => by_ms,
            (_, ClockDistance::Off(by_ms)) => by_ms,
            _ => return None,
        };
        follower.forget();
        Some(by_ms)
    }

    /// Whether there is no other node to agree with.
    fn is_alone(&self) -> bool {
        self.roster.alive().len() == 1 && (!self.store.is_shared() || self.roster.is_calm())
    }

    /// Whether the others follow this node.
    fn is_oldest(&self) -> bool {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Whether the database server's clock agrees with this machine's, which is `ahead_ms` ahead; `None` if
    /// the database is not a server.
    async fn is_confirmed(&self, ahead_ms: i64) -> Result<Option<bool>, StoreError> {
        let machine_ms = self.clock.now().as_millis().saturating_add(ahead_ms);
        let server = self.store.server_time().await?;
        Ok(server.map(|server| (server.as_millis() - machine_ms).abs() < CONFIRMED_MS))
    }

    /// Follows the machine's time of day after it was set. The windows of limits move with it, so that none
    /// opens or closes because of that. One machine may be wrong: if the database is a server, its clock must
    /// agree. Of several nodes the oldest does this, and the others follow.
    pub async fn follow_machine(&self) -> Result<(), StoreError> {
        if !self.is_oldest() {
            self.note_time();
            self.has_led.store(false, Ordering::Relaxed);
            return Ok(());
        }
        self.follow_own_machine().await?;
        self.note_time();
        // Those who said the time before are gone. If it was another one, limits go by this one from now on.
        if !self.has_led.load(Ordering::Relaxed) {
            self.store.change(DirectoryChange::SetUseBack(self.clock.now(), 0), None).await?;
            self.has_led.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn follow_own_machine(&self) -> Result<(), StoreError> {
        let ahead_ms = self.clock.machine_ahead_ms();
        if ahead_ms.abs() < NUDGE_MS {
            return Ok(());
        }
        let confirmed = self.is_confirmed(ahead_ms).await?;
        if confirmed == Some(false) {
            return Ok(());
        }
        let is_believed = confirmed == Some(true) || self.is_alone();
        if ahead_ms.abs() < STEP_MS || !is_believed {
            self.clock.shift(ahead_ms.clamp(-NUDGE_MS, NUDGE_MS));
            return Ok(());
        }
        // Forward, windows go first, and back, they follow: in between they are too full, never too empty.
        if ahead_ms > 0 {
            let now = self.clock.now();
            self.store.change(DirectoryChange::ShiftUse(now, ahead_ms), None).await?;
        }
        self.clock.shift(ahead_ms);
        if ahead_ms < 0 {
            let set_back = DirectoryChange::SetUseBack(self.clock.now(), -ahead_ms);
            self.store.change(set_back, None).await?;
        }
        tracing::warn!(by_ms = ahead_ms, "this machine's clock was set, and is followed");
        Ok(())
    }

    /// Beats until `stop` is cancelled, then leaves the register and its duties to the others. Everything
    /// else must have stopped before: the others would take over what this node still does.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        tokio::join!(self.keep_beating(&stop), self.watch_isolation(&stop));
        if let Err(error) = self.store.strike(&[self.card.incarnation]).await {
            tracing::debug!(%error, "this node could not leave the register; the others will notice");
        }
    }

    /// Logs when this node stops sending because others may take over its work, and when it sends again. It
    /// is separate from the beats, because a beat that hangs must not delay the log line.
    async fn watch_isolation(&self, stop: &CancellationToken) {
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
                // Logged once, not every second.
                Err(error) if is_well => tracing::error!(%error, "this node cannot say that it is alive"),
                Err(_) => {}
            }
            is_well = beaten.is_ok();
        }
    }

    /// Removes dead nodes from the register. Their work must have been taken back before.
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
    pub async fn has_duty(&self, duty: &str) -> Result<bool, StoreError> {
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

/// The node's identity from its file, made on first start; with the lock that keeps it. A second process in
/// the same folder is another node, and gets an identity for its life only.
fn read_identity(path: &Path) -> anyhow::Result<([u8; 16], Option<File>)> {
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
    use super::*;

    #[test]
    fn an_identity_stays_and_a_second_process_gets_its_own() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("node.id");
        let (first, lock) = read_identity(&path).unwrap();
        assert!(lock.is_some());
        let (second, none) = read_identity(&path).unwrap();
        assert!(none.is_none());
        assert_ne!(first, second);
        drop(lock);
        assert_eq!(read_identity(&path).unwrap().0, first);
    }
}
