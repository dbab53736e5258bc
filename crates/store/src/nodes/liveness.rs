//! Which nodes are alive, as this process sees it.

use std::{
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use postway_domain::{Incarnation, NodeLiveness, liveness::NodeVisibility};
use tokio::{sync::Notify, time::Instant};

use crate::record::NodeRecord;

/// The liveness judgements of one process, shared by its subsystems.
pub struct LivenessRoster {
    me: Incarnation,
    is_shared: bool,
    started: Instant,
    liveness: Mutex<NodeLiveness>,
    apart: Mutex<Vec<Incarnation>>,
    visibility: Mutex<NodeVisibility>,
    on_beat: Notify,
}

impl LivenessRoster {
    /// The roster of this incarnation. If the store is not shared, no other node can be alive.
    pub fn new(me: Incarnation, is_shared: bool) -> Self {
        Self {
            me,
            is_shared,
            started: Instant::now(),
            liveness: Mutex::default(),
            apart: Mutex::default(),
            visibility: Mutex::default(),
            on_beat: Notify::new(),
        }
    }

    /// The incarnation of this process.
    pub fn me(&self) -> Incarnation {
        self.me
    }

    fn at(&self) -> Duration {
        self.started.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, NodeLiveness> {
        self.liveness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the judgements from the register.
    pub fn observe(&self, nodes: &[NodeRecord]) {
        let beats: Vec<_> = nodes.iter().map(|node| (node.incarnation, node.beat)).collect();
        self.lock().observe(self.at(), &beats);
    }

    /// Marks incarnations that are certainly dead: earlier ones of this very node.
    pub fn bury(&self, gone: &[Incarnation]) {
        let mut liveness = self.lock();
        gone.iter().for_each(|one| liveness.bury(*one));
    }

    /// Whether this incarnation is dead. One that is seen for the first time has ten seconds to register.
    pub fn is_dead(&self, one: Incarnation) -> bool {
        if one == self.me {
            return false;
        }
        if !self.is_shared {
            return true;
        }
        let mut liveness = self.lock();
        liveness.meet(self.at(), one);
        liveness.is_dead(&one)
    }

    /// The registered incarnations that are not dead, and this process.
    pub fn alive(&self) -> Vec<Incarnation> {
        let mut alive = if self.is_shared { self.lock().alive() } else { Vec::new() };
        if !alive.contains(&self.me) {
            alive.push(self.me);
        }
        alive
    }

    /// Sets which other nodes store large bodies where this process cannot read them.
    pub fn set_apart(&self, apart: Vec<Incarnation>) {
        *self.apart.lock().unwrap_or_else(PoisonError::into_inner) = apart;
    }

    /// The nodes that store large bodies where this process cannot read them, as of the last check.
    pub fn apart(&self) -> Vec<Incarnation> {
        self.apart.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the register has been seen without a gap for long enough to judge by it.
    pub fn is_calm(&self) -> bool {
        self.lock().is_calm(self.at())
    }

    /// Records that a heartbeat of this process, begun at `begun`, was written.
    pub fn note_beat(&self, began: Instant) {
        let began = began.saturating_duration_since(self.started);
        self.visibility.lock().unwrap_or_else(PoisonError::into_inner).beat(began, self.at());
        self.on_beat.notify_waiters();
    }

    fn visibility(&self) -> NodeVisibility {
        *self.visibility.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process has failed to write heartbeats for so long that others may soon take over its
    /// work. It must not begin anything new then.
    pub fn is_isolated(&self) -> bool {
        self.is_shared && self.visibility().is_isolated(self.at())
    }

    /// Whether a heartbeat of this process was ever written.
    pub fn has_beaten(&self) -> bool {
        self.visibility().has_beaten()
    }

    /// Whether no other node can have taken over this process's work since then.
    pub fn is_trusted_since(&self, asked: Instant) -> bool {
        let asked = asked.saturating_duration_since(self.started);
        !self.is_shared || self.visibility().lasts(asked, self.at())
    }

    /// Waits until this process is not isolated.
    pub async fn rejoined(&self) {
        loop {
            // Registered before the check, so that a heartbeat in between is not missed.
            let mut beaten = pin!(self.on_beat.notified());
            beaten.as_mut().enable();
            if !self.is_isolated() {
                return;
            }
            beaten.await;
        }
    }
}
