//! Reports to those that take no webhooks: a tenant's own client, told in the words of an outbox or in
//! batches, and applications that ask for themselves.

use std::time::Duration;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use postway_e2e::{
    ALLOW_LOOPBACK, Client, Gateway, PATIENCE, column, event_types, events_of, eventually, mail, mail_with,
    text,
};
use postway_testkit::{HttpSource, SmtpSink, SourceReply};
use reqwest::{Method, header::ACCEPT};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

/// Sets the form of the calls to the tenant's client.
async fn tell_client(gateway: &Client, source: &HttpSource, form: &str) -> anyhow::Result<()> {
    let auth = json!({"type": "bearer", "token": "s3cr3t"});
    let client = json!({"url": source.url(""), "path": "/reports", "auth": auth});
    gateway
        .patch("/v1/tenants/default", json!({"callback_form": form, "client_sync": client}))
        .await
        .map(drop)
}

/// The calls that the client has received so far.
fn bodies(source: &HttpSource) -> anyhow::Result<Vec<Value>> {
    let requests = source.requests();
    let reports: Vec<_> = requests.iter().filter(|request| request.path == "/reports").collect();
    assert!(reports.iter().all(|request| request.header("authorization") == Some("Bearer s3cr3t")));
    Ok(reports.iter().map(|request| serde_json::from_slice(&request.body)).collect::<Result<_, _>>()?)
}

/// Waits until an outbox has taken the outcome of a message and the history tells so, and returns it.
async fn notified(gateway: &Client, id: &str) -> anyhow::Result<Value> {
    let message = gateway.wait_until(id, "notified", |message| events_of(message, "notified") == 1).await?;
    assert!(message["reported_at"].is_string(), "{message:#}");
    Ok(message)
}

#[tokio::test]
async fn an_outbox_is_called_until_it_takes_the_outcome_and_the_history_tells() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().rcpt("nobody@", "550 5.1.1 no such user here").start().await;
    let source = HttpSource::start().await;
    let (gate, held) = SourceReply::status(200).held();
    source.serve_in_turn("/reports", vec![SourceReply::status(409), held]);
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    tell_client(&gateway, &source, "outbox").await?;
    gateway.send(mail("order-1", "ada@example.net")).await?;
    source.wait_for(1, PATIENCE).await;
    let refused = gateway.wait_until("order-1", "told of", |message| events_of(message, "notifying") == 1);
    let refused = refused.await?;
    assert!(refused["reported_at"].is_null() && events_of(&refused, "notified") == 0, "{refused:#}");
    gate.send_replace(true);

    let taken = notified(&gateway, "order-1").await?;
    assert_eq!(
        event_types(&taken),
        ["accepted", "validated", "ready", "sending", "sent", "notifying", "notifying", "notified"],
        "{taken:#}"
    );
    let calls = bodies(&source)?;
    assert_eq!(calls[0], calls[1], "the same again");
    let call = &calls[0];
    assert_eq!((text(call, "code"), &call["message_ids"]), ("TRAVELING", &json!(["order-1"])), "{call:#}");
    assert!(call["reason"].is_null() && text(call, "reached_at").parse::<Timestamp>().is_ok(), "{call:#}");
    assert_eq!(calls.len(), 2);

    // Mail that will not arrive is reported as well: refused by the relay, and by our own checks.
    gateway.send(mail("lost-cause", "nobody@example.net")).await?;
    let failed = notified(&gateway, "lost-cause").await?;
    let missing = json!({"attachments": [{"filename": "a.bin", "url": source.url("/none.bin")}]});
    gateway.send(mail_with("flawed", "ada@example.net", missing)).await?;
    let invalid = notified(&gateway, "flawed").await?;
    assert_eq!((text(&failed, "status"), text(&invalid, "status")), ("failed", "invalid"));
    assert_eq!(
        event_types(&invalid),
        ["accepted", "validating", "invalid", "notifying", "notified"],
        "{invalid:#}"
    );
    let requests = source.requests();
    let told = requests.iter().filter(|request| request.path == "/reports").skip(2);
    let told: Vec<Value> =
        told.map(|request| serde_json::from_slice(&request.body)).collect::<Result<_, _>>()?;
    for (call, (id, reason)) in told.iter().zip([("lost-cause", "no such user here"), ("flawed", "404")]) {
        assert_eq!((text(call, "code"), &call["message_ids"]), ("DISPATCH-ERROR", &json!([id])), "{call:#}");
        assert!(text(call, "reason").contains(reason), "{call:#}");
    }
    assert_eq!(told.len(), 2);
    Ok(())
}

