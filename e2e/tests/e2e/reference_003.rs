//! Reference 003, account and token mails in PostgreSQL, from the top of its document to the end, on the real
//! binary.
//!
//! Shown elsewhere: the preset on an empty database, the link and `POST /v1/tokens/verify` (`outbox.rs`); the
//! triggers one by one, tokens that wait, end and expire, wrong codes, crashes, late commits, two collectors
//! and lost connections (`crates/intake/tests/outbox`).
//!
//! Each requirement under its number, with the tests that show it here and elsewhere: `requirements/003.md`.

use anyhow::Context;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_e2e::{Gateway, PATIENCE, eventually};
use postway_testkit::{SmtpSink, postgres::PostgresDatabase};
use serde_json::json;

/// Its tables as its document makes them: 32-bit times, secrets and codes by default, one cursor. Three
/// tokens are mailed.
const TABLES: &str = "
CREATE EXTENSION IF NOT EXISTS pgcrypto;
CREATE TYPE account_status AS ENUM ('provisioned', 'active', 'suspended');
CREATE TABLE accounts (
    id BIGSERIAL PRIMARY KEY, email VARCHAR(254) UNIQUE NOT NULL, status account_status DEFAULT 'provisioned' NOT NULL,
    login VARCHAR(254) UNIQUE NOT NULL, created_at INTEGER DEFAULT EXTRACT(EPOCH FROM NOW()) NOT NULL,
    status_changed_at INTEGER, activated_at INTEGER, suspended_at INTEGER, unsuspended_at INTEGER);
