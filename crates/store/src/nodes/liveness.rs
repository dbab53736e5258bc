//! Who of the nodes is alive, as this process sees it.

use std::{
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use postway_domain::{Incarnation, Liveness, liveness::Visibility};
use tokio::{sync::Notify, time::Instant};

use crate::record::NodeRecord;

/// The judgement of one process, shared by its rooms.
pub struct Roster {
    me: Incarnation,
    is_shared: bool,
    started: Instant,
    liveness: Mutex<Liveness>,
    apart: Mutex<Vec<Incarnation>>,
    visibility: Mutex<Visibility>,
    on_beat: Notify,
}

impl Roster {
    /// For this life of this process. Where the store is not shared, nobody else can be alive.
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

    /// This life of this process.
    pub fn me(&self) -> Incarnation {
        self.me
    }

    fn at(&self) -> Duration {
        self.started.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Liveness> {
        self.liveness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the register.
    pub fn observe(&self, nodes: &[NodeRecord]) {
        let beats: Vec<_> = nodes.iter().map(|node| (node.incarnation, node.beat)).collect();
        self.lock().observe(self.at(), &beats);
    }

    /// Knows for certain that these are gone: earlier lives of this very node.
    pub fn bury(&self, gone: &[Incarnation]) {
        let mut liveness = self.lock();
        gone.iter().for_each(|one| liveness.bury(*one));
    }

    /// Whether this one is dead. Somebody met for the first time has ten seconds to register.
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

    /// Those registered that are not dead, and this process.
    pub fn alive(&self) -> Vec<Incarnation> {
        let mut alive = if self.is_shared { self.lock().alive() } else { Vec::new() };
        if !alive.contains(&self.me) {
            alive.push(self.me);
        }
        alive
    }

    /// Takes in which of the others keep large bodies where this process cannot read them.
    pub fn set_apart(&self, apart: Vec<Incarnation>) {
        *self.apart.lock().unwrap_or_else(PoisonError::into_inner) = apart;
    }

    /// Those that keep large bodies where this process cannot read them, when it last looked.
    pub fn apart(&self) -> Vec<Incarnation> {
        self.apart.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the register has been seen without a gap for long enough to judge by it.
    pub fn is_calm(&self) -> bool {
        self.lock().is_calm(self.at())
    }

    /// A heartbeat of this process that was begun then has landed.
    pub fn note_beat(&self, began: Instant) {
        let began = began.saturating_duration_since(self.started);
        self.visibility.lock().unwrap_or_else(PoisonError::into_inner).beat(began, self.at());
        self.on_beat.notify_waiters();
    }

    fn visibility(&self) -> Visibility {
        *self.visibility.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process has not been able to say that it is alive for so long that others may soon take its work over.
    /// It begins nothing more then.
    pub fn is_isolated(&self) -> bool {
        self.is_shared && self.visibility().is_isolated(self.at())
    }

    /// Whether a heartbeat of this process has ever landed.
    pub fn has_beaten(&self) -> bool {
        self.visibility().has_beaten()
    }

    /// Whether nobody can have taken this process's work over since then.
    pub fn is_trusted_since(&self, asked: Instant) -> bool {
        let asked = asked.saturating_duration_since(self.started);
        !self.is_shared || self.visibility().lasts(asked, self.at())
    }

    /// Waits until this process is not isolated.
    pub async fn rejoined(&self) {
        loop {
            // Registered before the look, so that a beat in between is not missed.
            let mut beaten = pin!(self.on_beat.notified());
            beaten.as_mut().enable();
            if !self.is_isolated() {
                return;
            }
            beaten.await;
        }
    }
}
