//! The outbox: mail out of an application's own database, through crashes, outages and several nodes.

use anyhow::Context;
use postway_e2e::{Gateway, check_history, copies, event_types, eventually, node_env, text};
use postway_testkit::{SmtpSink, TcpProxy, postgres::PostgresDatabase};
use serde_json::json;

const FROM: (&str, &str) = ("POSTWAY_OUTBOX_FROM", "Shop <shop@example.com>");
const ACCOUNT: (&str, &str) = ("POSTWAY_OUTBOX_ACCOUNT", "relay");
const AT_ONCE: (&str, &str) = ("POSTWAY_OUTBOX_BATCH_TIMEOUT", "0");
const ROWS: usize = 20;

/// A source, as variables name it.
fn source(url: &str) -> Vec<(&str, &str)> {
    vec![("POSTWAY_OUTBOX_URL", url), FROM, ACCOUNT, AT_ONCE]
}

async fn installed(gateway: &Gateway, more: &[&str]) -> anyhow::Result<PostgresDatabase> {
    let database = PostgresDatabase::create();
    let url = database.url();
    let args: Vec<&str> = ["outbox", "install", "--database", &url].iter().chain(more).copied().collect();
    let ran = gateway.run(&args, &[], b"").await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    Ok(database)
}

fn insert(database: &PostgresDatabase, rows: usize) {
    database.run(&format!(
        "INSERT INTO postway.outbox (id, \"to\", subject, text) \
         SELECT 'row-' || n, 'r' || n || '@example.net', 'Hello', 'Hi' FROM generate_series(1, {rows}) n"
    ));
}

async fn until(database: &PostgresDatabase, sql: &str, expected: &str) -> anyhow::Result<()> {
    eventually(&format!("{sql} to be {expected}"), async || Ok((database.run(sql) == expected).then_some(())))
        .await
}

const STATUSES: &str = "SELECT string_agg(DISTINCT status, ',' ORDER BY status) FROM postway.outbox";

#[tokio::test]
async fn a_named_source_is_installed_served_and_told_about() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::idle()?;
    let database = installed(&gateway, &[]).await?;
    let printed =
        gateway.run(&["outbox", "install", "--database", "postgres://h/d", "--print"], &[], b"").await?;
    assert!(printed.out.contains("CREATE TABLE IF NOT EXISTS \"postway\".outbox"), "{printed:?}");
    let config = format!(
        "[outbox.shop]\nurl = '{}'\nfrom = 'shop@example.com'\naccount = 'relay'\nbatch_timeout = '50ms'\n",
        database.url()
    );
    std::fs::write(gateway.folder().join("postway.toml"), config)?;
    gateway.launch(&[]).await?;
    gateway.relay_to(sink.port()).await?;
    insert(&database, 3);
    database
        .run("INSERT INTO postway.outbox (id, \"to\", template) VALUES ('lost', 'a@example.net', 'none')");
    until(&database, STATUSES, "invalid,sent").await?;
    assert_eq!(sink.mails().len(), 3);
    let row = database
        .run("SELECT sent_at IS NOT NULL, accepted_at IS NOT NULL FROM postway.outbox WHERE id = 'row-1'");
    assert_eq!(row, "t|t");
    let error = database.run("SELECT error FROM postway.outbox_status WHERE id = 'lost'");
    assert!(error.contains("template.name: there is no template none"), "{error}");
    let message = gateway.message("outbox:shop:row-1").await?;
    assert_eq!(event_types(&message), ["accepted", "validated", "ready", "sending", "sent"]);

    let status = gateway.cli(&["outbox", "status"]).await?;
    assert!(
        status.code == Some(0) && status.out.contains("shop") && status.out.contains("serving"),
        "{status:?}"
    );
    let metrics = String::from_utf8(gateway.bytes("/metrics").await?.2)?;
    assert!(
        metrics.contains("postway_outbox_rows_total{source=\"shop\",outcome=\"accepted\"} 3"),
        "{metrics}"
    );
    assert!(metrics.contains("postway_outbox_batch_rows_bucket{source=\"shop\""), "{metrics}");
    Ok(())
}

/// Dies at a failpoint with rows in hand, starts again, and makes one message of each row.
async fn crash_at(point: &str) -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let database = installed(&gateway, &[]).await?;
    assert!(gateway.terminate().await?.success());
    insert(&database, ROWS);
    let url = database.url();
    let mut env = source(&url);
    let failpoint = format!("{point}=1*return");
    env.push(("FAILPOINTS", &failpoint));
    // It may die before it can say that it listens.
    match gateway.launch(&env).await {
        Ok(()) => assert!(!gateway.ended().await?.success(), "{point} was not met"),
        Err(error) => assert!(error.to_string().contains("SIGABRT"), "{error}"),
    }
    gateway.launch(&source(&url)).await?;
    until(&database, STATUSES, "sent").await?;
    let uids = database.run("SELECT message_uid FROM postway.outbox");
    assert_eq!(uids.lines().count(), ROWS, "{point}");
    for uid in uids.lines() {
        // One that was on the wire in that moment is in doubt, and may come twice.
        check_history(&gateway.message(uid).await?, copies(&sink, uid)).context(point.to_owned())?;
    }
    assert_eq!(
        gateway.get("/v1/stats").await?["by_status"]["sent"],
        ROWS,
        "{point}: a row became two messages"
    );
    Ok(())
}

