//! The generic outbox on MariaDB.

use postway_testkit::mariadb::{MariaDb, NUMBERS};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, Row};

use super::{TestGateway, eventually, install_into, source};

async fn run(conn: &mut MySqlConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(conn).await.unwrap();
}

async fn ask(conn: &mut MySqlConnection, sql: &str) -> String {
    let row = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_one(conn).await.unwrap();
    row.get::<Option<String>, _>(0).unwrap_or_default()
}

async fn until(conn: &mut MySqlConnection, sql: &str, expected: &str) {
    eventually(sql, async || {
        let found = ask(conn, sql).await;
        (found == expected).then_some(()).ok_or(found)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_become_mails_once_and_say_what_became_of_them() {
    let url = tokio::task::spawn_blocking(|| MariaDb::shared().create_database()).await.unwrap();
    install_into(&url, false).await;
    install_into(&url, false).await;
    let mut conn = MySqlConnection::connect(&url).await.unwrap();
    let now = ask(&mut conn, "SELECT CAST(UNIX_TIMESTAMP() AS CHAR)").await.parse().unwrap();
    let gateway = TestGateway::with_skew(now, 0).await;
    let served = gateway.serve(source(&url));
    run(
        &mut conn,
        "INSERT INTO postway_outbox (id, `to`, subject, text, headers, send_at, `sensitive`) VALUES \
         ('one', 'a@example.net, b@example.net', 'S', 'T', '{\"X-Order\": \"1\"}', UTC_TIMESTAMP() + INTERVAL 1 HOUR, TRUE), \
         ('bad', 'nobody', 'S', 'T', NULL, NULL, NULL)",
    )
    .await;
    run(
        &mut conn,
        "START TRANSACTION; INSERT INTO postway_outbox (`to`, text) VALUES ('x@example.net', 'T'); ROLLBACK",
    )
    .await;
    let statuses = "SELECT GROUP_CONCAT(CONCAT(id, ' ', status) ORDER BY seq) FROM postway_outbox";
    until(&mut conn, statuses, "one accepted,bad invalid").await;
    let message = gateway.message("outbox:app:one").await.unwrap();
    assert!(message.summary.sensitive && message.recipients.len() == 2);
    let ahead = message.summary.due_at.unwrap().since(gateway.clock_now()).as_secs();
    assert!((3_500..=3_600).contains(&ahead), "{ahead}");
    let error = ask(&mut conn, "SELECT error FROM postway_outbox_status WHERE id = 'bad'").await;
    assert!(error.starts_with("to[0]: "), "{error}");

    gateway.cancel("outbox:app:one").await;
    until(&mut conn, statuses, "one cancelled,bad invalid").await;
    served.kill().await;

    // As if marking the row had been lost.
    run(&mut conn, "UPDATE postway_outbox SET status = 'pending', message_uid = NULL WHERE id = 'one'").await;
    let served = gateway.serve(source(&url));
    until(&mut conn, statuses, "one accepted,bad invalid").await;
    assert_eq!(gateway.count().await, 1);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_rows_are_taken_in_few_rounds() {
    let url = tokio::task::spawn_blocking(|| MariaDb::shared().create_database()).await.unwrap();
    install_into(&url, false).await;
    let mut conn = MySqlConnection::connect(&url).await.unwrap();
    let now = ask(&mut conn, "SELECT CAST(UNIX_TIMESTAMP() AS CHAR)").await.parse().unwrap();
    let gateway = TestGateway::with_skew(now, 0).await;
    run(&mut conn, NUMBERS).await;
    run(
        &mut conn,
        "INSERT INTO postway_outbox (`to`, subject, text) SELECT CONCAT('r', seq, '@example.net'), 's', 't' FROM numbers \
         WHERE seq <= 2000",
    )
    .await;
    let (one, two) = (gateway.serve(source(&url)), gateway.serve(source(&url)));
    until(&mut conn, "SELECT CAST(COUNT(*) AS CHAR) FROM postway_outbox WHERE status = 'accepted'", "2000")
        .await;
    assert_eq!(gateway.count().await, 2_000);
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_wait_while_the_sandbox_would_take_them_unless_they_name_it() {
    let url = tokio::task::spawn_blocking(|| MariaDb::shared().create_database()).await.unwrap();
    install_into(&url, false).await;
    let mut conn = MySqlConnection::connect(&url).await.unwrap();
    let now = ask(&mut conn, "SELECT CAST(UNIX_TIMESTAMP() AS CHAR)").await.parse().unwrap();
    let gateway = TestGateway::with_skew(now, 0).await;
    gateway.set_test(false).await;
    let served = gateway.serve(source(&url));
    let rows = "INSERT INTO postway_outbox (id, `to`, text, account) VALUES ('bare', 'a@example.net', 'T', NULL), \
         ('named', 'a@example.net', 'T', 'relay')";
    run(&mut conn, rows).await;
    let statuses = "SELECT GROUP_CONCAT(CONCAT(id, ' ', status) ORDER BY seq) FROM postway_outbox";
    until(&mut conn, statuses, "bare pending,named accepted").await;
    let why = "SELECT error FROM postway_outbox WHERE id = 'bare'";
    assert!(ask(&mut conn, why).await.starts_with("no account of this tenant sends mail yet"));
    gateway.set_test(true).await;
    until(&mut conn, statuses, "bare accepted,named accepted").await;
    served.stop().await;
}
