//! "Modello Email" and "MySQL Schema": the fields of a mail, the columns of both tables, their indexes, and
//! the end of rows.

use postway_testkit::SmtpSink;
use serde_json::json;

use super::{EMAILS, Moved, id};

/// Requirements 1, 9–13, 15, 17.
#[tokio::test]
async fn both_tables_have_their_columns_and_nothing_can_be_written() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let moved = Moved::start(sink.port(), &[]).await?;
    // Each with its place, its kind of type, and whether it may be NULL.
    for (table, expected) in [
        (
            "emails",
            &[
                ("id", "varchar", ""),
                ("status", "varchar", "NO"),
                ("eml_file_path", "varchar", "YES"),
                ("payload_file_path", "varchar", "YES"),
                ("reason", "longtext", "YES"),
                ("version", "bigint", "NO"),
                ("created_at", "datetime(6)", ""),
                ("updated_at", "datetime(6)", ""),
            ][..],
        ),
        (
            "email_statuses",
            &[
                ("id", "bigint", ""),
                ("email_id", "varchar", ""),
                ("status", "varchar", "NO"),
                ("reason", "longtext", "YES"),
                ("created_at", "datetime(6)", ""),
            ],
        ),
    ] {
        let columns = moved.sql(&format!("SHOW COLUMNS FROM {table}"))?;
        for (column, (name, kind, null)) in columns.iter().zip(expected) {
            let is_it = column[0] == *name && column[1].starts_with(kind);
            // What is computed from two columns may be NULL for all that the server knows.
            assert!(is_it && (null.is_empty() || column[2] == *null), "{table}: {columns:?}");
        }
        assert!(columns.len() >= expected.len(), "{table}: {columns:?}");
    }
    let words = moved.sql("SELECT COUNT(*) FROM emails WHERE LENGTH(status) > 23")?;
    assert_eq!(words, [["0"]]);

    let engines = moved.sql(
        "SELECT DISTINCT engine, table_collation FROM information_schema.tables \
         WHERE table_name = 'message' AND table_type = 'BASE TABLE'",
    )?;
    assert_eq!(engines, [["InnoDB", "utf8mb4_bin"]]);

    moved.post(&id(1), json!({})).await?;
    let shown = moved.reaches(&id(1), "SENT").await?;
    assert!(shown["version"].as_i64() > Some(1), "each change raises it: {shown:#}");
    assert_eq!(moved.sql("SELECT COUNT(*) FROM emails WHERE version < 1 OR reason IS NOT NULL")?, [["0"]]);
    for statement in [
        "INSERT INTO emails (id, status) VALUES ('x', 'READY')",
        "UPDATE emails SET status = 'READY'",
        "DELETE FROM email_statuses",
    ] {
        assert!(moved.sql(statement).is_err(), "{statement}");
    }

    // The reference's own read, but for its lock; and a look-up by id, for which there is the index (the
    // store's tests see to it that it is used where there are many).
    let waiting = "SELECT id, status, eml_file_path, payload_file_path, reason, version, updated_at FROM emails \
         WHERE status = 'SENT' ORDER BY updated_at ASC LIMIT 25";
    assert_eq!(moved.sql(waiting)?.len(), 1);
    for (table, key) in [("emails", "id"), ("email_statuses", "email_id")] {
        let plan = moved.sql(&format!("EXPLAIN SELECT * FROM {table} WHERE {key} = '{}'", id(1)))?;
        assert!(plan.iter().flatten().any(|cell| cell.contains("content_view_id")), "{table}: {plan:?}");
    }
    Ok(())
}

/// `created_at` of a history row is when it happened, and rows of one mail rise in `id`; a mail and its
/// history go together. Requirements 16, 17, 19, 45.
#[tokio::test]
async fn a_history_is_in_order_and_goes_with_its_mail() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().rcpt("nobody@", "550 5.1.1 no such user here").start().await;
    let moved = Moved::start(sink.port(), &[]).await?;
    for n in 1..=3 {
        moved.post(&id(n), json!({})).await?;
    }
    moved.post(&id(4), json!({"to": "nobody@example.net"})).await?;
    for n in 1..=3 {
        moved.reaches(&id(n), "SENT").await?;
        assert_eq!(
            moved.history(&id(n))?,
            ["ACCEPTED", "READY", "PROCESSING", "SENT"],
            "composed at the door"
        );
    }
    let failed = moved.reaches(&id(4), "FAILED").await?;
    assert!(
        failed["reason"].as_str().is_some_and(|reason| reason.contains("no such user here")),
        "{failed:#}"
    );
    let unordered = "SELECT COUNT(*) FROM email_statuses a JOIN email_statuses b ON a.email_id = b.email_id \
         AND a.id < b.id AND a.created_at > b.created_at";
    assert_eq!(moved.sql(unordered)?, [["0"]]);
    let twice = "SELECT COUNT(*) FROM (SELECT email_id, id FROM email_statuses GROUP BY email_id, id \
         HAVING COUNT(*) > 1) t";
    assert_eq!(moved.sql(twice)?, [["0"]], "email_id and id name a row");

    let cleaned = moved.gateway.post("/v1/cleanup?older_than_seconds=0", json!({})).await?;
    assert_eq!(cleaned["deleted"], 4, "{cleaned}");
    assert_eq!(moved.sql("SELECT COUNT(*) FROM emails")?, [["0"]]);
    assert_eq!(moved.sql("SELECT COUNT(*) FROM email_statuses")?, [["0"]], "ON DELETE CASCADE");
    let gone = moved.gateway.call(reqwest::Method::GET, &format!("{EMAILS}/{}", id(1)), None).await?;
    assert_eq!(gone.0.as_u16(), 404);
    Ok(())
}
