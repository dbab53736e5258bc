//! SIGKILL at random moments under load, again and again. Afterwards the clients' ledger, the relay's ledger and the
//! gateway's own history must agree: nothing lost, and nothing twice that is not marked in doubt.

use std::{collections::HashMap, time::Duration};

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use postway_e2e::{Client, Gateway, PATIENCE, events_of, eventually, mail, text};
use postway_testkit::{Action, SmtpSink, Verb, mariadb::MariaDb, postgres::PostgresDatabase};
use rand::Rng;
use serde_json::json;
use tokio::{sync::watch, task::JoinSet, time::sleep};

const CLIENTS: usize = 5;
/// How often a mail in doubt is sent again by itself.
const RESENDS_MAX: usize = 3;
/// Between two mails of one client: a load, not a flood, so that the checks at the end stay short.
const PACE: Duration = Duration::from_millis(20);
/// The relay takes responsibility and then takes its time to say so: that is where a kill makes a doubt.
const DOT_DELAY: Duration = Duration::from_millis(8);

/// Posts one mail after the other until told to stop, each until it is acknowledged. Returns uid by id.
async fn post(
    client: Client,
    name: usize,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<Vec<(String, String)>> {
    let mut acknowledged = Vec::new();
    while !*stop.borrow() {
        let id = format!("client{name}-{}", acknowledged.len());
        let uid = loop {
            match client.send(mail(&id, "ada@example.net")).await {
                Ok(uid) => break uid,
                // A refusal would be a fault of ours; anything else is a gateway that is dead just now.
                Err(error) if error.downcast_ref::<reqwest::Error>().is_some() => sleep(PACE).await,
                Err(error) => return Err(error),
            }
        };
        acknowledged.push((id, uid));
        sleep(PACE).await;
    }
    Ok(acknowledged)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_kills_lose_nothing_and_duplicate_only_what_is_in_doubt() -> anyhow::Result<()> {
    kill_again_and_again(30, &[]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_do_they_on_postgresql() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    kill_again_and_again(20, &[("POSTWAY_DATABASE_URL", &database.url())]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_do_they_on_mariadb() -> anyhow::Result<()> {
    let url = MariaDb::shared().create_database();
    kill_again_and_again(20, &[("POSTWAY_DATABASE_URL", &url)]).await
}

async fn kill_again_and_again(kills: usize, env: &[(&str, &str)]) -> anyhow::Result<()> {
    let sink = SmtpSink::builder().on(Verb::Dot, Action::Delay(DOT_DELAY).recorded()).start().await;
    let mut gateway = Gateway::start_with(env).await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 6})).await?;
    let (stop, stopped) = watch::channel(false);
    let mut clients = JoinSet::new();
    for name in 0..CLIENTS {
        clients.spawn(post(gateway.client(), name, stopped.clone()));
    }
    for _ in 0..kills {
        sleep(Duration::from_millis(rand::rng().random_range(100..900))).await;
        gateway.kill().await?;
        gateway.launch(env).await?;
    }
    stop.send_replace(true);
    let mut acknowledged = Vec::new();
    while let Some(posted) = clients.join_next().await {
        acknowledged.extend(posted??);
    }
    eventually("every doubt to be settled or due", async || release_held(&gateway).await).await?;
    let stats = gateway.wait_until_settled(PATIENCE).await?;

    let mut copies: HashMap<String, usize> = HashMap::new();
    for mail in sink.mails() {
        *copies.entry(mail.postway_id.context("a mail without X-Postway-ID")?).or_default() += 1;
    }
    assert!(acknowledged.len() > kills * 5, "there was no load: {}", acknowledged.len());
    assert_eq!(stats["by_status"]["sent"], acknowledged.len(), "{stats:#}");
    assert_eq!(copies.len(), acknowledged.len(), "the relay has every mail, and no other");
    let gateway = &gateway;
    let doubts: Vec<usize> = stream::iter(&acknowledged)
        .map(|(id, uid)| check(gateway, id, copies.get(uid).copied().unwrap_or(0)))
        .buffer_unordered(8)
        .try_collect()
        .await?;
    assert!(doubts.iter().sum::<usize>() > 0, "no kill struck between the permission and the record");
    Ok(())
}

/// A mail that was struck more often than it is sent again by itself waits for a word: that is right, and the word is
/// given here. One that is held for less is stuck, and a fault. Done when no mail is in doubt any more.
async fn release_held(gateway: &Gateway) -> anyhow::Result<Option<()>> {
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
async fn check(gateway: &Gateway, id: &str, copies: usize) -> anyhow::Result<usize> {
    let message = gateway.message(id).await?;
    ensure!(text(&message, "status") == "sent", "{message:#}");
    let doubts = events_of(&message, "in_doubt");
    ensure!(copies >= 1, "{id} is lost: {message:#}");
    ensure!(copies <= 1 + doubts, "{id} came {copies} times: {message:#}");
    let events = message["events"].as_array().context("no events")?;
    let gapless = events.iter().zip(1..).all(|(event, seq)| event["seq"] == seq);
    ensure!(gapless, "the history of {id} has gaps: {message:#}");
    ensure!(events_of(&message, "sent") == 1, "{message:#}");
    Ok(doubts)
}
