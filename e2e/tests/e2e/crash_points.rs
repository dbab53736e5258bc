//! The process dies at a named point, as by `kill -9`, and starts again. Before the permission for the dot is
//! durable a mail goes out once, without doubt; after it exactly that mail is in doubt, and goes out again.

use postway_e2e::{Gateway, column, copies, event_types, events_of, eventually, mail, mail_with, text};
use postway_testkit::{SinkAction, SinkVerb, SmtpSink, mariadb::MariaDb, postgres::PostgresDatabase};
use reqwest::Method;
use serde_json::json;

/// More than one mail takes, so that the crash strikes each of them; twice as many where a start made many by
/// itself.
const COMMITS: usize = 6;
/// After this many tries something else is wrong.
const ROUNDS_MAX: usize = 30;

/// Submits one mail that meets the failpoint, restarts, and checks the state of that mail.
async fn crash_at(point: &str, in_doubt: bool, copies_expected: &[usize]) -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.send(mail("calm", "ada@example.net")).await?;
    gateway.wait_for("calm", "sent").await?;
    assert!(gateway.terminate().await?.success());

    gateway.launch(&[("FAILPOINTS", &format!("{point}=1*return"))]).await?;
    // The crash may come before the answer is out: then the client knows nothing, and asks again below.
    let acknowledged = gateway.send(mail("struck", "ada@example.net")).await.is_ok();
    assert!(!gateway.ended().await?.success(), "{point} was not met");
    gateway.launch(&[]).await?;
    if acknowledged {
        gateway.message("struck").await?;
    }
    let uid = gateway.send(mail("struck", "ada@example.net")).await?;

    let message = gateway.wait_for("struck", "sent").await?;
    let copies = copies(&sink, &uid);
    assert_eq!(events_of(&message, "in_doubt"), usize::from(in_doubt), "{point}: {message:#}");
    assert!(copies_expected.contains(&copies), "{point}: the relay has {copies} copies");
    let steps = match in_doubt {
        true => ["in_doubt", "sending", "resent", "sent"].as_slice(),
        false => &["ready", "sending", "sent"],
    };
    let steps = [["accepted", "validated", "ready", "sending"].as_slice(), steps].concat();
    assert_eq!(event_types(&message), steps, "{point}");
    assert_eq!(column(&message, "recipients", "status"), ["sent"]);
    let calm = gateway.message("calm").await?;
    assert_eq!(
        event_types(&calm),
        ["accepted", "validated", "ready", "sending", "sent"],
        "the others are untouched"
    );
    assert_eq!(sink.mails().len(), copies + 1);
    Ok(())
}

#[tokio::test]
async fn a_crash_before_mail_leaves_no_doubt() -> anyhow::Result<()> {
    crash_at("smtp_before_mail", false, &[1]).await
}

#[tokio::test]
async fn a_crash_between_recipients_and_body_leaves_no_doubt() -> anyhow::Result<()> {
    crash_at("smtp_after_rcpt", false, &[1]).await
}

#[tokio::test]
async fn a_crash_between_body_and_permission_leaves_no_doubt() -> anyhow::Result<()> {
    crash_at("smtp_after_body", false, &[1]).await
}

#[tokio::test]
async fn a_crash_between_permission_and_dot_leaves_that_mail_in_doubt() -> anyhow::Result<()> {
    crash_at("smtp_after_gate", true, &[1]).await
}

#[tokio::test]
async fn a_crash_between_dot_and_reply_leaves_that_mail_in_doubt() -> anyhow::Result<()> {
    crash_at("smtp_after_dot", true, &[1, 2]).await
}

#[tokio::test]
async fn a_crash_between_reply_and_record_leaves_that_mail_in_doubt() -> anyhow::Result<()> {
    crash_at("smtp_after_reply", true, &[2]).await
}

/// Dies at the first, second, … commit after a start, whatever that commit is about: an accept, a claim, a
/// permission, an outcome. The rules hold at each.
async fn crash_at_commits(point: &str) -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    assert!(gateway.terminate().await?.success());

    let (mut crashes, mut unanswered, mut round) = (0, 0, 0);
    // How many commits a start makes by itself is a matter of timing: go round until an accept was struck
    // too.
    while round < COMMITS || (unanswered == 0 && round < ROUNDS_MAX) {
        let (id, failpoint) =
            (format!("mail-{round}"), format!("{point}={}*off->1*return", round % (2 * COMMITS)));
        let mut acknowledged = false;
        match gateway.launch(&[("FAILPOINTS", &failpoint)]).await {
            Ok(()) => {
                acknowledged = gateway.send(mail(&id, "ada@example.net")).await.is_ok();
                unanswered += usize::from(!acknowledged);
                crashes += usize::from(crashes_before_sent(&mut gateway, &id).await?);
            }
            // Struck by a commit of its own before it could say that it listens.
            Err(error) => {
                assert!(error.to_string().contains("SIGABRT"), "{error}");
                crashes += 1;
            }
        }
        gateway.launch(&[]).await?;
        if acknowledged {
            gateway.message(&id).await?;
        }
        let uid = gateway.send(mail(&id, "ada@example.net")).await?;
        let message = gateway.wait_for(&id, "sent").await?;
        let copies = copies(&sink, &uid);
        let doubts = events_of(&message, "in_doubt");
        assert!((1..=1 + doubts).contains(&copies), "{failpoint}: {copies} copies, {message:#}");
        assert!(gateway.terminate().await?.success());
        round += 1;
    }
    // An accept, a permission and an outcome are the least that a mail takes.
    assert!(crashes >= 3, "the failpoint was met {crashes} times");
    assert!(unanswered > 0, "no crash struck an accept");
    Ok(())
}

