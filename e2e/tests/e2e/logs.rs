//! What operators see: logs that tell everything but secrets, metrics, and documentation.

use anyhow::Context;
use postway_e2e::{Gateway, eventually, mail_with};
use postway_testkit::{SinkAction, SinkVerb, SmtpSink};
use reqwest::{Method, header};
use serde_json::{Value, json};

/// A relay that greylists once, refuses one recipient with its address in the answer, and takes the rest.
async fn talkative_relay() -> SmtpSink {
    SmtpSink::builder()
        .once(SinkVerb::Dot, SinkAction::reply("451 4.2.0 <private-person@example.net> greylisted"))
        .rcpt("refused-person@", "550 5.1.1 <refused-person@example.net> does not live here")
        .start()
        .await
}

#[tokio::test]
async fn logs_follow_a_mail_without_telling_what_is_in_it() -> anyhow::Result<()> {
    let sink = talkative_relay().await;
    let mut gateway =
        Gateway::start_with(&[("POSTWAY_LOG", "debug"), ("POSTWAY_LOG_FORMAT", "json")]).await?;
    gateway.relay_to(sink.port()).await?;
    let mail = mail_with(
        "order-1",
        "Private Person <private-person@example.net>",
        json!({"subject": "a-secret-subject", "text": "a-secret-body", "bcc": ["refused-person@example.net"],
               "headers": {"X-Poetry": "a-secret-header"}}),
    );
    let request = gateway.request(Method::POST, "/v1/messages").header("X-Request-Id", "request-77");
    let answer = request.json(&mail).send().await?;
    assert_eq!(answer.headers()["x-request-id"], "request-77");
    gateway.wait_for("order-1", "sent").await?;
    gateway.get("/v1/messages?recipient=private-person@example.net").await?;
    let key = gateway.key();
    assert!(gateway.terminate().await?.success());

    let log = gateway.log();
    let secrets =
        ["private-person", "Private Person", "refused-person", "shop@example.com", "a-secret-", &key];
    for secret in secrets {
        let line = log.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret} is in the log: {}", line.unwrap_or_default());
    }
    let lines = log.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let attempts: Vec<&Value> = lines
        .iter()
        .filter(|line| line["message"] == "attempt ended" && line["span"]["request_id"] == "request-77")
        .collect();
    assert_eq!(attempts.len(), 2, "{log}");
    for (attempt, (number, state)) in attempts.iter().zip([(1, "scheduled"), (2, "sent")]) {
        let span = &attempt["span"];
        assert_eq!((&span["tenant"], &span["account"]), (&json!("default"), &json!("relay")), "{attempt}");
        assert_eq!((&span["attempt"], &attempt["state"]), (&json!(number), &json!(state)), "{attempt}");
        assert!(attempt["duration_ms"].is_number() && span["uid"].is_string(), "{attempt}");
    }
    assert_eq!(attempts[1]["provider_id"], "SINK2", "{}", attempts[1]);
    Ok(())
}

#[tokio::test]
async fn metrics_count_every_step() -> anyhow::Result<()> {
    let sink = talkative_relay().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.send(mail_with("good", "ada@example.net", json!({}))).await?;
    gateway.send(mail_with("bad", "refused-person@example.net", json!({}))).await?;
    gateway.call(Method::POST, "/v1/messages", Some(json!({"to": "nobody"}))).await?;
    gateway.wait_for("good", "sent").await?;
    gateway.wait_for("bad", "failed").await?;
    let expected = [
        "postway_state_transitions_total{state=\"accepted\"} 2",
        "postway_state_transitions_total{state=\"sent\"} 1",
        "postway_state_transitions_total{state=\"scheduled\"} 1",
        "postway_state_transitions_total{state=\"failed\"} 1",
        "postway_final_states_total{state=\"sent\"} 1",
        "postway_final_states_total{state=\"failed\"} 1",
        "postway_validation_failures_total{check=",
        "postway_retries_total{category=\"greylisted\"} 1",
        "postway_processing_seconds_count{state=\"sending\"} 3",
        "postway_accept_seconds_count",
        "postway_send_seconds_count 1",
        "postway_queue_depth{state=\"ready\"} 0",
        "postway_oldest_due_seconds 0",
        "postway_oldest_held_seconds 0",
        "postway_in_doubt_held 0",
        "postway_circuits_open 0",
    ];
    // Housekeeping measures the queue every second, and what is counted is counted a moment after it is
    // stored.
    let mut text = String::new();
    let told = eventually("all metrics", async || {
        text = gateway.get("/metrics").await?.as_str().unwrap_or_default().to_owned();
        Ok(expected.iter().all(|metric| text.contains(metric)).then_some(()))
    });
    told.await.with_context(|| {
        let missing: Vec<_> = expected.iter().filter(|metric| !text.contains(**metric)).collect();
        format!("missing: {missing:#?}\n{text}")
    })?;
    assert!(!text.contains('@'), "no address is a label");
    Ok(())
}

#[tokio::test]
async fn documentation_comes_from_the_binary() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let openapi = gateway.get("/openapi.json").await?;
    assert!(openapi["openapi"].as_str().is_some_and(|version| version.starts_with("3.")), "{openapi}");
    for path in
        ["/v1/messages", "/v1/messages/batch", "/v1/messages/{id}/resolve", "/v1/accounts/{id}", "/v1/stats"]
    {
        assert!(openapi["paths"][path].is_object(), "{path} is not described");
    }
    let docs = gateway.request(Method::GET, "/docs").send().await?;
    assert!(docs.headers()[header::CONTENT_TYPE].to_str()?.starts_with("text/html"));
    let page = docs.text().await?;
    assert!(page.contains("/v1/messages/batch") && page.contains("Idempotency-Key"), "{page}");
    let elsewhere = ["src=\"http", "href=\"http", "url(http", "@import"];
    assert!(elsewhere.iter().all(|mark| !page.contains(mark)), "the page loads something from elsewhere");
    for path in ["/health/live", "/health/ready"] {
        gateway.get(path).await?;
    }
    Ok(())
}
