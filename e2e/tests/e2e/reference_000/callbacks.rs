//! The callbacks of the last four states: what is said, what acknowledges, and what a crash or a stop in a
//! call leaves.

use std::time::Duration;

use postway_e2e::{ALLOW_LOOPBACK, Gateway, PATIENCE, eventually, node_env};
use postway_testkit::{HttpSource, SmtpSink, SourceReply, mariadb::MariaDb};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{EMAILS, Moved, id};

/// A silent node is taken for dead after ten seconds. Who stopped in order keeps nobody waiting: half of that
/// is plenty.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Requirements 5, 8, 25, 37, 39, 41.
#[tokio::test]
async fn a_kill_during_the_call_leaves_its_trace_and_only_success_acknowledges() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let receiver = HttpSource::start().await;
    let (_never, held) = SourceReply::status(200).held();
    receiver.serve_in_turn(
        "/callback",
        vec![held, SourceReply::redirect(302, "/elsewhere"), SourceReply::status(204)],
    );
    let mut moved = Moved::start(sink.port(), &[ALLOW_LOOPBACK]).await?;
    moved.call_back(&receiver).await?;
    moved.post(&id(1), json!({})).await?;
    receiver.wait_for(1, PATIENCE).await;
    let calling = moved.agrees(&id(1)).await?;
    assert_eq!(calling["status"], "CALLING-SENT-CALLBACK");
    moved.gateway.kill().await?;
    assert_eq!(moved.history(&id(1))?.last().map(String::as_str), Some("CALLING-SENT-CALLBACK"));
    let url = moved.url.clone();
    moved.gateway.launch(&[("POSTWAY_DATABASE_URL", url.as_str()), ALLOW_LOOPBACK]).await?;
    receiver.wait_for(2, PATIENCE).await;
    // The second is answered by a redirect, which is not followed and acknowledges nothing; the third by a
    // 204.
    let taken = moved.reaches(&id(1), "SENT-ACKNOWLEDGED").await?;
    let words = moved.history(&id(1))?;
    let calls = words.iter().filter(|word| *word == "CALLING-SENT-CALLBACK").count();
    assert_eq!((calls, receiver.requests().len()), (3, 3), "{words:?}");
    assert_eq!(taken["version"].as_i64(), calling["version"].as_i64().map(|version| version + 3));
    for request in receiver.requests() {
        let told: Value = serde_json::from_slice(&request.body)?;
        assert_eq!((&told["code"], &told["message_ids"]), (&json!("TRAVELING"), &json!([id(1)])), "{told}");
        assert!(told["reason"].is_null() && told["reached_at"].is_string(), "{told}");
    }
    Ok(())
}

#[tokio::test]
async fn after_two_nodes_have_stopped_in_order_the_next_start_calls_at_once() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let receiver = HttpSource::start().await;
    receiver.serve("/callback", SourceReply::status(200));
    let url = MariaDb::shared().create_database();
    let env = |name| [node_env(&url, name), vec![ALLOW_LOOPBACK]].concat();
    let mut first = Gateway::start_with(&env("first.example")).await?;
    first.relay_to(sink.port()).await?;
    let client = json!({"url": receiver.url(""), "path": "/callback", "auth": {"type": "none"}});
    let settings = json!({"default_account": "relay", "callback_form": "outbox", "client_sync": client});
    first.patch("/v1/tenants/default", settings).await?;
    let mut second = Gateway::start_with(&env("second.example")).await?;
    let post = async |gateway: &Gateway, n: usize| {
        let mail = json!({"id": id(n), "from": "a@example.com", "to": "b@example.net", "subject": "s", "body_text": "t"});
        gateway.post(EMAILS, json!({"data": [mail]})).await.map(drop)
    };
    post(&first, 1).await?;
    receiver.wait_for(1, PATIENCE).await;
    // The first has what one node does for all; each order of stopping leaves it to whoever comes.
    assert!(first.terminate().await?.success());
    let stopped = Instant::now();
    post(&second, 2).await?;
    receiver.wait_for(2, PATIENCE).await;
    assert!(stopped.elapsed() < AT_ONCE, "the other node takes it over at once: {:?}", stopped.elapsed());
    assert!(second.terminate().await?.success());

    first.launch(&env("first.example")).await?;
    let started = Instant::now();
    post(&first, 3).await?;
    receiver.wait_for(3, PATIENCE).await;
    assert!(started.elapsed() < AT_ONCE, "and so does the next start: {:?}", started.elapsed());
    eventually("the acknowledgement", async || {
        let shown = first.get(&format!("{EMAILS}/{}", id(3))).await?;
        Ok((shown["status"] == "SENT-ACKNOWLEDGED").then_some(()))
    })
    .await
}
