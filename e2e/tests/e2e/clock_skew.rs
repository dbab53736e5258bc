//! Clocks that are wrong. Two nodes on machines whose clocks are a minute or an hour apart compare counters,
//! so neither takes the other for dead, and the younger takes over the time of the older, so mail that waits
//! for a time goes out at that time, once. A clock that is set forth and back by an hour under a running
//! gateway loses nothing and stops nothing, frees no limit, and keeps nothing waiting that was given its time
//! by the wrong clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use postway_e2e::{
    Gateway, GatewayDisk, Load, audit, eventually, mail, mail_with, node_env, nodes_of, start_node, text,
};
use postway_testkit::{SinkAction, SinkPause, SinkVerb, SmtpSink, postgres::PostgresDatabase};
use serde_json::json;
use tokio::time::Instant;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// How long mail may wait, measured by the time that all nodes agree on.
const FRESH: SignedDuration = SignedDuration::from_mins(5);
/// Longer than the ten seconds after which a silent node counts as dead.
const WATCHED: Duration = Duration::from_secs(13);

/// Posts a mail, and says by this node's own clock when it came.
async fn post(
    node: &Gateway,
    id: &str,
    to: &str,
    fields: serde_json::Value,
) -> anyhow::Result<(postway_e2e::Acknowledged, Timestamp)> {
    let uid = node.send(mail_with(id, to, fields)).await?;
    let created_at = text(&node.message(id).await?, "created_at").parse()?;
    Ok((postway_e2e::Acknowledged { id: id.to_owned(), uid }, created_at))
}

#[tokio::test]
async fn a_minute_between_two_clocks_harms_nobody() -> anyhow::Result<()> {
    apart_by(SignedDuration::from_mins(1)).await
}

#[tokio::test]
async fn an_hour_ahead_harms_nobody() -> anyhow::Result<()> {
    apart_by(HOUR).await
}

#[tokio::test]
async fn an_hour_behind_harms_nobody() -> anyhow::Result<()> {
    apart_by(-HOUR).await
}

