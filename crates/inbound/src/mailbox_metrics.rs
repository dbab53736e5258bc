//! What the room counts, for each mailbox.
//!
//! Metrics of a mailbox that nothing touches for an hour go, so that those of a deleted one do not stay for ever. The node that
//! watches a mailbox touches them now and then, also where there is nothing to count.

use std::time::Duration;

use postway_store::record::MailboxKey;

/// The counters of a mailbox.
const COUNTERS: [&str; 5] = [
    "postway_inbound_processed_total",
    "postway_inbound_skipped_total",
    "postway_inbound_failed_total",
    "postway_inbound_tries_total",
    "postway_inbound_retries_total",
];

/// The labels that tell mailboxes apart.
fn labels(key: &MailboxKey) -> [(&'static str, String); 2] {
    [("tenant", key.tenant.to_string()), ("mailbox", key.mailbox.to_string())]
}

/// Mails that were dealt with.
pub(crate) fn processed(key: &MailboxKey) {
    metrics::counter!("postway_inbound_processed_total", &labels(key)).increment(1);
}

/// Mails that there was nothing to do with: known ones, old ones, gone ones.
pub(crate) fn skipped(key: &MailboxKey, count: usize) {
    if count > 0 {
        metrics::counter!("postway_inbound_skipped_total", &labels(key)).increment(count as u64);
    }
}

/// Mails that no try helped.
pub(crate) fn failed(key: &MailboxKey, count: usize) {
    if count > 0 {
        metrics::counter!("postway_inbound_failed_total", &labels(key)).increment(count as u64);
    }
}

/// A try to deal with a mail, and whether it is tried again.
pub(crate) fn tried(key: &MailboxKey, again: bool) {
    metrics::counter!("postway_inbound_tries_total", &labels(key)).increment(1);
    if again {
        metrics::counter!("postway_inbound_retries_total", &labels(key)).increment(1);
    }
}

/// How many UIDs a mailbox is behind.
pub(crate) fn lag(key: &MailboxKey, uids: u32) {
    metrics::gauge!("postway_mailbox_lag", &labels(key)).set(f64::from(uids));
}

/// A folder was read to its end.
pub(crate) fn round(key: &MailboxKey, took: Duration) {
    metrics::histogram!("postway_mailbox_round_seconds", &labels(key)).record(took.as_secs_f64());
}

/// Keeps what there is of a mailbox, as it is.
pub(crate) fn keep(key: &MailboxKey) {
    let labels = labels(key);
    for name in COUNTERS {
        metrics::counter!(name, &labels).increment(0);
    }
    metrics::gauge!("postway_mailbox_lag", &labels).increment(0.0);
}
