//! Captured is not sent: what the sandbox took is never called sent, to nobody and nowhere, but for a tenant
//! that is there for tests.

use anyhow::{Context, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{ALLOW_LOOPBACK, Gateway, PATIENCE, Receiver, column, event_types, eventually, text};
use postway_testkit::{HttpSource, SmtpSink, SourceReply, postgres::PostgresDatabase};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

/// A door, and a mail as it takes it that names no account.
fn doors() -> [(&'static str, Value); 7] {
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
        (
            "/compat/sendgrid/v3/mail/send",
            json!({"personalizations": [{"to": [{"email": to}]}], "from": {"email": from}, "subject": subject,
                   "content": [{"type": "text/plain", "value": "Hi"}]}),
        ),
        (
            "/compat/mailgun/v3/example.com/messages",
            json!({"from": from, "to": to, "subject": subject, "text": "Hi"}),
        ),
    ]
}

async fn offer(gateway: &Gateway, door: &str, mail: &Value) -> anyhow::Result<(StatusCode, String)> {
    let mut request = gateway.request(Method::POST, door);
    request = match mail.as_object().filter(|_| door.contains("mailgun")) {
        Some(form) => {
            let fields = form.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or("")));
            let kind = "application/x-www-form-urlencoded";
            request.header("content-type", kind).body(fields.collect::<Vec<_>>().join("&"))
        }
        None => request.json(mail),
    };
    if door.contains("postmark") {
        request = request.header("X-Postmark-Server-Token", gateway.key());
    }
    let answer = request.send().await?;
    Ok((answer.status(), answer.text().await?))
}

#[tokio::test]
async fn what_the_sandbox_took_is_captured_in_the_api_the_webhook_and_the_report() -> anyhow::Result<()> {
    let source = HttpSource::start().await;
    source.serve("/reports", SourceReply::status(200));
    let gateway = Gateway::start_untouched(&[ALLOW_LOOPBACK]).await?;
    let webhook = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
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

/// The refusal that a tenant without a real account gets at every way in.
const SENTENCE: &str = "no account of this tenant sends mail yet";

/// Hands one mail over by SMTP; the last reply.
async fn submit(address: &str, key: &str, mail: &str) -> anyhow::Result<String> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    let secret = BASE64_STANDARD.encode(format!("\0default\0{key}"));
    let steps = [
        String::new(),
        "EHLO client.example\r\n".to_owned(),
        format!("AUTH PLAIN {secret}\r\n"),
        "MAIL FROM:<shop@example.com>\r\n".to_owned(),
        "RCPT TO:<ada@example.net>\r\n".to_owned(),
        "DATA\r\n".to_owned(),
        format!("{mail}\r\n.\r\n"),
    ];
    let mut reply = String::new();
    for step in steps {
        stream.get_mut().write_all(step.as_bytes()).await?;
        loop {
            reply.clear();
            let read = timeout(PATIENCE, stream.read_line(&mut reply)).await.context("no answer")??;
            ensure!(read > 0, "the connection ended");
            if reply.as_bytes().get(3) == Some(&b' ') {
                break;
            }
        }
        if !reply.starts_with(['2', '3']) {
            break;
        }
    }
    Ok(reply)
}

#[tokio::test]
async fn submission_and_spool_refuse_what_the_sandbox_would_capture_unless_it_is_named() -> anyhow::Result<()>
{
    let mut gateway = Gateway::idle()?;
    let spool = gateway.folder().join("spool");
    let folder = spool.to_string_lossy().into_owned();
    gateway.launch(&[("POSTWAY_SMTP_LISTEN", "127.0.0.1:0"), ("POSTWAY_SPOOL_FOLDER", &folder)]).await?;
    let made = gateway.post("/v1/tenants/default/keys", json!({"name": "smtp", "scopes": ["send"]})).await?;
    let address = eventually("a word of where it takes mail", async || {
        let log = gateway.log();
        let told = log.split("taking mail over SMTP address=").nth(1);
        Ok(told.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned))
    })
    .await?;
    let mail = |fields: &str| {
        format!("From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Hello\r\n{fields}\r\nHi.")
    };
    let refused = submit(&address, text(&made, "key"), &mail("")).await?;
    assert!(refused.starts_with("550") && refused.contains(SENTENCE), "{refused}");
    let fields = "X-Postway-Account: sandbox\r\nX-Postway-On-Doubt: hold\r\n";
    let taken = submit(&address, text(&made, "key"), &mail(fields)).await?;
    assert!(taken.starts_with("250"), "{taken}");
    let list = eventually("the mail to be captured", async || {
        let list = gateway.get("/v1/messages?status=captured").await?;
        Ok((!column(&list, "data", "uid").is_empty()).then_some(list))
    })
    .await?;
    let message = gateway.message(text(&list["data"][0], "uid")).await?;
    assert_eq!(message["on_doubt"], "hold", "{message:#}");

    let file = json!({"from": "shop@example.com", "to": "ada@example.net", "subject": "Hi", "text": "Hi"});
    std::fs::write(spool.join("bare.part"), file.to_string())?;
    std::fs::rename(spool.join("bare.part"), spool.join("bare.json"))?;
    let why = eventually("the file to be set aside", async || {
        let files = postway_e2e::files_below(&spool.join("failed"))?;
        let texts: Vec<String> = files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect();
        Ok(texts.into_iter().find(|text| text.contains(SENTENCE)))
    });
    why.await.with_context(|| gateway.log())?;
    Ok(())
}

