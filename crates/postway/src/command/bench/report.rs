//! The result of a bench, as a table and as JSON.
//!
//! Loss: accepted, but not in the store; or sent according to the store, but not at the sink. Duplicates:
//! mails at the sink beyond one for each message. With a sink that knows ids both are exact; with one that
//! only counts, a loss and a duplicate could hide each other, so the report says which it was.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::args::{BenchArgs, BenchMode};
use super::audit::StoreAudit;
use super::load::LoadResult;
use super::measure::{ResourceMeter, percentile};
use super::smtp_sink::SinkCount;
use crate::cli::output::CommandOutput;

/// The figures of one run; absent where they could not be measured.
#[derive(Debug, Default, Serialize)]
pub struct BenchReport {
    pub mode: &'static str,
    pub nodes: usize,
    pub messages: u32,
    pub size_bytes: u32,
    pub connections: u32,
    pub sink: String,
    pub accepted: u64,
    pub rejected: u64,
    pub repeated_requests: u64,
    pub accepted_per_second: f64,
    pub sent_per_second: f64,
    /// Of one request, which in batch mode holds many messages.
    pub accept_p50_ms: f64,
    pub accept_p99_ms: f64,
    pub accept_to_sent_p50_ms: f64,
    pub accept_to_sent_p99_ms: f64,
    pub idle: Option<IdleLatency>,
    pub cpu_seconds_per_1000: Option<f64>,
    /// By the server's process, to its disk; a database server's own writes are not in it.
    pub written_kib_per_message: Option<f64>,
    pub peak_resident_mib: Option<f64>,
    pub queued: Option<QueuedMemory>,
    pub commits_per_message: Option<f64>,
    pub lost: u64,
    pub duplicates: u64,
    pub in_doubt: u64,
    /// `message ids`, `counters`, or `store only`.
    pub counted_by: &'static str,
    pub by_status: BTreeMap<String, u64>,
    pub timed_out: bool,
    pub warnings: Vec<String>,
}

/// Latency without load, from the request to the sink's 250.
#[derive(Debug, Serialize)]
pub struct IdleLatency {
    pub messages: u32,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// The server's memory with a backlog.
#[derive(Debug, Serialize)]
pub struct QueuedMemory {
    pub messages: u64,
    pub resident_mib: Option<f64>,
}

impl BenchReport {
    /// An empty report on a run with these arguments.
    pub fn new(args: &BenchArgs, nodes: usize, sink: String) -> Self {
        Self {
            mode: if args.mode == BenchMode::Single { "single" } else { "batch" },
            nodes,
            messages: args.messages,
            size_bytes: args.size,
            connections: args.connections,
            sink,
            ..Self::default()
        }
    }

    /// Rates and latencies as the load saw them.
    pub fn set_load(&mut self, mut loaded: LoadResult, timed_out: bool) {
        self.accepted_per_second = per_second(loaded.accepted, loaded.elapsed);
        let mut at = |share| percentile(&mut loaded.latencies, share) / 1000.0;
        (self.accept_p50_ms, self.accept_p99_ms) = (at(0.50), at(0.99));
        (self.accepted, self.rejected, self.repeated_requests) =
            (loaded.accepted, loaded.rejected, loaded.repeated);
        self.warnings.extend(loaded.problem);
        self.timed_out = timed_out;
    }

    /// What it cost, from readings before and after.
    pub fn set_cost(&mut self, before: &ResourceMeter, after: &ResourceMeter) {
        let per_message = |before: Option<f64>, after: Option<f64>| {
            (self.accepted > 0)
                .then(|| Some((after? - before.unwrap_or(0.0)) / self.accepted as f64))
                .flatten()
        };
        let cpu = per_message(before.cpu_seconds, after.cpu_seconds);
        self.written_kib_per_message = per_message(before.written_kib, after.written_kib);
        self.commits_per_message = per_message(before.commits, after.commits);
        self.cpu_seconds_per_1000 = cpu.map(|seconds| seconds * 1000.0);
        self.peak_resident_mib = after.peak_resident_mib;
    }

    /// The rate from accept to sent, of what was really sent: a run that was cut short must not look fast.
    pub fn set_sent(&mut self, books: &StoreAudit, elapsed: Duration) {
        self.sent_per_second = per_second(books.sent.len() as u64, elapsed);
    }

