//! What providers report to the real binary: SendGrid and SES, with real signatures, forgeries, repeats and a
//! crash between the answer and the processing.

use std::{path::Path, process::Command};

use anyhow::{Context, ensure};
use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{Gateway, Receiver, events_of, eventually, mail_with, text};
use postway_testkit::{HttpSource, SourceReply};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

const SEND: &str = "/v3/mail/send";
const TOPIC: &str = "arn:aws:sns:eu-south-1:123456789012:mail";

/// The time on the provider's own clock: the gateway refuses signatures that are too old.
#[allow(clippy::disallowed_methods)]
fn time_at_provider() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// SendGrid's side: its key, and a place that takes mail.
struct SendgridSide {
    pair: EcdsaKeyPair,
    source: HttpSource,
}

impl SendgridSide {
    async fn start() -> anyhow::Result<Self> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).context("no key")?;
        let source = HttpSource::start().await;
        let headers = vec![("X-Message-Id".to_owned(), "sg-1".to_owned())];
        source.serve(SEND, SourceReply::Whole { status: 202, headers, body: Vec::new() });
        Ok(Self { pair, source })
    }

    /// The verification key as SendGrid shows it.
    fn public_key(&self) -> String {
        let head = [
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
            0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
        ];
        BASE64_STANDARD.encode([&head[..], self.pair.public_key().as_ref()].concat())
    }

    /// The account and its hook; returns the hook's URL.
    async fn join(&self, gateway: &Gateway) -> anyhow::Result<String> {
        let account = json!({"id": "sg", "kind": "sendgrid", "api_key": "SG.first",
            "base_url": self.source.url("").trim_end_matches('/')});
        gateway.post("/v1/accounts", account).await?;
        let body = json!({"public_key": self.public_key()});
        hook_of(gateway, "sg", body).await
    }

    /// Reports events as SendGrid does; returns the status.
    async fn report(&self, url: &str, events: &Value) -> anyhow::Result<u16> {
        let body = events.to_string();
        let timestamp = time_at_provider().as_second();
        let text = format!("{timestamp}{body}");
        let signed = self.pair.sign(&SystemRandom::new(), text.as_bytes()).context("not signed")?;
        let request = reqwest::Client::new()
            .post(url)
            .header("X-Twilio-Email-Event-Webhook-Signature", BASE64_STANDARD.encode(signed.as_ref()))
            .header("X-Twilio-Email-Event-Webhook-Timestamp", timestamp.to_string());
        Ok(request.body(body).send().await?.status().as_u16())
    }
}

async fn hook_of(gateway: &Gateway, account: &str, body: Value) -> anyhow::Result<String> {
    let path = format!("/v1/accounts/{account}/hook");
    let (status, made) = gateway.call(Method::PUT, &path, Some(body)).await?;
    ensure!(status.as_u16() == 201, "{status} {made}");
    Ok(format!("{}{}", gateway.url().trim_end_matches('/'), text(&made, "url")))
}

fn event(kind: &str, n: usize, more: Value) -> Value {
    let mut event = json!({"email": "ada@example.net", "event": kind, "sg_event_id": format!("e-{kind}-{n}"),
        "sg_message_id": "sg-1.filter0001.16648.5515E0B88.0", "timestamp": 1_513_299_569});
    if let Some((event, more)) = event.as_object_mut().zip(more.as_object()) {
        event.extend(more.clone());
    }
    event
}

fn bounce() -> Value {
    let more = json!({"type": "bounce", "status": "5.1.1", "reason": "550 5.1.1 user unknown"});
    event("bounce", 1, more)
}

