//! Providers over HTTP as accounts of the real binary: a key, a pause, a refused key, and tokens.

use postway_e2e::{Gateway, events_of, mail_with, text};
use postway_testkit::{HttpSource, SourceReply};
use reqwest::Method;
use serde_json::{Value, json};

const SEND: &str = "/v3/mail/send";
const GRAPH: &str = "/v1.0/users/shop@example.com/sendMail";

fn sendgrid(source: &HttpSource) -> Value {
    json!({"id": "sendgrid", "kind": "sendgrid", "api_key": "SG.first", "base_url": source.url("").trim_end_matches('/'),
        "retry": {"delays_s": [1, 1, 1], "jitter": 0.0}})
}

fn taken(id: &str) -> SourceReply {
    SourceReply::Whole {
        status: 202,
        headers: vec![("X-Message-Id".to_owned(), id.to_owned())],
        body: Vec::new(),
    }
}

fn refused(status: u16, message: &str) -> SourceReply {
    let body = json!({"errors": [{"message": message, "field": null, "help": null}]}).to_string();
    SourceReply::Whole { status, headers: Vec::new(), body: body.into_bytes() }
}

#[tokio::test]
async fn a_mail_goes_through_a_provider_and_a_pause_uses_no_retry() -> anyhow::Result<()> {
    let source = HttpSource::start().await;
    let gateway = Gateway::start().await?;
    let made = gateway.post("/v1/accounts", sendgrid(&source)).await?;
    assert_eq!((&made["api_key_set"], made.get("api_key")), (&json!(true), None), "{made:#}");

    source.serve(SEND, refused(429, "too many requests").header("Retry-After", "1"));
    gateway.send(mail_with("paused", "ada@example.net", json!({"account": "sendgrid"}))).await?;
    let is_held = |message: &Value| message["error"]["code"] == "provider_rate_limited";
    gateway.wait_until("paused", "held by the pause", is_held).await?;
    assert_eq!(
        gateway.get("/v1/accounts/sendgrid").await?["circuit"]["state"],
        "closed",
        "nobody is at fault"
    );

    source.serve(SEND, taken("sg-1"));
    let sent = gateway.wait_for("paused", "sent").await?;
    assert_eq!(text(&sent, "provider_message_id"), "sg-1", "{sent:#}");
    assert_eq!(events_of(&sent, "scheduled"), 0, "no retry was used");
    let requests = source.requests();
    let last = requests.last().expect("it was called");
    assert_eq!(last.header("authorization"), Some("Bearer SG.first"));
    let document: Value = serde_json::from_slice(&last.body)?;
    assert_eq!(document["personalizations"][0]["to"][0]["email"], "ada@example.net", "{document:#}");
    assert!(document["headers"]["Message-ID"].as_str().is_some_and(|id| id.contains(text(&sent, "uid"))));
    Ok(())
}

#[tokio::test]
async fn a_refused_key_holds_mail_until_another_is_given_and_it_stays_at_its_address() -> anyhow::Result<()> {
    let source = HttpSource::start().await;
    let gateway = Gateway::start().await?;
    source.serve(SEND, refused(401, "authorization required"));
    gateway.post("/v1/accounts", sendgrid(&source)).await?;
    gateway.send(mail_with("held", "ada@example.net", json!({"account": "sendgrid"}))).await?;
    let circuit = &gateway.wait_until_open("sendgrid").await?["circuit"];
    assert_eq!(text(circuit, "code"), "provider_access_denied", "{circuit:#}");

    let elsewhere = json!({"base_url": "http://127.0.0.1:9"});
    let (status, answer) = gateway.call(Method::PATCH, "/v1/accounts/sendgrid", Some(elsewhere)).await?;
    assert_eq!(status.as_u16(), 422, "a stored key goes nowhere else: {answer}");

    source.serve(SEND, taken("sg-2"));
    let mended = json!({"api_key": "SG.second"});
    let (status, answer) = gateway.call(Method::PATCH, "/v1/accounts/sendgrid", Some(mended)).await?;
    assert!(status.is_success(), "{status} {answer}");
    let sent = gateway.wait_for("held", "sent").await?;
    assert_eq!(events_of(&sent, "scheduled"), 0, "no retry was used");
    let requests = source.requests();
    assert_eq!(requests.last().and_then(|last| last.header("authorization")), Some("Bearer SG.second"));
    Ok(())
}

