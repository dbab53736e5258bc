//! What the room counts, for each mailbox.

use std::time::Duration;

use postway_store::record::MailboxKey;

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
