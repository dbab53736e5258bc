//! The generic outbox on SQLite.

use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use super::{TestGateway, eventually, install_into, source};

async fn run(conn: &mut SqliteConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(conn).await.unwrap();
}

async fn ask(conn: &mut SqliteConnection, sql: &str) -> String {
    let row = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_one(conn).await.unwrap();
    row.get::<Option<String>, _>(0).unwrap_or_default()
}

async fn until(conn: &mut SqliteConnection, sql: &str, expected: &str) {
    eventually(sql, async || {
        let found = ask(conn, sql).await;
        (found == expected).then_some(()).ok_or(found)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_become_mails_once_and_say_what_became_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("app.db").display());
    let mut conn = SqliteConnection::connect(&format!("{url}?mode=rwc")).await.unwrap();
    run(&mut conn, "PRAGMA journal_mode = wal").await;
    install_into(&url, false).await;
    install_into(&url, false).await;
    let now = ask(&mut conn, "SELECT strftime('%s', 'now')").await.parse().unwrap();
    let gateway = TestGateway::with_skew(now, 0).await;
    let served = gateway.serve(source(&url));
    run(
        &mut conn,
        "INSERT INTO postway_outbox (id, \"to\", subject, text, send_at) VALUES \
         ('one', 'a@example.net', 'S', 'T', datetime('now', '+1 hour')), ('two', 'a@example.net', 'S', 'T', unixepoch() + 3600), \
         ('bad', 'a@example.net', 'S', 'T', 'soon'), ('x', '[\"a@example.net\",\"b@example.net\"]', 'S', 'T', NULL)",
    )
    .await;
    let statuses =
        "SELECT group_concat(id || ' ' || status) FROM (SELECT * FROM postway_outbox ORDER BY seq)";
    until(&mut conn, statuses, "one accepted,two accepted,bad invalid,x accepted").await;
    for id in ["one", "two"] {
        let message = gateway.message(&format!("outbox:app:{id}")).await.unwrap();
        let ahead = message.summary.due_at.unwrap().since(gateway.clock_now()).as_secs();
        assert!((3_500..=3_600).contains(&ahead), "{ahead}");
    }
    assert_eq!(gateway.message("outbox:app:x").await.unwrap().recipients.len(), 2);
    let error = ask(&mut conn, "SELECT error FROM postway_outbox_status WHERE id = 'bad'").await;
    assert!(error.starts_with("send_at: "), "{error}");
    gateway.cancel("outbox:app:one").await;
    until(&mut conn, statuses, "one cancelled,two accepted,bad invalid,x accepted").await;
    served.kill().await;

    // As a crash between taking and marking leaves it.
    run(&mut conn, "UPDATE postway_outbox SET status = 'taken', message_uid = NULL WHERE id = 'x'").await;
    let served = gateway.serve(source(&url));
    until(&mut conn, "SELECT status FROM postway_outbox WHERE id = 'x'", "accepted").await;
    assert_eq!(gateway.count().await, 3);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_wait_while_the_sandbox_would_take_them_unless_they_name_it() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("app.db").display());
    let mut conn = SqliteConnection::connect(&format!("{url}?mode=rwc")).await.unwrap();
    install_into(&url, false).await;
    let now = ask(&mut conn, "SELECT strftime('%s', 'now')").await.parse().unwrap();
    let gateway = TestGateway::with_skew(now, 0).await;
    gateway.set_test(false).await;
    let served = gateway.serve(source(&url));
    let rows = "INSERT INTO postway_outbox (id, \"to\", text, account) VALUES ('bare', 'a@example.net', 'T', NULL), \
         ('named', 'a@example.net', 'T', 'relay')";
    run(&mut conn, rows).await;
    let statuses =
        "SELECT group_concat(id || ' ' || status) FROM (SELECT * FROM postway_outbox ORDER BY seq)";
    until(&mut conn, statuses, "bare pending,named accepted").await;
    let why = "SELECT error FROM postway_outbox WHERE id = 'bare'";
    assert!(ask(&mut conn, why).await.starts_with("no account of this tenant sends mail yet"));
    gateway.set_test(true).await;
    until(&mut conn, statuses, "bare accepted,named accepted").await;
    served.stop().await;
}