/// Dies before and after commits while a message takes the place of one in doubt and is then given another
/// time. Each is whole or absent, and is done when it is asked for again.
#[tokio::test]
async fn a_successor_and_its_new_time_are_whole_or_absent_whichever_commit_is_struck() -> anyhow::Result<()> {
    let sink = SmtpSink::builder()
        .rule(|event| (event.verb == SinkVerb::Dot).then(|| SinkAction::Cut.recorded()))
        .start()
        .await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"retry": {"delays_s": [3600], "jitter": 0.0}})).await?;
    let tomorrow = gateway.now().await?.as_second() + 24 * 3600;
    let (mut unanswered, mut round) = ([0, 0], 0);
    while round < 8 || (unanswered.contains(&0) && round < ROUNDS_MAX) {
        let (older, newer, key) = (format!("old-{round}"), format!("new-{round}"), format!("key-{round}"));
        gateway.send(mail_with(&older, "ada@example.net", json!({"collapse_key": key}))).await?;
        gateway.wait_for(&older, "in_doubt").await?;
        gateway.kill().await?;
        let succeed = async |gateway: &Gateway| {
            let terms = json!({"collapse_key": key, "send_at": tomorrow});
            gateway.send(mail_with(&newer, "ada@example.net", terms)).await
        };
        let move_on = async |gateway: &Gateway| {
            let path = format!("/v1/messages/{newer}/reschedule");
            gateway.post(&path, json!({"send_at": tomorrow + 3600})).await
        };
        let point = ["store_before_commit", "store_after_commit"][round % 2];
        let failpoint = format!("{point}={}*off->1*return", round / 2 % 12);
        let (mut taken, mut moved) = (false, false);
        if gateway.launch(&[("FAILPOINTS", &failpoint)]).await.is_ok() {
            taken = succeed(&gateway).await.is_ok();
            moved = taken && move_on(&gateway).await.is_ok();
            unanswered[0] += usize::from(!taken);
            unanswered[1] += usize::from(taken && !moved);
            gateway.kill().await?;
        }
        gateway.launch(&[]).await?;
        let (status, found) = gateway.call(Method::GET, &format!("/v1/messages/{newer}"), None).await?;
        assert!(status.is_success() || !taken, "{failpoint}: {found:#}");
        let is_held = async |gateway: &Gateway| -> anyhow::Result<bool> {
            let message = gateway.message(&older).await?;
            assert_eq!(text(&message, "status"), "in_doubt", "{failpoint}: {message:#}");
            Ok(message["due_at"].is_null())
        };
        assert_eq!(is_held(&gateway).await?, status.is_success(), "{failpoint}: one without the other");
        if status.is_success() {
            let times = events_of(&found, "scheduled");
            let due = text(&found, "due_at").parse::<jiff::Timestamp>()?.as_second();
            assert_eq!(due > tomorrow, times == 2, "{failpoint}: {found:#}");
            assert!(times == 2 || !moved, "{failpoint}: what was answered is gone: {found:#}");
        }
        succeed(&gateway).await?;
        move_on(&gateway).await?;
        assert!(is_held(&gateway).await?, "{failpoint}");
        round += 1;
    }
    assert!(!unanswered.contains(&0), "no crash struck one of them: {unanswered:?}");
    Ok(())
}

/// Waits for the crash, or for the end of a mail that needed fewer commits; then there is none to wait for.
async fn crashes_before_sent(gateway: &mut Gateway, id: &str) -> anyhow::Result<bool> {
    let crashed = eventually("a crash or an outcome", async || {
        if !gateway.is_running()? {
            return Ok(Some(true));
        }
        let sent = gateway.message(id).await.is_ok_and(|message| message["status"] == "sent");
        Ok(sent.then_some(false))
    })
    .await?;
    match crashed {
        true => assert!(!gateway.ended().await?.success()),
        false => gateway.kill().await?,
    }
    Ok(crashed)
}

#[tokio::test]
async fn a_crash_before_any_commit_loses_nothing_acknowledged() -> anyhow::Result<()> {
    crash_at_commits("store_before_commit").await
}

#[tokio::test]
async fn a_crash_after_any_commit_loses_nothing_acknowledged() -> anyhow::Result<()> {
    crash_at_commits("store_after_commit").await
}

/// A migration that is cut short is done whole by the next one.
async fn crash_in_migration(url: &str) -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let migrate = async |verb: &str, points: &str| {
        gateway.run(&["migrate", verb], &[("POSTWAY_DATABASE_URL", url), ("FAILPOINTS", points)], b"").await
    };
    let struck = migrate("up", "store_migration=1*return").await?;
    assert_eq!(struck.code, None, "it was not met: {struck:?}");
    let status = migrate("status", "").await?;
    assert!(status.out.contains("missing") && !status.out.contains("applied"), "{status:?}");
    // The server may not have noticed yet that the one before is gone.
    eventually("the migration", async || Ok(migrate("up", "").await?.code.filter(|code| *code == 0))).await?;
    let status = migrate("status", "").await?;
    assert!(status.out.contains("applied") && !status.out.contains("missing"), "{status:?}");
    Ok(())
}

#[tokio::test]
async fn a_migration_cut_short_is_done_whole_by_the_next() -> anyhow::Result<()> {
    let folder = tempfile::TempDir::new()?;
    crash_in_migration(&format!("sqlite://{}", folder.path().join("postway.db").display())).await
}

#[tokio::test]
async fn so_it_is_on_postgresql() -> anyhow::Result<()> {
    crash_in_migration(&PostgresDatabase::create().url()).await
}

#[tokio::test]
async fn so_it_is_on_mariadb() -> anyhow::Result<()> {
    crash_in_migration(&MariaDb::shared().create_database()).await
}
