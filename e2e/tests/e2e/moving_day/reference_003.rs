//! 003: accounts, tokens and the cursor in PostgreSQL, which are taken over where they are.

use postway_e2e::Gateway;
use postway_testkit::postgres::PostgresDatabase;
use serde_json::json;

use super::{stays, wrong};

const SCHEMA: &str = "
CREATE EXTENSION IF NOT EXISTS pgcrypto;
CREATE TYPE account_status AS ENUM ('provisioned', 'active', 'suspended');
CREATE TABLE accounts (id BIGSERIAL PRIMARY KEY, email VARCHAR(254) UNIQUE NOT NULL,
    status account_status DEFAULT 'provisioned' NOT NULL, login VARCHAR(254) UNIQUE NOT NULL,
    created_at INTEGER DEFAULT EXTRACT(EPOCH FROM NOW()) NOT NULL, status_changed_at INTEGER, activated_at INTEGER,
    suspended_at INTEGER, unsuspended_at INTEGER);
CREATE TYPE token_action AS ENUM ('activation', 'password_recovery');
CREATE TABLE tokens (id BIGSERIAL PRIMARY KEY, action token_action NOT NULL,
    secret BYTEA DEFAULT gen_random_bytes(32) UNIQUE NOT NULL,
    code VARCHAR(5) DEFAULT LPAD(TO_CHAR(RANDOM() * 100000, 'FM00000'), 5, '0'), account BIGINT NOT NULL,
    expires_at INTEGER DEFAULT EXTRACT(EPOCH FROM NOW() + INTERVAL '15 minute') NOT NULL, consumed_at INTEGER,
    created_at INTEGER DEFAULT EXTRACT(EPOCH FROM NOW()) NOT NULL,
    FOREIGN KEY (account) REFERENCES accounts (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
CREATE TYPE job_type AS ENUM ('mailroom');
CREATE TABLE jobs (job_type job_type PRIMARY KEY, last_seq BIGINT);
INSERT INTO jobs (last_seq, job_type) VALUES (1, 'mailroom');
";

#[tokio::test]
async fn accounts_and_tokens_are_counted_and_taken_over() -> anyhow::Result<()> {
    let gateway = Gateway::idle()?;
    let run = async |args: &[&str]| {
        // No server is needed for tables that stay where they are.
        let args: Vec<&str> = ["--json", "moving"].iter().chain(args).copied().collect();
        let ran = gateway.run(&args, &[], b"").await?;
        anyhow::Ok((
            ran.code,
            serde_json::from_str::<serde_json::Value>(&ran.out).unwrap_or_else(|_| json!(ran.err)),
        ))
    };
    let old = PostgresDatabase::create();
    let url = old.url();
    let (code, report) = run(&["check", "003", "--database", &url]).await?;
    let tables: Vec<String> = wrong(&report).into_iter().map(|(table, ..)| table).collect();
    assert_eq!((code, tables.join(" ")), (Some(1), "accounts tokens jobs".to_owned()), "{report:#}");
    old.run(&format!(
        "{SCHEMA}
        INSERT INTO accounts (email, login, status) VALUES ('a@example.net', 'a', 'provisioned'),
            ('b@example.net', 'b', 'active'), ('c@example.net', 'c', 'suspended'), ('broken', 'd', 'provisioned');
        INSERT INTO tokens (account, action) VALUES (1, 'activation'), (1, 'activation'), (2, 'password_recovery'),
            (3, 'password_recovery');
        INSERT INTO tokens (account, action, expires_at) VALUES (2, 'password_recovery', 5);
        INSERT INTO tokens (account, action, consumed_at) VALUES (2, 'activation', 5);
        INSERT INTO tokens (account, action) VALUES (4, 'activation');"
    ));
    let (code, report) = run(&["check", "003", "--database", &url]).await?;
    assert_eq!((code, &report["carried"]), (Some(1), &json!({"waiting_tokens": 2})), "{report:#}");
    assert_eq!(wrong(&report), [("accounts".to_owned(), "4".to_owned(), "email".to_owned())], "{report:#}");
    for (what, count) in [("mailed", 1), ("held", 1), ("expired", 1), ("consumed", 1), ("provisioned", 2)] {
        assert_eq!(stays(&report, what), count, "{what}: {report:#}");
    }
    let (code, _) = run(&["import", "003", "--database", &url]).await?;
    assert_eq!((code, old.run("SELECT to_regclass('postway.outbox') IS NULL").as_str()), (Some(1), "t"));

    old.run("UPDATE accounts SET email = 'd@example.net' WHERE id = 4");
    let (code, report) = run(&["import", "003", "--database", &url]).await?;
    assert_eq!((code, &report["imported"]), (Some(0), &json!(true)), "{report:#}");
    assert_eq!(old.run("SELECT to_regclass('postway.outbox') IS NOT NULL"), "t");
    assert_eq!(old.run("SELECT count(*) FROM tokens WHERE state = 'mailed'"), "1");
    let (code, report) = run(&["import", "003", "--database", &url]).await?;
    assert_eq!(code, Some(0), "{report:#}");

    // What an application was promised to find in its rows is not taken away by running it once more.
    let keeps = "SELECT count(*) FROM pg_trigger WHERE tgname = 'postway_token_keeps'";
    assert_eq!(old.run(keeps), "0");
    let (code, report) = run(&["import", "003", "--database", &url, "--keep-secrets"]).await?;
    assert_eq!((code, old.run(keeps).as_str()), (Some(0), "1"), "{report:#}");
    let (code, report) = run(&["import", "003", "--database", &url]).await?;
    assert_eq!((code, old.run(keeps).as_str()), (Some(0), "1"), "{report:#}");
    Ok(())
}
