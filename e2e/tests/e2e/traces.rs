//! Traces: one mail is one trace, from the request that brings it to the webhook that reports it, also across
//! a crash; and whatever callers and collectors do, mail goes out.

use std::{fs, time::Duration};

use anyhow::Context;
use postway_e2e::{Gateway, PATIENCE, Receiver, eventually, mail, mail_with};
use postway_testkit::{ClosedPort, CollectedSpan, OtlpCollector, SmtpSink, SourceReply};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

const SPAN: &str = "00f067aa0ba902b7";

/// The n-th trace of a caller, and what the caller sends.
fn called(n: u32) -> (String, String) {
    let trace = format!("4bf92f3577b34da6a3ce929d{n:08x}");
    let traceparent = format!("00-{trace}-{SPAN}-01");
    (trace, traceparent)
}

/// Only what callers trace is recorded.
fn traced(collector: &OtlpCollector) -> [(&'static str, String); 2] {
    [("POSTWAY_TRACING_ENDPOINT", collector.endpoint()), ("POSTWAY_TRACING_RATIO", "0".to_owned())]
}

fn borrowed<'a>(env: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    env.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

async fn post(gateway: &Gateway, mail: &Value, traceparents: &[&str]) -> anyhow::Result<StatusCode> {
    let request = gateway.request(Method::POST, "/v1/messages").json(mail);
    let request = traceparents.iter().fold(request, |request, value| request.header("traceparent", *value));
    Ok(request.send().await?.status())
}

/// Waits until a trace has this many spans of these names.
async fn spans(
    collector: &OtlpCollector,
    trace: &str,
    wanted: &[(&str, usize)],
) -> anyhow::Result<Vec<CollectedSpan>> {
    let found = eventually("the spans of a trace", async || {
        let spans = collector.trace(trace);
        let count = |name: &str| spans.iter().filter(|span| span.name == name).count();
        Ok(wanted.iter().all(|(name, times)| count(name) >= *times).then_some(spans))
    });
    found.await.with_context(|| format!("{:#?}", collector.spans()))
}

fn find<'a>(spans: &'a [CollectedSpan], name: &str) -> &'a CollectedSpan {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

