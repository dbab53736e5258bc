//! "Optimistic Locking", "Query con SKIP LOCKED" and the indexes: what is seen of them from outside.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, ensure};
use futures::future::join_all;
use postway_e2e::{PATIENCE, eventually};
use postway_testkit::{SinkAction, SinkPause, SinkVerb, SmtpSink};
use reqwest::Method;
use serde_json::{Value, json};

use super::{EMAILS, Moved, id};

/// Another program's transaction, which holds the row of a mail until it is let go.
struct LockedRow(Child);

impl LockedRow {
    fn of(moved: &Moved, id: &str) -> anyhow::Result<Self> {
        let uid = moved.sql(&format!("SELECT HEX(message_uid) FROM emails WHERE id = '{id}'"))?;
        let uid = uid.first().and_then(|row| row.first()).context("no such mail")?.clone();
        let (rest, socket) = moved.url.split_once("?socket=").context("no socket in the URL")?;
        let database = rest.rsplit('/').next().context("no database in the URL")?;
        let mut child = Command::new("mariadb")
            .args(["--no-defaults", "--user=root", "--batch", "--skip-column-names", "--unbuffered"])
            .arg(format!("--socket={socket}"))
            .arg(format!("--database={database}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lock = format!("BEGIN; SELECT 'locked' FROM message WHERE uid = X'{uid}' FOR UPDATE;\n");
        child.stdin.as_mut().context("no input")?.write_all(lock.as_bytes())?;
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().context("no output")?).read_line(&mut said)?;
        ensure!(said.trim() == "locked", "{said}");
        Ok(Self(child))
    }

    fn let_go(mut self) -> anyhow::Result<()> {
        self.0.stdin.take().context("no input")?.write_all(b"COMMIT;\n")?;
        ensure!(self.0.wait()?.success(), "it did not commit");
        Ok(())
    }
}

/// Posts mails of these numbers by one call.
async fn post_all(moved: &Moved, numbers: std::ops::RangeInclusive<usize>, to: &str) -> anyhow::Result<()> {
    let mails: Vec<Value> = numbers
        .map(|n| json!({"id": id(n), "from": "shop@example.com", "to": to, "subject": n.to_string(), "body_text": "Hi"}))
        .collect();
    let answer = moved.gateway.post(EMAILS, json!({"data": mails})).await?;
    ensure!(answer["summary"]["failed"] == 0, "{answer:#}");
    Ok(())
}

/// How many rows the server reads to answer a statement.
fn rows_read(moved: &Moved, statement: &str) -> anyhow::Result<u64> {
    let counted = format!("FLUSH STATUS; {statement}; SHOW SESSION STATUS LIKE 'Handler_read%'");
    let rows = moved.sql(&counted)?;
    let counts = rows.iter().filter(|row| row.len() == 2 && row[0].starts_with("Handler_read"));
    counts.map(|row| Ok(row[1].parse::<u64>()?)).sum()
}

/// `idx_status`, `idx_status_updated`, `idx_email_id`: a look-up does not read a table that has grown.
/// Requirements 14, 18.
#[tokio::test]
async fn look_ups_by_status_and_by_id_read_little_of_a_grown_table() -> anyhow::Result<()> {
    const GROWN: usize = 600;
    /// Some dozens for each row of the answer, and none for the rest of the table.
    const READ_MAX: u64 = 200;
    let sink = SmtpSink::builder().rcpt("nobody@", "550 5.1.1 no such user here").start().await;
    let moved = Moved::start(sink.port(), &[]).await?;
    post_all(&moved, 1..=3, "nobody@example.net").await?;
    post_all(&moved, 4..=GROWN, "ada@example.net").await?;
    moved.gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(moved.sql("SELECT status, COUNT(*) FROM emails GROUP BY status ORDER BY status")?.len(), 2);

    // The server counts its tables by itself, now and then; here it has to do so now.
    let tables = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' \
         AND CONCAT(table_schema, '_views') = DATABASE()";
    for table in moved.sql(tables)? {
        moved.sql(&format!("ANALYZE TABLE `{}`.`{}`", table[0], table[1]))?;
    }
    let columns = "id, status, eml_file_path, payload_file_path, reason, version, updated_at";
    let failed =
        format!("SELECT {columns} FROM emails WHERE status = 'FAILED' ORDER BY updated_at ASC LIMIT 25");
    assert_eq!(moved.sql(&failed)?.len(), 3);
    let history = format!("SELECT status FROM email_statuses WHERE email_id = '{}'", id(300));
    assert_eq!(moved.sql(&history)?.len(), 4);
    let one = format!("SELECT {columns} FROM emails WHERE id = '{}'", id(300));
    for statement in [&failed, &history, &one] {
        let read = rows_read(&moved, statement)?;
        assert!(read > 0 && read < READ_MAX, "{read} rows were read for {statement}");
    }
    // And by the door.
    let listed = moved.gateway.get(&format!("{EMAILS}?status=FAILED")).await?;
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(3), "{listed:#}");
    Ok(())
}