#[tokio::test]
async fn a_crash_between_accepting_and_marking_sends_nothing_twice() -> anyhow::Result<()> {
    crash_at("outbox_after_accept").await
}

#[tokio::test]
async fn a_crash_before_writing_back_loses_no_outcome() -> anyhow::Result<()> {
    crash_at("outbox_before_write_back").await
}

#[tokio::test]
async fn a_source_that_goes_away_is_drained_when_it_is_back() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::idle()?;
    let database = installed(&gateway, &[]).await?;
    let cable = TcpProxy::to(&database.url()).await;
    let url = cable.url().replace("postway@", "postway:hunter2@");
    gateway.launch(&source(&url)).await?;
    gateway.relay_to(sink.port()).await?;
    insert(&database, 1);
    until(&database, STATUSES, "sent").await?;
    cable.cut();
    gateway.wait_for_log("the outbox is not served now", 1).await?;
    database.run("INSERT INTO postway.outbox (\"to\", subject, text) SELECT 'a@example.net', 's', 't' FROM generate_series(1, 9)");
    // A moment after it was logged.
    let status = eventually("the outbox to be away", async || {
        let status = gateway.get("/v1/outbox").await?;
        Ok((text(&status["data"][0], "status") == "away").then_some(status))
    })
    .await?;
    cable.mend();
    until(&database, STATUSES, "sent").await?;
    assert_eq!(sink.mails().len(), 10);
    assert!(!gateway.log().contains("hunter2") && !status.to_string().contains("hunter2"));
    Ok(())
}

#[tokio::test]
async fn another_node_takes_a_source_over_when_its_own_dies() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let store = PostgresDatabase::create();
    let store_url = store.url();
    let idle = Gateway::idle()?;
    let database = installed(&idle, &[]).await?;
    let url = database.url();
    let env = |name| node_env(&store_url, name).into_iter().chain(source(&url)).collect::<Vec<_>>();
    let mut first = Gateway::start_with(&env("first.example")).await?;
    first.relay_to(sink.port()).await?;
    first.wait_for_log("the outbox is served", 1).await?;
    let second = Gateway::start_with(&env("second.example")).await?;
    let elsewhere = second.get("/v1/outbox").await?;
    assert_ne!(text(&elsewhere["data"][0], "status"), "serving", "{elsewhere}");
    insert(&database, ROWS);
    first.kill().await?;
    until(&database, "SELECT count(*) FROM postway.outbox WHERE status = 'sent'", &ROWS.to_string()).await?;
    let uids = database.run("SELECT DISTINCT message_uid FROM postway.outbox");
    assert_eq!(uids.lines().count(), ROWS);
    Ok(())
}

#[tokio::test]
async fn a_new_account_is_activated_by_the_mail_it_gets() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::idle()?;
    let database = installed(&gateway, &["--preset", "accounts"]).await?;
    let url = database.url();
    let mut env = source(&url);
    env.extend([
        ("POSTWAY_OUTBOX_KIND", "accounts"),
        ("POSTWAY_OUTBOX_LINK_BASE_URL", "https://app.example.com"),
    ]);
    gateway.launch(&env).await?;
    gateway.relay_to(sink.port()).await?;
    database.run("INSERT INTO accounts (email, login) VALUES ('ada@example.net', 'ada')");
    until(&database, "SELECT state || ' ' || mail_status FROM tokens", "mailed sent").await?;
    let mail = sink.mails().pop().context("no mail came")?;
    let parsed = mail_parser::MessageParser::default().parse(&mail.raw).context("it is no mail")?;
    let words = parsed.body_text(0).context("it has no text")?;
    let after = |mark: &str| {
        let rest = words.split(mark).nth(1)?;
        rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
            .find(|word| !word.is_empty())
    };
    let token = after("/activate?token=").context("the mail has no link")?;
    let code = after("this code:").context("the mail has no code")?;

    let verify = async |code: &str, consume: bool| {
        let body = json!({"token": token, "path": "/activate", "code": code, "consume": consume});
        gateway.post("/v1/tokens/verify", body).await
    };
    let wrong = if code == "00000" { "00001" } else { "00000" };
    assert_eq!(verify(wrong, true).await?, json!({"valid": false, "reason": "code"}));
    let good = json!({"valid": true, "action": "activation", "account": 1, "login": "ada", "consumed": true});
    assert_eq!(verify(code, true).await?, good);
    assert_eq!(database.run("SELECT status FROM accounts"), "active");
    assert_eq!(verify(code, true).await?, json!({"valid": false, "reason": "consumed"}));
    assert!(!gateway.log().contains(token) && !gateway.log().contains("ada@example.net"));
    Ok(())
}
