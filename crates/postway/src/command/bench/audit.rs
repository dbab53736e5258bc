//! The audit after a run: the outcome of each message, according to the store.
//!
//! `GET /v1/stats` says when a run has ended; then every page of its batch is read for states, latencies and
//! uids, which are compared with what the sink took.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use indicatif::ProgressBar;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::output::list;

const FINAL: [&str; 7] = ["sent", "captured", "failed", "invalid", "cancelled", "expired", "suppressed"];
const PAGE: u32 = 100;
const POLL_MIN: Duration = Duration::from_millis(10);
const POLL_MAX: Duration = Duration::from_millis(250);

/// The messages of one run, according to the store.
#[derive(Debug, Default)]
pub struct StoreAudit {
    /// How many messages are in which state.
    pub by_status: BTreeMap<String, u64>,
    /// From accepted to sent, in milliseconds.
    pub latencies_ms: Vec<u64>,
    /// The messages that the store calls sent.
    pub sent: Vec<Uuid>,
    /// How many messages the store has.
    pub listed: u64,
    /// The state of each message.
    pub states: HashMap<Uuid, String>,
    /// The messages that took more than one attempt.
    pub tried_again: Vec<Uuid>,
}

/// How many messages of these tenants are in a final state.
pub async fn finished(tenants: &[&ApiClient]) -> Result<u64, CommandFailure> {
    let mut sum = 0;
    for tenant in tenants {
        let stats = tenant.get(&["v1", "stats"], &[]).await?;
        let of = |status: &&str| {
            stats.pointer(&format!("/by_status/{status}")).and_then(Value::as_u64).unwrap_or(0)
        };
        sum += FINAL.iter().map(of).sum::<u64>();
    }
    Ok(sum)
}

/// Waits until `count` messages are in a final state; false if the deadline came first.
///
/// It asks seldom while much is left, since asking costs the server, and often at the end, to see it exactly.
pub async fn wait_until_finished(
    tenants: &[&ApiClient],
    wanted: u64,
    baseline: u64,
    deadline: Instant,
    bar: &ProgressBar,
) -> Result<bool, CommandFailure> {
    let mut last = (Instant::now(), baseline);
    loop {
        let count = finished(tenants).await?;
        let now = Instant::now();
        bar.set_position(count.saturating_sub(baseline));
        if count >= wanted {
            return Ok(true);
        }
        if now >= deadline {
            return Ok(false);
        }
        let rate = count.saturating_sub(last.1) as f64 / now.duration_since(last.0).as_secs_f64().max(0.001);
        let left = Duration::from_secs_f64(((wanted - count) as f64 / rate.max(1.0)).min(60.0));
        last = (now, count);
        tokio::time::sleep((left / 4).clamp(POLL_MIN, POLL_MAX)).await;
    }
}

/// Adds every message of a tenant's batch.
pub async fn read(client: &ApiClient, batch: &str, books: &mut StoreAudit) -> Result<(), CommandFailure> {
    let mut query = vec![("batch", batch.to_owned()), ("limit", PAGE.to_string())];
    loop {
        let page = client.get(&["v1", "messages"], &query).await?;
        for message in list(&page, "data") {
            books.enter(message);
        }
        let Some(cursor) = page.get("next_cursor").and_then(Value::as_str) else {
            return Ok(());
        };
        query.truncate(2);
        query.push(("cursor", cursor.to_owned()));
    }
}

/// From one time of an answer to another; `None` if one is missing, zero if they are out of order.
pub fn milliseconds_between(from: Option<&Value>, to: Option<&Value>) -> Option<u64> {
    let at = |value: Option<&Value>| Some(value?.as_str()?.parse::<Timestamp>().ok()?.as_millisecond());
    Some(u64::try_from(at(to)? - at(from)?).unwrap_or(0))
}

impl StoreAudit {
    pub(super) fn enter(&mut self, message: &Value) {
        self.listed += 1;
        let text = |name: &str| message.get(name).and_then(Value::as_str);
        let status = text("status").unwrap_or("unknown");
        *self.by_status.entry(status.to_owned()).or_default() += 1;
        let uid = text("uid").and_then(|uid| uid.parse::<Uuid>().ok());
        self.states.extend(uid.map(|uid| (uid, status.to_owned())));
        if message.get("attempt").and_then(Value::as_u64).is_some_and(|attempt| attempt > 1) {
            self.tried_again.extend(uid);
        }
        if status != "sent" {
            return;
        }
        self.sent.extend(uid);
        self.latencies_ms.extend(milliseconds_between(message.get("created_at"), message.get("sent_at")));
    }

    /// How many messages are in this state.
    pub fn count(&self, status: &str) -> u64 {
        self.by_status.get(status).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_books_count_states_and_keep_the_latency_of_what_was_sent() {
        let mut books = StoreAudit::default();
        books.enter(&json!({
            "uid": "01890a5d-ac96-774b-bcce-b302099a8057", "status": "sent",
            "created_at": "2026-01-01T00:00:00.100Z", "sent_at": "2026-01-01T00:00:00.150Z",
        }));
        books.enter(
            &json!({"uid": "x", "status": "ready", "created_at": "2026-01-01T00:00:00Z", "sent_at": null}),
        );
        assert_eq!((books.count("sent"), books.count("ready"), books.listed), (1, 1, 2));
        assert_eq!((books.latencies_ms.as_slice(), books.sent.len()), ([50].as_slice(), 1));
    }
}
