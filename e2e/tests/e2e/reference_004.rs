//! Reference 004, a validating pipeline in front of SES, from the top of its document to the end, on the real
//! binary: its door at `/`, its tables as views on PostgreSQL, and a service that answers as SES does.
//! `schedule` walks errors and delays, `states` what is seen while a mail is on its way.
//!
//! Shown elsewhere: what moto's SES takes and a paused account (`ses.rs`), every error of SES
//! (`crates/dispatch/tests/ses`), durability of what was received (`compat.rs`), one call of the door at a
//! time (`crates/api/tests/compat/reference_004.rs`), every state and event in the views of each database
//! (`crates/store/src/tools/views/tests`), the graceful stop (`graceful_drain.rs`).
//!
//! Each requirement under its number, with the tests that show it here and elsewhere: `requirements/004.md`.

mod schedule;
mod states;

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{Gateway, column, eventually, node_env, text};
use postway_testkit::{HttpSource, SourceReply, postgres::PostgresDatabase};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// The columns of the log, and of its events.
const LOG_COLUMNS: &str = "outboxId companyId recipientId to subject status sesMessageId errorCode errorReason attempts \
     durationMs requestId createdAt sentAt failedAt";
const EVENT_COLUMNS: &str = "emailLogId type metadata createdAt";
const SEND_PATH: &str = "/v2/email/outbound-emails";

/// What SES says when it takes a mail, and when it does not.
fn taken(id: &str) -> SourceReply {
    SourceReply::ok(json!({"MessageId": id}).to_string())
}

