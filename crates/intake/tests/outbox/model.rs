//! The tables of accounts and tokens as their users know them, and tokens in the hands of several collectors.

use sqlx::{AssertSqlSafe, Connection};

use super::{TestGateway, installed, until, with_accounts};

/// A statement that must fail with this condition, and changes nothing.
fn refused(statement: &str, condition: &str) -> String {
    format!(
        "DO $$ BEGIN {statement}; SET CONSTRAINTS ALL IMMEDIATE; RAISE EXCEPTION 'it was taken'; \
         EXCEPTION WHEN {condition} THEN NULL; END $$"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_and_tokens_have_the_types_bounds_and_keys_of_their_document() {
    let database = installed(true).await;
    for (name, words) in
        [("account_status", "provisioned,active,suspended"), ("token_action", "activation,password_recovery")]
    {
        let labels = "SELECT string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_enum";
        assert_eq!(database.run(&format!("{labels} WHERE enumtypid = '{name}'::regtype")), words);
    }
    let columns = |table: &str| {
        database.run(&format!(
            "SELECT string_agg(column_name, ',') FROM information_schema.columns WHERE table_name = '{table}' \
             AND table_schema = 'public' AND column_name = ANY ('{{id,email,status,login,created_at,status_changed_at,\
             activated_at,suspended_at,unsuspended_at,action,secret,code,account,expires_at,consumed_at}}')"
        ))
    };
    assert_eq!(columns("accounts").split(',').count(), 9, "{}", columns("accounts"));
    assert_eq!(columns("tokens").split(',').count(), 8, "{}", columns("tokens"));

    let account = |email: &str, login: &str| {
        format!("INSERT INTO accounts (email, login) VALUES ('{email}', '{login}')")
    };
    database.run(&account("ada@example.net", "ada"));
    assert_eq!(database.run("SELECT status, created_at > 0 FROM accounts"), "provisioned|t");
    for (email, login, condition) in [
        ("ada@example.net", "other", "unique_violation"),
        ("other@example.net", "ada", "unique_violation"),
        (&*"e".repeat(255), "long", "string_data_right_truncation"),
        ("long@example.net", &*"l".repeat(255), "string_data_right_truncation"),
    ] {
        database.run(&refused(&account(email, login), condition));
    }
    let longest = "e".repeat(254);
    database.run(&account(&longest, &longest));
    assert_eq!(database.run("SELECT count(*) FROM tokens"), "2", "one for each account, and none beside");

    // A token may come before its account in one transaction, and not without it.
    let token = "INSERT INTO tokens (account, action) VALUES (77, 'password_recovery')";
    database.run(&refused(token, "foreign_key_violation"));
    database.run(&format!(
        "BEGIN; {token}; INSERT INTO accounts (id, email, login, status) VALUES (77, 'eve@example.net', 'eve', 'active'); COMMIT"
    ));
    let shown = "SELECT expires_at - created_at, consumed_at IS NULL FROM tokens WHERE account = 77";
    assert_eq!(database.run(shown), "900|t");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_mailed_oldest_first_and_one_that_commits_late_too() {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    let mut late = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    let insert = "INSERT INTO accounts (email, login) VALUES ('late@example.net', 'late')";
    sqlx::raw_sql(AssertSqlSafe(format!("BEGIN; {insert}"))).execute(&mut late).await.unwrap();
    database.run(
        "INSERT INTO accounts (email, login) SELECT n || '@example.net', 'login-' || n FROM generate_series(1, 30) n",
    );
    let served = gateway.serve(with_accounts(&database.url()));
    let mailed = "SELECT count(*) FROM tokens WHERE state = 'mailed'";
    until(&database, mailed, "30").await;
    let in_order = "SELECT string_agg(id::text, ',' ORDER BY id) = string_agg(id::text, ',' ORDER BY message_uid) FROM tokens";
    assert_eq!(database.run(in_order), "t");
    sqlx::raw_sql("COMMIT").execute(&mut late).await.unwrap();
    until(&database, mailed, "31").await;
    assert_eq!(
        database.run(
            "SELECT min(t.id) = max(t.id) FILTER (WHERE a.login = 'late') FROM tokens t \
                             JOIN accounts a ON a.id = t.account"
        ),
        "t",
        "it has the lowest id of all"
    );
    assert_eq!(gateway.count().await, 31);
    served.stop().await;
}

/// Two gateways that know nothing of each other, on one database.
#[tokio::test(flavor = "multi_thread")]
async fn two_collectors_mail_each_token_once() {
    const ACCOUNTS: usize = 60;
    let database = installed(true).await;
    let (one, two) = (TestGateway::beside(&database).await, TestGateway::beside(&database).await);
    let served = [one.serve(with_accounts(&database.url())), two.serve(with_accounts(&database.url()))];
    for n in 0..ACCOUNTS / 3 {
        database.run(&format!(
            "INSERT INTO accounts (email, login) SELECT m || '-{n}@example.net', m || '-{n}' FROM generate_series(1, 3) m"
        ));
    }
    until(&database, "SELECT count(*) FROM tokens WHERE state = 'mailed'", &ACCOUNTS.to_string()).await;
    assert_eq!(one.count().await + two.count().await, ACCOUNTS);
    for served in served {
        served.stop().await;
    }
}