#[tokio::test]
async fn what_sendgrid_reports_is_told_once_and_suppresses() -> anyhow::Result<()> {
    let (gateway, sendgrid) = (Gateway::start().await?, SendgridSide::start().await?);
    let url = sendgrid.join(&gateway).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::ok("")]).await?;
    gateway.send(mail_with("hello", "ada@example.net", json!({"account": "sg"}))).await?;
    gateway.wait_for("hello", "sent").await?;

    let all = json!([
        event("processed", 1, json!({})),
        event("delivered", 1, json!({"response": "250 OK"})),
        event("open", 1, json!({"useragent": "Mozilla/5.0"})),
        event("click", 1, json!({"url": "https://example.com/offer"})),
        bounce(),
    ]);
    let stranger = SendgridSide::start().await?;
    ensure!(stranger.report(&url, &all).await? == 401, "another key");
    for _ in 0..3 {
        ensure!(sendgrid.report(&url, &all).await? == 200);
    }
    let is_told = |message: &Value| events_of(message, "bounced") == 1 && events_of(message, "clicked") == 1;
    let message = gateway.wait_until("hello", "told", is_told).await?;
    for kind in ["delivered", "opened", "clicked", "bounced"] {
        assert_eq!(events_of(&message, kind), 1, "{kind}: {message:#}");
    }
    let recipient = &message["recipients"][0];
    assert_eq!((text(recipient, "outcome"), text(&recipient["bounce"], "type")), ("bounced", "hard"));
    let suppressed = gateway.get("/v1/suppressions/ada@example.net").await?;
    assert_eq!(text(&suppressed, "reason"), "hard_bounce");
    let kinds = async || -> anyhow::Result<Option<Vec<String>>> {
        let calls = receiver.calls()?;
        let kinds: Vec<String> = calls.iter().map(|call| call.kind().to_owned()).collect();
        let wanted = ["email.delivered", "email.opened", "email.clicked", "email.bounced"];
        Ok(wanted.iter().all(|kind| kinds.iter().any(|told| told == kind)).then_some(kinds))
    };
    let told = eventually("webhooks of each event", kinds).await?;
    assert_eq!(told.iter().filter(|kind| *kind == "email.bounced").count(), 1, "{told:?}");
    let hours = gateway.get("/v1/statistics").await?;
    assert!(hours.to_string().contains("\"bounced\":1"), "{hours}");
    let listed = gateway.cli(&["hooks", "events", "sg", "--status", "ignored"]).await?;
    assert!(listed.out.contains("took the mail"), "{}", listed.out);
    Ok(())
}

/// The process dies after it said 200 and before it processed the events.
#[tokio::test]
async fn what_was_answered_with_200_survives_a_crash() -> anyhow::Result<()> {
    let (mut gateway, sendgrid) = (Gateway::start().await?, SendgridSide::start().await?);
    let url = sendgrid.join(&gateway).await?;
    gateway.send(mail_with("hello", "ada@example.net", json!({"account": "sg"}))).await?;
    gateway.wait_for("hello", "sent").await?;
    assert!(gateway.terminate().await?.success());

    gateway.launch(&[("FAILPOINTS", "hook_before_settle=1*return")]).await?;
    let url = format!("{}{}", gateway.url().trim_end_matches('/'), &url[url.find("/hooks/").unwrap_or(0)..]);
    ensure!(sendgrid.report(&url, &json!([bounce()])).await? == 200);
    assert!(!gateway.ended().await?.success(), "the point was not met");
    gateway.launch(&[]).await?;
    let is_told = |message: &Value| events_of(message, "bounced") > 0;
    let message = gateway.wait_until("hello", "told after the crash", is_told).await?;
    assert_eq!(events_of(&message, "bounced"), 1, "{message:#}");
    Ok(())
}

/// Amazon's side: a key with its certificate, and where SNS and SES answer.
struct AmazonSide {
    folder: tempfile::TempDir,
    source: HttpSource,
}

