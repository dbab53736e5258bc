//! What happened in a run, in order: the story that a seed tells.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

/// The lines of a run, and what of it must not have been.
pub(super) struct RunTrace {
    started: Instant,
    told: Mutex<TraceLines>,
}

#[derive(Default)]
struct TraceLines {
    lines: Vec<String>,
    violations: Vec<String>,
}

/// A run as it is judged afterwards.
pub(super) struct RunRecord {
    pub lines: Vec<String>,
    pub violations: Vec<String>,
}

impl RunTrace {
    pub fn new() -> Self {
        Self { started: Instant::now(), told: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, TraceLines> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened.
    pub fn note(&self, what: fmt::Arguments<'_>) {
        let at = self.started.elapsed();
        let line = format!("{:>6}.{:03} {what}", at.as_secs(), at.subsec_millis());
        self.lock().lines.push(line);
    }

    /// Something happened that must not.
    pub fn violation(&self, what: fmt::Arguments<'_>) {
        self.note(format_args!("VIOLATION {what}"));
        self.lock().violations.push(what.to_string());
    }

    /// The whole, at the end.
    pub fn story(&self) -> RunRecord {
        let told = std::mem::take(&mut *self.lock());
        RunRecord { lines: told.lines, violations: told.violations }
    }
}

impl RunRecord {
    /// Of a run that panicked. What it said is on standard error.
    pub fn broken() -> Self {
        Self { lines: Vec::new(), violations: vec!["the run itself broke".to_owned()] }
    }

    /// The same for the same story, and hardly for another.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.lines.hash(&mut hasher);
        hasher.finish()
    }
}
