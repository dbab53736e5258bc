//! The doors of the reference systems, against the real binary: what a door has answered for is on disk. Mail
//! is held while it is handed over, the gateway is killed, and once it is let go every mail goes out once.

use postway_e2e::{Gateway, PATIENCE, eventually, text};
use postway_testkit::SmtpSink;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const MAILS: usize = 20;

/// A gateway whose mail goes to a sink by default.
async fn gateway_to(sink: &SmtpSink, env: &[(&str, &str)]) -> anyhow::Result<Gateway> {
    let gateway = Gateway::start_with(env).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
    Ok(gateway)
}

async fn kill_and_launch(gateway: &mut Gateway, env: &[(&str, &str)]) -> anyhow::Result<()> {
    gateway.kill().await?;
    gateway.launch(env).await
}

/// Every subject that arrived, once each.
async fn arrived(sink: &SmtpSink, gateway: &Gateway) -> anyhow::Result<()> {
    sink.wait_for(MAILS, PATIENCE).await;
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(sink.mails().len(), MAILS, "each mail once");
    Ok(())
}

/// Asks until an answer is as `done` wants it.
async fn wait_for(gateway: &Gateway, path: &str, done: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    eventually(path, async || {
        let answer = gateway.get(path).await?;
        Ok(done(&answer).then_some(answer))
    })
    .await
}

#[tokio::test]
async fn the_door_of_001_keeps_what_it_queued_through_a_kill() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let env = [("POSTWAY_COMPAT_ROOT", "001"), ("POSTWAY_COMPAT_DOORS", "001,004")];
    let mut gateway = gateway_to(&sink, &env).await?;
    let suspended = gateway.post("/commands/suspend?tenant_id=default&batch_code=c-1", json!({})).await?;
    assert_eq!(suspended["suspended_batches"], json!(["c-1"]), "{suspended}");
    let mail = |n: usize| {
        json!({"id": format!("m-{n}"), "account_id": "relay", "from": "shop@example.com", "to": "ada@example.net",
            "subject": "Hello", "body": "<p>Hi</p>", "content_type": "html", "batch_code": "c-1",
            "attachments": [{"filename": "a.txt", "storage_path": "base64:aGVsbG8=", "fetch_mode": "base64"}]})
    };
    let mut messages: Vec<Value> = (0..MAILS).map(mail).collect();
    messages.push(json!({"id": "bad", "to": "nobody"}));
    let batch = json!({"messages": messages});
    let answer = gateway.post("/commands/add-messages", batch.clone()).await?;
    kill_and_launch(&mut gateway, &env).await?;
    assert_eq!((&answer["queued"], &answer["rejected"][0]["id"]), (&json!(MAILS), &json!("bad")), "{answer}");

    let held = gateway.get("/messages?tenant_id=default&active_only=true&limit=100").await?;
    let held = held["messages"].as_array().unwrap();
    assert_eq!(held.len(), MAILS);
    assert!(held.iter().all(|message| message["status"] == "SUSPENDED"), "{held:?}");
    assert_eq!(gateway.post("/commands/add-messages", batch).await?["queued"], MAILS, "a repeat is no other");
    let activated = gateway.post("/commands/activate?tenant_id=default&batch_code=c-1", json!({})).await?;
    assert_eq!(activated["suspended_batches"], json!([]), "{activated}");
    arrived(&sink, &gateway).await?;
    let sent = gateway.get("/compat/001/messages?batch_code=c-1&limit=100").await?;
    for message in sent["messages"].as_array().unwrap() {
        assert_eq!(message["status"], "SENT", "{message}");
        assert!(message["sent_ts"].is_i64() && message["error_ts"].is_null(), "{message}");
    }
    let (status, _) = gateway.call(Method::GET, "/compat/000/emails", None).await?;
    assert_eq!(status, StatusCode::NOT_FOUND, "that door is shut");
    Ok(())
}

#[tokio::test]
async fn the_door_of_004_keeps_what_it_received_through_a_kill() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = gateway_to(&sink, &[]).await?;
    gateway.patch("/v1/tenants/default", json!({"default_from": "Shop <shop@example.com>"})).await?;
    gateway.post("/v1/tenants/default/suspend", json!({})).await?;
    let send = async |gateway: &Gateway, n: usize| -> anyhow::Result<Value> {
        let mail = json!({"to": "ada@example.net", "subject": "Hello", "html": "<p>Hi</p>", "tags": ["t"],
            "recipient": {"externalId": "C-1", "email": "ada@example.net"}});
        let request = gateway.request(Method::POST, "/compat/004/v1/email/send");
        let answer = request.header("Idempotency-Key", format!("key-{n}")).json(&mail).send().await?;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        Ok(answer.json().await?)
    };
    let mut ids = Vec::new();
    for n in 0..MAILS {
        ids.push(text(&send(&gateway, n).await?, "outboxId").to_owned());
    }
    kill_and_launch(&mut gateway, &[]).await?;
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(text(&send(&gateway, n).await?, "outboxId"), id, "a repeat is no other");
    }
    gateway.post("/v1/tenants/default/activate", json!({})).await?;
    arrived(&sink, &gateway).await?;
    let shown = gateway.get(&format!("/compat/004/v1/emails/{}", ids[0])).await?;
    assert_eq!(shown["status"], "SENT", "{shown:#}");
    let events: Vec<&str> =
        shown["events"].as_array().unwrap().iter().map(|event| text(event, "type")).collect();
    assert_eq!(events, ["RECEIVED", "VALIDATED", "SENT_ATTEMPT", "SENT"]);
    assert_eq!(shown["events"][3]["metadata"]["attempt"], 1, "{shown:#}");
    Ok(())
}

