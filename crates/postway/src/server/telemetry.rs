//! Logs and metrics: set up once, before anything runs.
//!
//! Logs go to standard error, as text or as one JSON object a line. Metrics are kept in this process and
//! rendered for `/metrics` from the returned handles; the owner calls `upkeep()` on a timer
//! (`config.telemetry.upkeep`), or the histograms grow, and `forget_idle()` now and then. No address,
//! subject, body or credential belongs in either.
//!
//! Metrics with a tenant label have a recorder of their own, because their number is unbounded: tenants
//! create and delete mailboxes. Such a metric is dropped when nothing has touched it for a while. All others
//! stay for the life of the process, so that a counter never restarts.

use std::{
    env::consts::{ARCH, OS},
    io::{self, BufWriter, Write},
    sync::OnceLock,
    thread,
    time::Duration,
};

use anyhow::Context as _;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, describe_counter,
    describe_gauge, describe_histogram,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use metrics_util::MetricKindMask;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking};
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSection};

/// Bounds in seconds: from an accept in a shared commit to an attempt that ran into its ten-minute deadline.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
    600.0,
];
const GROUP_SIZES: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];

/// Lines of the log that wait to be written, at most: some tens of megabytes.
const LOG_LINES_MAX: usize = 64 * 1024;
/// The shortest time between two writes of the log. A line is written at once after a quiet moment, and those
/// that follow it together: a thread woken for each of them costs more than the lines do.
const LOG_PAUSE: Duration = Duration::from_millis(10);

/// Counts the log lines that were dropped because the buffer was full.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// Writes the remaining log lines when it is dropped: keep it until the end.
pub type LogGuard = tracing_appender::non_blocking::WorkerGuard;

/// Sends log lines to standard error, in the configured form; fails if that was already set up. A thread of
/// its own writes them: a slow terminal or disk must not slow down mail. If they are not read, a bounded
/// number waits and the others are dropped and counted, because a gateway that waits for its log sends
/// nothing.
pub fn start_logs(log: &LogSection) -> anyhow::Result<LogGuard> {
    let filter = EnvFilter::try_new(&log.level).context("cannot read the log level")?;
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let (writer, guard) = log_writer(std::io::stderr());
    // Set once: a second start fails below.
    DROPPED.get_or_init(|| writer.error_counter());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    let started = match log.format {
        LogFormat::Json => builder.json().flatten_event(true).with_current_span(true).try_init(),
        LogFormat::Text => builder.with_ansi(colours).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))?;
    Ok(guard)
}

/// A writer that never waits for what is behind it.
fn log_writer(to: impl Write + Send + 'static) -> (NonBlocking, LogGuard) {
    tracing_appender::non_blocking::NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(LOG_LINES_MAX)
        .thread_name("postway-log")
        .finish(PacedWriter(BufWriter::with_capacity(64 * 1024, to)))
}

/// Writes out what has gathered, and rests after it. Its thread flushes when no line waits any more, so new
/// lines gather meanwhile, and whoever logs them wakes nobody.
struct PacedWriter<W: Write>(BufWriter<W>);

impl<W: Write> Write for PacedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.0.flush();
        thread::sleep(LOG_PAUSE);
        flushed
    }
}

/// The label of a metric that belongs to a tenant.
const OWNER_LABEL: &str = "tenant";
/// How long a metric with an owner stays when nothing touches it. Those of a watched mailbox are touched
/// every few minutes.
const OWNED_IDLE_MAX: Duration = Duration::from_secs(60 * 60);

/// The metrics of this process, for rendering and upkeep.
#[derive(Clone)]
pub struct MetricsHandles {
    lasting: PrometheusHandle,
    owned: PrometheusHandle,
}

impl MetricsHandles {
    /// The handle of each recorder.
    pub fn recorders(&self) -> Vec<PrometheusHandle> {
        vec![self.lasting.clone(), self.owned.clone()]
    }

    /// Folds histograms, and counts what the log has lost.
    pub fn upkeep(&self) {
        if let Some(dropped) = DROPPED.get() {
            let lines = dropped.dropped_lines() as u64;
            metrics::counter!("postway_log_lines_dropped_total").absolute(lines);
        }
        self.lasting.run_upkeep();
        self.owned.run_upkeep();
    }

    /// Drops metrics that have been idle for too long, whether or not `/metrics` is scraped: only a rendering
    /// drops them.
    pub fn forget_idle(&self) {
        drop(self.owned.render());
    }
}

/// Installs the recorders of this process.
pub fn start_metrics() -> anyhow::Result<MetricsHandles> {
    let recorder = TenantMetricsRecorder::new(OWNED_IDLE_MAX)?;
    let handles = recorder.handles();
    metrics::set_global_recorder(recorder)
        .map_err(|error| anyhow::anyhow!("cannot install the metrics recorder: {error}"))?;
    describe();
    record_build_info();
    Ok(handles)
}