#[tokio::test]
async fn a_mail_is_one_trace_from_its_request_to_the_webhook() -> anyhow::Result<()> {
    let (collector, sink) = (OtlpCollector::start().await, SmtpSink::start().await);
    let env = [
        &traced(&collector)[..],
        &[
            ("POSTWAY_TRACING_HEADERS", "x-team=mail".to_owned()),
            ("POSTWAY_LOG_FORMAT", "json".to_owned()),
            ("POSTWAY_LOG", "debug".to_owned()),
        ],
    ]
    .concat();
    let mut gateway = Gateway::start_with(&borrowed(&env)).await?;
    gateway.relay_to(sink.port()).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    let (trace, traceparent) = called(1);
    assert_eq!(
        post(&gateway, &mail("traced", "ada@example.net"), &[&traceparent]).await?,
        StatusCode::ACCEPTED
    );
    assert_eq!(post(&gateway, &mail("plain", "ada@example.net"), &[]).await?, StatusCode::ACCEPTED);
    receiver.wait_for(4, PATIENCE).await;
    gateway.wait_until_reported("traced").await?;
    assert!(gateway.terminate().await?.success(), "the last spans leave before the process does");

    let spans = spans(&collector, &trace, &[("notify", 2)]).await?;
    let request = find(&spans, "POST /v1/messages");
    assert_eq!(
        (request.parent.as_str(), request.attribute("http.response.status_code").as_str()),
        (SPAN, "202")
    );
    let accept = find(&spans, "accept");
    assert_eq!((&accept.parent, accept.attribute("postway.tenant")), (&request.id, "default".to_owned()));
    assert_eq!(find(&spans, "commit").parent, accept.id);
    let attempt = find(&spans, "attempt");
    assert_eq!(attempt.parent, accept.id);
    assert_eq!(attempt.attribute("postway.outcome"), "sent");
    assert_eq!((attempt.attribute("postway.account").as_str(), attempt.failure.as_deref()), ("relay", None));
    for phase in ["SMTP connect", "SMTP envelope", "SMTP body", "wire commit", "SMTP dot"] {
        let phase = find(&spans, phase);
        assert_eq!(phase.parent, attempt.id, "{}", phase.name);
        let (within, span) = (attempt.times_ns, phase.times_ns);
        assert!(within.0 <= span.0 && span.0 <= span.1 && span.1 <= within.1, "{} {span:?}", phase.name);
    }
    assert_eq!(find(&spans, "SMTP dot").attribute("smtp.reply_code"), "250");
    assert_eq!(find(&spans, "SMTP connect").attribute("server.port"), sink.port().to_string());
    let calls = receiver.calls()?;
    for call in calls.iter().filter(|call| call.message() == "traced") {
        let carried = call.traceparent.as_deref().context("a call without its place")?;
        let notify = spans.iter().filter(|span| span.name == "notify" && span.parent == accept.id);
        let ids: Vec<&str> = notify.map(|span| span.id.as_str()).collect();
        let [version, of, span, flags] = carried.split('-').collect::<Vec<_>>()[..] else {
            panic!("{carried}")
        };
        assert_eq!((version, of, flags), ("00", trace.as_str(), "01"));
        assert!(ids.contains(&span), "{carried} {ids:?}");
    }
    assert!(calls.iter().all(|call| call.message() == "traced" || call.traceparent.is_none()));
    let strange = collector.spans().into_iter().find(|span| span.trace != trace);
    assert!(strange.is_none(), "nobody asked for it: {strange:?}");
    assert_eq!(collector.header("x-team").as_deref(), Some("mail"));

    let log = gateway.log();
    let lines = log.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let ended = |line: &&Value| line["message"] == "attempt ended";
    let of_attempts: Vec<_> =
        lines.iter().filter(ended).map(|line| line["span"]["trace_id"].clone()).collect();
    assert_eq!(of_attempts.len(), 2);
    assert!(of_attempts.contains(&json!(trace)) && of_attempts.contains(&Value::Null), "{of_attempts:?}");
    assert!(lines.iter().any(|line| line["message"] == "request" && line["trace_id"] == json!(trace)));
    Ok(())
}

#[tokio::test]
async fn a_trace_goes_on_after_a_crash() -> anyhow::Result<()> {
    let (collector, sink) = (OtlpCollector::start().await, SmtpSink::start().await);
    let env = traced(&collector);
    let mut gateway = Gateway::start_with(&borrowed(&env)).await?;
    gateway.relay_to(sink.port()).await?;
    assert!(gateway.terminate().await?.success());
    let struck = [&env[..], &[("FAILPOINTS", "smtp_after_rcpt=1*return".to_owned())]].concat();
    gateway.launch(&borrowed(&struck)).await?;
    let (trace, traceparent) = called(2);
    // The crash may come before the answer is out.
    let _ = post(&gateway, &mail("struck", "ada@example.net"), &[&traceparent]).await;
    assert!(!gateway.ended().await?.success());

    gateway.launch(&borrowed(&env)).await?;
    gateway.wait_for("struck", "sent").await?;
    let spans = spans(&collector, &trace, &[("attempt", 1), ("claim", 1), ("SMTP dot", 1)]).await?;
    let attempt = find(&spans, "attempt");
    assert_eq!(
        (attempt.attribute("postway.attempt").as_str(), attempt.attribute("postway.outcome")),
        ("2", "sent".to_owned())
    );
    assert_eq!(attempt.parent, find(&spans, "claim").parent, "both are under the accept of the life before");
    Ok(())
}

