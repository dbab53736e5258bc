//! Logs and metrics: set up once, before anything runs.
//!
//! Logs go to standard error, as text or as one JSON object a line. Metrics are kept in this process and rendered
//! for `/metrics` from the returned handle; whoever holds the handle calls `run_upkeep()` on a timer
//! (`config.telemetry.upkeep`), or the histograms grow. No address, subject, body or credential belongs in either.

use std::io::BufWriter;

use anyhow::Context as _;
use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Bounds in seconds: from an accept in a shared commit to an attempt that ran into its ten-minute deadline.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
    600.0,
];
const GROUP_SIZES: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];

/// Writes what is left of the log when it is dropped: keep it until the end.
pub type LogGuard = tracing_appender::non_blocking::WorkerGuard;

/// Sends log lines to standard error, in the configured form; fails if that was already set up. A thread of its own
/// writes them: a slow terminal or disk must not slow down mail. It waits rather than lose a line.
pub fn start_logs(log: &Log) -> anyhow::Result<LogGuard> {
    let filter = EnvFilter::try_new(&log.level).context("cannot read the log level")?;
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let (writer, guard) = tracing_appender::non_blocking::NonBlockingBuilder::default()
        .lossy(false)
        .thread_name("postway-log")
        .finish(BufWriter::with_capacity(64 * 1024, std::io::stderr()));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    let started = match log.format {
        LogFormat::Json => builder.json().flatten_event(true).with_current_span(true).try_init(),
        LogFormat::Text => builder.with_ansi(colours).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))?;
    Ok(guard)
}

/// Installs the recorder of this process.
pub fn start_metrics() -> anyhow::Result<PrometheusHandle> {
    let handle = builder()?.install_recorder().context("cannot install the metrics recorder")?;
    describe();
    Ok(handle)
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
    describe_counter!("postway_state_transitions_total", "Messages that entered a state, by state");
    describe_counter!(
        "postway_validation_failures_total",
        "Messages refused at the door, by the check that failed"
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
    describe_counter!("postway_store_commits_total", "Transactions committed by the store");
    describe_counter!("postway_http_requests_total", "HTTP requests answered, by route and status");
    describe_counter!(
        "postway_notifications_total",
        "Notifications that were settled or put off, by outcome"
    );
    describe_histogram!("postway_notification_seconds", Unit::Seconds, "Calls to subscribers");
    describe_counter!("postway_inbound_processed_total", "Mails that were dealt with, by tenant and mailbox");
    describe_counter!(
        "postway_inbound_skipped_total",
        "Mails there was nothing to do with: known, older than the watch, or gone, by tenant and mailbox"
    );
    describe_counter!("postway_inbound_failed_total", "Mails that no try helped, by tenant and mailbox");
    describe_counter!("postway_inbound_tries_total", "Tries to deal with mails, by tenant and mailbox");
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
    describe_gauge!("postway_queue_depth", "Messages not yet in a final state, by state");
    describe_gauge!(
        "postway_oldest_due_seconds",
        Unit::Seconds,
        "Age of the oldest message that is due, that nothing holds, and that is unsent"
    );
    describe_gauge!(
        "postway_oldest_held_seconds",
        Unit::Seconds,
        "Age of the oldest due message that a suspension, a limit or an open circuit holds"
    );
    describe_gauge!("postway_in_doubt_held", "Messages in doubt that wait for somebody's word");
    describe_gauge!("postway_circuits_open", "Accounts that are left alone because they are at fault");
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
    describe_histogram!("postway_store_group_size", Unit::Count, "Writes that shared one commit");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_have_buckets_and_help_texts() {
        let recorder = builder().unwrap().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            describe();
            metrics::histogram!("postway_send_seconds").record(0.004);
            metrics::histogram!("postway_store_group_size").record(150.0);
            metrics::counter!("postway_final_states_total", "state" => "sent").increment(1);
        });
        let text = handle.render();
        assert!(text.contains("# HELP postway_send_seconds From acceptance"), "{text}");
        assert!(text.contains("postway_send_seconds_bucket{le=\"0.005\"} 1"), "{text}");
        assert!(text.contains("postway_store_group_size_bucket{le=\"200\"} 1"), "{text}");
        assert!(text.contains("postway_final_states_total{state=\"sent\"} 1"), "{text}");
    }
}