async fn apart_by(skew: SignedDuration) -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let sink = SmtpSink::builder().greylist(1).start().await;
    let url = database.url();
    let right = start_node(&url, "right.example").await?;
    let skew_ms = skew.as_millis().to_string();
    let mut env = node_env(&url, "fast.example");
    env.push(("FAILPOINTS_CLOCK_SKEW_MS", &skew_ms));
    let fast = Gateway::start_with(&env).await?;
    right.relay_to(sink.port()).await?;

    let watch = Instant::now();
    let mut acknowledged = Vec::new();
    for (name, node) in [("right", &right), ("fast", &fast)] {
        let (plain, now) =
            post(node, &format!("{name}-plain"), &format!("{name}-plain@example.net"), json!({})).await?;
        acknowledged.push(plain);
        let later = [
            ("later", json!({"send_at": (now + SignedDuration::from_secs(3)).to_string()})),
            ("fresh", json!({"expires_at": (now + FRESH).to_string()})),
            (
                "both",
                json!({"send_at": (now + SignedDuration::from_secs(2)).to_string(),
                       "expires_at": (now + FRESH).to_string()}),
            ),
        ];
        for (kind, fields) in later {
            let id = format!("{name}-{kind}");
            acknowledged.push(post(node, &id, &format!("{id}@example.net"), fields).await?.0);
        }
    }
    let created = |id: &'static str| {
        let right = &right;
        async move { anyhow::Ok(text(&right.message(id).await?, "created_at").parse::<Timestamp>()?) }
    };
    let apart = created("fast-plain").await?.duration_since(created("right-plain").await?);
    assert!(apart.abs() < skew.abs() / 4, "the nodes' times are {apart:?} apart");
    assert!(fast.log().contains("this machine's clock differs"), "{}", fast.log());

    while watch.elapsed() < WATCHED {
        for node in [&right, &fast] {
            let nodes = nodes_of(node).await?;
            assert!(nodes.len() == 2 && nodes.iter().all(|(_, status, _)| status == "alive"), "{nodes:?}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let doubts = audit(&right, &sink, &acknowledged).await?;
    assert_eq!(doubts, 0);
    assert_eq!(sink.mails().len(), acknowledged.len(), "each went once");
    for node in [&right, &fast] {
        assert!(!node.log().contains("a lost lease was taken back"), "{}", node.log());
    }
    // And both still take mail.
    for (id, node) in [("right-last", &right), ("fast-last", &fast)] {
        node.send(mail(id, &format!("{id}@example.net"))).await?;
        node.wait_for(id, "sent").await?;
    }
    Ok(())
}

/// Set to an hour ahead, back, an hour behind, and right again, with mail on the wire each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_set_by_an_hour_under_load_loses_and_stops_nothing() -> anyhow::Result<()> {
    let mut gateway = Gateway::idle()?;
    let disk = GatewayDisk::under(&gateway)?;
    gateway.launch(&disk.env(&[])).await?;
    let delay = SinkAction::Delay(Duration::from_millis(8)).recorded();
    let sink = SmtpSink::builder().on(SinkVerb::Dot, delay).start().await;
    gateway.relay_with(sink.port(), json!({"max_connections": 4})).await?;
    let load = Load::start(&[gateway.client()], false);
    // One that waits, and whose time is over in half an hour: it ends once somebody has looked at the new
    // time.
    load.wait_for(Load::CLIENTS * 2).await?;
    let begun: Timestamp = text(&gateway.message("client0-0").await?, "created_at").parse()?;
    gateway.post("/v1/batches/waiting/suspend", json!({})).await?;
    let fields = json!({"batch": "waiting", "expires_at": (begun + HOUR / 2).to_string()});
    gateway.send(mail_with("stale", "ada@example.net", fields)).await?;
    let noticed = [None, Some(1), Some(2), None];
    for (ahead, set_back) in
        [HOUR, SignedDuration::ZERO, -HOUR, SignedDuration::ZERO].into_iter().zip(noticed)
    {
        let hold = SinkPause::new();
        sink.hold_next_dot(&hold);
        hold.reached().await;
        disk.set_clock(i64::try_from(ahead.as_millis())?)?;
        // What comes in the new time goes out in it.
        let before = sink.mails().len();
        load.wait_for(load.acknowledged() + 50).await?;
        sink.wait_for(before + 30, postway_e2e::PATIENCE).await;
        match set_back {
            Some(times) => gateway.wait_for_log("the clock was set back", times).await?,
            None => drop(gateway.wait_for("stale", "expired").await?),
        }
        hold.release();
    }
    let acknowledged = load.stop().await?;
    let mut times = Vec::new();
    for one in &acknowledged {
        times.push(text(&gateway.message(&one.id).await?, "created_at").parse::<Timestamp>()?);
    }
    let (first, last) = (times.iter().min().copied(), times.iter().max().copied());
    let apart = last.zip(first).map(|(last, first)| last.duration_since(first)).unwrap_or_default();
    assert!(apart > HOUR + HOUR / 2, "the clock was not set: {first:?} to {last:?}");
    audit(&gateway, &sink, &acknowledged).await?;
    Ok(())
}

#[tokio::test]
async fn a_clock_set_right_during_a_stop_keeps_no_retry_waiting() -> anyhow::Result<()> {
    let mut gateway = Gateway::idle()?;
    let disk = GatewayDisk::under(&gateway)?;
    disk.set_clock(i64::try_from((HOUR * 2).as_millis())?)?;
    gateway.launch(&disk.env(&[])).await?;
    let sink = SmtpSink::builder().greylist(1).start().await;
    gateway.relay_with(sink.port(), json!({"retry": {"delays_s": [300, 300]}})).await?;
    gateway.send(mail("one", "ada@example.net")).await?;
    gateway.wait_for("one", "scheduled").await?;
    assert!(gateway.terminate().await?.success());
    disk.set_clock(0)?;
    gateway.launch(&disk.env(&[])).await?;
    // Not in two hours: that is how far its retry was, and longer than any of its account's.
    gateway.wait_for("one", "sent").await?;
    Ok(())
}

#[tokio::test]
async fn a_clock_set_forward_frees_no_limit() -> anyhow::Result<()> {
    let mut gateway = Gateway::idle()?;
    let disk = GatewayDisk::under(&gateway)?;
    gateway.launch(&disk.env(&[])).await?;
    let sink = SmtpSink::start().await;
    gateway.relay_with(sink.port(), json!({"limits": {"per_minute": 3, "per_day": 30}})).await?;
    let began = Instant::now();
    for n in 0..6 {
        gateway.send(mail(&format!("mail-{n}"), "ada@example.net")).await?;
    }
    sink.wait_for(3, postway_e2e::PATIENCE).await;
    disk.set_clock(i64::try_from(HOUR.as_millis())?)?;
    gateway.wait_for_log("this machine's clock was set, and is followed", 1).await?;
    let held = eventually("a mail that waits for the limit in the new time", async || {
        let told = gateway.get("/v1/messages/mail-5/explain").await?;
        Ok((told["gates"][0]["gate"] == "limit").then_some(told))
    });
    held.await?;
    let mails = sink.mails().len();
    assert!(mails == 3 || began.elapsed() > Duration::from_secs(60), "{mails} in the first minute");
    Ok(())
}

/// Nobody sees it being set: the node died before, and the next life starts with another time.
#[tokio::test]
async fn a_clock_set_forward_while_no_node_runs_frees_no_limit() -> anyhow::Result<()> {
    let mut gateway = Gateway::idle()?;
    let disk = GatewayDisk::under(&gateway)?;
    gateway.launch(&disk.env(&[])).await?;
    let sink = SmtpSink::start().await;
    gateway.relay_with(sink.port(), json!({"limits": {"per_minute": 3, "per_day": 30}})).await?;
    let began = Instant::now();
    for n in 0..6 {
        gateway.send(mail(&format!("mail-{n}"), "ada@example.net")).await?;
    }
    sink.wait_for(3, postway_e2e::PATIENCE).await;
    for n in 0..3 {
        gateway.wait_for(&format!("mail-{n}"), "sent").await?;
    }
    gateway.kill().await?;
    disk.set_clock(i64::try_from(HOUR.as_millis())?)?;
    gateway.launch(&disk.env(&[])).await?;
    gateway.wait_for_log("the clock was set while this node was away", 1).await?;
    let held = eventually("a mail that waits for the limit in the new time", async || {
        let told = gateway.get("/v1/messages/mail-5/explain").await?;
        Ok((told["gates"][0]["gate"] == "limit").then_some(told))
    });
    held.await?;
    let mails = sink.mails().len();
    assert!(mails == 3 || began.elapsed() > Duration::from_secs(60), "{mails} in the first minute");
    Ok(())
}
