//! The status of a source.

use std::sync::{Mutex, MutexGuard, PoisonError};

use postway_domain::{Incarnation, TenantId, Time};

/// The state of a source on this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceState {
    /// It was not connected yet.
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

impl SourceState {
    /// The word that users see.
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

/// A source and its status.
#[derive(Clone, Debug)]
pub struct SourceStatus {
    /// The name of the source.
    pub name: String,
    /// The tenant of its mail.
    pub tenant: TenantId,
    /// `generic`, or `accounts`.
    pub kind: &'static str,
    /// The address of the database, without its password.
    pub database: String,
    /// The state on the node that answers.
    pub standing: SourceState,
    /// The node that has the duty.
    pub holder: Option<Incarnation>,
    /// The number of pending rows, as far as they were counted; unknown while the source is away.
    pub waiting: Option<u32>,
    /// The age of the oldest pending row.
    pub lag_seconds: Option<f64>,
    /// Rows accepted by this node since it started.
    pub accepted: u64,
    /// Rows refused by this node since it started.
    pub invalid: u64,
    /// When this node last took rows.
    pub last_taken_at: Option<Time>,
    /// The last error, until the source works again.
    pub error: Option<String>,
}

/// What this node knows about a source.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveStatus {
    pub standing: SourceState,
    pub waiting: Option<u32>,
    pub lag_seconds: Option<f64>,
    pub accepted: u64,
    pub invalid: u64,
    pub last_taken_at: Option<Time>,
    pub error: Option<String>,
}

/// The status of a source, shared between its runner and the API.
#[derive(Debug, Default)]
pub(super) struct OutboxStatusBoard(Mutex<LiveStatus>);

impl OutboxStatusBoard {
    pub(super) fn read(&self) -> LiveStatus {
        self.lock().clone()
    }

    pub(super) fn write(&self, change: impl FnOnce(&mut LiveStatus)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, LiveStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
