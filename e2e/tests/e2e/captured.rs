//! Captured is not sent: what the sandbox took is never called sent, to nobody and nowhere, but for a tenant that is there for tests.

use postway_e2e::{ALLOW_LOOPBACK, Gateway, PATIENCE, Receiver, column, event_types, eventually, text};
use postway_testkit::{HttpSource, Reply};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// A door, and a mail as it takes it that names no account.
fn doors() -> [(&'static str, Value); 5] {
    let (from, to, subject) = ("shop@example.com", "ada@example.net", "Hello");
    let of_001 = json!({"id": "m-1", "from": from, "to": to, "subject": subject, "body": "Hi"});
    let recipient = json!({"externalId": "C-1", "email": to});
    [
        (
            "/compat/000/emails",
            json!({"data": [{"id": "e-1", "from": from, "to": to, "subject": subject, "body_text": "Hi"}]}),
        ),
        ("/compat/001/commands/add-messages", json!({"messages": [of_001]})),
        (
            "/compat/004/v1/email/send",
            json!({"from": from, "to": to, "subject": subject, "html": "<p>Hi</p>", "recipient": recipient}),
        ),
        ("/compat/resend/emails", json!({"from": from, "to": to, "subject": subject, "text": "Hi"})),
        ("/compat/postmark/email", json!({"From": from, "To": to, "Subject": subject, "TextBody": "Hi"})),
    ]
}

async fn offer(gateway: &Gateway, door: &str, mail: &Value) -> anyhow::Result<(StatusCode, String)> {
    let mut request = gateway.request(Method::POST, door).json(mail);
    if door.contains("postmark") {
        request = request.header("X-Postmark-Server-Token", gateway.key());
    }
    let answer = request.send().await?;
    Ok((answer.status(), answer.text().await?))
}

#[tokio::test]
async fn what_the_sandbox_took_is_captured_in_the_api_the_webhook_and_the_report() -> anyhow::Result<()> {
    let source = HttpSource::start().await;
    source.serve("/reports", Reply::status(200));
    let gateway = Gateway::start_untouched(&[ALLOW_LOOPBACK]).await?;
    let webhook = Receiver::subscribe(&gateway, vec![Reply::status(200)]).await?;
    let client = json!({"url": source.url(""), "path": "/reports"});
    let outbox = json!({"callback_form": "outbox", "client_sync": client});
    gateway.patch("/v1/tenants/default", outbox).await?;
    let mail = json!({"id": "one", "from": "shop@example.com", "to": "ada@example.net", "subject": "Hi", "text": "Hi"});
    gateway.send(mail).await?;
    let message = gateway.wait_for("one", "captured").await?;
    assert!(message["sent_at"].is_null() && text(&message, "reason").contains("not sent"), "{message:#}");
    assert_eq!(column(&message, "recipients", "status"), ["captured"]);
    assert_eq!(column(&message, "attempts", "outcome"), ["captured"]);
    assert!(
        event_types(&message)
            .starts_with(&["accepted", "validated", "ready", "sending", "captured"].map(str::to_owned))
    );
    assert_eq!(gateway.get("/v1/stats").await?["by_status"]["captured"], 1);

    webhook.wait_for(2, PATIENCE).await;
    let told: Vec<String> = webhook.calls()?.iter().map(|call| call.kind().to_owned()).collect();
    assert!(
        told.contains(&"email.captured".to_owned()) && !told.contains(&"email.sent".to_owned()),
        "{told:?}"
    );
    source.wait_for(1, PATIENCE).await;
    let report: Value = serde_json::from_slice(&source.requests()[0].body)?;
    assert_eq!(report["code"], "DISPATCH-ERROR", "{report}");
    assert!(text(&report, "reason").contains("captured"), "{report}");

    for (door, status) in [("000/emails/one", "FAILED-ACKNOWLEDGED"), ("004/v1/emails/one", "CAPTURED")] {
        eventually(door, async || {
            let shown = gateway.get(&format!("/compat/{door}")).await?;
            Ok((shown["status"] == status).then_some(()))
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_door_takes_no_mail_for_a_tenant_that_cannot_send_unless_the_sandbox_was_chosen()
-> anyhow::Result<()> {
    let gateway = Gateway::start_untouched(&[]).await?;
    for (door, mail) in doors() {
        let (status, answer) = offer(&gateway, door, &mail).await?;
        assert!(status.is_client_error(), "{door}: {status} {answer}");
        assert!(answer.contains("no account of this tenant sends mail yet"), "{door}: {answer}");
    }
    let doctor = gateway.cli(&["doctor"]).await?;
    assert!(doctor.out.contains("captured by it, and sent to nobody"), "{doctor:?}");

    let named = json!({"id": "named", "account_id": "sandbox", "from": "shop@example.com", "to": "ada@example.net",
        "subject": "Hello", "body": "Hi"});
    gateway.post("/compat/001/commands/add-messages", json!({"messages": [named]})).await?;
    gateway.wait_for("named", "captured").await?;

    gateway.patch("/v1/tenants/default", json!({"test": true})).await?;
    for (door, mail) in doors() {
        let (status, answer) = offer(&gateway, door, &mail).await?;
        assert!(status.is_success(), "{door}: {status} {answer}");
    }
    gateway.wait_for("e-1", "sent").await?;
    let shown = gateway.get("/compat/000/emails/e-1").await?;
    assert_eq!(shown["status"], "SENT", "{shown}");
    let doctor = gateway.cli(&["doctor"]).await?;
    assert!(!doctor.out.contains("captured by it"), "{doctor:?}");
    Ok(())
}