/// A database with accounts, and a gateway that serves it and is otherwise as its users find it.
#[tokio::test]
async fn tokens_wait_for_an_account_that_sends_and_say_what_was_captured() -> anyhow::Result<()> {
    let (database, sink) = (PostgresDatabase::create(), SmtpSink::start().await);
    let mut gateway = Gateway::idle()?;
    let url = database.url();
    let ran =
        gateway.run(&["outbox", "install", "--database", &url, "--preset", "accounts"], &[], b"").await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let env = [
        ("POSTWAY_OUTBOX_URL", url.as_str()),
        ("POSTWAY_OUTBOX_FROM", "App <app@example.com>"),
        ("POSTWAY_OUTBOX_BATCH_TIMEOUT", "0"),
        ("POSTWAY_OUTBOX_POLL_SECONDS", "1"),
        ("POSTWAY_OUTBOX_KIND", "accounts"),
        ("POSTWAY_OUTBOX_LINK_BASE_URL", "https://app.example.com"),
    ];
    gateway.launch(&env).await?;
    database.run("INSERT INTO accounts (email, login) VALUES ('ada@example.net', 'ada')");
    let waits = eventually("the source to say why it waits", async || {
        let status = gateway.cli(&["--json", "outbox", "status"]).await?;
        Ok(status.out.contains(SENTENCE).then_some(()))
    });
    waits.await.with_context(|| gateway.log())?;
    assert_eq!(database.run("SELECT state, mail_status IS NULL FROM tokens"), "issued|t");
    let (code, said) = {
        let ran = gateway.cli(&["moving", "check", "003", "--database", &url]).await?;
        (ran.code, ran.out + &ran.err)
    };
    assert!(said.contains("has the sandbox as its default account, and tokens wait"), "{code:?} {said}");

    // Named, the sandbox takes it, and the token says so.
    gateway.terminate().await?;
    let named: Vec<_> = env.iter().copied().chain([("POSTWAY_OUTBOX_ACCOUNT", "sandbox")]).collect();
    gateway.launch(&named).await?;
    let told = "SELECT mail_status, mail_error, sent_at IS NULL FROM tokens";
    eventually("the token to be told", async || {
        Ok((database.run(told) == "captured|the sandbox captured it|t").then_some(()))
    })
    .await?;

    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
    gateway.terminate().await?;
    gateway.launch(&env).await?;
    database.run("INSERT INTO accounts (email, login) VALUES ('bob@example.net', 'bob')");
    sink.wait_for(1, PATIENCE).await;
    Ok(())
}

#[tokio::test]
async fn a_message_that_a_newer_one_took_the_place_of_is_counted_once() -> anyhow::Result<()> {
    let gateway = Gateway::start_untouched(&[]).await?;
    gateway.post("/v1/tenants/default/suspend", json!({})).await?;
    for id in ["first", "second"] {
        let mail = json!({"id": id, "from": "shop@example.com", "to": "ada@example.net", "subject": "Hi", "text": "Hi",
            "collapse_key": "stock"});
        gateway.send(mail).await?;
    }
    gateway.wait_for("first", "cancelled").await?;
    let metrics = String::from_utf8(gateway.bytes("/metrics").await?.2)?;
    for (metric, state, count) in [
        ("postway_state_transitions_total", "cancelled", 1),
        ("postway_final_states_total", "cancelled", 1),
        ("postway_state_transitions_total", "ready", 2),
    ] {
        let line = format!("{metric}{{state=\"{state}\"}} {count}");
        assert!(metrics.lines().any(|shown| shown == line), "{line}\n{metrics}");
    }
    Ok(())
}

/// A route stands before the default account: what it takes leaves by every door, and what none takes is
/// refused.
#[tokio::test]
async fn a_door_asks_the_routes_before_it_refuses() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start_untouched(&[]).await?;
    gateway.relay_to(sink.port()).await?;
    let near = json!({"id": "near", "match": {"recipient_domains": ["example.net"]}, "accounts": [{"account": "relay"}]});
    gateway.post("/v1/routes", near).await?;
    let far = |mail: &Value| -> anyhow::Result<Value> {
        let text = mail.to_string().replace("example.net", "example.org").replace("-1\"", "-2\"");
        Ok(serde_json::from_str(&text)?)
    };
    for (door, mail) in doors() {
        let (status, answer) = offer(&gateway, door, &mail).await?;
        assert!(status.is_success(), "{door}: {status} {answer}");
        let (status, answer) = offer(&gateway, door, &far(&mail)?).await?;
        assert!(
            status.is_client_error() && answer.contains("no route takes this mail"),
            "{door}: {status} {answer}"
        );
    }
    sink.wait_for(doors().len(), PATIENCE).await;
    let doctor = gateway.cli(&["doctor"]).await?;
    assert!(doctor.out.contains("that no route takes is captured by it"), "{doctor:?}");

    // With one that takes all mail, nobody's is captured any more.
    gateway.post("/v1/routes", json!({"id": "rest", "accounts": [{"account": "relay"}]})).await?;
    for (door, mail) in doors() {
        let (status, answer) = offer(&gateway, door, &far(&mail)?).await?;
        assert!(status.is_success(), "{door}: {status} {answer}");
    }
    sink.wait_for(2 * doors().len(), PATIENCE).await;
    let doctor = gateway.cli(&["doctor"]).await?;
    assert!(!doctor.out.contains("captured by it"), "{doctor:?}");
    assert!(gateway.terminate().await?.success());
    gateway.launch(&[]).await?;
    let printed = gateway.printed();
    assert_eq!(printed.matches("is captured, not sent").count(), 1, "at the first start: {printed}");
    Ok(())
}
