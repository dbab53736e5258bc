//! The real binary as a test drives it: started in a folder of its own, spoken to over HTTP, killed at will.

mod audit;
mod binary;
mod browser;
mod client;
mod gateway;
mod gateway_disk;
mod load;
mod nodes;
mod opened;
mod receiver;
mod storage;

use std::time::Duration;

use anyhow::ensure;
use rand::RngCore;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use audit::{audit, check_history, copies};
pub use binary::binary;
pub use browser::Browser;
pub use client::Client;
pub use gateway::{Gateway, Ran};
pub use gateway_disk::GatewayDisk;
pub use load::{Acknowledged, Load, a_while};
pub use nodes::{node_env, nodes_of, start_node};
pub use opened::Opened;
pub use receiver::{Call, Receiver};
pub use storage::{Bucket, files_below, holds};

/// The longest a test waits for anything. It is there for what never comes: a busy machine may be slow.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How often a test polls for something that it cannot wait for.
const GLANCE: Duration = Duration::from_millis(20);

/// Polls until `look` returns something. Fails after [`PATIENCE`], naming `what` was waited for.
pub async fn eventually<T>(
    what: &str,
    mut look: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let started = Instant::now();
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        ensure!(started.elapsed() < PATIENCE, "waited in vain for {what}");
        tokio::time::sleep(GLANCE).await;
    }
}

/// Polls until nothing is `left`. That may take as long as it takes: fails when it comes no closer for
/// `patience`, naming `what` was waited for.
pub async fn all_done(
    what: &str,
    patience: Duration,
    mut left: impl AsyncFnMut() -> anyhow::Result<usize>,
) -> anyhow::Result<()> {
    let (mut least, mut since) = (usize::MAX, Instant::now());
    loop {
        let now = left().await?;
        if now == 0 {
            return Ok(());
        }
        if now < least {
            (least, since) = (now, Instant::now());
        }
        ensure!(since.elapsed() < patience, "waited in vain for {what}: {now} left");
        tokio::time::sleep(GLANCE * 5).await;
    }
}

/// The setting under which relays, mailboxes, receivers and sources may be on this machine. Every gateway of
/// these tests has it unless it is given another.
pub const ALLOW_LOOPBACK: (&str, &str) = ("POSTWAY_ALLOW_PRIVATE_TARGETS", "127.0.0.0/8");
/// The default of that setting.
pub const ALLOW_NOTHING: (&str, &str) = ("POSTWAY_ALLOW_PRIVATE_TARGETS", "");

/// Bytes of a file that no encoding leaves as they are by chance.
pub fn noise(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

/// A small mail for the account `relay`.
pub fn mail(id: &str, to: &str) -> Value {
    json!({"id": id, "account": "relay", "from": "Shop <shop@example.com>", "to": [to], "subject": "Hello", "text": "Hi\n"})
}

/// The same with other fields besides, or instead.
pub fn mail_with(id: &str, to: &str, fields: Value) -> Value {
    merged(mail(id, to), fields)
}

/// `base` with the fields of `more`.
fn merged(mut base: Value, more: Value) -> Value {
    if let (Some(base), Value::Object(more)) = (base.as_object_mut(), more) {
        base.extend(more);
    }
    base
}

/// The types of a message's events, in order.
pub fn event_types(message: &Value) -> Vec<String> {
    column(message, "events", "type")
}

/// How many of a message's events have this type.
pub fn events_of(message: &Value, kind: &str) -> usize {
    event_types(message).iter().filter(|one| *one == kind).count()
}

/// One text field of each entry of a list: `column(message, "attempts", "outcome")`.
pub fn column(value: &Value, list: &str, field: &str) -> Vec<String> {
    let entries = value[list].as_array().map_or(&[][..], Vec::as_slice);
    entries.iter().filter_map(|entry| entry[field].as_str().map(str::to_owned)).collect()
}

/// A text field; empty if it is absent.
pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