    /// Loss and duplicates: the store's records against the sink's.
    pub fn set_books(
        &mut self,
        books: &StoreAudit,
        sink: &SinkCount,
        before: &ResourceMeter,
        after: &ResourceMeter,
    ) {
        let mut latencies = books.latencies_ms.clone();
        let mut at = |share| percentile(&mut latencies, share);
        (self.accept_to_sent_p50_ms, self.accept_to_sent_p99_ms) = (at(0.50), at(0.99));
        self.by_status = books.by_status.clone();
        let entered = after.in_doubt.unwrap_or(0.0) - before.in_doubt.unwrap_or(0.0);
        self.in_doubt = (entered.max(0.0) as u64).max(books.count("in_doubt"));
        let not_stored = self.accepted.saturating_sub(books.listed);
        let sent = books.sent.len() as u64;
        let (not_taken, duplicates, counted_by) = match (&sink.arrived, sink.mails) {
            (Some(arrived), _) => {
                let not_taken =
                    books.sent.iter().filter(|uid| !arrived.by_uid.contains_key(*uid)).count() as u64;
                let duplicates =
                    arrived.by_uid.values().map(|count| u64::from(count.saturating_sub(1))).sum();
                if arrived.foreign > 0 {
                    self.warnings.push(format!("{} mails at the sink carry no uid of ours", arrived.foreign));
                }
                (not_taken, duplicates, "message ids")
            }
            (None, Some(mails)) => (sent.saturating_sub(mails), mails.saturating_sub(sent), "counters"),
            (None, None) => (0, 0, "store only"),
        };
        (self.lost, self.duplicates, self.counted_by) = (not_stored + not_taken, duplicates, counted_by);
    }

    /// Why the run is a failure, if it is one.
    pub fn problem(&self) -> Option<String> {
        let missing = u64::from(self.messages).saturating_sub(self.accepted);
        if self.lost > 0 {
            return Some(format!("{} messages are lost", self.lost));
        }
        // A repeat where the store recorded doubt is the promise; one more is a fault.
        if self.duplicates > self.in_doubt {
            return Some(format!("{} mails were sent twice, {} in doubt", self.duplicates, self.in_doubt));
        }
        if self.timed_out || missing > 0 {
            return Some(format!("not done in time: {missing} not accepted, see by_status for the rest"));
        }
        None
    }

    /// The table for people.
    pub fn render(&self, output: CommandOutput) -> String {
        let two = |p50: f64, p99: f64| format!("{p50:.1} / {p99:.1}");
        let optional = |value: Option<f64>, digits: usize| {
            value.map(|value| format!("{value:.digits$}")).unwrap_or_default()
        };
        let states =
            self.by_status.iter().map(|(status, count)| format!("{status} {count}")).collect::<Vec<_>>();
        let idle = self.idle.as_ref().map(|idle| two(idle.p50_ms, idle.p99_ms)).unwrap_or_default();
        let queued = self.queued.as_ref().map(|queued| {
            let memory =
                queued.resident_mib.map(|mib| format!(", {mib:.1} MiB resident")).unwrap_or_default();
            format!("{}{memory}", queued.messages)
        });
        let mut text = output.fields([
            ("load", format!("{} messages of {} bytes, {}", self.messages, self.size_bytes, self.mode)),
            ("sink", format!("{}, {} connections", self.sink, self.connections)),
            ("queued before", queued.unwrap_or_default()),
            ("accepted/s", format!("{:.0}", self.accepted_per_second)),
            ("accept to sent/s", format!("{:.0}", self.sent_per_second)),
            ("accept p50 / p99 (ms)", two(self.accept_p50_ms, self.accept_p99_ms)),
            ("accept to sent p50 / p99 (ms)", two(self.accept_to_sent_p50_ms, self.accept_to_sent_p99_ms)),
            ("idle, post to 250, p50 / p99 (ms)", idle),
            ("CPU-seconds per 1,000", optional(self.cpu_seconds_per_1000, 3)),
            ("written per message (KiB)", optional(self.written_kib_per_message, 1)),
            ("peak resident (MiB)", optional(self.peak_resident_mib, 1)),
            ("commits per message", optional(self.commits_per_message, 4)),
            ("lost", format!("{} (by {})", self.lost, self.counted_by)),
            ("duplicates", self.duplicates.to_string()),
            ("in doubt", self.in_doubt.to_string()),
            ("states", states.join(", ")),
            (
                "rejected",
                Some(self.rejected)
                    .filter(|count| *count > 0)
                    .map(|count| count.to_string())
                    .unwrap_or_default(),
            ),
        ]);
        for warning in &self.warnings {
            text.push_str(&format!("\nwarning: {warning}"));
        }
        text
    }
}

fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(0.001)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::bench::sink::ArrivedMail;
    use uuid::Uuid;