/// Sets `postway_build_info`, whose labels name the program that runs: queries join it with other metrics.
fn record_build_info() {
    let labels = [("version", env!("CARGO_PKG_VERSION")), ("arch", ARCH), ("os", OS)];
    metrics::gauge!("postway_build_info", &labels).set(1.0);
}

/// Two recorders: one for metrics of a tenant, which may be dropped, and one for all others.
struct TenantMetricsRecorder {
    lasting: PrometheusRecorder,
    owned: PrometheusRecorder,
}

impl TenantMetricsRecorder {
    fn new(idle_max: Duration) -> anyhow::Result<Self> {
        let owned = builder()?.idle_timeout(MetricKindMask::ALL, Some(idle_max));
        Ok(Self { lasting: builder()?.build_recorder(), owned: owned.build_recorder() })
    }

    fn handles(&self) -> MetricsHandles {
        MetricsHandles { lasting: self.lasting.handle(), owned: self.owned.handle() }
    }

    fn recorder_for(&self, key: &Key) -> &PrometheusRecorder {
        let is_owned = key.labels().any(|label| label.key() == OWNER_LABEL);
        if is_owned { &self.owned } else { &self.lasting }
    }
}

impl Recorder for TenantMetricsRecorder {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.lasting.describe_counter(name.clone(), unit, text.clone());
        self.owned.describe_counter(name, unit, text);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.lasting.describe_gauge(name.clone(), unit, text.clone());
        self.owned.describe_gauge(name, unit, text);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.lasting.describe_histogram(name.clone(), unit, text.clone());
        self.owned.describe_histogram(name, unit, text);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        self.recorder_for(key).register_counter(key, metadata)
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.recorder_for(key).register_gauge(key, metadata)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        self.recorder_for(key).register_histogram(key, metadata)
    }
}

fn builder() -> anyhow::Result<PrometheusBuilder> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Full("postway_store_group_size".to_owned()), GROUP_SIZES)
        })
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Full("postway_outbox_batch_rows".to_owned()), GROUP_SIZES)
        })
        .context("cannot set the histograms' buckets")
}

