//! What the server makes of the statements: each prepares, and the hot ones go along their indexes.

use sqlx::{Executor, PgPool, Row, SqlSafeStr};

use super::postgres;
use crate::{
    admin,
    driver::postgres::{accept, change, claim, connect, dedup, engine, hints, migrate, read, summaries},
    journal,
    queue::{lane_upkeep, preparation, queue_state},
    reporting,
    sql::waiting_lanes,
};

#[tokio::test]
async fn every_statement_prepares() {
    let (_store, database) = postgres().await;
    let pool = PgPool::connect(&database.url()).await.unwrap();
    for sql in [
        engine::COUNT,
        engine::MARK,
        engine::MARKED,
        dedup::DROP_TOMBSTONES,
        dedup::INSERT_DEDUP,
        dedup::FIND_DEDUP,
        dedup::DROP_DEDUP,
        accept::INSERT_LANE,
        accept::INSERT_MESSAGE,
        accept::INSERT_CONTENT,
        accept::INSERT_RECIPIENT,
        accept::INSERT_EVENT,
        accept::INSERT_TAG,
        claim::DUE_LANES,
        claim::DUE_MESSAGES,
        claim::HOLD_LANE,
        claim::SENDING_IN_LANE,
        claim::LEASE,
        claim::OPEN_RECIPIENTS,
        change::COMMIT_WIRE,
        change::APPLY,
        change::CHANGE_RECIPIENT,
        change::END_RECIPIENTS,
        change::INSERT_ATTEMPT,
        change::LANES,
        read::FIND_CLIENT,
        read::RECIPIENTS,
        summaries::RECIPIENTS,
        read::ATTEMPTS,
        read::EVENTS,
        read::RAW,
        read::PAYLOAD,
        read::KEPT,
        read::STALLED,
        read::OVERDUE,
        hints::NOTIFY,
        migrate::WRITABLE,
    ] {
        pool.prepare(sql.into_sql_str()).await.unwrap_or_else(|error| panic!("{error}: {sql}"));
    }
    for sql in [crate::sql_store::statements(), crate::nodes::registry::STATEMENTS.to_vec()].concat() {
        let text = crate::sql::numbered(sql.postgres);
        let prepared = pool.prepare(sqlx::AssertSqlSafe(text.clone()).into_sql_str()).await;
        prepared.unwrap_or_else(|error| panic!("{error}: {text}"));
    }
    pool.prepare(read::summary_sql().into_sql_str()).await.unwrap();
}

/// A plan is made while the tables are empty and kept when they are not, so it must be the right one from the
/// start: no scan of a table, and each hot statement on its index.
#[tokio::test]
async fn hot_statements_use_their_indexes() {
    let (_store, database) = postgres().await;
    let options = connect::options(&database.url()).unwrap();
    let [
        has_misplaced,
        walk,
        lane_heads,
        later,
        lane_page,
        lane_move,
        among_unfinished,
        due,
        heads,
        report_due,
        report_heads,
        waiting,
        leased,
        lease,
        unplaced,
        place,
    ] = [
        admin::HAS_MISPLACED,
        waiting_lanes::WALK,
        queue_state::HEADS.sample(),
        queue_state::LATER.sample(),
        lane_upkeep::PAGE,
        lane_upkeep::MOVE,
        admin::AMONG_UNFINISHED,
        preparation::DUE,
        preparation::HEADS,
        reporting::DUE,
        reporting::HEADS,
        reporting::WAITING,
        reporting::LEASED.sample(),
        reporting::LEASE.sample(),
        journal::UNPLACED,
        journal::PLACE.sample(),
    ]
    .map(|sql| crate::sql::numbered(sql.postgres));
    for (settings, sql, parameters, index) in [
        (connect::WRITER_SETTINGS, due.as_str(), 4, "preparation_due"),
        (connect::WRITER_SETTINGS, &has_misplaced, 4, "message_due"),
        (connect::WRITER_SETTINGS, &walk, 3, "message_due"),
        ("", &lane_heads, 3, "message_due"),
        ("", &later, 4, "message_due"),
        ("", &lane_page, 2, "message_lane"),
        (connect::WRITER_SETTINGS, &lane_move, 4, "message_due"),
        (connect::WRITER_SETTINGS, &among_unfinished, 4, "message_status"),
        ("", &heads, 2, "preparation_due"),
        (connect::WRITER_SETTINGS, &report_due, 7, "notification_due"),
        ("", &report_heads, 2, "notification_due"),
        (connect::WRITER_SETTINGS, &waiting, 5, "notification_due"),
        (connect::WRITER_SETTINGS, &leased, 8, "Index Scan using notification_"),
        (connect::WRITER_SETTINGS, &lease, 8, "Index Scan using notification_"),
        (connect::WRITER_SETTINGS, &unplaced, 1, "journal_unsequenced"),
        (connect::WRITER_SETTINGS, &place, 4, "journal_pkey"),
        (connect::WRITER_SETTINGS, claim::DUE_LANES, 5, "message_due"),
        (connect::WRITER_SETTINGS, claim::DUE_MESSAGES, 4, "message_due"),
        (connect::WRITER_SETTINGS, claim::LEASE, 5, "message_pkey"),
        (connect::WRITER_SETTINGS, claim::OPEN_RECIPIENTS, 1, "recipient_pkey"),
        (connect::WRITER_SETTINGS, change::COMMIT_WIRE, 5, "message_pkey"),
        (connect::WRITER_SETTINGS, change::APPLY, 16, "message_pkey"),
        (connect::WRITER_SETTINGS, change::CHANGE_RECIPIENT, 6, "recipient_pkey"),
        (connect::WRITER_SETTINGS, change::END_RECIPIENTS, 2, "recipient_pkey"),
        (connect::WRITER_SETTINGS, dedup::FIND_DEDUP, 3, "dedup_pkey"),
        (connect::WRITER_SETTINGS, dedup::DROP_TOMBSTONES, 4, "dedup_pkey"),
        (connect::WRITER_SETTINGS, dedup::DROP_DEDUP, 1, "dedup_uid"),
        ("", read::STALLED, 3, "message_status"),
        ("", read::OVERDUE, 2, "message_expiry"),
        ("", read::RAW, 2, "content_pkey"),
        ("", summaries::RECIPIENTS, 2, "recipient_pkey"),
    ] {
        let mut conn = connect::connect(&options, settings).await.unwrap();
        let explain = format!(
            "SET plan_cache_mode = force_generic_plan; PREPARE hot AS {sql}; \
             EXPLAIN EXECUTE hot({})",
            vec!["NULL"; parameters].join(",")
        );
        let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(explain)).fetch_all(&mut conn).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains(index), "{sql}\n{plan}");
        let scans = ["Seq Scan on message", "Seq Scan on notification", "Seq Scan on journal", "Hash Join"];
        assert!(!scans.iter().any(|scan| plan.contains(scan)), "{sql}\n{plan}");
    }
}
