//! The tracer of this process: which new traces are recorded, and the queue of finished spans.
//!
//! The queue never grows beyond [`QUEUED_SPANS_MAX`]: a span that finds it full is dropped and counted.
//! Whoever exports waits for [`Tracer::filled`] and takes batches.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use rand::Rng;
use tokio::sync::Notify;

use crate::{
    context::{SpanId, TraceId},
    span::FinishedSpan,
};

/// The most finished spans that wait to be exported: some megabytes.
pub const QUEUED_SPANS_MAX: usize = 8_192;
/// The exporter is woken when this many wait, before its interval is over.
const WAKES_AT: usize = 512;

/// How far the times of spans may be off the clock.
const DRIFT_NS_MAX: u64 = 50_000_000;

static TRACER: OnceLock<Tracer> = OnceLock::new();

/// Installs the tracer of this process; false if it has one already.
pub fn install(tracer: Tracer) -> bool {
    TRACER.set(tracer).is_ok()
}

/// The tracer of this process, if it traces.
pub fn tracer() -> Option<&'static Tracer> {
    TRACER.get()
}

/// Whether this process traces.
pub fn is_on() -> bool {
    tracer().is_some()
}

/// Samples traces and keeps finished spans until they are exported.
#[derive(Debug)]
pub struct Tracer {
    /// A new trace is recorded if its random part is less than this; `None`: all are.
    below: Option<u64>,
    /// The moment that times are counted from.
    epoch: Instant,
    /// What the clock showed at that moment, in nanoseconds since 1970.
    epoch_unix_ns: AtomicU64,
    queue: Mutex<VecDeque<FinishedSpan>>,
    filled: Notify,
    finished: AtomicU64,
    dropped: AtomicU64,
}

/// How many spans have come and gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracerCounts {
    /// Spans that were recorded.
    pub finished: u64,
    /// Spans that found the queue full.
    pub dropped: u64,
}

impl Tracer {
    /// Records this share of the traces that begin here, from 0 to 1. `unix_ms` is the current time.
    pub fn new(share: f64, unix_ms: i64) -> Self {
        let tracer = Self {
            // All or none are said exactly; between them a rounding error means nothing.
            below: (share < 1.0).then_some((share.max(0.0) * u64::MAX as f64) as u64),
            epoch: Instant::now(),
            epoch_unix_ns: AtomicU64::new(0),
            queue: Mutex::default(),
            filled: Notify::new(),
            finished: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        };
        tracer.set_clock(unix_ms);
        tracer
    }

    /// Says what the clock shows now. Spans measure with the monotonic clock, which drifts from it; it is
    /// followed only when it is off by more than [`DRIFT_NS_MAX`], so that the parts of a span stay within it.
    pub fn set_clock(&self, unix_ms: i64) {
        let since_epoch = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now_ns = u64::try_from(unix_ms).unwrap_or(0).saturating_mul(1_000_000);
        let epoch_ns = now_ns.saturating_sub(since_epoch);
        if epoch_ns.abs_diff(self.epoch_unix_ns.load(Ordering::Relaxed)) > DRIFT_NS_MAX {
            self.epoch_unix_ns.store(epoch_ns, Ordering::Relaxed);
        }
    }

    pub(crate) fn unix_ns(&self, at: Instant) -> u64 {
        let since_epoch =
            u64::try_from(at.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX);
        self.epoch_unix_ns.load(Ordering::Relaxed).saturating_add(since_epoch)
    }

    /// The id of a new trace, if it is recorded.
    pub(crate) fn sample(&self) -> Option<TraceId> {
        if self.below == Some(0) {
            return None;
        }
        let trace = loop {
            if let Some(trace) = TraceId::from_bytes(rand::rng().random()) {
                break trace;
            }
        };
        self.below.is_none_or(|below| trace.chance() < below).then_some(trace)
    }

    pub(crate) fn new_span_id(&self) -> SpanId {
        loop {
            if let Some(span) = SpanId::from_bytes(rand::rng().random()) {
                return span;
            }
        }
    }

    /// Keeps a finished span until it is exported, if there is room.
    pub(crate) fn keep(&self, span: FinishedSpan) {
        self.finished.fetch_add(1, Ordering::Relaxed);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() >= QUEUED_SPANS_MAX {
            drop(queue);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.push_back(span);
        let wakes = queue.len() == WAKES_AT;
        drop(queue);
        if wakes {
            self.filled.notify_one();
        }
    }

    /// Takes the oldest finished spans, at most `max` of them.
    pub fn take(&self, max: usize) -> Vec<FinishedSpan> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let count = queue.len().min(max);
        queue.drain(..count).collect()
    }

    /// Waits until enough spans have finished for an export before its time.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }

    /// The counts since the start.
    pub fn counts(&self) -> TracerCounts {
        TracerCounts {
            finished: self.finished.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Span, SpanKind};

    #[test]
    fn a_full_queue_drops_spans_and_counts_them() {
        let tracer: &'static Tracer = Box::leak(Box::new(Tracer::new(1.0, 0)));
        let more = 100;
        for _ in 0..QUEUED_SPANS_MAX + more {
            drop(Span::begin_with(tracer, None, SpanKind::Internal, "work"));
        }
        let counts = tracer.counts();
        assert_eq!((counts.finished, counts.dropped), ((QUEUED_SPANS_MAX + more) as u64, more as u64));
        assert_eq!(tracer.take(usize::MAX).len(), QUEUED_SPANS_MAX);
        assert!(tracer.take(1).is_empty());
    }

    #[test]
    fn about_the_wanted_share_of_traces_is_recorded() {
        let recorded = |share| {
            let tracer = Tracer::new(share, 0);
            (0..10_000).filter(|_| tracer.sample().is_some()).count()
        };
        assert_eq!((recorded(0.0), recorded(1.0)), (0, 10_000));
        let tenth = recorded(0.1);
        assert!((800..1_200).contains(&tenth), "{tenth}");
    }

    #[test]
    fn times_follow_the_clock_that_is_told() {
        let tracer = Tracer::new(1.0, 1_000);
        let first = tracer.unix_ns(Instant::now());
        assert!((1_000_000_000..2_000_000_000).contains(&first), "{first}");
        tracer.set_clock(50_000);
        assert!(tracer.unix_ns(Instant::now()) >= 50_000_000_000);
    }
}