/// The help texts of `/metrics`; the labels in use are named in each.
fn describe() {
    describe_gauge!("postway_build_info", "1, for the program that runs, by version, arch and os");
    describe_counter!("postway_state_transitions_total", "Messages that entered a state, by state");
    describe_counter!(
        "postway_validation_failures_total",
        "Messages that the intake refused, by the check that failed"
    );
    describe_counter!("postway_retries_total", "Attempts that will be repeated, by category of failure");
    describe_counter!("postway_final_states_total", "Messages that reached a final state, by state");
    describe_counter!(
        "postway_in_doubt_total",
        "Messages whose final dot went out without a recorded answer"
    );
    describe_counter!(
        "postway_store_conflicts_total",
        "Transactions undone by others' locks and tried again"
    );
    describe_gauge!("postway_store_file_bytes", "Size of the SQLite file");
    describe_gauge!("postway_store_free_bytes", "Unused bytes in the SQLite file");
    describe_gauge!("postway_store_log_bytes", "Size of the SQLite file's write-ahead log");
    describe_gauge!(
        "postway_store_log_held_seconds",
        "How long a reader has kept a large log from being folded back"
    );
    describe_counter!("postway_store_commits_total", "Transactions committed by the store");
    describe_counter!("postway_http_requests_total", "HTTP requests answered, by route and status");
    describe_gauge!("postway_http_connections", "Connections to the HTTP listener");
    describe_counter!(
        "postway_http_connections_cut_total",
        "HTTP connections that were refused or closed before their end, by reason"
    );
    describe_counter!(
        "postway_http_limited_total",
        "HTTP requests refused by the limits of keys and addresses"
    );
    describe_counter!("postway_quota_refused_total", "Calls refused because of a tenant's daily quota");
    describe_counter!(
        "postway_quota_warnings_total",
        "Tenants that have used 80 or 100 per cent of their daily quota, once a day for each"
    );
    describe_gauge!("postway_certificate_refused", "Whether a new certificate's files cannot be used");
    describe_counter!(
        "postway_log_lines_dropped_total",
        "Log lines that were dropped because the log was not read"
    );
    describe_counter!(
        "postway_trace_spans_total",
        "Spans that the collector took or rejected, or that were dropped, by outcome"
    );
    describe_counter!("postway_keys_refused_total", "Keys that were refused, by outcome");
    describe_counter!("postway_sign_ins_total", "Sign-ins of people, by way and outcome");
    describe_counter!(
        "postway_notifications_total",
        "Notifications that were settled or put off, by outcome"
    );
    describe_histogram!("postway_notification_seconds", Unit::Seconds, "Calls to subscribers");
    describe_counter!(
        "postway_archive_copies_total",
        "Copies of sent mail for archives, by tenant and result"
    );
    describe_gauge!("postway_archive_waiting", "Copies of sent mail that wait for their archive, by tenant");
    describe_counter!("postway_inbound_processed_total", "Mails that were processed, by tenant and mailbox");
    describe_counter!(
        "postway_inbound_no_match_total",
        "Processed mails there was nothing to do with, by tenant and mailbox"
    );
    describe_counter!(
        "postway_inbound_skipped_total",
        "Mails that needed no processing: known, older than the watch, or gone, by tenant and mailbox"
    );
    describe_counter!(
        "postway_inbound_failed_total",
        "Mails that failed after all tries, by tenant and mailbox"
    );
    describe_counter!("postway_provider_events_total", "Events that providers reported, by provider");
    describe_counter!("postway_provider_events_settled_total", "Processed events of providers, by new state");
    describe_counter!("postway_provider_calls_refused_total", "Refused calls of providers, by reason");
    describe_counter!("postway_inbound_tries_total", "Tries to process mails, by tenant and mailbox");
    describe_counter!(
        "postway_inbound_retries_total",
        "Tries that will be repeated; by the tries, the retry ratio; by tenant and mailbox"
    );
    describe_gauge!("postway_mailbox_lag", "UIDs that a mailbox is behind, by tenant and mailbox");
    describe_histogram!(
        "postway_mailbox_round_seconds",
        Unit::Seconds,
        "Reading a mailbox to its end, by tenant and mailbox"
    );
    describe_gauge!(
        "postway_nodes_alive",
        "Nodes that share the database and are alive, as this one sees it"
    );
    describe_gauge!(
        "postway_node_isolated",
        "1 while this node's heartbeat fails and it begins no more sends, else 0"
    );
    describe_gauge!("postway_queue_depth", "Messages not yet in a final state, by state");
    describe_gauge!(
        "postway_oldest_due_seconds",
        Unit::Seconds,
        "Age of the oldest due message that nothing blocks"
    );
    describe_gauge!(
        "postway_oldest_held_seconds",
        Unit::Seconds,
        "Age of the oldest due message that a suspension, a limit or an open circuit blocks"
    );
    describe_gauge!("postway_in_doubt_held", "Messages in doubt that are on hold for an operator");
    describe_gauge!("postway_circuits_open", "Accounts whose circuit is open");
    describe_gauge!("postway_stream_sent", "Mails of a stream sent in the last day, by tenant and stream");
    describe_gauge!("postway_stream_bounced", "Bounces of a stream in the last day, by tenant and stream");
    describe_gauge!(
        "postway_stream_complained",
        "Complaints about a stream in the last day, by tenant and stream"
    );
    describe_gauge!(
        "postway_stream_unsubscribed",
        "Readers who left a stream in the last day, by tenant and stream"
    );
    describe_gauge!(
        "postway_destination_waits",
        "Accounts whose mail may wait for the limit of a receiving domain, on this node"
    );
    describe_histogram!(
        "postway_processing_seconds",
        Unit::Seconds,
        "Time a message spent in a state, by state"
    );
    describe_histogram!(
        "postway_accept_seconds",
        Unit::Seconds,
        "From a request's arrival to its durable acceptance"
    );
    describe_histogram!(
        "postway_send_seconds",
        Unit::Seconds,
        "From acceptance to the relay's answer, of messages that were sent"
    );
    describe_gauge!(
        "postway_outbox_lag_seconds",
        Unit::Seconds,
        "How long the oldest row of an outbox waits, by source"
    );
    describe_counter!("postway_outbox_rows_total", "Rows taken from outboxes, by source and outcome");
    describe_counter!("postway_outbox_errors_total", "Failures to serve an outbox, by source");
    describe_histogram!("postway_outbox_batch_rows", Unit::Count, "Rows taken in one round, by source");
    describe_gauge!("postway_smtp_sessions", "Connections to the SMTP listener");
    describe_counter!(
        "postway_smtp_sessions_total",
        "Connections to the SMTP listener that ended, by outcome"
    );
    describe_counter!("postway_smtp_messages_total", "Mails handed over by SMTP, by outcome");
    describe_counter!("postway_reception_mails_total", "Mails from other servers, by outcome");
    describe_counter!("postway_virus_scans_total", "Mails scanned for viruses, by outcome");
    describe_histogram!("postway_store_group_size", Unit::Count, "Writes that shared one commit");
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
        time::Instant,
    };

    use super::*;

    /// Nobody reads what is written here, until the other end is dropped.
    struct StuckWriter(mpsc::Receiver<()>);

    impl Write for StuckWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_that_nobody_reads_keeps_nobody_waiting_and_counts_what_it_drops() {
        let (reading, unread) = mpsc::channel();
        let (mut writer, guard) = log_writer(StuckWriter(unread));
        // What the thread has taken already is in the buffer behind it: a line that does not fit there has it
        // wait.
        writer.write_all(&[b'x'; 128 * 1024]).unwrap();
        let lines = LOG_LINES_MAX + 1_000;
        for _ in 0..lines {
            writer.write_all(b"a line\n").unwrap();
        }
        let dropped = writer.error_counter().dropped_lines();
        assert!((999..=lines).contains(&dropped), "{dropped} of {lines}");
        drop(reading);
        drop(guard);
    }

    /// Counts the writes and the bytes.
    #[derive(Clone, Default)]
    struct CountingWriter(Arc<[AtomicUsize; 2]>);

    impl Write for CountingWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0[0].fetch_add(1, Ordering::AcqRel);
            self.0[1].fetch_add(bytes.len(), Ordering::AcqRel);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_follow_each_other_are_written_together_and_all_before_the_end() {
        let counts = CountingWriter::default();
        let (mut writer, guard) = log_writer(counts.clone());
        let (began, lines) = (Instant::now(), 1_000);
        for _ in 0..lines {
            writer.write_all(b"a line\n").unwrap();
            thread::sleep(Duration::from_micros(50));
        }
        drop(guard);
        let pauses = began.elapsed().as_millis() / LOG_PAUSE.as_millis();
        let [writes, bytes] = [0, 1].map(|index| counts.0[index].load(Ordering::Acquire));
        assert_eq!(bytes, lines * 7);
        assert!(writes as u128 <= pauses + 2, "{writes} writes in {pauses} pauses");
    }

    #[test]
    fn what_has_an_owner_goes_when_nothing_touches_it_and_the_rest_stays() {
        let recorder = TenantMetricsRecorder::new(Duration::from_millis(200)).unwrap();
        let handles = recorder.handles();
        let text = || handles.recorders().iter().map(PrometheusHandle::render).collect::<String>();
        let labels = |mailbox: &str| [("tenant", "shop".to_owned()), ("mailbox", mailbox.to_owned())];
        let touch = |mailbox: &str| {
            metrics::counter!("postway_inbound_processed_total", &labels(mailbox)).increment(0);
            metrics::gauge!("postway_mailbox_lag", &labels(mailbox)).set(1.0);
            metrics::histogram!("postway_mailbox_round_seconds", &labels(mailbox)).record(0.1);
        };
        metrics::with_local_recorder(&recorder, || {
            describe();
            metrics::counter!("postway_in_doubt_total").increment(1);
            touch("deleted");
            touch("kept");
            let first = text();
            for mailbox in ["deleted", "kept"] {
                let named = |name: &str| format!("{name}{{tenant=\"shop\",mailbox=\"{mailbox}\"}}");
                for name in ["inbound_processed_total", "mailbox_lag", "mailbox_round_seconds_count"] {
                    assert!(first.contains(&named(&format!("postway_{name}"))), "{name}: {first}");
                }
            }
            assert_eq!(first.matches("# TYPE postway_mailbox_lag").count(), 1, "{first}");
            let began = Instant::now();
            while text().contains("deleted") {
                assert!(began.elapsed() < Duration::from_secs(30), "it stays");
                touch("kept");
                handles.upkeep();
                handles.forget_idle();
                thread::sleep(Duration::from_millis(5));
            }
            touch("kept");
        });
        let left = text();
        assert!(
            left.contains("postway_inbound_processed_total{tenant=\"shop\",mailbox=\"kept\"} 0"),
            "{left}"
        );
        assert!(left.contains("postway_in_doubt_total 1"), "what nobody owns stays: {left}");
    }

    #[test]
    fn histograms_have_buckets_and_help_texts() {
        let recorder = builder().unwrap().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            describe();
            record_build_info();
            metrics::histogram!("postway_send_seconds").record(0.004);
            metrics::histogram!("postway_store_group_size").record(150.0);
            metrics::counter!("postway_final_states_total", "state" => "sent").increment(1);
        });
        let text = handle.render();
        assert!(text.contains("# HELP postway_send_seconds From acceptance"), "{text}");
        assert!(text.contains("postway_send_seconds_bucket{le=\"0.005\"} 1"), "{text}");
        assert!(text.contains("postway_store_group_size_bucket{le=\"200\"} 1"), "{text}");
        assert!(text.contains("postway_final_states_total{state=\"sent\"} 1"), "{text}");
        let build = format!("postway_build_info{{version=\"{}\",", env!("CARGO_PKG_VERSION"));
        assert!(text.lines().any(|line| line.starts_with(&build) && line.ends_with(" 1")), "{text}");
    }
}
