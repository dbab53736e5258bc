//! "Stati Disponibili": each of the eleven states is seen in door and table, and is the last row of its
//! history.

use postway_e2e::{ALLOW_LOOPBACK, PATIENCE, eventually};
use postway_testkit::{HttpSource, SinkAction, SinkPause, SinkVerb, SmtpSink, SourceReply};
use serde_json::json;

use super::{Moved, id};

/// How many mails of a tenant are in intake at once.
const AT_ONCE: usize = 8;

/// Requirements 2, 12, 26, 27.
#[tokio::test]
async fn accepted_and_intaking_tell_what_waits_for_its_files() -> anyhow::Result<()> {
    let (sink, source) = (SmtpSink::start().await, HttpSource::start().await);
    let (gate, held) = SourceReply::ok("a file").held();
    let moved = Moved::start(sink.port(), &[ALLOW_LOOPBACK]).await?;
    for n in 1..=AT_ONCE + 2 {
        source.serve(&format!("/{n}"), held.clone());
        let file = json!([{"filename": "a.txt", "url": source.url(&format!("/{n}"))}]);
        moved.post(&id(n), json!({"attachments": file})).await?;
    }
    source.wait_for(AT_ONCE, PATIENCE).await;
    let count = |status: &str| -> anyhow::Result<usize> {
        Ok(moved.sql(&format!("SELECT COUNT(*) FROM emails WHERE status = '{status}'"))?[0][0].parse()?)
    };
    eventually("eight in intake", async || Ok((count("INTAKING")? == AT_ONCE).then_some(()))).await?;
    assert_eq!(count("ACCEPTED")?, 2);
    for n in 1..=AT_ONCE + 2 {
        let shown = moved.agrees(&id(n)).await?;
        let words = moved.history(&id(n))?;
        match shown["status"].as_str() {
            Some("INTAKING") => assert_eq!(words, ["ACCEPTED", "INTAKING"]),
            _ => assert_eq!(words, ["ACCEPTED"]),
        }
    }
    gate.send_replace(true);
    for n in 1..=AT_ONCE + 2 {
        moved.reaches(&id(n), "SENT").await?;
        assert_eq!(moved.history(&id(n))?, ["ACCEPTED", "INTAKING", "READY", "PROCESSING", "SENT"]);
    }

    // Intake that failed has begun as well, and tells when.
    let file = json!([{"filename": "a.txt", "url": source.url("/none")}]);
    moved.post(&id(90), json!({"attachments": file})).await?;
    let invalid = moved.reaches(&id(90), "INVALID").await?;
    assert!(invalid["reason"].as_str().is_some_and(|reason| reason.contains("404")), "{invalid:#}");
    assert_eq!(moved.history(&id(90))?, ["ACCEPTED", "INTAKING", "INVALID"]);
    // One whose source asks for a moment waits for intake again, and is not ready.
    source.serve_in_turn(
        "/later",
        vec![SourceReply::status(503).header("retry-after", "60"), SourceReply::ok("x")],
    );
    let file = json!([{"filename": "a.txt", "url": source.url("/later")}]);
    moved.post(&id(91), json!({"attachments": file})).await?;
    eventually("a wait for intake", async || Ok((moved.history(&id(91))?.len() == 3).then_some(()))).await?;
    moved.reaches(&id(91), "ACCEPTED").await?;
    assert_eq!(moved.history(&id(91))?, ["ACCEPTED", "INTAKING", "ACCEPTED"]);
    Ok(())
}

/// Requirements 2, 5, 6, 8, 10, 28–36, 38.
#[tokio::test]
async fn the_other_nine_states_are_seen_in_door_and_table() -> anyhow::Result<()> {
    let at_dot = SinkPause::new();
    let sink = SmtpSink::builder()
        .rcpt("nobody@", "550 5.1.1 no such user here")
        .once(SinkVerb::Dot, SinkAction::Hold(at_dot.clone()).recorded())
        .start()
        .await;
    let receiver = HttpSource::start().await;
    let ((first, sent), (second, failed)) =
        (SourceReply::status(204).held(), SourceReply::status(200).held());
    receiver.serve_in_turn("/callback", vec![sent, failed]);
    let moved = Moved::start(sink.port(), &[ALLOW_LOOPBACK]).await?;

    moved.gateway.post("/v1/tenants/default/suspend", json!({})).await?;
    moved.post(&id(1), json!({})).await?;
    let ready = moved.reaches(&id(1), "READY").await?;
    assert_eq!(ready["version"], 1, "nothing has changed since it was taken");
    moved.gateway.post("/v1/tenants/default/activate", json!({})).await?;
    at_dot.reached().await;
    let processing = moved.reaches(&id(1), "PROCESSING").await?;
    at_dot.release();
    let left = moved.reaches(&id(1), "SENT").await?;
    for (before, after) in [(&ready, &processing), (&processing, &left)] {
        assert!(after["version"].as_i64() > before["version"].as_i64(), "{before:#} {after:#}");
        assert!(after["updated_at"].as_str() > before["updated_at"].as_str(), "{before:#} {after:#}");
    }
    moved.post(&id(2), json!({"to": "nobody@example.net"})).await?;
    moved.reaches(&id(2), "FAILED").await?;

    // Who asked for callbacks later is told of what comes; the calls are in the tables before they are
    // answered.
    moved.call_back(&receiver).await?;
    moved.post(&id(3), json!({})).await?;
    let sent = moved.reaches(&id(3), "CALLING-SENT-CALLBACK").await?;
    receiver.wait_for(1, PATIENCE).await;
    assert_eq!(moved.agrees(&id(3)).await?, sent, "the call changes nothing more before its answer");
    first.send_replace(true);
    let taken = moved.reaches(&id(3), "SENT-ACKNOWLEDGED").await?;
    moved.post(&id(4), json!({"to": "nobody@example.net"})).await?;
    let failed = moved.reaches(&id(4), "CALLING-FAILED-CALLBACK").await?;
    second.send_replace(true);
    let told = moved.reaches(&id(4), "FAILED-ACKNOWLEDGED").await?;
    for (before, after) in [(&sent, &taken), (&failed, &told)] {
        assert_eq!(after["version"].as_i64(), before["version"].as_i64().map(|version| version + 1));
        assert!(after["updated_at"].as_str() > before["updated_at"].as_str(), "{before:#} {after:#}");
    }
    let words =
        ["ACCEPTED", "READY", "PROCESSING", "FAILED", "CALLING-FAILED-CALLBACK", "FAILED-ACKNOWLEDGED"];
    assert_eq!(moved.history(&id(4))?, words);
    // A poller by `updated_at` sees the acknowledgement.
    let seen = moved.sql(&format!(
        "SELECT id FROM emails WHERE updated_at > (SELECT created_at FROM email_statuses WHERE email_id = '{}' \
         AND status = 'CALLING-SENT-CALLBACK') AND status = 'SENT-ACKNOWLEDGED'",
        id(3)
    ))?;
    assert_eq!(seen, [[id(3)]]);
    moved.agrees(&id(1)).await?;
    Ok(())
}
