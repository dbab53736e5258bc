//! A relay comes back after an outage, and a whole backlog wants to go at that moment: connections stay
//! bounded, retries come spread, an account at fault is probed by one mail at a time, and every mail goes
//! once.

use anyhow::Context;
use postway_e2e::{Gateway, PATIENCE, column, eventually, mail};
use postway_testkit::{SinkAction, SinkVerb, SmtpSink};
use reqwest::Method;
use serde_json::{Value, json};

const MAILS: usize = 800;
const CONNECTIONS_MAX: usize = 4;

async fn post_all(gateway: &Gateway) -> anyhow::Result<()> {
    for first in (0..MAILS).step_by(500) {
        let mails = (first..(first + 500).min(MAILS)).map(|n| mail(&format!("mail-{n}"), "ada@example.net"));
        gateway.post("/v1/messages/batch", json!({"messages": mails.collect::<Vec<Value>>()})).await?;
    }
    Ok(())
}

async fn in_state(gateway: &Gateway, status: &str) -> anyhow::Result<usize> {
    let stats = gateway.get("/v1/stats").await?;
    usize::try_from(stats["by_status"][status].as_u64().unwrap_or_default()).context("too many")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_of_retries_goes_over_few_connections_and_each_once() -> anyhow::Result<()> {
    let away = SinkAction::reply("451 4.3.2 the system is not accepting mail now");
    let sink = SmtpSink::builder().on(SinkVerb::Mail, away).start().await;
    let gateway = Gateway::start().await?;
    // The first attempts come together, and their retries are not due before the last of them was made.
    let settings =
        json!({"max_connections": CONNECTIONS_MAX, "retry": {"delays_s": [60, 60], "jitter": 0.25}});
    gateway.relay_with(sink.port(), settings).await?;
    post_all(&gateway).await?;
    eventually("every mail to wait for its retry", async || {
        Ok((in_state(&gateway, "scheduled").await? == MAILS).then_some(()))
    })
    .await?;
    let before = sink.ledger().connections;
    assert!(before <= 2 * CONNECTIONS_MAX, "{before} connections during the outage");

    // Each has a time of its own, in the whole width of the jitter.
    let mut delays = Vec::new();
    for n in (0..MAILS).step_by(8) {
        let message = gateway.message(&format!("mail-{n}")).await?;
        let events = message["events"].as_array().context("no events")?;
        let scheduled = events.iter().find(|event| event["type"] == "scheduled").context("no retry")?;
        delays.push(scheduled["data"]["backoff_ms"].as_u64().context("no delay")?);
    }
    delays.sort_unstable();
    let (least, most) = (delays[0], delays[delays.len() - 1]);
    assert!(least >= 45_000 && most <= 75_000, "{least}–{most} ms");
    assert!(most - least > 20_000, "{least}–{most} ms");
    delays.dedup();
    assert!(delays.len() > 80, "{} times for 100 mails", delays.len());

    // The relay is back, slowly, and somebody has everything tried now: all of it is due at one moment.
    sink.clear_rules();
    sink.add_rule(|event| {
        let pause = std::time::Duration::from_millis(2);
        (event.verb == SinkVerb::Dot).then(|| SinkAction::Delay(pause).recorded())
    });
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    for n in 0..MAILS {
        gateway.post(&format!("/v1/messages/mail-{n}/retry"), json!({})).await?;
    }
    assert_eq!(in_state(&gateway, "ready").await?, MAILS);
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    let stats = gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(stats["by_status"]["sent"], MAILS);
    let ledger = sink.ledger();
    assert_eq!((ledger.mails.len(), ledger.dots), (MAILS, MAILS), "each went once");
    let opened = ledger.connections - before;
    assert!(opened <= 2 * CONNECTIONS_MAX, "{opened} connections for {MAILS} mails");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_at_fault_is_probed_by_one_mail_however_long_its_queue() -> anyhow::Result<()> {
    const PASSWORD: &str = "right";
    let sink = SmtpSink::builder().auth("shop", PASSWORD).start().await;
    let gateway = Gateway::start().await?;
    let settings = json!({"max_connections": CONNECTIONS_MAX, "username": "shop", "password": "wrong",
        "allow_plaintext_auth": true});
    gateway.relay_with(sink.port(), settings).await?;
    post_all(&gateway).await?;
    let mut circuit = gateway.wait_until_open("relay").await?["circuit"].take();
    // Each probe that fails puts the next one off.
    for _ in 0..2 {
        circuit = eventually("a probe", async || {
            let now = gateway.get("/v1/accounts/relay").await?["circuit"].take();
            assert_eq!(now["state"], "open", "{now:#}");
            Ok((now["until"] != circuit["until"]).then_some(now))
        })
        .await?;
    }
    // Those on their way when it opened, and the probes.
    let tried = sink.ledger().connections;
    assert!(tried <= 2 * CONNECTIONS_MAX + 2, "{tried} connections for a wrong password");
    let waiting = in_state(&gateway, "ready").await? + in_state(&gateway, "sending").await?;
    assert_eq!(waiting, MAILS, "no retry was used");

    let right = json!({"password": PASSWORD});
    let (status, changed) = gateway.call(Method::PATCH, "/v1/accounts/relay", Some(right)).await?;
    assert!(status.is_success(), "{changed}");
    let before = sink.ledger().connections;
    let stats = gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(stats["by_status"]["sent"], MAILS);
    let ledger = sink.ledger();
    assert_eq!(ledger.mails.len(), MAILS, "each went once");
    assert!(
        ledger.connections - before <= 2 * CONNECTIONS_MAX,
        "{} connections",
        ledger.connections - before
    );
    let message = gateway.message("mail-7").await?;
    assert_eq!(
        column(&message, "attempts", "outcome").last().map(String::as_str),
        Some("sent"),
        "{message:#}"
    );
    Ok(())
}
