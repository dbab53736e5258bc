//! What cannot be sent is refused with a 4xx that names the field, and leaves no trace.

use postway_e2e::{Gateway, column, mail_with, text};
use postway_testkit::SmtpSink;
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};

async fn post_bytes(gateway: &Gateway, body: impl Into<reqwest::Body>) -> anyhow::Result<(u16, Value)> {
    let request =
        gateway.request(Method::POST, "/v1/messages").header(header::CONTENT_TYPE, "application/json");
    let answer = request.body(body).send().await?;
    Ok((answer.status().as_u16(), serde_json::from_str(&answer.text().await?)?))
}

async fn assert_empty(gateway: &Gateway) -> anyhow::Result<()> {
    let stats = gateway.get("/v1/stats").await?;
    let counts = stats["by_status"].as_object().into_iter().flatten();
    assert_eq!(counts.filter(|(_, count)| **count != 0).count(), 0, "{stats:#}");
    assert_eq!(gateway.get("/v1/messages").await?["data"], json!([]));
    Ok(())
}

#[tokio::test]
async fn each_bad_field_is_named_and_nothing_is_stored() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let crowd: Vec<String> = (0..10_000).map(|n| format!("u{n}@example.net")).collect();
    let cases = [
        (json!({"to": 5}), "to"),
        (json!({"to": [{"email": "a@example.net"}]}), "to[0]"),
        (json!({"subject": ["x"]}), "subject"),
        (json!({"text": 7}), "text"),
        (json!({"subjekt": "x"}), "subjekt"),
        (json!({"to": []}), "to"),
        (json!({"to": crowd}), "to"),
        (json!({"to": ["a@example.net", "b\u{7}@example.net"]}), "to[1]"),
        (json!({"to": "a@example.net\r\nBcc: x@example.net"}), "to"),
        (json!({"from": "Shop\r\nBcc: x@example.net <shop@example.com>"}), "from"),
        (json!({"subject": "a\r\nBcc: x@example.net"}), "subject"),
        (json!({"headers": {"X-A": "1\nBcc: x@example.net"}}), "headers.X-A"),
        (json!({"headers": {"Bcc": "x@example.net"}}), "headers.Bcc"),
        (json!({"text": null}), "text"),
        (json!({"account": "nobody-made-it"}), "account"),
        (json!({"priority": 9}), "priority"),
        (json!({"send_at": "soon"}), "send_at"),
    ];
    for (fields, field) in cases {
        let (status, answer) = gateway
            .call(Method::POST, "/v1/messages", Some(mail_with("bad", "a@example.net", fields)))
            .await?;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{field}: {answer}");
        let error = &answer["error"];
        assert_eq!(text(error, "code"), "validation_error");
        assert_eq!(column(error, "details", "field"), [field], "{answer}");
        assert!(!text(error, "message").is_empty() && !text(error, "request_id").is_empty(), "{answer}");
    }
    assert_empty(&gateway).await?;
    assert_eq!(sink.ledger().connections, 0);
    Ok(())
}

#[tokio::test]
async fn what_is_no_json_is_malformed() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    for body in ["", "{", "{\"from\": \"a@example.com\",}", "\u{0}", "{\"from\": \"\\ud800\"}", "{}{}"] {
        let (status, answer) = post_bytes(&gateway, body).await?;
        assert_eq!(status, 400, "{body:?}: {answer}");
        assert_eq!(answer["error"]["code"], "malformed_request");
    }
    for body in ["[]", "\"mail\"", "7", "null"] {
        assert_eq!(post_bytes(&gateway, body).await?.0, 422, "{body} is JSON, but no mail");
    }
    let (status, _) = post_bytes(&gateway, vec![b'['; 1_000_000]).await?;
    assert_eq!(status, 400, "deep nesting");
    let (status, _) = post_bytes(&gateway, vec![0xff; 100]).await?;
    assert_eq!(status, 400, "not UTF-8");
    assert_empty(&gateway).await
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_too_large() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let (status, answer) = post_bytes(&gateway, vec![b' '; 100 * 1024 * 1024]).await?;
    assert_eq!(status, 413, "{answer}");
    assert_eq!(answer["error"]["code"], "payload_too_large");
    // Below the bound of a request, beyond that of a message.
    let long = json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "x\n".repeat(6_000_000)});
    let (status, answer) = gateway.call(Method::POST, "/v1/messages", Some(long)).await?;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{answer}");
    assert_empty(&gateway).await
}

#[tokio::test]
async fn without_a_key_nothing_is_told() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let http = reqwest::Client::builder().no_proxy().build()?;
    for path in ["/v1/messages", "/v1/accounts", "/v1/stats", "/v1/messages/any"] {
        for key in [None, Some("wrong")] {
            let mut request = http.get(format!("{}{path}", gateway.url()));
            if let Some(key) = key {
                request = request.bearer_auth(key);
            }
            assert_eq!(request.send().await?.status(), StatusCode::UNAUTHORIZED, "{path}");
        }
    }
    Ok(())
}