CREATE TYPE token_action AS ENUM ('activation', 'password_recovery');
CREATE TABLE tokens (
    id BIGSERIAL PRIMARY KEY, action token_action NOT NULL, secret BYTEA DEFAULT gen_random_bytes(32) UNIQUE NOT NULL,
    code VARCHAR(5) DEFAULT LPAD(TO_CHAR(RANDOM() * 100000, 'FM00000'), 5, '0'), account BIGINT NOT NULL,
    expires_at INTEGER DEFAULT EXTRACT(EPOCH FROM NOW() + INTERVAL '15 minute') NOT NULL, consumed_at INTEGER,
    created_at INTEGER DEFAULT EXTRACT(EPOCH FROM NOW()) NOT NULL,
    FOREIGN KEY (account) REFERENCES accounts (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
CREATE TYPE job_type AS ENUM ('mailroom');
CREATE TABLE jobs (job_type job_type PRIMARY KEY, last_seq BIGINT);
INSERT INTO jobs (last_seq, job_type) VALUES (1, 'mailroom');
INSERT INTO accounts (email, login) VALUES ('old@example.net', 'old');
INSERT INTO tokens (account, action) VALUES (1, 'activation');
";

async fn until(database: &PostgresDatabase, sql: &str, expected: &str) -> anyhow::Result<()> {
    eventually(&format!("{sql} to be {expected}"), async || Ok((database.run(sql) == expected).then_some(())))
        .await
}

/// A gateway that serves the tables of this database, and the sink that its mail goes to.
async fn serving(database: &PostgresDatabase, install: &[&str]) -> anyhow::Result<(Gateway, SmtpSink)> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::idle()?;
    let url = database.url();
    let args = [&["outbox", "install", "--database", &url, "--preset", "accounts"], install].concat();
    for _ in 0..2 {
        let ran = gateway.run(&args, &[], b"").await?;
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    gateway
        .launch(&[
            ("POSTWAY_OUTBOX_URL", &url),
            ("POSTWAY_OUTBOX_FROM", "App <app@example.com>"),
            ("POSTWAY_OUTBOX_ACCOUNT", "relay"),
            ("POSTWAY_OUTBOX_BATCH_TIMEOUT", "0"),
            ("POSTWAY_OUTBOX_KIND", "accounts"),
            ("POSTWAY_OUTBOX_LINK_BASE_URL", "https://app.example.com"),
        ])
        .await?;
    gateway.relay_to(sink.port()).await?;
    let text =
        "action={{ action }} login={{ login }} secret={{ secret }} code={{ code }} link={{ link }} end";
    for name in ["activation", "password_recovery"] {
        let template = json!({"name": name, "subject": "{{ email }}", "text": text});
        gateway.post("/v1/templates", template).await?;
    }
    Ok((gateway, sink))
}

/// The text of the n-th mail, once it has come, and what stands in it behind a name.
async fn mail(sink: &SmtpSink, count: usize) -> anyhow::Result<impl Fn(&str) -> String + use<>> {
    let mails = sink.wait_for(count, PATIENCE).await;
    assert_eq!(mails.len(), count, "each token is mailed once");
    let parsed = mail_parser::MessageParser::default().parse(&mails[count - 1].raw).context("no mail")?;
    let words: Vec<String> =
        parsed.body_text(0).context("no text")?.split_whitespace().map(str::to_owned).collect();
    Ok(move |name: &str| {
        let found = words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_default().to_owned()
    })
}

/// Requirements 1–3, 5–7, 9–11, 19, 23, 24, 31, 45.
#[tokio::test]
async fn an_application_goes_on_over_its_own_tables_and_finds_tokens_by_secret_and_code() -> anyhow::Result<()>
{
    let database = PostgresDatabase::create();
    database.run(TABLES);
    let (_gateway, sink) = serving(&database, &["--keep-secrets"]).await?;
    assert_eq!(database.run("SELECT * FROM jobs"), "mailroom|1", "the token behind the cursor was mailed");

    // "Create a new account", and the records that the document shows of it.
    database.run("INSERT INTO accounts (email, login) VALUES ('user@example.com', 'user123')");
    assert_eq!(
        database
            .run("SELECT status, status_changed_at IS NULL, activated_at IS NULL FROM accounts WHERE id = 2"),
        "provisioned|t|t"
    );
    let token = "SELECT id, action, length(secret), code ~ '^[0-9]{5}$', expires_at - created_at, consumed_at IS NULL \
         FROM tokens WHERE account = 2";
    assert_eq!(database.run(token), "2|activation|32|t|900|t");

    // "Output example": action, email, login, secret and code, as they are in the row.
    let said = mail(&sink, 1).await?;
    until(&database, "SELECT state FROM tokens WHERE id = 2", "mailed").await?;
    let row = database.run("SELECT encode(secret, 'hex'), code FROM tokens WHERE account = 2");
    assert_eq!(format!("{}|{}", said("secret"), said("code")), row);
    assert_eq!((said("action").as_str(), said("login").as_str()), ("activation", "user123"));

    // "Consume the activation token", by what its user brings.
    let consume = format!(
        "UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE secret = '\\x{}' AND code = '{}' RETURNING id",
        said("secret"),
        said("code")
    );
    assert_eq!(database.run(&consume), "2");
    assert_eq!(
        database.run("SELECT status, activated_at IS NOT NULL FROM accounts WHERE id = 2"),
        "active|t"
    );
    assert_eq!(database.run("SELECT secret IS NULL, code IS NULL FROM tokens WHERE id = 2"), "t|t");
    assert_eq!(database.run(&consume), "", "once");

    // "Suspend the account", "Unsuspend the account".
    let status = |to: &str| {
        database.run(&format!("UPDATE accounts SET status = '{to}' WHERE id = 2"));
        database.run(
            "SELECT status, suspended_at IS NOT NULL, unsuspended_at IS NOT NULL FROM accounts WHERE id = 2",
        )
    };
    assert_eq!(status("suspended"), "suspended|t|f");
    assert_eq!(status("active"), "active|f|t");

    // "Retrieving pending jobs": recovery is for active accounts.
    database.run(
        "INSERT INTO tokens (account, action) VALUES (2, 'password_recovery'), (1, 'password_recovery')",
    );
    let said = mail(&sink, 2).await?;
    assert_eq!((said("action").as_str(), said("login").as_str()), ("password_recovery", "user123"));
    until(&database, "SELECT string_agg(state, ' ' ORDER BY id) FROM tokens WHERE id > 2", "mailed issued")
        .await?;

    // "Dequeueing and advancing the cursor": moved back, it mails what is live after it once more, as it was.
    assert_eq!(database.run("SELECT last_seq FROM jobs WHERE job_type = 'mailroom'"), "3");
    database.run("UPDATE jobs SET last_seq = 2 WHERE job_type = 'mailroom'");
    let again = mail(&sink, 3).await?;
    assert_eq!((again("secret"), again("code")), (said("secret"), said("code")));
    until(&database, "SELECT last_seq FROM jobs", "3").await?;
    // Moved on, it passes over what was not mailed.
    database.run("UPDATE jobs SET last_seq = 4");
    assert_eq!(database.run("SELECT state, mail_status FROM tokens WHERE id = 4"), "mailed|skipped");
    Ok(())
}

/// Requirement 6.
#[tokio::test]
async fn without_kept_secrets_a_token_is_found_by_the_secret_of_its_link() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let (_gateway, sink) = serving(&database, &[]).await?;
    assert_eq!(database.run("SELECT * FROM jobs"), "mailroom|0", "\"Inspect the initial state\"");
    database.run("INSERT INTO accounts (email, login) VALUES ('user@example.com', 'user123')");
    let said = mail(&sink, 1).await?;
    until(&database, "SELECT state || ' ' || mail_status FROM tokens", "mailed sent").await?;
    assert_eq!(database.run("SELECT secret IS NULL, code IS NULL FROM tokens"), "t|t");
    let link = said("link");
    let token = link.strip_prefix("https://app.example.com/activate?token=").context("no link")?;
    let token = BASE64_URL_SAFE_NO_PAD.decode(token)?;
    let secret: String = token[..32].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(secret, said("secret"));
    let find = |secret: &str| database.run(&format!("SELECT id FROM postway.token_by_secret('\\x{secret}')"));
    assert_eq!((find(&secret), find("00")), ("1".to_owned(), String::new()));

    // Sent again it is another mail with another secret, and the link that is out ends.
    database.run("UPDATE jobs SET last_seq = 0");
    let again = mail(&sink, 2).await?;
    until(&database, "SELECT state FROM tokens", "mailed").await?;
    assert_eq!((find(&secret), find(&again("secret"))), (String::new(), "1".to_owned()));

    // An account that is suspended while its user activates it is active once it is released.
    database.run("UPDATE accounts SET status = 'suspended'");
    let consume = "UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE id IN (SELECT id FROM postway.token_by_secret";
    assert_eq!(database.run(&format!("{consume}('\\x{}')) RETURNING state", again("secret"))), "consumed");
    assert_eq!(database.run("SELECT status FROM accounts"), "suspended");
    assert_eq!(database.run("UPDATE accounts SET status = 'active' RETURNING status"), "active");
    assert_eq!(find(&again("secret")), "", "a token that has ended is not found");
    Ok(())
}
