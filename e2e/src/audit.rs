//! The audit after a run under faults: the clients' ledger, the relay's ledger and the gateway's own history must agree.

use std::collections::HashMap;

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use postway_testkit::SmtpSink;
use serde_json::{Value, json};

use crate::{Acknowledged, Client, PATIENCE, events_of, eventually, text};

/// How often a mail in doubt is sent again by itself.
const RESENDS_MAX: usize = 3;

/// Waits until all is settled, then checks that every acknowledged mail was sent, none was lost, and none came twice that
/// was not in doubt. Returns how many doubts there were.
pub async fn audit(
    gateway: &Client,
    sink: &SmtpSink,
    acknowledged: &[Acknowledged],
) -> anyhow::Result<usize> {
    eventually("every doubt to be settled or due", async || release_held(gateway).await).await?;
    let stats = gateway.wait_until_settled(PATIENCE).await?;
    let mut copies: HashMap<String, usize> = HashMap::new();
    for mail in sink.mails() {
        *copies.entry(mail.postway_id.context("a mail without X-Postway-ID")?).or_default() += 1;
    }
    ensure!(
        stats["by_status"]["sent"] == acknowledged.len(),
        "{} acknowledged: {stats:#}",
        acknowledged.len()
    );
    ensure!(copies.len() == acknowledged.len(), "the relay has every mail, and no other: {}", copies.len());
    let doubts: Vec<usize> = stream::iter(acknowledged)
        .map(|one| check(gateway, &one.id, copies.get(&one.uid).copied().unwrap_or(0)))
        .buffer_unordered(8)
        .try_collect()
        .await?;
    Ok(doubts.iter().sum())
}

/// A mail that was struck more often than it is sent again by itself waits for a word: that is right, and the word is
/// given here. One that is held for less is stuck, and a fault. Done when no mail is in doubt any more.
async fn release_held(gateway: &Client) -> anyhow::Result<Option<()>> {
    let doubtful = gateway.get("/v1/messages?status=in_doubt&limit=500").await?;
    let doubtful = doubtful["data"].as_array().context("no list")?;
    for summary in doubtful.iter().filter(|summary| summary["due_at"].is_null()) {
        let id = text(summary, "id");
        let message = gateway.message(id).await?;
        // It may have been claimed for its resend since the list was made.
        if message["status"] != "in_doubt" || !message["due_at"].is_null() {
            continue;
        }
        ensure!(events_of(&message, "in_doubt") > RESENDS_MAX, "{id} is stuck: {message:#}");
        gateway.post(&format!("/v1/messages/{id}/resolve"), json!({"outcome": "resend"})).await?;
    }
    Ok(doubtful.is_empty().then_some(()))
}

/// One acknowledged mail: sent, its history whole, and no copy without a doubt. Returns how often it was in doubt.
async fn check(gateway: &Client, id: &str, copies: usize) -> anyhow::Result<usize> {
    let message = gateway.message(id).await?;
    check_history(&message, copies).with_context(|| format!("{id} came {copies} times: {message:#}"))
}

/// That a message was sent, without a gap in its history, and not more often than its doubts allow.
pub fn check_history(message: &Value, copies: usize) -> anyhow::Result<usize> {
    ensure!(text(message, "status") == "sent", "not sent");
    let doubts = events_of(message, "in_doubt");
    ensure!(copies >= 1, "lost");
    ensure!(copies <= 1 + doubts, "sent twice without a doubt");
    let events = message["events"].as_array().context("no events")?;
    ensure!(events.iter().zip(1..).all(|(event, seq)| event["seq"] == seq), "the history has gaps");
    ensure!(events_of(message, "sent") == 1, "not sent once");
    Ok(doubts)
}

/// How many copies of a message the relay has.
pub fn copies(sink: &SmtpSink, uid: &str) -> usize {
    sink.mails().iter().filter(|mail| mail.postway_id.as_deref() == Some(uid)).count()
}
