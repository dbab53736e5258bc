//! 001: a SQLite file with tenants, accounts and messages.

use std::time::Duration;

use anyhow::ensure;
use postway_e2e::{Gateway, column, eventually, text};
use postway_testkit::{SmtpSink, postgres::PostgresDatabase};
use serde_json::{Value, json};

use super::{count, moving, moving_with, sqlite, stays, wrong};

/// The tables, as the old system has them; in words that SQLite and PostgreSQL know.
const SCHEMA: &str = "
CREATE TABLE tenants (id TEXT PRIMARY KEY, name TEXT, client_auth TEXT, client_base_url TEXT, client_sync_path TEXT,
    client_attachment_path TEXT, rate_limits TEXT, active INTEGER DEFAULT 1, suspended_batches TEXT);
CREATE TABLE accounts (id TEXT PRIMARY KEY, tenant_id TEXT, host TEXT NOT NULL, port INTEGER NOT NULL, \"user\" TEXT,
    password TEXT, ttl INTEGER, limit_per_minute INTEGER, limit_per_hour INTEGER, limit_per_day INTEGER,
    limit_behavior TEXT, use_tls INTEGER, batch_size INTEGER, is_pec_account INTEGER DEFAULT 0, imap_host TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY, account_id TEXT, priority INTEGER NOT NULL DEFAULT 2, payload TEXT NOT NULL,
    batch_code TEXT, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    deferred_ts INTEGER, sent_ts INTEGER, error_ts INTEGER, error TEXT, reported_ts INTEGER, bounce_type TEXT,
    bounce_code TEXT, bounce_reason TEXT, bounce_ts TIMESTAMP, bounce_reported_ts INTEGER, pec_rda_ts TIMESTAMP,
    pec_rdc_ts TIMESTAMP, pec_error TEXT, pec_error_ts TIMESTAMP);
";
/// In some days, so that it waits.
async fn later(gateway: &Gateway) -> anyhow::Result<i64> {
    Ok(gateway.now().await?.as_second() + 10 * 86_400)
}

