//! One life of a node: from its start until it crashes, stops, or the run ends.
//!
//! Everything that a life can do goes through its connection to the store and its connections to relays. Both
//! ask here first. So a crash need not end its tasks: they continue as ghosts whose calls are never made and
//! never answered, and a life can be cut off between any two of its effects. A frozen life is stopped the
//! same way and continues afterwards, as a zombie if it was taken for dead meanwhile.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// Whether a life may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifePulse {
    Beating,
    Frozen,
    Dead,
}

/// One life of a node.
#[derive(Debug)]
pub(super) struct NodeLife {
    /// The node's number.
    pub node: usize,
    /// Node and number, such as `n2.1`.
    pub name: String,
    /// Whether what it had written to a connection and the relay had not read is lost with it.
    pub loses_bytes: bool,
    pulse: Mutex<LifePulse>,
    changed: Notify,
    /// Until when the connections that it has to the store say nothing.
    hushed_until: Mutex<Option<Instant>>,
    /// When others last saw it beat.
    beaten_at: Mutex<Option<Instant>>,
}

impl NodeLife {
    pub fn new(node: usize, name: String, loses_bytes: bool) -> Self {
        Self {
            node,
            name,
            loses_bytes,
            pulse: Mutex::new(LifePulse::Beating),
            changed: Notify::new(),
            hushed_until: Mutex::default(),
            beaten_at: Mutex::default(),
        }
    }

    pub fn pulse(&self) -> LifePulse {
        *self.pulse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes its pulse; the dead stay so.
    pub fn set(&self, to: LifePulse) {
        let mut pulse = self.pulse.lock().unwrap_or_else(PoisonError::into_inner);
        if *pulse != LifePulse::Dead {
            *pulse = to;
        }
        drop(pulse);
        self.changed.notify_waiters();
    }

    /// Its connections to the store fall silent.
    pub fn hush(&self, until: Instant) {
        *self.hushed_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// Whether its connections to the store are silent.
    pub fn is_hushed(&self) -> bool {
        let until = *self.hushed_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// A heartbeat of it is in the register.
    pub fn note_beat(&self) {
        *self.beaten_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// For how long no heartbeat of it has landed; none if none ever did.
    pub fn unbeaten_for(&self) -> Option<Duration> {
        self.beaten_at.lock().unwrap_or_else(PoisonError::into_inner).map(|at| at.elapsed())
    }

    /// Waits until its pulse satisfies `is`.
    pub async fn until(&self, is: impl Fn(LifePulse) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if is(self.pulse()) {
                return;
            }
            changed.await;
        }
    }

    /// Returns when it may act; never for the dead.
    pub async fn acts(&self) {
        self.until(|pulse| pulse == LifePulse::Beating).await;
    }
}
