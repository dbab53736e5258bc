//! "Mapeamento de Erros SES" and "Retry e Backoff": the delays between attempts to their end, what each error
//! of the service becomes, the html that is sent, and the two metrics of it.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{Gateway, eventually, node_env, text};
use postway_testkit::{HttpSource, SourceReply, postgres::PostgresDatabase};
use serde_json::{Value, json};

use super::{SEND_PATH, logged, mail, pipeline, refused, said, send, taken};

/// An answer of the service with a name and a sentence.
fn says(status: u16, name: &str, message: &str) -> SourceReply {
    let headers = vec![("x-amzn-ErrorType".to_owned(), name.to_owned())];
    SourceReply::Whole { status, headers, body: json!({"message": message}).to_string().into_bytes() }
}

/// The delays before the next attempt that a log tells, in milliseconds.
fn delays(log: &Value) -> Vec<u64> {
    let events = log["events"].as_array().map_or(&[][..], Vec::as_slice).iter();
    let retries = events.filter(|event| event["type"] == "RETRY_SCHEDULED");
    retries.filter_map(|event| event["metadata"]["backoffDelay"].as_u64()).collect()
}

/// 1 s, 5 s, 30 s, 2 min and 10 min, each a quarter more or less, and then no more. The clock is set forward
/// where a person would wait. Requirements 22–24.
#[tokio::test]
async fn five_delays_up_to_ten_minutes_and_then_none() -> anyhow::Result<()> {
    const DELAYS_S: [u64; 5] = [1, 5, 30, 120, 600];
    let (store, ses) = (PostgresDatabase::create(), HttpSource::start().await);
    let mut gateway = pipeline(&store, &ses).await?;
    // The defaults of an account.
    gateway.patch("/v1/accounts/ses", json!({"retry": null})).await?;
    ses.serve(SEND_PATH, refused(503, "ServiceUnavailable"));
    let (_, answer) = send(&gateway, "slow", &mail(json!({}))).await?;
    let id = text(&answer, "outboxId").to_owned();
    let url = store.url();
    let mut ahead_ms: u64 = 0;
    for (done, delay_s) in (1..).zip(DELAYS_S) {
        let log = logged(&gateway, &id, |log| delays(log).len() == done).await?;
        let quarter = delay_s * 250;
        let told = delays(&log)[done - 1];
        assert!((delay_s * 1_000 - quarter..=delay_s * 1_000 + quarter).contains(&told), "{done}: {log:#}");
        assert_eq!(ses.requests().len(), done, "one call for each attempt");
        if delay_s >= 30 {
            assert!(gateway.terminate().await?.success());
            ahead_ms += told + 1_000;
            let skew = ahead_ms.to_string();
            let mut env = node_env(&url, "pipeline.example");
            env.extend([("POSTWAY_COMPAT_ROOT", "004"), ("FAILPOINTS_CLOCK_SKEW_MS", skew.as_str())]);
            gateway.launch(&env).await?;
        }
    }
    let failed = logged(&gateway, &id, |log| log["status"] == "FAILED").await?;
    assert_eq!((delays(&failed).len(), ses.requests().len()), (5, 6), "{failed:#}");
    let dead = gateway.get("/v1/dead-letters").await?;
    assert_eq!(text(&dead["data"][0], "uid"), text(&gateway.message(&id).await?, "uid"), "{dead:#}");
    Ok(())
}

/// The names of errors that the other walk leaves out, in SES's words of today; what is sent is what the
/// outbox shows; and what is counted. Requirements 8, 47, 50, 53, 65, 66.
#[tokio::test]
async fn each_error_has_its_code_the_html_is_the_outboxs_and_retries_are_counted() -> anyhow::Result<()> {
    let (store, ses) = (PostgresDatabase::create(), HttpSource::start().await);
    let gateway: Gateway = pipeline(&store, &ses).await?;
    for (n, reply, code, category) in [
        (
            1,
            says(404, "NotFoundException", "Configuration set <x> does not exist"),
            "SES_CONFIGURATION_SET_DOES_NOT_EXIST",
            "CONFIGURATION_ERROR",
        ),
        (
            2,
            says(429, "TooManyRequestsException", "Maximum sending rate exceeded."),
            "SES_MAX_SEND_RATE_EXCEEDED",
            "QUOTA_ERROR",
        ),
        (3, says(408, "RequestTimeout", "too slow"), "SES_TIMEOUT", "TIMEOUT_ERROR"),
        // By the names of its older interface too.
        (
            4,
            refused(400, "ConfigurationSetDoesNotExist"),
            "SES_CONFIGURATION_SET_DOES_NOT_EXIST",
            "CONFIGURATION_ERROR",
        ),
        (5, refused(429, "MaxSendRateExceeded"), "SES_MAX_SEND_RATE_EXCEEDED", "QUOTA_ERROR"),
    ] {
        ses.serve_in_turn(SEND_PATH, vec![reply, taken(&format!("0100018e-{n}"))]);
        let html = format!("<p>Order {n} for <b>Zoë</b></p>");
        let (_, answer) = send(&gateway, &format!("error-{n}"), &mail(json!({"html": html}))).await?;
        let id = text(&answer, "outboxId").to_owned();
        let codes = |log: &Value| said(log, "RETRY_SCHEDULED", "errorCode");
        let held = logged(&gateway, &id, |log| !codes(log).is_empty()).await?;
        assert_eq!(codes(&held)[0], code, "{held:#}");
        assert_eq!(said(&held, "RETRY_SCHEDULED", "errorCategory")[0], category, "{held:#}");
        // What is wrong with the account waits for a change of it; the rest for its delay.
        gateway.patch("/v1/accounts/ses", json!({"secret_access_key": "wJalrXUtnFEMI"})).await?;
        logged(&gateway, &id, |log| log["status"] == "SENT").await?;

        let kept =
            store.run(&format!("SELECT html FROM postway_views.email_outbox WHERE \"outboxId\" = '{id}'"));
        assert_eq!(kept, html);
        let call = ses.requests().pop().expect("it was called");
        let call: Value = serde_json::from_slice(&call.body)?;
        let raw = BASE64_STANDARD.decode(text(&call["Content"]["Raw"], "Data"))?;
        let sent = mail_parser::MessageParser::default().parse(&raw).expect("a mail");
        assert_eq!(sent.body_html(0).as_deref().map(str::trim_end), Some(html.as_str()));
    }
    let expected = [
        "postway_retries_total{category=\"timeout\"} 1",
        "postway_retries_total{category=\"rate_limited\"} 2",
        "postway_processing_seconds_count{state=\"sending\"} 10",
        "postway_send_seconds_count 5",
    ];
    let mut shown = String::new();
    let told = eventually("all metrics", async || {
        shown = gateway.get("/metrics").await?.as_str().unwrap_or_default().to_owned();
        Ok(expected.iter().all(|metric| shown.lines().any(|line| line == *metric)).then_some(()))
    });
    assert!(told.await.is_ok(), "{expected:#?}\n{shown}");
    Ok(())
}