#[tokio::test]
async fn the_door_of_000_keeps_what_it_accepted_through_a_kill() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = gateway_to(&sink, &[]).await?;
    gateway.post("/v1/tenants/default/suspend", json!({})).await?;
    let mail = |n: usize| {
        json!({"id": format!("0190a000-0000-7000-8000-{n:012}"), "from": "shop@example.com", "to": "ada@example.net",
            "subject": "Hello", "body_text": "Hi"})
    };
    let mails = json!({"data": (0..MAILS).map(mail).collect::<Vec<_>>()});
    let answer = gateway.post("/compat/000/emails", mails.clone()).await?;
    kill_and_launch(&mut gateway, &[]).await?;
    let summary = json!({"total": MAILS, "successful": MAILS, "failed": 0});
    assert_eq!(answer["summary"], summary, "{answer}");
    let stale = gateway.get("/compat/000/emails/stale?older_than_seconds=0&limit=100").await?;
    assert_eq!(stale["data"].as_array().unwrap().len(), MAILS, "held, and all there");
    let bare = gateway.get("/compat/000/stale-emails?older_than_seconds=0&limit=100").await?;
    assert_eq!(bare, stale["data"]);
    let again = gateway.post("/compat/000/emails", mails).await?;
    assert_eq!(again["summary"], summary, "a repeat is no other");
    gateway.post("/v1/tenants/default/activate", json!({})).await?;
    arrived(&sink, &gateway).await?;
    let id = text(&answer["results"][0], "id");
    wait_for(&gateway, &format!("/compat/000/emails/{id}"), |shown| shown["status"] == "SENT").await?;
    Ok(())
}

/// Dies before and after the first, second, … commit of a start: a batch under a key is there whole or not at
/// all, and is whole, once, when it is brought again.
#[tokio::test]
async fn a_keyed_batch_is_whole_or_absent_whichever_commit_is_struck() -> anyhow::Result<()> {
    const EMAILS: usize = 5;
    let mut gateway = Gateway::start().await?;
    assert!(gateway.terminate().await?.success());
    let client = reqwest::Client::new();
    let bring = async |gateway: &Gateway, round: usize| -> anyhow::Result<StatusCode> {
        let email = |n| json!({"from": "shop@example.com", "to": format!("a{n}@example.net"), "subject": "Hi", "text": "x"});
        let emails: Vec<Value> = (0..EMAILS).map(email).collect();
        let url = format!("{}/compat/resend/emails/batch", gateway.url());
        let request =
            client.post(url).bearer_auth(gateway.key()).header("Idempotency-Key", format!("k-{round}"));
        Ok(request.json(&emails).send().await?.status())
    };
    let (mut unanswered, mut round) = (0, 0);
    while round < 8 || (unanswered == 0 && round < 40) {
        let point = ["store_before_commit", "store_after_commit"][round % 2];
        let failpoint = format!("{point}={}*off->1*return", round / 2 % 12);
        let mut is_taken = false;
        if gateway.launch(&[("FAILPOINTS", &failpoint)]).await.is_ok() {
            is_taken = bring(&gateway, round).await.is_ok_and(|status| status == StatusCode::OK);
            unanswered += usize::from(!is_taken);
            gateway.kill().await?;
        }
        gateway.launch(&[]).await?;
        let stored = async |gateway: &Gateway| -> anyhow::Result<usize> {
            let list = gateway.get("/v1/messages?limit=500").await?;
            Ok(list["data"].as_array().map_or(0, Vec::len) - EMAILS * round)
        };
        let found = stored(&gateway).await?;
        assert!(
            found == EMAILS || (found == 0 && !is_taken),
            "{failpoint}: {found} stored, taken: {is_taken}"
        );
        assert_eq!(bring(&gateway, round).await?, StatusCode::OK, "{failpoint}");
        assert_eq!(stored(&gateway).await?, EMAILS, "{failpoint}");
        gateway.kill().await?;
        round += 1;
    }
    assert!(unanswered > 0, "no crash struck an accept");
    Ok(())
}
