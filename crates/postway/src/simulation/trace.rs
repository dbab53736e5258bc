//! The trace of a run: what happened, in order.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

/// The lines of a run, and the promises that it broke.
pub(super) struct RunTrace {
    started: Instant,
    told: Mutex<TraceLines>,
}

#[derive(Default)]
struct TraceLines {
    lines: Vec<String>,
    violations: Vec<String>,
}

/// The trace of a finished run.
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

    /// Adds a line.
    pub fn note(&self, what: fmt::Arguments<'_>) {
        let at = self.started.elapsed();
        let line = format!("{:>6}.{:03} {what}", at.as_secs(), at.subsec_millis());
        self.lock().lines.push(line);
    }

    /// Adds a broken promise.
    pub fn violation(&self, what: fmt::Arguments<'_>) {
        self.note(format_args!("VIOLATION {what}"));
        self.lock().violations.push(what.to_string());
    }

    /// The complete trace, at the end.
    pub fn story(&self) -> RunRecord {
        let told = std::mem::take(&mut *self.lock());
        RunRecord { lines: told.lines, violations: told.violations }
    }
}

impl RunRecord {
    /// The record of a run that panicked. Its message is on standard error.
    pub fn broken() -> Self {
        Self { lines: Vec::new(), violations: vec!["the run itself broke".to_owned()] }
    }

    /// A hash of the lines.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.lines.hash(&mut hasher);
        hasher.finish()
    }
}
