//! Retention: what has ended and is reported can go, with all that belonged to it; what somebody is still to
//! be told of stays, and so do the counts.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{
    ALLOW_LOOPBACK, Client, Gateway, Receiver, eventually, files_below, holds, mail, mail_with, noise, text,
};
use postway_testkit::{SmtpSink, SourceReply};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// The settings under which a gateway believes that so much time has passed.
const TWO_DAYS_LATER: (&str, &str) = ("FAILPOINTS_CLOCK_SKEW_MS", "172800000");
const EIGHT_DAYS_LATER: (&str, &str) = ("FAILPOINTS_CLOCK_SKEW_MS", "691200000");

/// A mail too large for a row of the database.
fn large(id: &str) -> Value {
    let file = BASE64_STANDARD.encode(noise(300_000));
    mail_with(id, "ada@example.net", json!({"attachments": [{"filename": "a.bin", "content": file}]}))
}

/// Removes everything that may go once there are `count` of it; returns the number removed.
async fn clean_up(gateway: &Client, at_least: i64) -> anyhow::Result<i64> {
    // Nothing recent goes while an event, of whatever message, has not been made into notifications yet.
    eventually("messages that may go", async || {
        let cleaned = gateway.post("/v1/cleanup?older_than_seconds=0", json!({})).await?;
        Ok(cleaned["deleted"].as_i64().filter(|deleted| *deleted >= at_least))
    })
    .await
}

/// Has an address forgotten, again until this many messages are removed, redacted and left.
async fn erase(gateway: &Client, address: &str, expected: [i64; 3]) -> anyhow::Result<()> {
    let (mut removed, mut redacted) = (0, 0);
    eventually("messages to be erased", async || {
        let erased = gateway.post("/v1/erase", json!({"address": address})).await?;
        let count = |field: &str| erased[field].as_i64().unwrap_or_default();
        removed += count("removed");
        redacted += count("redacted");
        Ok(([removed, redacted, count("waiting")] == expected).then_some(()))
    })
    .await
}

/// The outcomes of the messages, by the statistics of the account `relay`.
async fn counted(gateway: &Client) -> anyhow::Result<(Value, Value)> {
    let rows = gateway.get("/v1/statistics?by=day&account=relay").await?;
    // Midnight may have passed since the first of them.
    let sum = |field: &str| {
        let rows = rows["data"].as_array().into_iter().flatten();
        json!(rows.filter_map(|row| row[field].as_i64()).sum::<i64>())
    };
    Ok((sum("accepted"), sum("sent")))
}

#[tokio::test]
async fn only_what_is_reported_is_cleaned_up_and_its_id_stays_taken() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    let told = large("told");
    let uid = gateway.send(told.clone()).await?;
    gateway.wait_until_reported("told").await?;
    // From here on there is one who does not hear.
    let deaf = Receiver::subscribe(&gateway, vec![SourceReply::status(500)]).await?;
    gateway.send(mail("untold", "ada@example.net")).await?;
    gateway.wait_for("untold", "sent").await?;
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    gateway.send(mail("under-way", "ada@example.net")).await?;
    let blobs = gateway.data_dir().join("blobs");
    assert_eq!(files_below(&blobs)?.len(), 2, "one for the request and one for the mail");

    assert_eq!(clean_up(&gateway, 1).await?, 1);
    for path in ["", "/events", "/raw", "/payload"] {
        for name in ["told", uid.as_str()] {
            let path = format!("/v1/messages/{name}{path}");
            assert_eq!(gateway.call(Method::GET, &path, None).await?.0, StatusCode::NOT_FOUND, "{path}");
        }
    }
    assert_eq!(text(&gateway.message("untold").await?, "status"), "sent");
    assert_eq!(text(&gateway.message("under-way").await?, "status"), "ready");
    assert_eq!(clean_up(&gateway, 0).await?, 0);
    let deliveries = gateway.get(&format!("/v1/webhooks/{}/deliveries", receiver.id)).await?;
    assert!(!deliveries.to_string().contains(&uid), "{deliveries:#}");

    // A repeat is recognized, and nothing goes out again.
    assert_eq!(gateway.send(told.clone()).await?, uid);
    let other = mail("told", "bob@example.net");
    let (status, answer) = gateway.call(Method::POST, "/v1/messages", Some(other)).await?;
    assert_eq!(status, StatusCode::CONFLICT, "{answer:#}");
    assert_eq!(gateway.call(Method::GET, "/v1/messages/told", None).await?.0, StatusCode::NOT_FOUND);
    assert_eq!(sink.mails().len(), 2);
    eventually("all counts", async || Ok((counted(&gateway).await? == (json!(3), json!(2))).then_some(())))
        .await?;

    // What the feed had of it is still there, without what it was of.
    let feed = gateway.get("/v1/events").await?;
    let of_told: Vec<&Value> = feed["data"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|entry| text(&entry["message"], "uid") == uid)
        .collect();
    assert_eq!(of_told.len(), 2, "{feed:#}");
    assert!(of_told.iter().all(|entry| entry["message"]["id"].is_null()), "{of_told:#?}");

    // Once the other hears nothing more of it, its messages are reported, too.
    assert_eq!(
        gateway.call(Method::DELETE, &format!("/v1/webhooks/{}", deaf.id), None).await?.0,
        StatusCode::NO_CONTENT
    );
    assert_eq!(clean_up(&gateway, 1).await?, 1);
    assert!(gateway.terminate().await?.success());
    gateway.launch(&[ALLOW_LOOPBACK, TWO_DAYS_LATER]).await?;
    // Two days later the blobs are gone, and so is the memory of the id.
    eventually("the blobs to be gone", async || Ok(files_below(&blobs)?.is_empty().then_some(()))).await?;
    assert_eq!(counted(&gateway).await?, (json!(3), json!(2)), "counts outlive messages and restarts");
    assert_ne!(gateway.send(mail("told", "bob@example.net")).await?, uid);
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    gateway.wait_for("told", "sent").await?;
    gateway.wait_for("under-way", "sent").await?;
    Ok(())
}

