//! The process is killed while files are fetched: nothing is lost, nothing goes twice.

use std::time::Duration;

use postway_e2e::{
    ALLOW_LOOPBACK, Gateway, Load, PATIENCE, a_while, audit, column, copies, event_types, events_of,
    eventually, mail_with, node_env,
};
use postway_testkit::{HttpSource, SmtpSink, SourceReply, postgres::PostgresDatabase};
use serde_json::{Value, json};

/// A mail with a file of its own.
fn with_file(source: &HttpSource, id: &str) -> Value {
    let url = source.url(&format!("/{id}"));
    mail_with(id, "ada@example.net", json!({"attachments": [{"filename": "a.txt", "url": url}]}))
}

#[tokio::test]
async fn what_was_being_fetched_at_a_kill_is_sent_once() -> anyhow::Result<()> {
    // More than one tenant's places, so that some wait and some are being fetched.
    const MAILS: usize = 12;
    const AT_ONCE: usize = 8;
    let (source, sink) = (HttpSource::start().await, SmtpSink::start().await);
    let ids: Vec<String> = (0..MAILS).map(|n| format!("mail-{n}")).collect();
    let (gate, held) = SourceReply::ok("a file").held();
    for id in &ids {
        source.serve(&format!("/{id}"), held.clone());
    }
    let mut gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    let mut uids = Vec::new();
    for id in &ids {
        uids.push(gateway.send(with_file(&source, id)).await?);
    }
    source.wait_for(AT_ONCE, PATIENCE).await;
    gateway.wait_for("mail-0", "validating").await?;
    gateway.kill().await?;
    gateway.launch(&[ALLOW_LOOPBACK]).await?;
    // They are fetched anew, also while the source still holds.
    source.wait_for(2 * AT_ONCE, PATIENCE).await;
    gate.send_replace(true);

    for (id, uid) in ids.iter().zip(&uids) {
        let message = gateway.wait_for(id, "sent").await?;
        let mut steps = event_types(&message);
        // Once for each time that it was taken up: the kill has left its trace.
        assert!((1..=2).contains(&events_of(&message, "validating")), "{message:#}");
        steps.retain(|step| step != "validating");
        assert_eq!(steps, ["accepted", "validated", "ready", "sending", "sent"], "{message:#}");
        assert_eq!(copies(&sink, uid), 1, "{id}");
    }
    assert_eq!(sink.mails().len(), MAILS);
    Ok(())
}

/// Whoever is in hand whenever the server dies may be why it does, but not all of them can be: at most one is
/// refused.
#[tokio::test]
async fn mails_are_not_blamed_together_for_a_server_that_dies_again_and_again() -> anyhow::Result<()> {
    const MAILS: usize = 8;
    const KILLS: usize = 5;
    let (source, sink) = (HttpSource::start().await, SmtpSink::start().await);
    let (gate, held) = SourceReply::ok("a file").held();
    let ids: Vec<String> = (0..MAILS).map(|n| format!("mail-{n}")).collect();
    let mut gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    for id in &ids {
        source.serve(&format!("/{id}"), held.clone());
        gateway.send(with_file(&source, id)).await?;
    }
    source.wait_for(MAILS, PATIENCE).await;
    for _ in 0..KILLS {
        gateway.kill().await?;
        let before = source.requests().len();
        gateway.launch(&[ALLOW_LOOPBACK]).await?;
        // Whatever is in hand is being fetched, or has been judged.
        eventually("a fetch", async || {
            let by_status = &gateway.get("/v1/stats").await?["by_status"];
            let in_hand = &by_status["validating"];
            let is_fetched = *in_hand != 0 && *in_hand == source.requests().len() - before;
            Ok((is_fetched || by_status["invalid"] != 0).then_some(()))
        })
        .await?;
    }
    gate.send_replace(true);
    gateway.wait_until_settled(PATIENCE).await?;
    let sent = gateway.get("/v1/messages?status=sent").await?;
    let sent = column(&sent, "data", "id").len();
    let refused = column(&gateway.get("/v1/messages?status=invalid").await?, "data", "reason");
    assert!(sent >= MAILS - 1, "{sent} of {MAILS} were sent, the others refused: {refused:?}");
    Ok(())
}

#[tokio::test]
async fn what_a_killed_node_was_fetching_is_fetched_by_another() -> anyhow::Result<()> {
    let (source, sink) = (HttpSource::start().await, SmtpSink::start().await);
    let database = PostgresDatabase::create();
    let url = database.url();
    let env = |name| [node_env(&url, name), vec![ALLOW_LOOPBACK]].concat();
    let (_gate, held) = SourceReply::ok("never comes").held();
    source.serve_in_turn("/mail", vec![held, SourceReply::ok("a file")]);
    let mut busy = Gateway::start_with(&env("busy.example")).await?;
    busy.relay_to(sink.port()).await?;
    let uid = busy.send(with_file(&source, "mail")).await?;
    source.wait_for(1, PATIENCE).await;
    let other = Gateway::start_with(&env("other.example")).await?;
    busy.kill().await?;
    let message = other.wait_for("mail", "sent").await?;
    let steps = ["accepted", "validating", "validating", "validated", "ready", "sending", "sent"];
    assert_eq!(event_types(&message), steps, "{message:#}");
    assert_eq!((copies(&sink, &uid), source.requests().len()), (1, 2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_kills_while_files_are_fetched_lose_nothing() -> anyhow::Result<()> {
    const MAILS: usize = 60;
    const KILLS: usize = 6;
    let (source, sink) = (HttpSource::start().await, SmtpSink::start().await);
    let mails: Vec<Value> = (0..MAILS).map(|n| with_file(&source, &format!("mail-{n}"))).collect();
    for n in 0..MAILS {
        // It takes its time, so that a kill finds some of them on their way; some fail at first.
        let slow = SourceReply::Drip { body: b"some bytes".to_vec(), every: Duration::from_millis(10) };
        let faults = if n % 10 == 0 { vec![SourceReply::status(502)] } else { Vec::new() };
        source.serve_in_turn(&format!("/mail-{n}"), [faults, vec![slow]].concat());
    }
    let mut gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 4})).await?;
    let mut acknowledged = Vec::new();
    for wave in mails.chunks(MAILS / KILLS) {
        let fetches = source.requests().len();
        let load = Load::of(&[gateway.client()], wave);
        source.wait_for(fetches + 2, PATIENCE).await;
        a_while(0..150).await;
        gateway.kill().await?;
        gateway.launch(&[ALLOW_LOOPBACK]).await?;
        acknowledged.extend(load.finish().await?);
        // A mail that is struck again and again is suspected: that is another scenario.
        eventually("the wave to be composed", async || {
            let by_status = &gateway.get("/v1/stats").await?["by_status"];
            Ok((by_status["accepted"] == 0 && by_status["validating"] == 0).then_some(()))
        })
        .await?;
    }
    assert_eq!(acknowledged.len(), MAILS);
    audit(&gateway, &sink, &acknowledged).await?;
    let fetches = source.requests().len();
    assert!(fetches > MAILS + MAILS / 10, "no kill struck while a file was fetched: {fetches} fetches");
    Ok(())
}
