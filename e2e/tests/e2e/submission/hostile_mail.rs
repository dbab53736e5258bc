//! Mail that is built to end the process of whoever takes it apart: it is taken, shown and sent, and the
//! process lives.

use anyhow::ensure;
use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{Stage, uid_of};

const HEAD: &str = "From: Shop <shop@example.com>\r\nTo: ada@example.net\r\nSubject: Hello\r\n";

/// Mails in mails, 60,000 deep: 1.9 MB.
fn nested() -> String {
    format!("{HEAD}{}the innermost\r\n", "Content-Type: message/rfc822\r\n\r\n".repeat(60_000))
}

/// Each part announces parts that never come.
fn quadratic() -> String {
    let part = "Content-Type: multipart/x; boundary=z\r\n\r\nx--b\r\n--b\r\n";
    format!("{HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n{}", part.repeat(40_000))
}

#[tokio::test]
async fn a_mail_that_is_made_to_end_the_process_is_taken_and_shown_by_every_door() -> anyhow::Result<()> {
    let mut stage = Stage::set().await?;
    let many = json!(["parts beyond 1,000", "attachments beyond 200"]);
    for (name, mail, omitted) in [("nested", nested(), json!([])), ("quadratic", quadratic(), many)] {
        let gateway = &stage.gateway;
        let request = gateway.request(Method::POST, &format!("/v1/messages/raw?id={name}"));
        let answer = request.header("content-type", "message/rfc822").body(mail.clone()).send().await?;
        ensure!(answer.status() == StatusCode::ACCEPTED, "{name}: {}", answer.text().await?);
        let content = gateway.get(&format!("/v1/messages/{name}/content")).await?;
        assert_eq!(content["omitted"], omitted, "{name}");
        assert!(content["headers"].as_array().is_some_and(|headers| headers.len() > 3));
        let (status, _, _) = gateway.bytes(&format!("/v1/messages/{name}/preview")).await?;
        assert_eq!(status, StatusCode::NOT_FOUND, "{name}: it has no html");
        let (status, _, file) = gateway.bytes(&format!("/v1/messages/{name}/attachments/0")).await?;
        assert_eq!(status, StatusCode::OK, "{name}");
        assert!(name != "nested" || file.len() > 1_800_000, "the mail inside is one file");
        let rule =
            json!({"match": [{"field": "has_attachment", "value": true}], "actions": [{"do": "stop"}]});
        let body = json!({"rule": rule, "raw": BASE64_STANDARD.encode(&mail)});
        let (status, tried) = gateway.call(Method::POST, "/v1/rules/dry-run", Some(body)).await?;
        assert_eq!((status, &tried["matched"]), (StatusCode::OK, &json!(true)), "{name}: {tried}");

        let keyed = format!("X-Postway-Idempotency-Key: {name}\r\n{mail}");
        let uid = uid_of(&stage.sender().await?.send(&keyed).await?)?;
        let again = uid_of(&stage.sender().await?.send(&keyed).await?)?;
        assert_eq!(uid, again, "{name}: the same mail is the same message");
        stage.gateway.wait_for(&uid, "sent").await?;
        stage.gateway.wait_for(name, "sent").await?;
        assert_eq!(stage.gateway.bytes("/health/live").await?.0, StatusCode::OK);
    }
    assert!(stage.gateway.is_running()?);
    Ok(())
}
