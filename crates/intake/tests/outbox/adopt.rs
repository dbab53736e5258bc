//! Installing over tables of an earlier system.

use super::{TestGateway, install_into, until, with_accounts};

/// Tables as such systems have them: 32-bit times, secrets in plain text, a cursor.
const EARLIER: &str = "
CREATE EXTENSION IF NOT EXISTS pgcrypto;
CREATE TYPE account_status AS ENUM ('provisioned', 'active', 'suspended');
CREATE TABLE accounts (
    id BIGSERIAL PRIMARY KEY, email VARCHAR(254) UNIQUE NOT NULL, status account_status DEFAULT 'provisioned' NOT NULL,
    login VARCHAR(254) UNIQUE NOT NULL, created_at INTEGER DEFAULT EXTRACT(EPOCH FROM NOW()) NOT NULL,
    status_changed_at INTEGER, activated_at INTEGER, suspended_at INTEGER, unsuspended_at INTEGER);
CREATE TYPE token_action AS ENUM ('activation', 'password_recovery');
CREATE TABLE tokens (
    id BIGSERIAL PRIMARY KEY, action token_action NOT NULL, secret BYTEA DEFAULT gen_random_bytes(32) UNIQUE NOT NULL,
    code VARCHAR(5) DEFAULT '12345', account BIGINT NOT NULL,
    expires_at INTEGER DEFAULT EXTRACT(EPOCH FROM NOW() + INTERVAL '15 minute') NOT NULL, consumed_at INTEGER,
    created_at INTEGER DEFAULT EXTRACT(EPOCH FROM NOW()) NOT NULL,
    FOREIGN KEY (account) REFERENCES accounts (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
CREATE FUNCTION trg_after_token_consumed() RETURNS TRIGGER AS $$ BEGIN RETURN NULL; END; $$ LANGUAGE plpgsql;
CREATE TRIGGER after_token_consumed AFTER UPDATE OF consumed_at ON tokens FOR EACH ROW
    WHEN (NEW.consumed_at IS NOT NULL AND OLD.consumed_at IS NULL) EXECUTE FUNCTION trg_after_token_consumed();
CREATE TYPE job_type AS ENUM ('mailroom');
CREATE TABLE jobs (job_type job_type PRIMARY KEY, last_seq BIGINT);
INSERT INTO accounts (email, login) SELECT 'r' || n || '@example.net', 'r' || n FROM generate_series(1, 4) n;
INSERT INTO tokens (account, action) SELECT n, 'activation' FROM generate_series(1, 4) n;
UPDATE tokens SET consumed_at = 1 WHERE id = 1;
UPDATE tokens SET expires_at = 1 WHERE id = 2;
INSERT INTO jobs VALUES ('mailroom', 3);
";

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_an_earlier_system_are_taken_over_where_it_left_them() {
    let database =
        tokio::task::spawn_blocking(postway_testkit::postgres::PostgresDatabase::create).await.unwrap();
    database.run(EARLIER);
    install_into(&database.url(), true).await;
    install_into(&database.url(), true).await;
    let states = "SELECT string_agg(state, ',' ORDER BY id) FROM tokens";
    assert_eq!(database.run(states), "consumed,expired,mailed,issued");
    assert_eq!(
        database.run(
            "SELECT count(*) FROM information_schema.columns WHERE table_name IN ('accounts', 'tokens') \
                      AND table_schema = 'public' AND column_name LIKE '%\\_at' AND data_type <> 'bigint'"
        ),
        "0"
    );
    assert_eq!(database.run("SELECT job_type, last_seq FROM jobs"), "mailroom|3");

    let given = database.run("SELECT encode(sha256(secret), 'hex') FROM tokens WHERE id = 4");
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(with_accounts(&database.url()));
    until(&database, states, "consumed,expired,mailed,mailed").await;
    // The given secret and code are mailed, and then removed.
    assert_eq!(
        database.run("SELECT encode(secret_hash, 'hex'), secret IS NULL FROM tokens WHERE id = 4"),
        format!("{given}|t")
    );
    let nonce = database.run("SELECT nonce FROM tokens WHERE id = 4");
    assert!(gateway.mail(&format!("outbox:app:token:{nonce}")).await.contains("12345"));
    assert_eq!(gateway.count().await, 1);

    // From here on the tables behave like new ones.
    database.run("INSERT INTO accounts (email, login) VALUES ('new@example.net', 'new')");
    until(&database, states, "consumed,expired,mailed,mailed,mailed").await;
    database.run("UPDATE tokens SET consumed_at = 1 WHERE id = 5");
    assert_eq!(database.run("SELECT status FROM accounts WHERE id = 5"), "active");
    served.stop().await;
}