impl AmazonSide {
    async fn start() -> anyhow::Result<Self> {
        let folder = tempfile::TempDir::new()?;
        let (key, pem) = (folder.path().join("key.pem"), folder.path().join("cert.pem"));
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj"]);
        command.arg("/CN=sns.amazonaws.com").arg("-keyout").arg(&key).arg("-out").arg(&pem);
        ensure!(command.output()?.status.success(), "openssl made no certificate");
        let source = HttpSource::start().await;
        let served = |path: &Path| std::fs::read_to_string(path).map(SourceReply::ok);
        source.serve("/SimpleNotificationService.pem", served(&pem)?);
        source.serve("/confirm", SourceReply::ok("<ConfirmSubscriptionResponse/>"));
        source.serve("/v2/email/outbound-emails", SourceReply::ok(r#"{"MessageId":"ses-1"}"#));
        Ok(Self { folder, source })
    }

    /// A message of SNS, signed.
    fn message(
        &self,
        kind: &str,
        topic: &str,
        text: &str,
        version: &str,
        cert: &str,
    ) -> anyhow::Result<String> {
        let at = time_at_provider().to_string();
        let confirm = self.source.url("/confirm");
        let signed = match kind {
            "Notification" => {
                format!("Message\n{text}\nMessageId\nm-1\nTimestamp\n{at}\nTopicArn\n{topic}\nType\n{kind}\n")
            }
            _ => format!(
                "Message\n{text}\nMessageId\nm-1\nSubscribeURL\n{confirm}\nTimestamp\n{at}\nToken\nt-1\nTopicArn\n{topic}\n\
                 Type\n{kind}\n"
            ),
        };
        let file = self.folder.path().join("text");
        std::fs::write(&file, signed)?;
        let digest = if version == "1" { "-sha1" } else { "-sha256" };
        let key = self.folder.path().join("key.pem");
        let made = Command::new("openssl").args(["dgst", digest, "-sign"]).arg(key).arg(file).output()?;
        ensure!(made.status.success(), "openssl did not sign");
        Ok(json!({
            "Type": kind, "MessageId": "m-1", "TopicArn": topic, "Message": text, "Timestamp": at,
            "SubscribeURL": confirm, "Token": "t-1", "SignatureVersion": version,
            "Signature": BASE64_STANDARD.encode(made.stdout), "SigningCertURL": cert,
        })
        .to_string())
    }
}

async fn post(url: &str, body: String) -> anyhow::Result<u16> {
    let request = reqwest::Client::new().post(url).header("Content-Type", "text/plain; charset=UTF-8");
    Ok(request.body(body).send().await?.status().as_u16())
}

#[tokio::test]
async fn what_ses_reports_through_sns_is_proven_by_its_certificate() -> anyhow::Result<()> {
    let (gateway, amazon) = (Gateway::start().await?, AmazonSide::start().await?);
    let endpoint = amazon.source.url("").trim_end_matches('/').to_owned();
    let account = json!({"id": "ses", "kind": "ses", "region": "eu-south-1", "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": "wJalrXUtnFEMI", "endpoint": endpoint});
    gateway.post("/v1/accounts", account).await?;
    let url = hook_of(&gateway, "ses", json!({"topics": [TOPIC], "sns_endpoint": endpoint})).await?;
    gateway.send(mail_with("hello", "ada@example.net", json!({"account": "ses"}))).await?;
    gateway.wait_for("hello", "sent").await?;
    let cert = amazon.source.url("/SimpleNotificationService.pem");

    let subscribe = amazon.message("SubscriptionConfirmation", TOPIC, "You have chosen", "1", &cert)?;
    ensure!(post(&url, subscribe.clone()).await? == 200);
    assert!(amazon.source.requests().iter().any(|request| request.path == "/confirm"), "it confirms itself");
    let before = amazon.source.requests().len();

    let bounce = json!({"notificationType": "Bounce", "mail": {"messageId": "ses-1", "destination": ["ada@example.net"]},
        "bounce": {"bounceType": "Permanent", "bounceSubType": "NoEmail", "timestamp": "2026-11-18T20:00:00.000Z",
            "bouncedRecipients": [{"emailAddress": "ada@example.net", "status": "5.1.1",
                "diagnosticCode": "smtp; 550 5.1.1 user unknown"}]}})
    .to_string();
    let elsewhere = HttpSource::start().await;
    elsewhere.serve("/x.pem", SourceReply::ok("-----BEGIN CERTIFICATE-----"));
    let signed = |topic: &str, version: &str, cert: &str| {
        amazon.message("Notification", topic, &bounce, version, cert)
    };
    let other = TOPIC.replace(":mail", ":other");
    let good = signed(TOPIC, "2", &cert)?;
    for (name, wrong) in [
        ("another topic", signed(&other, "2", &cert)?),
        ("a certificate elsewhere", signed(TOPIC, "2", &elsewhere.url("/x.pem"))?),
        ("another version", good.replace("\"SignatureVersion\":\"2\"", "\"SignatureVersion\":\"3\"")),
        (
            "the digest of the other version",
            good.replace("\"SignatureVersion\":\"2\"", "\"SignatureVersion\":\"1\""),
        ),
        ("another text", good.replace("NoEmail", "General")),
        ("a confirmation elsewhere", subscribe.replace("/confirm", "/elsewhere")),
    ] {
        ensure!(post(&url, wrong).await? == 401, "{name}");
    }
    assert!(elsewhere.requests().is_empty(), "nobody else is asked");
    assert_eq!(amazon.source.requests().len(), before, "the certificate is kept");
    assert_eq!(events_of(&gateway.message("hello").await?, "bounced"), 0);

    for version in ["1", "2", "1"] {
        ensure!(post(&url, signed(TOPIC, version, &cert)?).await? == 200);
    }
    let is_told = |message: &Value| events_of(message, "bounced") > 0;
    let message = gateway.wait_until("hello", "bounced", is_told).await?;
    assert_eq!(events_of(&message, "bounced"), 1, "{message:#}");
    assert_eq!(text(&gateway.get("/v1/suppressions/ada@example.net").await?, "reason"), "hard_bounce");
    Ok(())
}

/// How many events are durable in a second, and processed. The figures are printed; the bounds are for what
/// would be wrong on any machine.
#[tokio::test]
async fn events_are_durable_and_processed_at_a_pace() -> anyhow::Result<()> {
    const CALLS: usize = 40;
    const IN_CALL: usize = 500;
    let (gateway, sendgrid) = (Gateway::start().await?, SendgridSide::start().await?);
    let url = sendgrid.join(&gateway).await?;
    gateway.send(mail_with("hello", "ada@example.net", json!({"account": "sg"}))).await?;
    gateway.wait_for("hello", "sent").await?;
    let call = |n: usize| {
        let events: Vec<Value> = (0..IN_CALL).map(|m| event("open", n * IN_CALL + m, json!({}))).collect();
        Value::from(events)
    };
    let calls: Vec<Value> = (0..CALLS).map(call).collect();
    let began = Instant::now();
    let answers = calls.iter().map(|events| sendgrid.report(&url, events));
    for status in futures::future::join_all(answers).await {
        ensure!(status? == 200);
    }
    let durable = (CALLS * IN_CALL) as f64 / began.elapsed().as_secs_f64();
    eventually("every event processed", async || {
        let waiting = gateway.get("/v1/accounts/sg/hook/events?status=waiting&limit=1").await?;
        let leased = gateway.get("/v1/accounts/sg/hook/events?status=leased&limit=1").await?;
        let is_empty = |list: &Value| list["data"].as_array().is_some_and(Vec::is_empty);
        Ok((is_empty(&waiting) && is_empty(&leased)).then_some(()))
    })
    .await?;
    let processed = (CALLS * IN_CALL) as f64 / began.elapsed().as_secs_f64();
    println!("{durable:.0} events/s durable, {processed:.0} events/s processed");
    ensure!(durable > 100.0 && processed > 50.0, "{durable} {processed}");
    Ok(())
}
