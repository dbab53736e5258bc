//! The metrics of each mailbox.
//!
//! Metrics of a mailbox that are not touched for an hour are dropped, so that those of a deleted mailbox do
//! not stay for ever. The node that watches a mailbox touches them now and then, even if there is nothing to
//! count.

use std::time::Duration;

use postway_store::record::MailboxKey;

/// The counters of a mailbox.
const COUNTERS: [&str; 6] = [
    "postway_inbound_processed_total",
    "postway_inbound_no_match_total",
    "postway_inbound_skipped_total",
    "postway_inbound_failed_total",
    "postway_inbound_tries_total",
    "postway_inbound_retries_total",
];

/// The labels of a mailbox.
fn labels(key: &MailboxKey) -> [(&'static str, String); 2] {
    [("tenant", key.tenant.to_string()), ("mailbox", key.mailbox.to_string())]
}

/// Counts a mail that was processed.
pub(crate) fn processed(key: &MailboxKey) {
    metrics::counter!("postway_inbound_processed_total", &labels(key)).increment(1);
}

/// Counts a mail that was processed and is `no_match`.
pub(crate) fn no_match(key: &MailboxKey) {
    metrics::counter!("postway_inbound_no_match_total", &labels(key)).increment(1);
}

/// Counts mails that needed no processing: known, old or removed ones.
pub(crate) fn skipped(key: &MailboxKey, count: usize) {
    if count > 0 {
        metrics::counter!("postway_inbound_skipped_total", &labels(key)).increment(count as u64);
    }
}

/// Counts mails that failed in every try.
pub(crate) fn failed(key: &MailboxKey, count: usize) {
    if count > 0 {
        metrics::counter!("postway_inbound_failed_total", &labels(key)).increment(count as u64);
    }
}

/// Counts a try to process a mail, and whether it will be repeated.
pub(crate) fn tried(key: &MailboxKey, again: bool) {
    metrics::counter!("postway_inbound_tries_total", &labels(key)).increment(1);
    if again {
        metrics::counter!("postway_inbound_retries_total", &labels(key)).increment(1);
    }
}

/// Sets how many UIDs a mailbox is behind.
pub(crate) fn lag(key: &MailboxKey, uids: u32) {
    metrics::gauge!("postway_mailbox_lag", &labels(key)).set(f64::from(uids));
}

/// Records how long it took to read a folder to its end.
pub(crate) fn round(key: &MailboxKey, took: Duration) {
    metrics::histogram!("postway_mailbox_round_seconds", &labels(key)).record(took.as_secs_f64());
}

/// Touches all metrics of a mailbox without changing them.
pub(crate) fn touch(key: &MailboxKey) {
    let labels = labels(key);
    for name in COUNTERS {
        metrics::counter!(name, &labels).increment(0);
    }
    metrics::gauge!("postway_mailbox_lag", &labels).increment(0.0);
}