#[tokio::test]
async fn every_way_in_takes_a_place_in_a_trace() -> anyhow::Result<()> {
    let (collector, sink) = (OtlpCollector::start().await, SmtpSink::start().await);
    let mut gateway = Gateway::idle()?;
    let spool = gateway.folder().join("spool");
    let env = [
        &traced(&collector)[..],
        &[
            ("POSTWAY_SPOOL_FOLDER", spool.to_string_lossy().into_owned()),
            ("POSTWAY_SMTP_LISTEN", "127.0.0.1:0".to_owned()),
            ("POSTWAY_SMTP_OPEN_NETWORKS", "127.0.0.1/32=default".to_owned()),
            ("POSTWAY_COMPAT_DOORS", "all".to_owned()),
        ],
    ]
    .concat();
    gateway.launch(&borrowed(&env)).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;

    let with = |n: u32, id: &str| mail_with(id, "ada@example.net", json!({"traceparent": called(n).1}));
    let batch = json!({"messages": [with(10, "first"), with(11, "second")]});
    assert_eq!(gateway.post("/v1/messages/batch", batch).await?["accepted"], 2);
    // Another place in the request itself is no other request.
    assert_eq!(gateway.post("/v1/messages", with(12, "first")).await?["status"], "accepted");
    fs::write(spool.join("new.part"), with(13, "spooled").to_string())?;
    fs::rename(spool.join("new.part"), spool.join("new.json"))?;
    submit(&gateway, &format!("Traceparent: {}\r\n", called(14).1)).await?;
    submit(&gateway, &format!("X-Postway-Traceparent: {}\r\n", called(15).1)).await?;
    submit(&gateway, &format!("traceparent: {}\r\nTraceparent: {}\r\n", called(16).1, called(17).1)).await?;
    let compat =
        gateway.request(Method::POST, "/compat/sendgrid/v3/mail/send").header("traceparent", called(18).1);
    let personalizations = json!([{"to": [{"email": "ada@example.net"}]}]);
    let content = json!([{"type": "text/plain", "value": "Hi"}]);
    let body = json!({"personalizations": personalizations, "from": {"email": "shop@example.com"}, "subject": "Hello", "content": content});
    let answer = compat.json(&body).send().await?;
    assert!(answer.status().is_success(), "{}", answer.text().await?);

    for n in [10, 11, 13, 14, 15, 18] {
        let spans = spans(&collector, &called(n).0, &[("accept", 1), ("attempt", 1)]).await?;
        assert_eq!(find(&spans, "attempt").attribute("postway.outcome"), "sent", "{n}");
    }
    gateway.wait_until_settled(PATIENCE).await?;
    for n in [12, 16, 17] {
        let found = collector.trace(&called(n).0);
        assert!(!found.iter().any(|span| span.name == "attempt"), "{n}: {found:#?}");
    }
    assert_eq!(sink.mails().len(), 7);
    Ok(())
}

