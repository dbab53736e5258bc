//! Amazon SES as an account: against moto's server, and against one that has paused the account.

use postway_e2e::{Gateway, column, events_of, mail_with, text};
use postway_testkit::{HttpSource, SourceReply, moto::Moto};
use reqwest::Method;
use serde_json::{Value, json};

const REGION: &str = "eu-south-1";

fn account(id: &str, endpoint: &str) -> Value {
    json!({"id": id, "kind": "ses", "region": REGION, "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": "wJalrXUtnFEMI", "endpoint": endpoint,
        "retry": {"delays_s": [1, 1, 1], "jitter": 0.0}})
}

/// What answers every call as SES does when sending is paused.
async fn paused() -> HttpSource {
    let source = HttpSource::start().await;
    let headers = vec![("x-amzn-ErrorType".to_owned(), "SendingPausedException".to_owned())];
    let body = br#"{"message":"Email sending is disabled."}"#.to_vec();
    let answer = SourceReply::Whole { status: 400, headers, body };
    for path in ["/v2/email/outbound-emails", "/v2/email/account"] {
        source.serve(path, answer.clone());
    }
    source
}

#[tokio::test]
async fn a_mail_goes_through_ses_and_its_id_is_kept() -> anyhow::Result<()> {
    let moto = tokio::task::spawn_blocking(Moto::shared).await?;
    moto.verify_identity(REGION, "example.com");
    let gateway = Gateway::start().await?;
    gateway.post("/v1/accounts", account("ses", &moto.url())).await?;
    let tested = gateway.post("/v1/accounts/ses/test", json!({})).await?;
    assert_eq!(column(&tested, "steps", "step"), ["connect", "tls", "auth"], "{tested:#}");

    gateway.send(mail_with("hello", "ada@example.net", json!({"account": "ses"}))).await?;
    let message = gateway.wait_for("hello", "sent").await?;
    let id = text(&message, "provider_message_id").to_owned();
    assert!(!id.is_empty(), "{message:#}");
    assert_eq!(message["attempts"][0]["provider_message_id"], id.as_str());
    let data = tokio::task::spawn_blocking(|| Moto::shared().data()).await?;
    let data: Value = serde_json::from_str(&data)?;
    let kept = data["ses"]["RawMessage"].as_array().map_or(&[][..], Vec::as_slice);
    let kept = kept.iter().find(|mail| mail["id"] == id.as_str()).expect("SES has the mail");
    let raw = text(kept, "raw_data");
    assert!(raw.contains(text(&message, "uid")) && raw.contains("Subject: Hello"), "{raw}");

    // A sender that SES does not know is the mail's own failure.
    let stranger = json!({"account": "ses", "from": "a@stranger.example"});
    gateway.send(mail_with("stranger", "ada@example.net", stranger)).await?;
    let message = gateway.wait_for("stranger", "failed").await?;
    let error = &message["error"];
    assert_eq!((text(error, "code"), text(error, "phase")), ("SES_MESSAGE_REJECTED", "request"), "{error:#}");
    let failed = message["events"].as_array().and_then(|events| events.last()).expect("it has a history");
    assert_eq!(text(&failed["data"], "provider_category"), "PERMANENT_ERROR", "{failed:#}");
    assert_eq!(text(&failed["data"], "original_code"), "MessageRejected");
    assert_eq!(gateway.get("/v1/accounts/ses").await?["circuit"]["state"], "closed");
    Ok(())
}

#[tokio::test]
async fn a_paused_ses_account_holds_its_mail_until_it_works() -> anyhow::Result<()> {
    let moto = tokio::task::spawn_blocking(Moto::shared).await?;
    moto.verify_identity(REGION, "example.com");
    let gateway = Gateway::start().await?;
    let paused = paused().await;
    gateway.post("/v1/accounts", account("ses", &paused.url(""))).await?;
    gateway.send(mail_with("held", "ada@example.net", json!({"account": "ses"}))).await?;
    let circuit = &gateway.wait_until_open("ses").await?["circuit"];
    assert_eq!(text(circuit, "code"), "SES_ACCOUNT_SENDING_PAUSED", "{circuit:#}");
    assert_eq!(text(circuit, "reason"), "Email sending is disabled.");
    let held = gateway.wait_for("held", "ready").await?;
    assert_eq!(text(&held["error"], "category"), "account_suspended", "{held:#}");
    let tested =
        gateway.post("/v1/accounts/ses/test", json!({"to": "ada@example.net", "from": "a@example.com"}));
    let tested = tested.await?;
    assert_eq!((&tested["ok"], &tested["steps"][2]["ok"]), (&json!(false), &json!(false)), "{tested:#}");

    let works = json!({"endpoint": moto.url(), "secret_access_key": "wJalrXUtnFEMI"});
    let (status, answer) = gateway.call(Method::PATCH, "/v1/accounts/ses", Some(works)).await?;
    assert!(status.is_success(), "{status} {answer}");
    let sent = gateway.wait_for("held", "sent").await?;
    assert_eq!(events_of(&sent, "scheduled"), 0, "no retry was used");
    assert_eq!(gateway.get("/v1/accounts/ses").await?["circuit"]["state"], "closed");
    Ok(())
}
