//! The generic outbox on PostgreSQL.

use std::{sync::atomic::Ordering, time::Duration};

use postway_intake::outbox::{OutboxSource, SourceState};
use sqlx::{AssertSqlSafe, Connection};

use super::{TestGateway, eventually, install_into, installed, source, until};

const DONE: &str = "SELECT string_agg(DISTINCT status, ',' ORDER BY status) FROM postway.outbox";

#[tokio::test(flavor = "multi_thread")]
async fn a_row_becomes_a_mail_and_says_what_became_of_it() {
    let database = installed(false).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(source(&database.url()));
    database.run(
        "INSERT INTO postway.outbox (id, \"to\", cc, subject, text, tags, headers, send_at) VALUES \
         ('order-1', 'a@example.net, B <b@example.net>', '[\"c@example.net\"]', 'Hello', 'Hi', 'x,y', \
          '{\"X-Order\": \"1\"}', now() + interval '1 hour')",
    );
    until(&database, DONE, "accepted").await;
    let message = gateway.message("outbox:app:order-1").await.unwrap();
    assert_eq!(message.recipients.len(), 3);
    assert_eq!(message.summary.tags, ["x", "y"]);
    assert!(message.summary.due_at.unwrap().since(gateway.clock_now()) > Duration::from_secs(3_000));
    let uid = database.run("SELECT message_uid FROM postway.outbox_status");
    assert_eq!(uid, message.summary.uid.to_string());

    gateway.cancel("outbox:app:order-1").await;
    until(&database, DONE, "cancelled").await;
    assert_eq!(database.run("SELECT status, mails FROM postway.outbox_summary"), "cancelled|1");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_sent_says_why_and_holds_up_no_other() {
    let database = installed(false).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(source(&database.url()));
    database.run(
        "INSERT INTO postway.outbox (id, \"to\", subject, text, template) VALUES \
         ('good', 'a@example.net', 's', 't', NULL), ('address', 'nobody', 's', 't', NULL), \
         ('template', 'a@example.net', NULL, NULL, 'welcome'), ('also-good', 'b@example.net', 's', 't', NULL)",
    );
    until(&database, DONE, "accepted,invalid").await;
    let errors = database.run("SELECT id, error FROM postway.outbox WHERE status = 'invalid' ORDER BY id");
    assert!(errors.contains("address|to[0]: "), "{errors}");
    assert!(errors.contains("template|template.name: there is no template welcome"), "{errors}");
    assert_eq!(gateway.count().await, 2);

    // Corrected and set to pending, it is sent.
    database
        .run("UPDATE postway.outbox SET \"to\" = 'c@example.net', status = 'pending' WHERE id = 'address'");
    until(&database, "SELECT status FROM postway.outbox WHERE id = 'address'", "accepted").await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_rolled_back_is_not_sent_and_what_commits_late_is() {
    let database = installed(false).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(source(&database.url()));
    let insert = |id: &str| {
        format!(
            "INSERT INTO postway.outbox (id, \"to\", subject, text) VALUES ('{id}', 'a@example.net', 's', 't')"
        )
    };
    database.run(&format!("BEGIN; {}; ROLLBACK", insert("never")));
    // The first to insert is the last to commit.
    let mut early = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("BEGIN; {}", insert("early")))).execute(&mut early).await.unwrap();
    database.run(&insert("late"));
    until(&database, "SELECT string_agg(id || status, ',') FROM postway.outbox", "lateaccepted").await;
    sqlx::raw_sql("COMMIT").execute(&mut early).await.unwrap();
    until(
        &database,
        "SELECT string_agg(id || status, ',' ORDER BY seq) FROM postway.outbox",
        "earlyaccepted,lateaccepted",
    )
    .await;
    assert_eq!(gateway.count().await, 2);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_rows_of_one_transaction_are_ten_thousand_mails() {
    let database = installed(false).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(source(&database.url()));
    database.run(
        "INSERT INTO postway.outbox (\"to\", subject, text) \
         SELECT 'r' || n || '@example.net', 's', 't' FROM generate_series(1, 10000) n",
    );
    until(&database, "SELECT count(*) FROM postway.outbox WHERE status = 'accepted'", "10000").await;
    assert_eq!(gateway.count().await, 10_000);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_taken_again_after_a_crash_without_a_second_mail() {
    let database = installed(false).await;
    let gateway = TestGateway::beside(&database).await;
    database.run(
        "INSERT INTO postway.outbox (id, \"to\", subject, text) \
         SELECT 'row-' || n, 'a@example.net', 's', 't' FROM generate_series(1, 50) n",
    );
    let served = gateway.serve(source(&database.url()));
    until(&database, DONE, "accepted").await;
    served.kill().await;
    let before = database.run("SELECT string_agg(message_uid::text, ',' ORDER BY seq) FROM postway.outbox");
    // As if marking the rows had been lost, and the rows changed since so that they would be refused now.
    database.run("UPDATE postway.outbox SET status = 'pending', message_uid = NULL");
    database.run("UPDATE postway.outbox SET subject = 'other' WHERE id = 'row-1'");
    database.run("UPDATE postway.outbox SET expires_at = now() - interval '1 hour' WHERE id = 'row-2'");
    let served = gateway.serve(source(&database.url()));
    until(&database, DONE, "accepted").await;
    assert_eq!(
        database.run("SELECT string_agg(message_uid::text, ',' ORDER BY seq) FROM postway.outbox"),
        before
    );
    assert_eq!(gateway.count().await, 50);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_on_one_source_send_each_row_once() {
    let database = installed(false).await;
    let gateway = TestGateway::beside(&database).await;
    let (one, two) = (gateway.serve(source(&database.url())), gateway.serve(source(&database.url())));
    for _ in 0..20 {
        database.run(
            "INSERT INTO postway.outbox (\"to\", subject, text) \
             SELECT 'a@example.net', 's', 't' FROM generate_series(1, 50)",
        );
    }
    until(&database, "SELECT count(*) FROM postway.outbox WHERE status = 'accepted'", "1000").await;
    assert_eq!(gateway.count().await, 1_000);
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_the_duty_leaves_the_source_alone() {
    let database = installed(false).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(source(&database.url()));
    let desk = gateway.desk(&served);
    let standing = async |wanted: SourceState| {
        eventually("the standing", async || {
            let found = desk.status(&*gateway.store, None).await.remove(0);
            if found.standing == wanted && found.waiting.is_some() { Ok(found) } else { Err(found) }
        })
        .await
    };
    standing(SourceState::Serving).await;
    served.node.0.store(false, Ordering::Relaxed);
    let elsewhere = standing(SourceState::Elsewhere).await;
    assert!(elsewhere.database.starts_with("postgres://postway@127.0.0.1"), "{}", elsewhere.database);
    database.run("INSERT INTO postway.outbox (\"to\", subject, text) VALUES ('a@example.net', 's', 't')");
    assert_eq!(desk.status(&*gateway.store, None).await[0].waiting, Some(1));
    served.node.0.store(true, Ordering::Relaxed);
    until(&database, DONE, "accepted").await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_begins_when_enough_rows_wait_or_the_first_has_waited_long_enough() {
    let database = installed(false).await;
    let gateway = TestGateway::beside(&database).await;
    let serve = async |batch_timeout: u64| {
        let served = gateway.serve(OutboxSource {
            batch_timeout: Duration::from_secs(batch_timeout),
            poll: Duration::from_secs(600),
            batch_limit: 3,
            ..source(&database.url())
        });
        // The runner begins with a batch; pending rows are counted after that.
        let desk = gateway.desk(&served);
        eventually("it to be served", async || {
            let found = desk.status(&*gateway.store, None).await.remove(0);
            let is_served = found.standing == SourceState::Serving && found.waiting.is_some();
            is_served.then_some(()).ok_or(found)
        })
        .await;
        served
    };
    let insert = "INSERT INTO postway.outbox (\"to\", subject, text) VALUES ('a@example.net', 's', 't')";
    let served = serve(2).await;
    let began = tokio::time::Instant::now();
    database.run(insert);
    until(&database, DONE, "accepted").await;
    assert!(began.elapsed() >= Duration::from_millis(1_900), "{:?}", began.elapsed());
    served.stop().await;
    // Longer than the test waits, so only the number of rows can start the batch.
    let served = serve(600).await;
    for _ in 0..3 {
        database.run(insert);
    }
    until(&database, "SELECT count(*) FROM postway.outbox WHERE status = 'accepted'", "4").await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_not_installed_is_served_once_it_is() {
    let database =
        tokio::task::spawn_blocking(postway_testkit::postgres::PostgresDatabase::create).await.unwrap();
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(source(&database.url()));
    let desk = gateway.desk(&served);
    let said = eventually("an error", async || {
        let found = desk.status(&*gateway.store, None).await.remove(0);
        found.error.clone().ok_or(found)
    })
    .await;
    assert!(said.contains("postway.outbox is not installed"), "{said}");
    install_into(&database.url(), false).await;
    install_into(&database.url(), false).await;
    database.run("INSERT INTO postway.outbox (\"to\", subject, text) VALUES ('a@example.net', 's', 't')");
    until(&database, DONE, "accepted").await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_whose_connections_are_cut_is_drained_when_it_is_back() {
    let database = installed(false).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(source(&database.url()));
    let insert = "INSERT INTO postway.outbox (\"to\", subject, text) VALUES ('a@example.net', 's', 't')";
    database.run(insert);
    until(&database, DONE, "accepted").await;
    for _ in 0..3 {
        database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postway-outbox' AND datname = current_database()");
        database.run(insert);
    }
    until(&database, "SELECT count(*) FROM postway.outbox WHERE status = 'accepted'", "4").await;
    assert_eq!(gateway.count().await, 4);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_wait_while_the_sandbox_would_take_them_unless_they_name_it() {
    let database = installed(false).await;
    let gateway = TestGateway::beside(&database).await;
    gateway.set_test(false).await;
    let served = gateway.serve(source(&database.url()));
    database.run(
        "INSERT INTO postway.outbox (id, \"to\", text, account, message) VALUES ('bare', 'a@example.net', 'T', NULL, NULL), \
         ('named', 'a@example.net', 'T', 'relay', NULL), ('within', 'a@example.net', 'T', NULL, '{\"account\": \"relay\"}')",
    );
    let statuses = "SELECT string_agg(id || ' ' || status, ',' ORDER BY seq) FROM postway.outbox";
    until(&database, statuses, "bare pending,named accepted,within accepted").await;
    let error = database.run("SELECT error FROM postway.outbox WHERE id = 'bare'");
    assert!(error.starts_with("no account of this tenant sends mail yet"), "{error}");
    gateway.set_test(true).await;
    until(&database, statuses, "bare accepted,named accepted,within accepted").await;
    assert_eq!(database.run("SELECT error IS NULL FROM postway.outbox WHERE id = 'bare'"), "t");
    served.stop().await;
}

/// More of them than one import passes over. What is behind them goes, and in its turn so do they.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_no_route_takes_wait_and_hold_up_nothing_behind_them() {
    const WAIT: usize = 5_600;
    let database = installed(false).await;
    let gateway = TestGateway::beside(&database).await;
    gateway.route_only("example.net").await;
    database.run(&format!(
        "INSERT INTO postway.outbox (\"to\", text) SELECT 'a@far.example', 'T' FROM generate_series(1, {WAIT}); \
         INSERT INTO postway.outbox (\"to\", text) VALUES ('a@example.net', 'T'), ('nobody', 'T'); \
         INSERT INTO postway.outbox (\"to\", text, account) VALUES ('a@far.example', 'T', 'relay')"
    ));
    let served = gateway.serve(source(&database.url()));
    let last = format!("SELECT string_agg(status, ',' ORDER BY seq) FROM postway.outbox WHERE seq > {WAIT}");
    // A row that is wrong in itself says so once it has an account.
    until(&database, &last, "accepted,pending,accepted").await;
    let why = "SELECT count(*) FROM postway.outbox WHERE status = 'pending' AND error LIKE 'no route takes this mail%'";
    until(&database, why, &(WAIT + 1).to_string()).await;
    assert_eq!(gateway.count().await, 2);
    let desk = gateway.desk(&served);
    let told = async || {
        let status = desk.status(&*gateway.store, None).await.remove(0);
        let is_told =
            status.error.as_ref().is_some_and(|error| error.starts_with("no route takes this mail"));
        if is_told { Ok(status.standing) } else { Err(status) }
    };
    assert_eq!(eventually("the source to say why it waits", told).await, SourceState::Serving);

    gateway.set_test(true).await;
    let statuses = "SELECT string_agg(DISTINCT status, ',' ORDER BY status) FROM postway.outbox";
    until(&database, statuses, "accepted,invalid").await;
    assert_eq!(gateway.count().await, WAIT + 2);
    served.stop().await;
}