#[tokio::test]
async fn graph_is_called_with_a_token_of_the_grant() -> anyhow::Result<()> {
    let source = HttpSource::start().await;
    source.serve(
        "/token",
        SourceReply::ok(r#"{"access_token":"token-1","token_type":"Bearer","expires_in":3600}"#),
    );
    let headers = vec![("request-id".to_owned(), "graph-1".to_owned())];
    source.serve(GRAPH, SourceReply::Whole { status: 202, headers, body: Vec::new() });
    let gateway = Gateway::start().await?;
    let account = json!({"id": "graph", "kind": "graph", "username": "shop@example.com",
        "base_url": source.url("").trim_end_matches('/'),
        "oauth": {"grant": "client_credentials", "client_id": "c", "client_secret": "s",
            "token_url": source.url("/token"), "scope": "https://graph.microsoft.com/.default"}});
    gateway.post("/v1/accounts", account).await?;
    gateway.send(mail_with("token", "ada@example.net", json!({"account": "graph"}))).await?;
    let sent = gateway.wait_for("token", "sent").await?;
    assert_eq!(text(&sent, "provider_message_id"), "graph-1", "{sent:#}");
    let requests = source.requests();
    let called = requests.iter().find(|request| request.path == GRAPH).expect("graph was called");
    assert_eq!(called.header("authorization"), Some("Bearer token-1"));
    Ok(())
}

/// The process dies at the point; returns the idempotency keys of the calls that the provider has heard by
/// the end.
async fn keys_after_a_crash_at(point: &str) -> anyhow::Result<Vec<String>> {
    let source = HttpSource::start().await;
    source.serve("/emails", SourceReply::ok(r#"{"id":"re-1"}"#));
    let mut gateway = Gateway::start().await?;
    let account = json!({"id": "resend", "kind": "resend", "api_key": "re_1",
        "base_url": source.url("").trim_end_matches('/'), "retry": {"delays_s": [1, 1, 1], "jitter": 0.0}});
    gateway.post("/v1/accounts", account).await?;
    assert!(gateway.terminate().await?.success());

    gateway.launch(&[("FAILPOINTS", &format!("{point}=1*return"))]).await?;
    let struck = || mail_with("struck", "ada@example.net", json!({"account": "resend"}));
    // The crash may come before the answer is out: then the client asks again.
    let _ = gateway.send(struck()).await;
    assert!(!gateway.ended().await?.success(), "{point} was not met");
    gateway.launch(&[]).await?;
    gateway.send(struck()).await?;
    let sent = gateway.wait_for("struck", "sent").await?;
    assert_eq!((events_of(&sent, "in_doubt"), events_of(&sent, "resent")), (1, 1), "{point}: {sent:#}");
    let key = |request: &postway_testkit::http_source::ReceivedRequest| {
        request.header("idempotency-key").unwrap_or_default().to_owned()
    };
    Ok(source.requests().iter().map(key).collect())
}

#[tokio::test]
async fn a_crash_around_the_call_leaves_doubt_and_the_resend_has_the_same_key() -> anyhow::Result<()> {
    let before = keys_after_a_crash_at("provider_after_gate").await?;
    assert_eq!(before.len(), 1, "nothing was called before the crash");
    let after = keys_after_a_crash_at("provider_after_answer").await?;
    assert_eq!(after.len(), 2);
    assert!(!after[0].is_empty() && after[0] == after[1], "{after:?}");
    Ok(())
}