/// The status of each entry of a batch, by id.
fn entries(batch: &Value) -> Vec<(&str, &str)> {
    let mut entries: Vec<_> = batch["delivery_report"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| (text(entry, "id"), text(entry, "status")))
        .collect();
    entries.sort();
    entries
}

#[tokio::test]
async fn a_batch_is_told_as_its_client_asks_and_only_what_it_took_is_acknowledged() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let source = HttpSource::start().await;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    // Long enough for all that is to come together meanwhile.
    let quiet_until = gateway.now().await? + SignedDuration::from_secs(15);
    // The mail that asked for the time is not reported.
    gateway.wait_until_settled(PATIENCE).await?;
    let answer = |answer: Value| SourceReply::ok(answer.to_string());
    let replies = vec![
        answer(json!({"ok": true, "next_sync_after": quiet_until.as_second()})),
        answer(json!({"ok": true, "error": ["a"], "not_found": ["b"], "queued": 1})),
        answer(json!({"ok": true, "queued": 2})),
        answer(json!({"ok": true, "queued": 0})),
        // A success in other words does not count.
        SourceReply::ok("thank you"),
    ];
    source.serve_in_turn("/reports", replies);
    tell_client(&gateway, &source, "batch").await?;

    gateway.send(mail("first", "ada@example.net")).await?;
    gateway.wait_until_reported("first").await?;
    let client = gateway.get("/v1/webhooks/client_sync").await?;
    assert_eq!(text(&client, "quiet_until").parse::<Timestamp>()?.as_second(), quiet_until.as_second());
    for id in ["a", "b", "c"] {
        gateway.send(mail(id, "ada@example.net")).await?;
    }
    for id in ["a", "b", "c"] {
        gateway.wait_for(id, "sent").await?;
    }
    // All that has come together meanwhile goes in one call, and then the client has its own to hand over.
    source.wait_for(4, PATIENCE).await;
    for id in ["b", "c"] {
        let message = gateway.wait_until_reported(id).await?;
        assert_eq!(column(&message, "notifications", "event").last().map(String::as_str), Some("email.sent"));
    }
    let refused = gateway.message("a").await?;
    assert!(refused["reported_at"].is_null(), "{refused:#}");
    let calls = bodies(&source)?;
    let batches: Vec<_> = calls.iter().map(entries).collect();
    assert_eq!(batches[0], [("first", "sent")]);
    assert_eq!(batches[1], [("a", "sent"), ("b", "sent"), ("c", "sent")]);
    assert_eq!(batches[2..4], [[], []], "called again though there was nothing to tell");
    assert!(calls[0]["delivery_report"][0]["sent_ts"].is_i64(), "{:#}", calls[0]);
    let log = gateway.get("/v1/webhooks/client_sync/deliveries").await?;
    let log = log["data"].as_array().map_or(&[][..], Vec::as_slice);
    let calls_at = log.iter().filter(|one| one["last_call"]["request"].to_string().contains(r#"\"c\""#));
    let called_at: Vec<Timestamp> =
        calls_at.map(|one| text(&one["last_call"], "at").parse()).collect::<Result<_, _>>()?;
    assert!(called_at.len() == 1 && called_at[0].as_second() >= quiet_until.as_second(), "{log:#?}");

    // What was refused comes again by itself; nothing of it was acknowledged by an answer of another kind.
    source.wait_for(5, PATIENCE).await;
    assert_eq!(entries(&bodies(&source)?[4]), [("a", "sent")]);
    let again = |told: &Value| told["tries"].as_i64() >= Some(2) && text(told, "status") == "waiting";
    let refused = gateway.wait_until("a", "refused again", |message| {
        message["notifications"].as_array().into_iter().flatten().any(again)
    });
    assert!(refused.await?["reported_at"].is_null());
    Ok(())
}

/// Reads the feed in small pages until it has nothing more; what came, and where that ended.
async fn read_feed(gateway: &Client, mut cursor: String) -> anyhow::Result<(Vec<Value>, String)> {
    let mut read = Vec::new();
    loop {
        let page = gateway.get(&format!("/v1/events?limit=7&after={cursor}")).await?;
        let entries = page["data"].as_array().context("no list")?;
        cursor = text(&page, "next_cursor").to_owned();
        if entries.is_empty() {
            return Ok((read, cursor));
        }
        read.extend(entries.iter().cloned());
    }
}

#[tokio::test]
async fn the_feed_has_everything_in_order_and_a_cursor_outlives_a_restart() -> anyhow::Result<()> {
    const MAILS: usize = 30;
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let end = gateway.get("/v1/events?after=now").await?;
    let ids: Vec<String> = (0..MAILS).map(|n| format!("mail-{n}")).collect();
    let (before, after) = ids.split_at(MAILS / 2);
    for id in before {
        gateway.send(mail(id, "ada@example.net")).await?;
    }
    let (mut read, cursor) = read_feed(&gateway, text(&end, "next_cursor").to_owned()).await?;
    gateway.kill().await?;
    gateway.launch(&[]).await?;
    for id in after {
        gateway.send(mail(id, "ada@example.net")).await?;
    }
    gateway.wait_until_settled(PATIENCE).await?;
    let last = gateway.get(&format!("/v1/events?after={cursor}&wait=30&limit=500")).await?;
    assert!(!column(&last, "data", "type").is_empty());
    // The latest get their place a moment after they happened.
    let started = Instant::now();
    let mut cursor = cursor;
    while read.iter().filter(|entry| text(entry, "type") == "email.sent").count() < MAILS {
        assert!(started.elapsed() < PATIENCE, "{read:#?}");
        let (more, at) = read_feed(&gateway, cursor).await?;
        read.extend(more);
        cursor = at;
    }
    for id in &ids {
        let message = gateway.message(id).await?;
        let of_message: Vec<&Value> =
            read.iter().filter(|entry| text(&entry["message"], "id") == id).collect();
        let told: Vec<&str> = of_message.iter().map(|entry| text(entry, "type")).collect();
        // The kill may have left some in doubt.
        assert_eq!(
            (told.first(), told.last()),
            (Some(&"email.accepted"), Some(&"email.sent")),
            "{id}: {told:?}"
        );
        assert_eq!(told.len(), 2 + 2 * events_of(&message, "in_doubt"), "{id}: {told:?}");
        assert!(of_message.is_sorted_by_key(|entry| entry["sequence"].as_i64()), "{of_message:#?}");
    }
    let (whole, _) = read_feed(&gateway, text(&end, "next_cursor").to_owned()).await?;
    assert_eq!(whole, read, "what was read before reads the same after");
    Ok(())
}

#[tokio::test]
async fn whoever_waits_for_news_has_them_soon() -> anyhow::Result<()> {
    // Less than whoever waits would wait without news.
    const SOON: Duration = Duration::from_secs(25);
    let gateway = Gateway::start().await?;
    let cursor = text(&gateway.get("/v1/events?after=now").await?, "next_cursor").to_owned();
    let sandboxed = |id: &str| mail_with(id, "ada@example.net", json!({"account": "sandbox"}));

    let path = format!("/v1/events?after={cursor}&wait=30");
    let client = gateway.client();
    let waiting = tokio::spawn(async move { client.get(&path).await });
    gateway.send(sandboxed("polled")).await?;
    let answer = timeout(SOON, waiting).await.context("the answer did not come when there was news")???;
    assert_eq!(text(&answer["data"][0], "type"), "email.accepted", "{answer:#}");
    assert_eq!(text(&answer["data"][0]["message"], "id"), "polled");
    // Without news it comes at its time; what was sent gets its place in the feed a moment later.
    eventually("the last news", async || {
        let feed = gateway.get(&format!("/v1/events?after={cursor}")).await?;
        Ok(column(&feed, "data", "type").contains(&"email.sent".to_owned()).then_some(()))
    })
    .await?;
    let started = Instant::now();
    let nothing = gateway.get("/v1/events?after=now&wait=1").await?;
    assert!(nothing["data"] == json!([]) && started.elapsed() >= Duration::from_secs(1), "{nothing:#}");

    let mut stream = gateway
        .request(Method::GET, "/v1/events")
        .header(ACCEPT, "text/event-stream")
        .header("last-event-id", &cursor)
        .send()
        .await?
        .error_for_status()?;
    gateway.send(sandboxed("streamed")).await?;
    let mut came = String::new();
    let read = async {
        while came.matches("\"email.sent\"").count() < 2 {
            came.push_str(std::str::from_utf8(&stream.chunk().await?.context("the stream ended")?)?);
        }
        anyhow::Ok(())
    };
    timeout(SOON, read).await.context("the stream fell silent")??;
    let data = came.lines().filter_map(|line| line.strip_prefix("data:"));
    let entries: Vec<Value> = data.map(serde_json::from_str).collect::<Result<_, _>>()?;
    let told: Vec<_> =
        entries.iter().map(|entry| (text(&entry["message"], "id"), text(entry, "type"))).collect();
    assert_eq!(
        told,
        [
            ("polled", "email.accepted"),
            ("polled", "email.sent"),
            ("streamed", "email.accepted"),
            ("streamed", "email.sent")
        ]
    );
    let last = text(&entries[3], "cursor");
    assert!(came.contains(&format!("id: {last}")) || came.contains(&format!("id:{last}")), "{came}");
    Ok(())
}
