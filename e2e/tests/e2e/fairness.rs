//! What is urgent does not wait behind what is not.

use postway_e2e::{Gateway, PATIENCE, eventually, mail_with};
use postway_testkit::{SinkAction, SinkPause, SinkVerb, SmtpSink};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn an_immediate_mail_goes_before_a_backlog_of_low_ones() -> anyhow::Result<()> {
    const BACKLOG: usize = 40;
    let hold = SinkPause::new();
    let sink = SmtpSink::builder().on(SinkVerb::Dot, SinkAction::Hold(hold.clone())).start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 1})).await?;
    let low: Vec<Value> = (0..BACKLOG)
        .map(|n| mail_with(&format!("low-{n}"), "ada@example.net", json!({"priority": "low"})))
        .collect();
    gateway.post("/v1/messages/batch", json!({"messages": low})).await?;
    hold.reached().await;
    let urgent =
        gateway.send(mail_with("urgent", "ada@example.net", json!({"priority": "immediate"}))).await?;
    hold.release();

    let mails = sink.wait_for(BACKLOG + 1, PATIENCE).await;
    let place = mails.iter().position(|mail| mail.postway_id.as_deref() == Some(&urgent));
    // Ahead of it is what was on the wire, and at most what the connection took next before a place was free.
    assert!(place.is_some_and(|place| place <= 2), "it came at {place:?}");
    Ok(())
}

#[tokio::test]
async fn mails_of_one_call_leave_in_its_order() -> anyhow::Result<()> {
    const MAILS: usize = 150;
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 1})).await?;
    let mails: Vec<Value> =
        (0..MAILS).map(|n| mail_with(&format!("mail-{n}"), "ada@example.net", json!({}))).collect();
    let answer = gateway.post("/v1/messages/batch", json!({"messages": mails})).await?;
    assert_eq!(answer["accepted"], MAILS, "{answer}");

    let arrived = sink.wait_for(MAILS, PATIENCE).await;
    let uids: Vec<String> = arrived.into_iter().filter_map(|mail| mail.postway_id).collect();
    let mut places = Vec::with_capacity(MAILS);
    for n in 0..MAILS {
        let uid = gateway.get(&format!("/v1/messages/mail-{n}")).await?["uid"].clone();
        places.push(uids.iter().position(|arrived| uid == arrived.as_str()));
    }
    assert!(
        places == (0..MAILS).map(Some).collect::<Vec<_>>(),
        "mail by mail, its place at the relay: {places:?}"
    );
    Ok(())
}

/// A relay that takes connections and never answers holds what it was given for minutes.
#[tokio::test]
async fn a_tenant_whose_relay_hangs_leaves_places_for_others() -> anyhow::Result<()> {
    const STUCK: usize = 60;
    let (hangs, works) = (SinkPause::new(), SmtpSink::start().await);
    let sink = SmtpSink::builder().on(SinkVerb::Dot, SinkAction::Hold(hangs.clone())).start().await;
    let gateway = Gateway::start_with(&[("POSTWAY_DISPATCH_MAX_IN_FLIGHT", "40")]).await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 40})).await?;
    let mails: Vec<Value> =
        (0..STUCK).map(|n| mail_with(&format!("stuck-{n}"), "ada@example.net", json!({}))).collect();
    gateway.post("/v1/messages/batch", json!({"messages": mails})).await?;
    eventually("all places that one tenant may have are taken", async || {
        let stats = gateway.get("/v1/stats").await?;
        Ok((stats["by_status"]["sending"].as_i64() >= Some(20)).then_some(()))
    })
    .await?;

    // Another account of the same tenant, and another tenant.
    let mut other = relay(works.port());
    other["id"] = json!("other");
    gateway.post("/v1/accounts", other).await?;
    gateway.send(mail_with("neighbour", "bob@example.net", json!({"account": "other"}))).await?;
    gateway.post("/v1/tenants", json!({"id": "calm", "name": "Calm"})).await?;
    let as_calm = |method, path: &str| gateway.request(method, path).header("X-Tenant", "calm");
    as_calm(Method::POST, "/v1/accounts").json(&relay(works.port())).send().await?.error_for_status()?;
    let calm = mail_with("calm", "eve@example.net", json!({"account": "relay"}));
    as_calm(Method::POST, "/v1/messages").json(&calm).send().await?.error_for_status()?;
    works.wait_for(2, PATIENCE).await;

    // What waits says for what.
    let waiting = eventually("a mail that waits for its turn", async || {
        let explained = gateway.get(&format!("/v1/messages/stuck-{}/explain", STUCK - 1)).await?;
        Ok(explained["gates"][0].as_object().cloned())
    })
    .await?;
    assert_eq!(waiting["gate"], "turn", "{waiting:?}");
    assert!(waiting["reason"].as_str().is_some_and(|why| why.contains("have no answer yet")), "{waiting:?}");
    hangs.release();
    sink.wait_for(STUCK, PATIENCE).await;
    Ok(())
}

fn relay(port: u16) -> Value {
    json!({"id": "relay", "kind": "smtp", "host": "127.0.0.1", "port": port, "tls": "none"})
}