/// Hands over one mail with these fields.
async fn submit(gateway: &Gateway, fields: &str) -> anyhow::Result<()> {
    let log = gateway.log();
    let address = log.split("taking mail over SMTP address=").nth(1).context("nobody takes mail")?;
    let stream = TcpStream::connect(address.split_whitespace().next().context("no address")?).await?;
    let mut stream = BufReader::new(stream);
    let message = format!(
        "{fields}From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Hello\r\n\r\nHi.\r\n.\r\n"
    );
    let mut line = String::new();
    timeout(PATIENCE, stream.read_line(&mut line)).await??;
    for command in [
        "HELO me\r\n",
        "MAIL FROM:<shop@example.com>\r\n",
        "RCPT TO:<ada@example.net>\r\n",
        "DATA\r\n",
        &message,
    ] {
        stream.write_all(command.as_bytes()).await?;
        line.clear();
        timeout(PATIENCE, stream.read_line(&mut line)).await??;
        anyhow::ensure!(line.starts_with('2') || line.starts_with('3'), "{command}: {line}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_no_traceparent_is_ignored_and_the_mail_goes_out() -> anyhow::Result<()> {
    let (collector, sink) = (OtlpCollector::start().await, SmtpSink::start().await);
    let gateway = Gateway::start_with(&borrowed(&traced(&collector))).await?;
    gateway.relay_to(sink.port()).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    let (_, good) = called(20);
    let huge = format!("{good}-{}", "x".repeat(6_000));
    let headers: [&[&str]; 6] = [
        &["nonsense"],
        &[""],
        &[&huge],
        &[&good, &good],
        &["00-00000000000000000000000000000000-0000000000000000-01"],
        &["00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01"],
    ];
    let mut sent = 0;
    for values in headers {
        sent += 1;
        let mail = mail(&format!("mail-{sent}"), "ada@example.net");
        assert_eq!(post(&gateway, &mail, values).await?, StatusCode::ACCEPTED, "{values:.100?}");
    }
    for value in [json!(7), json!(null), json!({"a": [1]}), json!([good]), json!("x".repeat(100_000))] {
        sent += 1;
        let mail = mail_with(&format!("mail-{sent}"), "ada@example.net", json!({"traceparent": value}));
        assert_eq!(post(&gateway, &mail, &[]).await?, StatusCode::ACCEPTED);
    }
    // What a stranger sends without a key is not traced either.
    let (refused, traceparent) = called(21);
    let stranger = reqwest::Client::new().post(format!("{}/v1/messages", gateway.url()));
    let answer =
        stranger.header("traceparent", traceparent).json(&mail("no", "ada@example.net")).send().await?;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    // One that is right, to know that all spans have come.
    let (trace, traceparent) = called(22);
    post(&gateway, &mail("last", "ada@example.net"), &[&traceparent]).await?;
    receiver.wait_for(2 * (sent + 1), PATIENCE).await;
    spans(&collector, &trace, &[("notify", 2)]).await?;
    let strange = collector.spans().into_iter().find(|span| span.trace != trace);
    assert!(strange.is_none(), "{strange:?} {refused}");
    assert_eq!(receiver.calls()?.iter().filter(|call| call.traceparent.is_some()).count(), 2);
    assert_eq!(sink.mails().len(), sent + 1);
    Ok(())
}

#[tokio::test]
async fn without_a_collector_nothing_is_traced() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    post(&gateway, &mail("one", "ada@example.net"), &[&called(30).1]).await?;
    receiver.wait_for(2, PATIENCE).await;
    assert!(receiver.calls()?.iter().all(|call| call.traceparent.is_none()));
    Ok(())
}

/// Sends mail of which every bit is traced, and waits until spans were dropped.
async fn send_past(endpoint: &str) -> anyhow::Result<()> {
    const MAILS: usize = 300;
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start_with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)]).await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 4})).await?;
    let mails: Vec<_> = (0..MAILS).map(|n| mail(&format!("mail-{n}"), "ada@example.net")).collect();
    gateway.post("/v1/messages/batch", json!({"messages": mails})).await?;
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(sink.mails().len(), MAILS, "a collector keeps no mail waiting");
    eventually("dropped spans", async || {
        let metrics = String::from_utf8(gateway.bytes("/metrics").await?.2)?;
        let dropped = |line: &&str| line.starts_with("postway_trace_spans_total{outcome=\"dropped\"}");
        let count =
            metrics.lines().find(dropped).and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        Ok(count.filter(|count| *count > 0))
    })
    .await?;
    let stopped = timeout(Duration::from_secs(30), gateway.terminate()).await??;
    assert!(stopped.success(), "nor the end of the process");
    assert_eq!(gateway.log().matches("the collector takes no spans").count(), 1, "and it is said once");
    Ok(())
}

#[tokio::test]
async fn a_collector_that_is_away_costs_spans_and_nothing_else() -> anyhow::Result<()> {
    let nobody = ClosedPort::take();
    send_past(&format!("http://{}", nobody.address())).await
}

#[tokio::test]
async fn a_collector_that_never_answers_costs_spans_and_nothing_else() -> anyhow::Result<()> {
    let collector = OtlpCollector::start().await;
    collector.answer(SourceReply::Silent);
    send_past(&collector.endpoint()).await
}
