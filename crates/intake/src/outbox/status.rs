//! How a source stands, for people.

use std::sync::{Mutex, MutexGuard, PoisonError};

use postway_domain::{Incarnation, TenantId, Time};

/// How a source stands on this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It was not looked at yet.
    #[default]
    Starting,
    /// This node serves it.
    Serving,
    /// Another node serves it.
    Elsewhere,
    /// It cannot be served now; the error says why.
    Away,
    /// This node is stopping.
    Stopped,
}

impl Standing {
    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Elsewhere => "elsewhere",
            Self::Away => "away",
            Self::Stopped => "stopped",
        }
    }
}

/// A source and how it stands.
#[derive(Clone, Debug)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// Whose mail it is.
    pub tenant: TenantId,
    /// `generic`, or `accounts`.
    pub kind: &'static str,
    /// Where it is, without its password.
    pub database: String,
    /// How it stands on the node that answers.
    pub standing: Standing,
    /// The node that has the duty.
    pub holder: Option<Incarnation>,
    /// Rows that wait, as far as they were counted; unknown while it is away.
    pub waiting: Option<u32>,
    /// How long the oldest of them waits.
    pub lag_seconds: Option<f64>,
    /// Rows accepted by this node since it started.
    pub accepted: u64,
    /// Rows refused by this node since it started.
    pub invalid: u64,
    /// When this node last took rows.
    pub last_taken_at: Option<Time>,
    /// What went wrong last, until it goes well again.
    pub error: Option<String>,
}

/// What this node knows of a source.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    pub standing: Standing,
    pub waiting: Option<u32>,
    pub lag_seconds: Option<f64>,
    pub accepted: u64,
    pub invalid: u64,
    pub last_taken_at: Option<Time>,
    pub error: Option<String>,
}

/// The same, shared.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<Live>);

impl Board {
    pub(super) fn read(&self) -> Live {
        self.lock().clone()
    }

    pub(super) fn write(&self, change: impl FnOnce(&mut Live)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