fn refused(status: u16, name: &str) -> SourceReply {
    let headers = vec![("x-amzn-ErrorType".to_owned(), name.to_owned())];
    SourceReply::Whole { status, headers, body: br#"{"message":"simulated"}"#.to_vec() }
}

/// A company with its pipeline: a gateway on PostgreSQL with the views, whose account is this service.
async fn pipeline(store: &PostgresDatabase, ses: &HttpSource) -> anyhow::Result<Gateway> {
    let url = store.url();
    let mut env = node_env(&url, "pipeline.example");
    env.extend([("POSTWAY_COMPAT_ROOT", "004"), ("POSTWAY_LOG_FORMAT", "json")]);
    let gateway = Gateway::start_untouched(&env).await?;
    let account = json!({"id": "ses", "kind": "ses", "region": "eu-south-1", "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": "wJalrXUtnFEMI", "endpoint": ses.url(""), "retry": {"delays_s": [1, 1], "jitter": 0.0}});
    gateway.post("/v1/accounts", account).await?;
    let tenant = json!({"default_from": "Shop <shop@example.com>", "default_account": "ses"});
    gateway.patch("/v1/tenants/default", tenant).await?;
    let ran = gateway.run(&["views", "install", "--database", &url], &[], b"").await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    Ok(gateway)
}

fn mail(fields: Value) -> Value {
    let mut mail = json!({"to": "ada@example.net", "subject": "Hello", "html": "<p>Hi</p>"});
    for (name, value) in fields.as_object().into_iter().flatten() {
        mail[name] = value.clone();
    }
    mail
}

/// Hands a mail to the door under a request id; the status and the answer.
async fn send(gateway: &Gateway, request_id: &str, mail: &Value) -> anyhow::Result<(StatusCode, Value)> {
    let request = gateway.request(Method::POST, "/v1/email/send").header("X-Request-Id", request_id);
    let answer = request.json(mail).send().await?;
    Ok((answer.status(), answer.json().await?))
}

/// The log of a mail once it is as wanted.
async fn logged(gateway: &Gateway, id: &str, done: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    eventually(&format!("the log of {id}"), async || {
        let shown = gateway.get(&format!("/v1/emails/{id}")).await?;
        Ok(done(&shown).then_some(shown))
    })
    .await
}

/// One text of each event of a kind: `said(&log, "RETRY_SCHEDULED", "errorCode")`.
fn said(log: &Value, kind: &str, name: &str) -> Vec<String> {
    let events = log["events"].as_array().map_or(&[][..], Vec::as_slice).iter();
    events
        .filter(|event| event["type"] == kind)
        .map(|event| text(&event["metadata"], name).to_owned())
        .collect()
}

/// Requirements 1–7, 11–17, 19–21, 45, 46, 48, 49, 51, 52, 54–60.
#[tokio::test]
async fn every_state_every_retry_and_its_reason_are_told_in_door_and_views() -> anyhow::Result<()> {
    let (store, ses) = (PostgresDatabase::create(), HttpSource::start().await);
    let gateway = pipeline(&store, &ses).await?;
    let rows = |sql: &str| store.run(&sql.replace("VIEW.", "postway_views."));

    // Throttled, then without an answer that says anything, then taken.
    let replies = vec![refused(429, "Throttling"), SourceReply::status(500), taken("0100018c-1")];
    ses.serve_in_turn(SEND_PATH, replies);
    let (status, answer) = send(&gateway, "req-1", &mail(json!({"externalId": "order-7"}))).await?;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    assert_eq!((&answer["jobId"], &answer["status"]), (&answer["outboxId"], &json!("RECEIVED")));
    let id = text(&answer, "outboxId").to_owned();
    let log = logged(&gateway, &id, |log| log["status"] == "SENT").await?;
    let types = [
        "RECEIVED",
        "VALIDATED",
        "SENT_ATTEMPT",
        "RETRY_SCHEDULED",
        "SENT_ATTEMPT",
        "RETRY_SCHEDULED",
        "SENT_ATTEMPT",
        "SENT",
    ];
    assert_eq!(column(&log, "events", "type"), types, "{log:#}");
    let checks = &log["events"][1]["metadata"]["checks"];
    let names: Vec<&str> = checks.as_array().unwrap().iter().map(|one| text(one, "check")).collect();
    assert_eq!(names, ["INTEGRITY", "RECIPIENT", "TEMPLATE"]);
    for (event, next, code) in [(3, 2, "SES_THROTTLING"), (5, 3, "SES_SERVICE_UNAVAILABLE")] {
        let metadata = &log["events"][event]["metadata"];
        assert_eq!((text(metadata, "errorCode"), &metadata["willRetry"]), (code, &json!(true)), "{metadata}");
        assert_eq!(metadata["nextAttemptNumber"], next);
        assert!(
            metadata["backoffDelay"].as_u64().is_some_and(|ms| (900..=1_100).contains(&ms)),
            "{metadata}"
        );
    }
    assert_eq!(text(&log, "sesMessageId"), "0100018c-1");
    let left = &log["events"][7]["metadata"];
    assert_eq!((text(left, "sesMessageId"), &left["attempt"]), ("0100018c-1", &json!(3)), "{left}");
    assert!(left["durationMs"].as_u64() < log["durationMs"].as_u64(), "of its attempt alone: {left}");
    for (view, expected) in [("email_logs", LOG_COLUMNS), ("email_events", EVENT_COLUMNS)] {
        let names = format!(
            "SELECT string_agg(column_name, ' ' ORDER BY ordinal_position) FROM information_schema.columns \
             WHERE table_schema = 'postway_views' AND table_name = '{view}'"
        );
        for name in expected.split(' ') {
            assert!(rows(&names).split(' ').any(|column| column == name), "{view} has no {name}");
        }
    }
    let took = log["durationMs"].as_u64().unwrap_or_default();
    assert!(took >= 2_000, "from its reception, retries included: {took}");
    assert_eq!((&log["attempts"], &gateway.message(&id).await?["attempt"]), (&json!(3), &json!(3)));
    let by = format!("WHERE \"outboxId\" = '{id}'");
    let row = "SELECT status, attempts, \"sesMessageId\", \"requestId\", \"durationMs\" >= 2000, \"sentAt\" > \"createdAt\", \
         \"failedAt\" IS NULL, \"companyId\", \"to\", subject FROM VIEW.email_logs";
    let expected = "SENT|3|0100018c-1|req-1|t|t|t|default|ada@example.net|Hello";
    assert_eq!(rows(&format!("{row} {by}")), expected);
    let row = "SELECT status, attempts, \"processedAt\" IS NOT NULL FROM VIEW.email_outbox";
    assert_eq!(rows(&format!("{row} {by}")), "SENT|3|t");
    let events = format!(
        "SELECT string_agg(metadata ->> 'errorCode', ',' ORDER BY \"createdAt\") FROM VIEW.email_events \
         WHERE \"emailLogId\" = '{id}' AND type = 'RETRY_SCHEDULED'"
    );
    assert_eq!(rows(&events), "SES_THROTTLING,SES_SERVICE_UNAVAILABLE");
    let checks = format!(
        "SELECT metadata -> 'checks' -> 0 ->> 'check' FROM VIEW.email_events WHERE \"emailLogId\" = '{id}' AND type = 'VALIDATED'"
    );
    assert_eq!(rows(&checks), "INTEGRITY");

    // A used-up quota uses no retry, and says that it waits and why.
    ses.serve(SEND_PATH, refused(400, "DailyQuotaExceeded"));
    let (_, answer) = send(&gateway, "req-2", &mail(json!({}))).await?;
    let id = text(&answer, "outboxId").to_owned();
    let held = logged(&gateway, &id, |log| log["status"] == "RETRY_SCHEDULED").await?;
    assert_eq!(
        (text(&held, "errorCode"), &held["attempts"]),
        ("SES_DAILY_QUOTA_EXCEEDED", &json!(1)),
        "{held:#}"
    );
    assert_eq!(said(&held, "RETRY_SCHEDULED", "errorCategory"), ["QUOTA_ERROR"]);
    let list = gateway.get("/v1/emails?status=RETRY_SCHEDULED").await?;
    assert_eq!(column(&list, "data", "outboxId"), [id.as_str()], "{list:#}");
    let status = format!(
        "SELECT l.status, l.attempts, l.\"errorCode\", l.\"errorReason\", o.status, o.\"lastError\" FROM VIEW.email_logs l \
         JOIN VIEW.email_outbox o ON o.\"outboxId\" = l.\"outboxId\" WHERE l.\"outboxId\" = '{id}'"
    );
    assert_eq!(
        rows(&status),
        "RETRY_SCHEDULED|1|SES_DAILY_QUOTA_EXCEEDED|simulated|RETRY_SCHEDULED|simulated"
    );
    ses.serve(SEND_PATH, taken("0100018c-2"));
    // A change of the account tries it at once.
    gateway.patch("/v1/accounts/ses", json!({"secret_access_key": "wJalrXUtnFEMI"})).await?;
    logged(&gateway, &id, |log| log["status"] == "SENT").await?;

    // A call without an answer, a pause and a sender that SES does not know: each says that it waits, and
    // why.
    for (n, reply, code) in [
        (1, SourceReply::Raw(Vec::new()), "NETWORK_ERROR"),
        (2, refused(400, "SendingPausedException"), "SES_ACCOUNT_SENDING_PAUSED"),
        (3, refused(400, "MailFromDomainNotVerifiedException"), "SES_MAIL_FROM_DOMAIN_NOT_VERIFIED"),
    ] {
        ses.serve_in_turn(SEND_PATH, vec![reply, taken(&format!("0100018d-{n}"))]);
        let (_, answer) = send(&gateway, &format!("held-{n}"), &mail(json!({}))).await?;
        let id = text(&answer, "outboxId").to_owned();
        let codes = |log: &Value| said(log, "RETRY_SCHEDULED", "errorCode");
        let held = logged(&gateway, &id, |log| !codes(log).is_empty()).await?;
        assert_eq!(codes(&held)[0], code, "{held:#}");
        gateway.patch("/v1/accounts/ses", json!({"secret_access_key": "wJalrXUtnFEMI"})).await?;
        logged(&gateway, &id, |log| log["status"] == "SENT").await?;
    }

    // What the sandbox took was sent to nobody.
    let captured = json!({"id": "trial", "account": "sandbox", "to": "ada@example.net", "subject": "s", "html": "<p>Hi</p>"});
    gateway.send(captured).await?;
    gateway.wait_for("trial", "captured").await?;
    let row = "SELECT status, \"sentAt\" IS NULL FROM VIEW.email_logs WHERE \"outboxId\" = 'trial'";
    assert_eq!(rows(row), "CAPTURED|t");
    assert_eq!(gateway.get("/v1/emails/trial").await?["status"], "CAPTURED");

    // Refused for good, and after the last retry.
    ses.serve(SEND_PATH, refused(400, "MessageRejected"));
    let (_, answer) = send(&gateway, "req-3", &mail(json!({}))).await?;
    let failed = logged(&gateway, text(&answer, "outboxId"), |log| log["status"] == "FAILED").await?;
    let metadata = &failed["events"][3]["metadata"];
    assert_eq!((text(metadata, "originalCode"), &metadata["willRetry"]), ("MessageRejected", &json!(false)));
    assert_eq!(text(metadata, "errorCategory"), "PERMANENT_ERROR", "{metadata}");
    assert_eq!(
        (text(metadata, "errorCode"), text(metadata, "errorMessage")),
        ("SES_MESSAGE_REJECTED", "simulated"),
        "{metadata}"
    );
    assert_eq!(
        (text(&failed, "errorCode"), text(&failed, "errorReason"), failed["failedAt"].is_string()),
        ("SES_MESSAGE_REJECTED", "simulated", true),
        "{failed:#}"
    );
    let row = format!(
        "SELECT l.status, l.\"errorCode\", l.\"errorReason\", l.\"failedAt\" IS NOT NULL, l.\"sentAt\" IS NULL, o.status, \
         o.\"lastError\" FROM VIEW.email_logs l JOIN VIEW.email_outbox o ON o.\"outboxId\" = l.\"outboxId\" \
         WHERE l.\"outboxId\" = '{}'",
        text(&answer, "outboxId")
    );
    assert_eq!(rows(&row), "FAILED|SES_MESSAGE_REJECTED|simulated|t|t|FAILED|simulated");
    assert_eq!(gateway.get("/v1/emails?sesMessageId=0100018c-2").await?["data"][0]["requestId"], "req-2");
    assert_eq!(column(&gateway.get("/v1/emails?externalId=order-7").await?, "data", "requestId"), ["req-1"]);
    assert_eq!(gateway.get("/v1/emails?externalId=order-8").await?["data"], json!([]));
    Ok(())
}

/// Requirements 25–33, 35–39, 41, 44, 55–57, 63, 64, 67, 68.
#[tokio::test]
async fn a_mail_that_fails_a_check_has_its_code_its_row_and_its_count() -> anyhow::Result<()> {
    let (store, ses) = (PostgresDatabase::create(), HttpSource::start().await);
    let gateway = pipeline(&store, &ses).await?;
    let rows = |sql: &str| store.run(&sql.replace("VIEW.", "postway_views."));
    ses.serve(SEND_PATH, taken("0100018c"));
    let known = json!({"address": "ada@example.net", "name": "Ada", "external_id": "C-1"});
    gateway.post("/v1/recipients", known).await?;
    // Another company's entry of the directory is not this company's.
    gateway.post("/v1/tenants", json!({"id": "other", "name": "Other"})).await?;
    let theirs = json!({"address": "ada@example.net", "name": "Ada", "external_id": "C-1"});
    let request = gateway.request(Method::POST, "/v1/recipients").header("X-Tenant", "other");
    let theirs: Value = request.json(&theirs).send().await?.error_for_status()?.json().await?;
    let none = Value::Null;
    let cases = [
        (json!({"to": 5}), "to", "INVALID_PAYLOAD", "INTEGRITY"),
        (json!({"to": none}), "to", "INVALID_PAYLOAD", "INTEGRITY"),
        (json!({"subject": [1]}), "subject", "INVALID_PAYLOAD", "INTEGRITY"),
        (json!({"subject": none}), "subject", "INVALID_PAYLOAD", "INTEGRITY"),
        (json!({"colour": "red"}), "colour", "INVALID_PAYLOAD", "INTEGRITY"),
        (json!({"recipient": {"nome": "Ada"}}), "recipient", "INVALID_PAYLOAD", "INTEGRITY"),
        (
            json!({"recipient": {"externalId": "C-2", "email": "bob@example.net"}}),
            "recipient.email",
            "INVALID_PAYLOAD",
            "INTEGRITY",
        ),
        (json!({"companyId": "other"}), "companyId", "OUTBOX_NOT_FOUND", "OUTBOX"),
        (json!({"to": "nobody"}), "to", "INVALID_EMAIL", "RECIPIENT"),
        (
            json!({"to": "bob@example.net", "recipient": {"externalId": "C-1"}}),
            "recipient",
            "INVALID_EMAIL",
            "RECIPIENT",
        ),
        (
            json!({"recipient": {"recipientId": "none"}}),
            "recipient.recipientId",
            "RECIPIENT_NOT_FOUND",
            "RECIPIENT",
        ),
        (
            json!({"recipient": {"recipientId": theirs["id"]}}),
            "recipient.recipientId",
            "RECIPIENT_NOT_FOUND",
            "RECIPIENT",
        ),
        (json!({"html": none, "text": "Hi"}), "html", "INVALID_TEMPLATE", "TEMPLATE"),
        (json!({"html": ""}), "html", "INVALID_TEMPLATE", "TEMPLATE"),
        (json!({"subject": "x".repeat(151)}), "subject", "INVALID_TEMPLATE", "TEMPLATE"),
        (json!({"html": "<p onclick='x()'>Hi</p>"}), "html", "INVALID_TEMPLATE", "TEMPLATE"),
    ];
    for (n, (fields, field, code, check)) in cases.iter().enumerate() {
        let (status, answer) = send(&gateway, &format!("bad-{n}"), &mail(fields.clone())).await?;
        let error = &answer["error"];
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{fields} {answer}");
        let fault = &error["details"][0];
        let told = (text(error, "code"), text(fault, "field"), text(fault, "check"));
        assert_eq!(told, (*code, *field, *check), "{fields} {answer}");

        // As a row it is there as soon as it is answered, without what came.
        let list = gateway.get(&format!("/v1/emails?status=VALIDATION_FAILED&requestId=bad-{n}")).await?;
        let log = gateway.get(&format!("/v1/emails/{}", text(&list["data"][0], "outboxId"))).await?;
        assert_eq!((text(&log, "status"), text(&log, "errorCode")), ("VALIDATION_FAILED", *code), "{log:#}");
        assert_eq!(column(&log, "events", "type"), ["RECEIVED", "VALIDATION_FAILED"]);
        assert_eq!(said(&log, "VALIDATION_FAILED", "check"), [*check]);
        let native = gateway.message(text(&log, "outboxId")).await?;
        assert_eq!(text(&native, "status"), "invalid");
    }
    let failed = cases.len();
    let counted = "SELECT count(*), count(\"errorCode\"), count(\"failedAt\") FROM VIEW.email_logs \
         WHERE status = 'VALIDATION_FAILED'";
    assert_eq!(rows(counted), format!("{failed}|{failed}|{failed}"));
    let events = "SELECT count(*) FROM VIEW.email_events WHERE type = 'VALIDATION_FAILED' \
         AND metadata ->> 'check' = 'TEMPLATE' AND metadata ->> 'errorCode' = 'INVALID_TEMPLATE'";
    assert_eq!(rows(events), "4");
    assert!(ses.requests().is_empty(), "none was sent");

    // What is right goes, to whom it is copied too, and names its company if it likes; one who must not be
    // written to ends it.
    let good = json!({"companyId": "default", "cc": "bob@example.net", "bcc": ["cy@example.net"], "recipient": {"externalId": "C-1"}});
    let (status, answer) = send(&gateway, "good", &mail(good)).await?;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let id = text(&answer, "outboxId");
    logged(&gateway, id, |log| log["status"] == "SENT").await?;
    let call: Value = serde_json::from_slice(&ses.requests()[0].body)?;
    let to = json!(["ada@example.net", "bob@example.net", "cy@example.net"]);
    assert_eq!(call["Destination"], json!({"ToAddresses": to}));
    let raw = BASE64_STANDARD.decode(text(&call["Content"]["Raw"], "Data"))?;
    let raw = String::from_utf8_lossy(&raw);
    assert!(raw.contains("bob@example.net") && !raw.contains("cy@example.net"), "bcc stands in no mail");
    let known = gateway.get("/v1/recipients/external:C-1").await?;
    let row = format!("SELECT \"recipientId\" FROM VIEW.email_logs WHERE \"outboxId\" = '{id}'");
    assert_eq!(rows(&row), text(&known, "id"));
    gateway.post("/v1/suppressions", json!({"address": "eve@example.net", "reason": "complaint"})).await?;
    let (_, answer) = send(&gateway, "suppressed", &mail(json!({"to": "eve@example.net"}))).await?;
    logged(&gateway, text(&answer, "outboxId"), |log| log["status"] == "FAILED").await?;

    // "Métricas Recomendadas": each state and each end once, and failures by check.
    let mut expected = vec![
        format!("postway_final_states_total{{state=\"invalid\"}} {failed}"),
        format!("postway_state_transitions_total{{state=\"invalid\"}} {failed}"),
    ];
    for metric in ["postway_final_states_total", "postway_state_transitions_total"] {
        for state in ["suppressed", "sent"] {
            expected.push(format!("{metric}{{state=\"{state}\"}} 1"));
        }
    }
    for check in ["INTEGRITY", "OUTBOX", "RECIPIENT", "TEMPLATE"] {
        let count = cases.iter().filter(|(.., of)| *of == check).count();
        expected
            .push(format!("postway_validation_failures_total{{check=\"{}\"}} {count}", check.to_lowercase()));
    }
    let mut shown = String::new();
    let told = eventually("all metrics", async || {
        shown = gateway.get("/metrics").await?.as_str().unwrap_or_default().to_owned();
        Ok(expected.iter().all(|metric| shown.lines().any(|line| line == metric)).then_some(()))
    });
    assert!(told.await.is_ok(), "{expected:#?}\n{shown}");

    // "Logs Estruturados": six fields on the line of the reception too.
    let log = gateway.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let received: Vec<Value> = lines.filter(|line| line["message"] == "received").collect();
    assert_eq!(received.len(), failed + 2);
    for line in &received {
        assert!(line["uid"].is_string() && line["request_id"].is_string(), "{line}");
        assert_eq!((&line["tenant"], &line["attempt"]), (&json!("default"), &json!(0)), "{line}");
        assert!(
            ["accepted", "invalid"].contains(&text(line, "state")) && line["duration_ms"].is_u64(),
            "{line}"
        );
    }
    assert!(!log.contains("ada@example.net") && !log.contains("bob@example.net"), "no address is in the log");
    Ok(())
}