#[tokio::test]
async fn what_is_reported_goes_by_itself_after_a_week_and_nothing_else_does() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.send(mail("told", "ada@example.net")).await?;
    gateway.wait_until_reported("told").await?;
    let _deaf = Receiver::subscribe(&gateway, vec![SourceReply::status(500)]).await?;
    gateway.send(mail("untold", "ada@example.net")).await?;
    gateway.wait_for("untold", "sent").await?;
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    gateway.send(mail("under-way", "ada@example.net")).await?;
    // Retention looks at the start, and leaves recent things alone while there are events without notifications.
    let is_told = |message: &Value| message["notifications"][0].is_object();
    gateway.wait_until("under-way", "made into notifications", is_told).await?;
    assert!(gateway.terminate().await?.success());

    gateway.launch(&[ALLOW_LOOPBACK, EIGHT_DAYS_LATER]).await?;
    eventually("retention", async || {
        let (status, _) = gateway.call(Method::GET, "/v1/messages/told", None).await?;
        Ok((status == StatusCode::NOT_FOUND).then_some(()))
    })
    .await?;
    assert_eq!(text(&gateway.message("untold").await?, "status"), "sent");
    assert_eq!(text(&gateway.message("under-way").await?, "status"), "ready");
    Ok(())
}

#[tokio::test]
async fn an_address_is_forgotten_and_what_was_done_stays_counted() -> anyhow::Result<()> {
    const ADDRESS: &str = "forget.me@example.net";
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let subject = json!({"subject": "A private matter of theirs"});
    gateway.send(mail_with("alone", ADDRESS, subject.clone())).await?;
    gateway
        .send(mail_with(
            "shared",
            ADDRESS,
            json!({"cc": ["bob@example.net"], "subject": "A private matter of theirs"}),
        ))
        .await?;
    gateway.send(mail("other", "bob@example.net")).await?;
    for id in ["alone", "shared", "other"] {
        gateway.wait_for(id, "sent").await?;
    }
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    gateway.send(mail("under-way", ADDRESS)).await?;

    erase(&gateway, "Forget.Me@EXAMPLE.net", [1, 1, 1]).await?;
    assert_eq!(gateway.call(Method::GET, "/v1/messages/alone", None).await?.0, StatusCode::NOT_FOUND);
    let shared = gateway.message("shared").await?;
    assert_eq!(text(&shared, "status"), "sent");
    let shown = shared.to_string();
    assert!(!shown.contains(ADDRESS) && !shown.contains("private matter"), "{shared:#}");
    assert!(shown.contains("bob@example.net"), "{shared:#}");
    let (status, _, raw) = gateway.bytes("/v1/messages/shared/raw").await?;
    assert!(!holds(&raw, ADDRESS), "{status}");
    assert_eq!(text(&gateway.message("other").await?, "subject"), "Hello");
    assert!(!gateway.get("/v1/audit").await?.to_string().contains("forget.me"), "the log keeps a digest");
    eventually("all counts", async || Ok((counted(&gateway).await? == (json!(4), json!(3))).then_some(())))
        .await?;

    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    gateway.wait_for("under-way", "sent").await?;
    erase(&gateway, ADDRESS, [1, 0, 0]).await?;
    assert!(gateway.terminate().await?.success());
    assert!(!gateway.log().contains("forget.me"), "nor does a log line have it");
    Ok(())
}