/// `UPDATE … WHERE id = ? AND status = ?`: of those who change a mail at once one does, and who comes too
/// late gets an error. Requirements 6, 20, 21.
#[tokio::test]
async fn of_many_who_change_a_mail_at_once_one_does_and_a_late_one_is_told() -> anyhow::Result<()> {
    let at_dot = SinkPause::new();
    let sink = SmtpSink::builder().rcpt("nobody@", "550 5.1.1 no such user here").start().await;
    let moved = Moved::start(sink.port(), &[]).await?;
    moved.post(&id(1), json!({"to": "nobody@example.net"})).await?;
    let failed = moved.reaches(&id(1), "FAILED").await?;
    moved.gateway.post("/v1/tenants/default/suspend", json!({})).await?;
    let path = format!("{EMAILS}/{}/requeue", id(1));
    let calls = (0..16).map(|_| moved.gateway.call(Method::POST, &path, None));
    for answer in join_all(calls).await {
        let (status, answer) = answer?;
        // Whoever looked after the change finds it where it is wanted; whoever looked before and came second
        // is refused.
        assert!([204, 409].contains(&status.as_u16()), "{status} {answer}");
    }
    let ready = moved.reaches(&id(1), "READY").await?;
    assert_eq!(ready["version"].as_i64(), failed["version"].as_i64().map(|version| version + 1), "{ready:#}");
    assert_eq!(moved.history(&id(1))?, ["ACCEPTED", "READY", "PROCESSING", "FAILED", "READY"]);

    // What is on the wire, and what has left, is nobody's to change.
    sink.clear_rules();
    sink.hold_next_dot(&at_dot);
    moved.gateway.post("/v1/tenants/default/activate", json!({})).await?;
    at_dot.reached().await;
    let refused = async |before: &Value| -> anyhow::Result<()> {
        for path in [path.clone(), format!("/v1/messages/{}/cancel", id(1))] {
            let (status, answer) = moved.gateway.call(Method::POST, &path, None).await?;
            assert_eq!(status.as_u16(), 409, "{path}: {answer}");
        }
        assert_eq!(moved.agrees(&id(1)).await?, *before, "a refused change leaves no trace");
        Ok(())
    };
    refused(&moved.reaches(&id(1), "PROCESSING").await?).await?;
    at_dot.release();
    let sent = moved.reaches(&id(1), "SENT").await?;
    assert_eq!((&failed["reason"].is_null(), &sent["reason"]), (&false, &Value::Null), "the failure is over");
    refused(&sent).await?;
    assert_eq!(sink.mails().len(), 1);
    Ok(())
}

/// `ORDER BY updated_at ASC LIMIT ? FOR UPDATE SKIP LOCKED`: a row that another transaction holds holds up no
/// other, the oldest go first, and no more are taken at a time than there is room for. Requirements 22, 23.
#[tokio::test]
async fn a_locked_row_is_passed_over_and_the_others_go_oldest_first() -> anyhow::Result<()> {
    const MAILS: usize = 60;
    const LOCKED: usize = 3;
    let at_dot = SinkPause::new();
    let sink =
        SmtpSink::builder().once(SinkVerb::Dot, SinkAction::Hold(at_dot.clone()).recorded()).start().await;
    let moved = Moved::start(sink.port(), &[]).await?;
    moved.gateway.patch("/v1/accounts/relay", json!({"max_connections": 1})).await?;
    moved.gateway.post("/v1/tenants/default/suspend", json!({})).await?;
    for n in 1..=MAILS {
        post_all(&moved, n..=n, "ada@example.net").await?;
    }
    let lock = LockedRow::of(&moved, &id(LOCKED))?;
    moved.gateway.post("/v1/tenants/default/activate", json!({})).await?;
    at_dot.reached().await;
    let taken =
        moved.sql("SELECT COUNT(*) FROM emails WHERE status = 'PROCESSING'")?[0][0].parse::<usize>()?;
    assert!((1..=4).contains(&taken), "one connection has {taken} in hand");
    at_dot.release();
    sink.wait_for(MAILS - 1, PATIENCE).await;
    assert_eq!(moved.show(&id(LOCKED)).await?["status"], "READY");
    lock.let_go()?;
    sink.wait_for(MAILS, PATIENCE).await;
    eventually("the last to be sent", async || {
        Ok((moved.show(&id(LOCKED)).await?["status"] == "SENT").then_some(()))
    })
    .await?;
    let subjects = sink.mails().into_iter().filter_map(|mail| mail.header("Subject")?.parse().ok());
    let subjects: Vec<usize> = subjects.collect();
    let (last, others) = subjects.split_last().context("nothing was sent")?;
    assert_eq!((*last, others.len()), (LOCKED, MAILS - 1), "{subjects:?}");
    let mut came = Vec::new();
    for n in others {
        came.push(moved.show(&id(*n)).await?["created_at"].as_str().map(str::to_owned));
    }
    assert!(came.is_sorted(), "{subjects:?}");
    Ok(())
}

/// A loop over a batch waits for each of its mails; here one that the relay is slow with holds up no other of
/// its call. Requirement 42.
#[tokio::test]
async fn a_mail_that_the_relay_is_slow_with_holds_up_no_other_of_its_call() -> anyhow::Result<()> {
    const MAILS: usize = 21;
    let at_dot = SinkPause::new();
    let sink =
        SmtpSink::builder().once(SinkVerb::Dot, SinkAction::Hold(at_dot.clone()).recorded()).start().await;
    let moved = Moved::start(sink.port(), &[]).await?;
    post_all(&moved, 1..=MAILS, "ada@example.net").await?;
    at_dot.reached().await;
    let counted = "SELECT status, COUNT(*) FROM emails GROUP BY status ORDER BY status";
    let others = (MAILS - 1).to_string();
    eventually("all others to be sent", async || {
        Ok((moved.sql(counted)? == [["PROCESSING", "1"], ["SENT", others.as_str()]]).then_some(()))
    })
    .await?;
    at_dot.release();
    moved.gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(moved.sql(counted)?, [["SENT".to_owned(), MAILS.to_string()]]);
    Ok(())
}