fn filled(port: u16, later: i64) -> String {
    let payload = |to: &str| {
        json!({"from": "shop@example.com", "to": to, "subject": "Hello", "body": "Hi"}).to_string()
    };
    let html = json!({"from": "shop@example.com", "to": ["cy@example.net"], "cc": "dee@example.net", "subject": "it''s",
        "body": "<p>Hi</p>", "content_type": "html", "headers": {"X-Shop": "1"},
        "attachments": [{"filename": "a.txt", "storage_path": "base64:aGk=", "fetch_mode": "base64"}]});
    let auth = json!({"method": "bearer", "token": "very-secret-token"});
    format!(
        "{SCHEMA}
        INSERT INTO tenants (id, name, client_base_url, client_auth) VALUES
            ('acme', 'Acme', 'https://acme.example', '{auth}');
        INSERT INTO tenants (id, name, active, suspended_batches) VALUES ('beta', 'Beta', 1, 'spring');
        INSERT INTO tenants (id, active) VALUES ('gone', 0);
        INSERT INTO accounts (id, tenant_id, host, port, use_tls) VALUES
            ('acme-smtp', 'acme', '127.0.0.1', {port}, 0), ('beta-smtp', 'beta', '127.0.0.1', {port}, 0);
        INSERT INTO accounts (id, tenant_id, host, port, \"user\", password, use_tls, limit_per_hour, limit_behavior) VALUES
            ('gone-smtp', 'gone', '127.0.0.1', {port}, 'u', 'very-secret-password', 0, 100, 'defer');
        INSERT INTO messages (id, account_id, priority, payload) VALUES
            ('m-1', 'acme-smtp', 0, '{ada}'), ('m-2', 'acme-smtp', 3, '{html}'), ('m-9', 'gone-smtp', 2, '{ada}');
        INSERT INTO messages (id, account_id, priority, payload, batch_code) VALUES ('m-3', 'beta-smtp', 2, '{bob}', 'spring');
        INSERT INTO messages (id, account_id, priority, payload, deferred_ts) VALUES ('m-4', 'beta-smtp', 1, '{bob}', {later});
        INSERT INTO messages (id, account_id, payload, sent_ts, reported_ts, bounce_type) VALUES
            ('s-1', 'acme-smtp', '{ada}', 5, 6, NULL), ('s-2', 'acme-smtp', '{bob}', 5, 6, 'hard'),
            ('s-3', 'acme-smtp', '{ada}', 5, NULL, NULL);
        INSERT INTO messages (id, account_id, payload, error_ts, reported_ts) VALUES ('f-1', 'acme-smtp', '{ada}', 5, 6);
        ",
        ada = payload("ada@example.net"),
        bob = payload("Bob <bob@example.net>"),
    )
}

async fn of_tenant(gateway: &Gateway, tenant: &str, path: &str) -> anyhow::Result<Value> {
    let answer = gateway.request(reqwest::Method::GET, path).header("X-Tenant", tenant).send().await?;
    ensure!(answer.status().is_success(), "{path}: {}", answer.status());
    Ok(serde_json::from_str(&answer.text().await?)?)
}

/// Check, import, import again, on whatever database the old system had.
async fn a_proxy_moves(gateway: &Gateway, sink: &SmtpSink, url: &str) -> anyhow::Result<()> {
    let source = ["--database", url, "--suppress-hard-bounces"];
    let check: Vec<&str> = ["check", "001"].into_iter().chain(source).collect();
    let (code, report) = moving(gateway, &check).await?;
    assert_eq!((code, &report["imported"]), (Some(0), &json!(false)), "{report:#}");
    let expected = json!({"tenants": 3, "suspended_tenants": 1, "accounts": 3, "suspended_batches": 1,
        "suppressed_addresses": 1, "waiting_messages": 5});
    assert_eq!(report["carried"], expected, "{report:#}");
    assert_eq!((stays(&report, "sent"), stays(&report, "failed")), (2, 1), "{report:#}");
    assert_eq!(stays(&report, "ended and not reported"), 1, "{report:#}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("tenant acme: its default account becomes acme-smtp"), "{notes}");
    assert!(notes.contains("ttl"), "{notes}");
    // A rehearsal leaves no trace.
    assert_eq!(column(&gateway.get("/v1/tenants").await?, "data", "id"), ["default"]);
    let import: Vec<&str> = ["import", "001"].into_iter().chain(source).collect();
    let (code, report) = moving(gateway, &import).await?;
    assert_eq!((code, &report["imported"]), (Some(0), &json!(true)), "{report:#}");
    assert_eq!(report["carried"], expected, "{report:#}");
    assert!(!report.to_string().contains("very-secret"), "{report:#}");
    let mails = sink.wait_for(2, Duration::from_secs(60)).await;
    let second = mails.iter().find(|mail| mail.header("X-Shop").is_some());
    assert_eq!(second.and_then(|mail| mail.header("Subject")).as_deref(), Some("it's"));
    let sent = of_tenant(gateway, "acme", "/v1/messages/m-2").await?;
    assert_eq!((text(&sent, "account"), &sent["priority"]), ("acme-smtp", &json!(3)), "{sent:#}");

    // What was held is held, and what was deferred waits for its time.
    let held = of_tenant(gateway, "beta", "/v1/messages/m-3").await?;
    assert_eq!((text(&held, "status"), text(&held, "batch")), ("ready", "spring"), "{held:#}");
    let later = of_tenant(gateway, "beta", "/v1/messages/m-4").await?;
    assert_eq!(text(&later, "status"), "scheduled", "{later:#}");
    assert_eq!(of_tenant(gateway, "gone", "/v1/tenant").await?["suspended"], true);
    assert_eq!(count(gateway, "gone", "ready").await?, 1);
    let acme = gateway.get("/v1/tenants/acme").await?;
    assert_eq!(text(&acme, "default_account"), "acme-smtp", "{acme:#}");
    assert_eq!(acme["client_sync"]["url"], "https://acme.example", "{acme:#}");
    let limits = of_tenant(gateway, "gone", "/v1/accounts/gone-smtp").await?;
    assert_eq!(
        (&limits["limits"]["per_hour"], &limits["password_set"]),
        (&json!(100), &json!(true)),
        "{limits:#}"
    );
    of_tenant(gateway, "acme", "/v1/suppressions/bob@example.net").await?;

    // Once more changes nothing.
    let (code, report) = moving(gateway, &import).await?;
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(
        report["already_here"],
        json!({"tenants": 3, "accounts": 3, "waiting_messages": 5}),
        "{report:#}"
    );
    assert_eq!(report["carried"]["waiting_messages"], Value::Null, "{report:#}");
    assert_eq!(sink.mails().len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_proxy_on_sqlite_moves() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_untouched(&[]).await?;
    let file = gateway.folder().join("mail.db");
    sqlite(&file, &filled(sink.port(), later(&gateway).await?))?;
    a_proxy_moves(&gateway, &sink, &format!("sqlite://{}", file.display())).await
}

#[tokio::test]
async fn a_proxy_on_postgresql_moves() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_untouched(&[]).await?;
    let old = PostgresDatabase::create();
    old.run(&filled(sink.port(), later(&gateway).await?));
    a_proxy_moves(&gateway, &sink, &old.url()).await
}

#[tokio::test]
async fn wrong_rows_are_listed_and_nothing_is_half_imported() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_untouched(&[]).await?;
    let file = gateway.folder().join("mail.db");
    let unknown =
        json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "body": "b", "colour": "red"});
    let lost = json!({"from": "no address", "to": "b@example.net", "subject": "s", "body": "b"});
    sqlite(
        &file,
        &format!(
            "{}
            INSERT INTO accounts (id, tenant_id, host, port, \"user\", password) VALUES
                ('sealed', 'acme', 'h.example', 25, 'u', 'ENC:x'), ('lost', 'nobody', 'h.example', 25, NULL, NULL),
                ('bad port', 'acme', 'h.example', 99999, NULL, NULL);
            INSERT INTO messages (id, account_id, priority, payload) VALUES
                ('w-1', 'acme-smtp', 2, '{{'), ('w-2', 'acme-smtp', 'high', '{{}}'), ('w-3', 'acme-smtp', 2, '{unknown}'),
                ('w-4', 'acme-smtp', 9, '{lost}'), ('w 5', 'acme-smtp', 2, '{good}'), ('w-6', 'none', 2, '{good}'),
                ('w-7', 'acme-smtp', 2, X'fffe');
            ",
            filled(sink.port(), later(&gateway).await?),
            good = json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "body": "b"}),
        ),
    )?;
    let url = format!("sqlite://{}", file.display());
    let (code, report) = moving(&gateway, &["import", "001", "--database", &url]).await?;
    assert_eq!((code, &report["imported"]), (Some(1), &json!(false)), "{report:#}");
    let found = wrong(&report);
    for (table, key, field) in [
        ("accounts", "sealed", "password"),
        ("accounts", "lost", "tenant_id"),
        ("accounts", "bad port", "id"),
        ("accounts", "bad port", "port"),
        ("messages", "w-1", "payload"),
        ("messages", "w-2", "priority"),
        ("messages", "w-3", "colour"),
        ("messages", "w-4", "from"),
        ("messages", "w-4", "priority"),
        ("messages", "w 5", "id"),
        ("messages", "w-6", "account_id"),
        ("messages", "w-7", "payload"),
    ] {
        let wanted = (table.to_owned(), key.to_owned(), field.to_owned());
        assert!(found.contains(&wanted), "{wanted:?} is not in {report:#}");
    }
    assert_eq!(column(&gateway.get("/v1/tenants").await?, "data", "id"), ["default"], "nothing was made");

    let (code, report) = moving(&gateway, &["import", "001", "--database", &url, "--skip-wrong"]).await?;
    assert_eq!((code, &report["carried"]["waiting_messages"]), (Some(0), &json!(5)), "{report:#}");
    sink.wait_for(2, Duration::from_secs(60)).await;
    Ok(())
}