    fn books(sent: &[u128]) -> StoreAudit {
        let by_status = BTreeMap::from([("sent".to_owned(), sent.len() as u64)]);
        let sent: Vec<Uuid> = sent.iter().map(|id| Uuid::from_u128(*id)).collect();
        StoreAudit {
            by_status,
            latencies_ms: vec![5; sent.len()],
            listed: sent.len() as u64,
            sent,
            ..StoreAudit::default()
        }
    }

    fn received(by_uid: &[(u128, u32)]) -> SinkCount {
        let by_uid = by_uid.iter().map(|(id, count)| (Uuid::from_u128(*id), *count)).collect();
        SinkCount { name: "builtin".into(), mails: None, arrived: Some(ArrivedMail { by_uid, foreign: 0 }) }
    }

    fn report(accepted: u64, books: &StoreAudit, sink: &SinkCount, in_doubt: f64) -> BenchReport {
        let mut report = BenchReport { messages: accepted as u32, accepted, ..BenchReport::default() };
        let after = ResourceMeter { in_doubt: Some(in_doubt), ..ResourceMeter::default() };
        report.set_books(books, sink, &ResourceMeter::default(), &after);
        report
    }

    #[test]
    fn a_loss_and_a_duplicate_do_not_hide_each_other() {
        let report = report(3, &books(&[1, 2, 3]), &received(&[(1, 2), (2, 1)]), 0.0);
        assert_eq!((report.lost, report.duplicates), (1, 1));
        assert!(report.problem().unwrap().contains("lost"));
    }

    #[test]
    fn what_was_accepted_but_is_not_in_the_store_is_lost() {
        assert_eq!(report(2, &books(&[1]), &received(&[(1, 1)]), 0.0).lost, 1);
    }

    #[test]
    fn a_duplicate_is_excused_by_recorded_doubt_only() {
        let (books, sink) = (books(&[1]), received(&[(1, 2)]));
        assert_eq!(report(1, &books, &sink, 1.0).problem(), None);
        assert!(report(1, &books, &sink, 0.0).problem().unwrap().contains("twice"));
    }

    #[test]
    fn a_sink_that_only_counts_is_named_as_such() {
        let sink = SinkCount { name: "smtp-sink".into(), mails: Some(1), arrived: None };
        let report = report(2, &books(&[1, 2]), &sink, 0.0);
        assert_eq!((report.lost, report.counted_by), (1, "counters"));
    }

    #[test]
    fn the_rate_of_a_run_cut_short_counts_only_what_was_sent() {
        let mut report = BenchReport::default();
        let loaded = LoadResult { accepted: 1000, elapsed: Duration::from_secs(1), ..LoadResult::default() };
        report.set_load(loaded, true);
        report.set_sent(&books(&[1, 2]), Duration::from_secs(2));
        assert_eq!((report.accepted_per_second, report.sent_per_second), (1000.0, 1.0));
    }

    #[test]
    fn cost_is_the_difference_of_two_readings() {
        let reading = |cpu, commits| ResourceMeter {
            cpu_seconds: Some(cpu),
            commits: Some(commits),
            ..ResourceMeter::default()
        };
        let mut report = BenchReport { accepted: 1000, ..BenchReport::default() };
        report.set_cost(&reading(1.0, 10.0), &reading(1.5, 60.0));
        assert_eq!((report.cpu_seconds_per_1000, report.commits_per_message), (Some(0.5), Some(0.05)));
    }
}
