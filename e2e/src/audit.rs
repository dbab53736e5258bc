//! The audit after a run under faults: the clients' ledger, the relay's ledger and the gateway's own history
//! must agree.

use std::collections::HashMap;

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use postway_testkit::SmtpSink;
use serde_json::{Value, json};

use crate::{
    Acknowledged, Client, PATIENCE, all_done,
    client::{UNDER_WAY, count},
    events_of, text,
};

/// How often a mail in doubt is sent again automatically.
const RESENDS_MAX: usize = 3;
/// How often a mail's worker may die before the mail is quarantined.
const DEATHS_MAX: i64 = 5;

/// Waits until all is settled, then checks that every acknowledged mail was sent, none was lost, and none
/// came twice that was not in doubt. Returns how many doubts there were.
pub async fn audit(
    gateway: &Client,
    sink: &SmtpSink,
    acknowledged: &[Acknowledged],
) -> anyhow::Result<usize> {
    let mut stats = Value::Null;
    let settled = all_done("every mail to be sent", PATIENCE, async || {
        release_held(gateway).await?;
        stats = gateway.get("/v1/stats").await?;
        Ok(count(&stats, &UNDER_WAY) + count(&stats, &["failed"]))
    });
    settled.await.with_context(|| format!("not settled: {stats:#}"))?;
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

/// A mail that was in doubt, or lost its worker, more often than is retried automatically is on hold: that is
/// correct, and it is resolved here. A mail that is on hold for less is a fault.
async fn release_held(gateway: &Client) -> anyhow::Result<()> {
    for status in ["in_doubt", "failed"] {
        let found = gateway.get(&format!("/v1/messages?status={status}&limit=500")).await?;
        let found = found["data"].as_array().context("no list")?;
        for summary in found.iter().filter(|summary| summary["due_at"].is_null()) {
            let id = text(summary, "id");
            let message = gateway.message(id).await?;
            // It may have been claimed for its resend since the list was made.
            if message["status"] != status || !message["due_at"].is_null() {
                continue;
            }
            let is_suspect = message["error"]["code"] == "quarantined"
                && message["attempt"].as_i64().is_some_and(|attempt| attempt >= DEATHS_MAX);
            let is_doubtful = events_of(&message, "in_doubt") > RESENDS_MAX;
            ensure!(is_suspect || (status == "in_doubt" && is_doubtful), "{id} is stuck: {message:#}");
            match status {
                "failed" => gateway.post(&format!("/v1/messages/{id}/retry"), json!({})).await?,
                _ => {
                    let resend = json!({"outcome": "resend"});
                    gateway.post(&format!("/v1/messages/{id}/resolve"), resend).await?
                }
            };
        }
    }
    Ok(())
}

/// Checks one acknowledged mail: it was sent, its history is complete, and no copy is unexplained. Returns
/// how often it was in doubt.
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
    // A doubt may be settled by the answer itself, once the node that had it reaches the database again. What
    // `release_held` resolves is sent again.
    let resends = events.iter().filter(|event| event["data"]["outcome"] == "resend").count();
    let settled = events_of(message, "sent") + events_of(message, "resolved") - resends;
    ensure!(settled == 1, "not sent once");
    Ok(doubts)
}

/// How many copies of a message the relay has.
pub fn copies(sink: &SmtpSink, uid: &str) -> usize {
    sink.mails().iter().filter(|mail| mail.postway_id.as_deref() == Some(uid)).count()
}