#[tokio::test]
async fn an_import_that_is_killed_is_run_again() -> anyhow::Result<()> {
    let gateway = Gateway::start_untouched(&[]).await?;
    let file = gateway.folder().join("mail.db");
    let payload = json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "body": "b"});
    let later = later(&gateway).await?;
    sqlite(
        &file,
        &format!(
            "{SCHEMA}
            INSERT INTO accounts (id, host, port, use_tls) VALUES ('relay', '127.0.0.1', 9, 0);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1700)
            INSERT INTO messages (id, account_id, payload, deferred_ts) SELECT 'm-' || i, 'relay', '{payload}', {later} FROM n;
            "
        ),
    )?;
    let import = ["import", "001", "--database", &format!("sqlite://{}", file.display())];
    let (code, _) = moving_with(&gateway, &import, "moving_page=1*off->1*return").await?;
    assert_eq!(code, None, "it died");
    let before = count(&gateway, "default", "scheduled").await?;
    assert!((500..1_700).contains(&before), "{before}");
    let (code, report) = moving(&gateway, &import).await?;
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(report["already_here"], json!({"accounts": 1, "waiting_messages": before}), "{report:#}");
    assert_eq!(report["carried"], json!({"waiting_messages": 1_700 - before}), "{report:#}");
    eventually("all to wait", async || {
        Ok((count(&gateway, "default", "scheduled").await? == 1_700).then_some(()))
    })
    .await
}
