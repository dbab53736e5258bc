//! The table `monitored_emails`: each column as API and view tell it, on MariaDB as its users have it, and
//! how far behind it is.

use std::process::Command;

use anyhow::{Context, ensure};
use postway_e2e::{ALLOW_LOOPBACK, Gateway, eventually, text};
use postway_testkit::{
    SmtpSink,
    dovecot::{Dovecot, PASSWORD},
    mariadb::{MariaDb, run_in},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{received, watch};

/// A row of the view, in the order of the reference's columns.
fn row(url: &str, id: &str) -> anyhow::Result<Vec<String>> {
    let (place, socket) = url.split_once("?socket=").context("no socket in the URL")?;
    let views = format!("{place}_views?socket={socket}");
    let columns = "id, email_address, COALESCE(email_password, 'hidden'), COALESCE(description, ''), is_active, last_seen_uid, \
         COALESCE(last_scanned_at, ''), created_at, updated_at";
    let printed = run_in(&views, &format!("SELECT {columns} FROM monitored_emails WHERE id = '{id}'"));
    let mut rows = printed.lines().map(|row| row.split('\t').map(str::to_owned).collect());
    let first = rows.next().with_context(|| format!("no row of {id}"))?;
    ensure!(rows.next().is_none(), "{id} has several rows: {printed}");
    Ok(first)
}

/// The tasks of the mailbox in the view, in the order of their ids.
fn task_rows(url: &str) -> anyhow::Result<Vec<Vec<String>>> {
    let (place, socket) = url.split_once("?socket=").context("no socket in the URL")?;
    let views = format!("{place}_views?socket={socket}");
    let columns = "id, inbox_email, uid, subject, email_date, status, created_at, updated_at, attempt_count, error_message";
    let printed = run_in(
        &views,
        &format!("SELECT {columns} FROM monitored_emails_tasks WHERE inbox_email = 'desk' ORDER BY id"),
    );
    Ok(printed.lines().map(|row| row.split('\t').map(str::to_owned).collect()).collect())
}

/// A time of the API as the view writes it.
fn at(value: &Value, field: &str) -> String {
    text(value, field).replace('T', " ").replace('Z', "000")
}

/// Whatever the database holds, in words and in bytes.
fn dumped(url: &str) -> anyhow::Result<Vec<u8>> {
    let (place, socket) = url.split_once("?socket=").context("no socket in the URL")?;
    let name = place.rsplit('/').next().context("no database in the URL")?;
    let ran = Command::new("mariadb-dump")
        .args(["--no-defaults", "--user=root", "--skip-hex-blob"])
        .arg(format!("--socket={socket}"))
        .arg(name)
        .output()?;
    ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Ok(ran.stdout)
}

/// The mailbox once it was read through this UID.
async fn scanned(gateway: &Gateway, uid: u64) -> anyhow::Result<Value> {
    eventually(&format!("a look as far as {uid}"), async || {
        let shown = gateway.get("/v1/mailboxes/desk").await?;
        Ok((shown["last_seen_uid"] == uid && shown["last_scanned_at"].is_string()).then_some(shown))
    })
    .await
}

/// Requirements 4, 5, 7–16, 18, 19, 21–23.
#[tokio::test]
async fn a_mailbox_and_its_row_say_the_same() -> anyhow::Result<()> {
    let (dovecot, sink) = (Dovecot::start(), SmtpSink::start().await);
    let url = MariaDb::shared().create_database();
    let env = [("POSTWAY_DATABASE_URL", url.as_str()), ALLOW_LOOPBACK];
    let mut gateway = Gateway::start_untouched(&env).await?;
    gateway.relay_to(sink.port()).await?;
    let installed = gateway.run(&["views", "install"], &env, b"").await?;
    ensure!(installed.code == Some(0), "{installed:?}");
    for n in 1..=3 {
        dovecot.append("desk", "INBOX", &received(n, "nothing of note"));
    }

    // Made and not active: nobody looks at it.
    watch(&gateway, &dovecot, "desk", json!({"active": false, "description": "Cases of clients"})).await?;
    let made = gateway.get("/v1/mailboxes/desk").await?;
    let shown = row(&url, "desk")?;
    assert_eq!(shown[..7], ["desk", "desk", "hidden", "Cases of clients", "0", "0", ""], "{made:#}");
    assert_eq!(shown[7..], [at(&made, "created_at"), at(&made, "updated_at")]);
    assert_eq!((&made["active"], &made["last_scanned_at"]), (&json!(false), &Value::Null), "{made:#}");

    // An address is watched once, whatever the second is called.
    let twice = json!({"id": "again", "host": "127.0.0.1", "port": dovecot.port(), "tls": "none", "username": "desk",
        "password": PASSWORD});
    for id in ["again", "desk"] {
        let mut twice = twice.clone();
        twice["id"] = id.into();
        let (status, answer) = gateway.call(Method::POST, "/v1/mailboxes", Some(twice)).await?;
        assert_eq!(status, StatusCode::CONFLICT, "{answer:#}");
    }
    watch(&gateway, &dovecot, "other", json!({})).await?;
    eventually("a look at the other", async || {
        Ok(gateway.get("/v1/mailboxes/other").await?["last_scanned_at"].is_string().then_some(()))
    })
    .await?;
    let asleep = gateway.get("/v1/mailboxes/desk").await?;
    assert_eq!((&asleep["last_scanned_at"], &asleep["last_seen_uid"]), (&Value::Null, &Value::Null));

    // Active: its place and the time of the look are in the database, and a restart begins there.
    gateway.post("/v1/mailboxes/desk/activate", json!({})).await?;
    let first = scanned(&gateway, 3).await?;
    gateway.post("/v1/mailboxes/desk/suspend", json!({})).await?;
    dovecot.append("desk", "INBOX", &received(4, "nothing of note"));
    assert!(gateway.terminate().await?.success());
    let kept = row(&url, "desk")?;
    assert_eq!((kept[4].as_str(), kept[5].as_str()), ("0", "3"), "{kept:?}");
    assert!(kept[6] >= at(&first, "last_scanned_at") && kept[8] > kept[7], "{kept:?}");
    gateway.launch(&env).await?;
    gateway.post("/v1/mailboxes/desk/activate", json!({})).await?;
    let second = scanned(&gateway, 4).await?;
    assert!(text(&second, "last_scanned_at") > text(&first, "last_scanned_at"), "{first:#} {second:#}");
    assert_eq!((&second["created_at"], &second["description"]), (&made["created_at"], &made["description"]));
    assert!(text(&second, "updated_at") > text(&made, "updated_at"), "{second:#}");
    let tasks = eventually("all to wait for a rule", async || {
        let tasks = gateway.get("/v1/inbound?mailbox=desk&status=waiting").await?;
        Ok(tasks["data"].as_array().filter(|tasks| tasks.len() == 4).cloned())
    })
    .await?;

    // And so is each task, the oldest first.
    let shown = task_rows(&url)?;
    assert_eq!(shown.len(), 4, "each is there once: {shown:?}");
    for (n, (row, task)) in shown.iter().zip(tasks.iter().rev()).enumerate() {
        let uid = (n + 1).to_string();
        let (date, came) = ("2026-11-15 04:00:00.000000".to_owned(), at(task, "created_at"));
        let expected = [text(task, "id"), "desk", &uid, "nothing of note", &date, "error", &*came];
        assert_eq!(row[..7], expected, "{task:#}");
        assert!(row[7] >= row[6], "it was changed after it came: {row:?}");
        // To wait for a rule is no attempt.
        assert_eq!((row[8].as_str(), task["attempts"].as_i64()), ("0", Some(0)), "{task:#}");
        assert!(row[9].contains("no active rule"), "{row:?}");
    }

    // The password is shown by none of them, and is kept nowhere as it is.
    assert!(second["password_set"] == true && !second.to_string().contains(PASSWORD), "{second:#}");
    assert!(!gateway.log().contains(PASSWORD));
    let kept = dumped(&url)?;
    let has = |words: &str| kept.windows(words.len()).any(|window| window == words.as_bytes());
    assert!(has("Cases of clients"), "the dump is one");
    assert!(!has(PASSWORD), "the password is in the database as it is");
    Ok(())
}

/// `当前最大UID - last_seen_uid`: a mailbox that died in the middle says how much is left, though its server is
/// out of reach. Requirement 34.
#[tokio::test]
async fn a_mailbox_that_was_not_read_to_its_end_says_how_far_behind_it_is() -> anyhow::Result<()> {
    const MAILS: usize = 250;
    let dovecot = Dovecot::start();
    let mails: Vec<Vec<u8>> = (0..MAILS).map(|n| received(n, "nothing of note")).collect();
    dovecot.append_all("desk", "INBOX", &mails);
    let mut gateway = Gateway::idle()?;
    // Where it begins, a page, and in the next one it dies.
    gateway.launch(&[("FAILPOINTS", "inbound_after_register=2*off->return")]).await?;
    watch(&gateway, &dovecot, "desk", json!({})).await?;
    gateway.ended().await?;
    dovecot.kill();
    gateway.launch(&[]).await?;
    let failing = eventually("a fault", async || {
        let shown = gateway.get("/v1/mailboxes/desk").await?;
        Ok(shown["error"].is_string().then_some(shown))
    })
    .await?;
    let (seen, lag) = (failing["last_seen_uid"].as_u64(), failing["lag"].as_u64());
    assert_eq!(seen.zip(lag).map(|(seen, lag)| seen + lag), Some(MAILS as u64), "{failing:#}");
    assert!(seen > Some(0) && lag > Some(0), "{failing:#}");
    assert!(failing["last_scanned_at"].is_null(), "it was never read to its end: {failing:#}");

    dovecot.start_again();
    eventually("nothing to be left", async || {
        let shown = gateway.get("/v1/mailboxes/desk").await?;
        Ok((shown["lag"] == 0 && shown["error"].is_null() && shown["last_scanned_at"].is_string())
            .then_some(()))
    })
    .await
    .with_context(|| gateway.log())?;
    let metrics = String::from_utf8(gateway.bytes("/metrics").await?.2)?;
    assert!(metrics.contains("postway_mailbox_lag{tenant=\"default\",mailbox=\"desk\"} 0\n"), "{metrics}");
    let tasks = gateway.get("/v1/inbound?mailbox=desk&limit=500").await?;
    assert_eq!(tasks["data"].as_array().map(Vec::len), Some(MAILS), "each once");
    Ok(())
}
