//! Accounts and tokens: what the triggers do, and when mails are sent.

use postway_domain::MessagePriority;
use postway_intake::outbox::SourceState;

use sqlx::postgres::PgListener;

use super::{PATIENCE, TestGateway, eventually, installed, is_cancelled, now_of, until, with_accounts};

const ADA: &str = "INSERT INTO accounts (email, login) VALUES ('ada@example.net', 'ada')";
const STATES: &str = "SELECT string_agg(action || ' ' || state, ',' ORDER BY id) FROM tokens";

/// The id of the mail of a token.
fn mail_of(database: &postway_testkit::postgres::PostgresDatabase, token: i64) -> String {
    format!("outbox:app:token:{}", database.run(&format!("SELECT nonce FROM tokens WHERE id = {token}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_account_gets_its_activation_mail_and_no_secret_stays_behind() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(with_accounts(&database.url()));
    database.run(ADA);
    until(&database, STATES, "activation mailed").await;
    let id = mail_of(&database, 1);
    let message = gateway.message(&id).await.unwrap().summary;
    assert!(message.sensitive && message.lane.priority == MessagePriority::Immediate);
    let lasts = message.expires_at.unwrap().since(gateway.clock_now());
    assert!((880..=900).contains(&lasts.as_secs()), "{lasts:?}");
    let mail = gateway.mail(&id).await;
    assert!(
        mail.contains("Hello ada,") && mail.contains("https://app.example.com/activate?token="),
        "{mail}"
    );
    assert_eq!(
        database.run(
            "SELECT secret IS NULL, code IS NULL, length(secret_hash), length(link_hash), length(code_hash), \
                      mail_status FROM tokens"
        ),
        "t|t|32|32|32|accepted"
    );
    assert_eq!(database.run("SELECT job_type, last_seq FROM jobs"), "mailroom|1");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_accounts_of_one_transaction_get_five_mails() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(with_accounts(&database.url()));
    let inserts =
        (0..5).map(|n| format!("INSERT INTO accounts (email, login) VALUES ('a{n}@example.net', 'a{n}');"));
    database.run(&format!("BEGIN; {} COMMIT", inserts.collect::<String>()));
    until(&database, "SELECT count(*) FROM tokens WHERE state = 'mailed'", "5").await;
    assert_eq!(gateway.count().await, 5);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_turned_away_leaves_no_token() {
    let database = installed(true).await;
    database.run(ADA);
    database.run(&format!("{ADA} ON CONFLICT DO NOTHING"));
    assert_eq!(database.run("SELECT count(*) FROM tokens"), "1");
    database.run("BEGIN; INSERT INTO accounts (email, login) VALUES ('b@example.net', 'b'); ROLLBACK");
    assert_eq!(database.run("SELECT count(*) FROM tokens"), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_changes_set_their_times() {
    let database = installed(true).await;
    database.run(ADA);
    let set = |status: &str| {
        database.run(&format!("UPDATE accounts SET status = '{status}'"));
        database.run(
            "SELECT status, status_changed_at IS NOT NULL, activated_at IS NOT NULL, suspended_at IS NOT NULL, \
             unsuspended_at IS NOT NULL FROM accounts",
        )
    };
    assert_eq!(set("provisioned"), "provisioned|f|f|f|f");
    assert_eq!(set("suspended"), "suspended|t|f|t|f");
    // The account was never activated, so it still needs activation.
    assert_eq!(set("active"), "provisioned|t|f|f|t");
    assert_eq!(set("active"), "active|t|t|f|t");
    assert_eq!(set("suspended"), "suspended|t|t|t|f");
    database.run("UPDATE accounts SET suspended_at = 7");
    set("suspended");
    assert_eq!(database.run("SELECT suspended_at FROM accounts"), "7");
    assert_eq!(set("active"), "active|t|t|f|t");
}

#[tokio::test(flavor = "multi_thread")]
async fn consuming_an_activation_activates_a_provisioned_account_and_no_other() {
    let database = installed(true).await;
    database.run(ADA);
    database.run("UPDATE accounts SET status = 'suspended'");
    let consume =
        |id: i64| database.run(&format!("UPDATE tokens SET consumed_at = 1 WHERE id = {id} RETURNING state"));
    assert_eq!(consume(1), "consumed");
    assert_eq!(database.run("SELECT status FROM accounts"), "suspended");
    // Changes during a suspension count when it ends.
    database.run("UPDATE accounts SET status = 'active'");
    assert_eq!(database.run("SELECT status, activated_at IS NOT NULL FROM accounts"), "active|t");
    database.run("INSERT INTO tokens (account, action) VALUES (1, 'activation')");
    assert_eq!(consume(2), "consumed");
    assert_eq!(database.run("SELECT status, activated_at IS NOT NULL FROM accounts"), "active|t");
    // It cannot be used twice, too late, or after it was revoked.
    database
        .run("UPDATE accounts SET status = 'provisioned'; UPDATE tokens SET consumed_at = 2 WHERE id = 2");
    assert_eq!(database.run("SELECT status FROM accounts"), "provisioned");
    database.run("INSERT INTO accounts (email, login) VALUES ('b@example.net', 'b')");
    database.run("UPDATE tokens SET expires_at = 1 WHERE id = 3");
    assert_eq!(consume(3), "");
    database.run("INSERT INTO tokens (account, action) VALUES (2, 'activation'), (2, 'activation')");
    assert_eq!(consume(4), "");
    assert_eq!(database.run("SELECT status FROM accounts WHERE id = 2"), "provisioned");
    assert_eq!(consume(5), "consumed");
    assert_eq!(database.run("SELECT status FROM accounts WHERE id = 2"), "active");
    // A recovery activates nobody, though it was for an account that is provisioned.
    database.run("INSERT INTO accounts (email, login) VALUES ('c@example.net', 'c')");
    database.run("INSERT INTO tokens (account, action) VALUES (3, 'password_recovery')");
    assert_eq!(consume(7), "consumed");
    assert_eq!(
        database.run("SELECT status, activated_at IS NULL FROM accounts WHERE id = 3"),
        "provisioned|t"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_waits_for_its_account() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    database.run(&format!("BEGIN; {ADA}; UPDATE accounts SET status = 'suspended'; COMMIT"));
    let served = gateway.serve(with_accounts(&database.url()));
    // Later tokens are mailed; waiting ones are skipped.
    database.run("INSERT INTO accounts (email, login) VALUES ('b@example.net', 'b')");
    until(&database, STATES, "activation issued,activation mailed").await;
    database.run("UPDATE accounts SET status = 'active' WHERE id = 1");
    until(&database, STATES, "activation mailed,activation mailed").await;

    // Recovery is for active accounts.
    database.run("INSERT INTO tokens (account, action) VALUES (1, 'password_recovery')");
    database.run("UPDATE tokens SET consumed_at = 1 WHERE id = 1");
    until(&database, STATES, "activation consumed,activation mailed,password_recovery mailed").await;
    let mail = gateway.mail(&mail_of(&database, 3)).await;
    assert!(mail.contains("new password") && mail.contains("/recover?token="), "{mail}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_ended_are_not_mailed() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    database.run("INSERT INTO accounts (email, login) SELECT 'r' || n || '@example.net', 'r' || n FROM generate_series(1, 4) n");
    database.run("UPDATE tokens SET expires_at = 1 WHERE account = 1");
    database.run("UPDATE tokens SET state = 'revoked' WHERE account = 2");
    database.run("UPDATE tokens SET consumed_at = 1 WHERE account = 3");
    let served = gateway.serve(with_accounts(&database.url()));
    until(&database, STATES, "activation expired,activation revoked,activation consumed,activation mailed")
        .await;
    assert_eq!(gateway.count().await, 1);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_token_takes_the_place_of_the_older_and_its_mail_is_called_back() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(with_accounts(&database.url()));
    database.run(ADA);
    until(&database, STATES, "activation mailed").await;
    database.run("INSERT INTO tokens (account, action) VALUES (1, 'activation')");
    until(&database, STATES, "activation revoked,activation mailed").await;
    let first = mail_of(&database, 1);
    eventually("the mail to be called back", async || {
        let found = gateway.message(&first).await.unwrap();
        if is_cancelled(&found) { Ok(()) } else { Err(found.summary.state) }
    })
    .await;
    assert!(!is_cancelled(&gateway.message(&mail_of(&database, 2)).await.unwrap()));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_go_with_their_account_and_unsent_mails_are_called_back() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(with_accounts(&database.url()));
    database.run(ADA);
    until(&database, STATES, "activation mailed").await;
    let id = mail_of(&database, 1);
    database.run("DELETE FROM accounts");
    assert_eq!(database.run("SELECT count(*) FROM tokens"), "0");
    until(&database, "SELECT count(*) FROM postway.withdrawal", "0").await;
    assert!(is_cancelled(&gateway.message(&id).await.unwrap()));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_with_an_address_that_is_none_says_so_and_holds_up_no_other() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(with_accounts(&database.url()));
    database.run("INSERT INTO accounts (email, login) VALUES ('nobody', 'nobody'), ('b@example.net', 'b')");
    until(&database, STATES, "activation issued,activation mailed").await;
    let said = database.run("SELECT mail_status, mail_error, secret_hash IS NULL FROM tokens WHERE id = 1");
    assert!(said.starts_with("invalid|to[0]: ") && said.ends_with("|t"), "{said}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_that_differ_neither_expire_tokens_nor_keep_them() {
    for skew_s in [-3_600, 3_600] {
        let database = installed(true).await;
        let gateway = TestGateway::with_skew(now_of(&database), skew_s).await;
        let served = gateway.serve(with_accounts(&database.url()));
        database.run(ADA);
        until(&database, STATES, "activation mailed").await;
        let message = gateway.message(&mail_of(&database, 1)).await.unwrap().summary;
        let lasts = message.expires_at.unwrap().since(gateway.clock_now());
        assert!((870..=905).contains(&lasts.as_secs()), "{skew_s}: {lasts:?}");
        database.run("UPDATE tokens SET expires_at = floor(extract(epoch FROM now())) - 1");
        until(&database, STATES, "activation expired").await;
        served.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_mailed_again_after_a_crash_is_the_same_mail() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(with_accounts(&database.url()));
    database.run(ADA);
    until(&database, STATES, "activation mailed").await;
    served.kill().await;
    let kept = "SELECT message_uid, secret_hash, link_hash, code_hash FROM tokens";
    let before = database.run(kept);
    // As if marking the row had been lost.
    database.run(
        "ALTER TABLE tokens DISABLE TRIGGER USER; UPDATE tokens SET state = 'issued', message_uid = NULL, \
                  secret_hash = NULL, link_hash = NULL, code_hash = NULL, mail_status = NULL; \
                  ALTER TABLE tokens ENABLE TRIGGER USER",
    );
    let served = gateway.serve(with_accounts(&database.url()));
    until(&database, STATES, "activation mailed").await;
    assert_eq!(database.run(kept), before);
    assert_eq!(gateway.count().await, 1);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_says_that_its_mail_was_captured_and_never_that_it_was_sent() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(with_accounts(&database.url()));
    database.run(ADA);
    until(&database, STATES, "activation mailed").await;
    gateway.capture(&mail_of(&database, 1)).await;
    let said = "SELECT mail_status, mail_error, sent_at IS NULL FROM tokens";
    until(&database, said, "captured|the sandbox captured it|t").await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_wait_while_the_sandbox_would_take_their_mail() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    gateway.set_test(false).await;
    let served = gateway.serve(with_accounts(&database.url()));
    database.run(ADA);
    let desk = gateway.desk(&served);
    let waiting = async || {
        let status = desk.status(&*gateway.store, None).await.remove(0);
        match status.error {
            Some(error) if error.contains("no account of this tenant sends mail yet") => Ok(status.standing),
            error => Err(error),
        }
    };
    assert_eq!(eventually("the source to say why it waits", waiting).await, SourceState::Serving);
    assert_eq!(
        database.run("SELECT state, mail_status IS NULL FROM tokens"),
        "issued|t",
        "nothing is settled"
    );
    assert_eq!(gateway.count().await, 0);
    // The source is served meanwhile: tokens that end are ended.
    database.run("UPDATE tokens SET expires_at = 1");
    until(&database, STATES, "activation expired").await;

    database.run("INSERT INTO tokens (account, action) VALUES (1, 'activation')");
    gateway.set_test(true).await;
    until(&database, STATES, "activation expired,activation mailed").await;
    let told = async || {
        let error = desk.status(&*gateway.store, None).await.remove(0).error;
        error.map_or(Ok(()), Err)
    };
    eventually("the source to be well", told).await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_no_route_takes_wait_and_hold_up_nothing_behind_them() {
    const WAIT: usize = 1_100;
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    gateway.route_only("example.net").await;
    database.run(&format!(
        "INSERT INTO accounts (email, login) SELECT 'a' || n || '@far.example', 'a' || n FROM generate_series(1, {WAIT}) n; {ADA}"
    ));
    let served = gateway.serve(with_accounts(&database.url()));
    let of = |state: &str, rest: &str| format!("SELECT count(*) FROM tokens WHERE state = '{state}' {rest}");
    until(&database, &of("mailed", "AND mail_status = 'accepted'"), "1").await;
    let untouched = of("issued", "AND mail_status IS NULL AND secret_hash IS NULL");
    assert_eq!(database.run(&untouched), WAIT.to_string(), "nothing is settled");
    assert_eq!(gateway.count().await, 1);
    gateway.set_test(true).await;
    until(&database, &of("mailed", ""), &(WAIT + 1).to_string()).await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_whose_mail_nothing_was_heard_is_looked_after() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(with_accounts(&database.url()));
    database.run(ADA);
    until(&database, STATES, "activation mailed").await;
    served.stop().await;
    // The feed position is reset to the end, so earlier events are missed.
    gateway.capture(&mail_of(&database, 1)).await;
    database.run("DELETE FROM postway.progress; UPDATE tokens SET mailed_at = mailed_at - 601");
    let served = gateway.serve(with_accounts(&database.url()));
    until(&database, "SELECT mail_status FROM tokens", "captured").await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_have_their_indexes_and_tell_of_each_new_token() {
    let database = installed(true).await;
    let indexes = database.run(
        "SELECT string_agg(indexname, ',' ORDER BY indexname) FROM pg_indexes \
         WHERE indexname IN ('accounts_id_status', 'tokens_ending', 'tokens_issued', 'tokens_live')",
    );
    assert_eq!(indexes, "accounts_id_status,tokens_ending,tokens_issued,tokens_live");
    let mut listener = PgListener::connect(&database.url()).await.unwrap();
    listener.listen("token_insert").await.unwrap();
    // An account that is created active needs no activation.
    database.run("INSERT INTO accounts (email, login, status) VALUES ('eve@example.net', 'eve', 'active')");
    assert_eq!(database.run("SELECT count(*) FROM tokens"), "0");
    for _ in 0..2 {
        database.run("INSERT INTO tokens (account, action) VALUES (1, 'password_recovery')");
        let told = tokio::time::timeout(PATIENCE, listener.recv()).await.expect("a notification").unwrap();
        assert_eq!((told.channel(), told.payload()), ("token_insert", ""));
    }
}
