//! Telling again what was given up: one command, page by page, also where the gateway dies in the middle of
//! it.

use std::collections::{BTreeMap, BTreeSet};

use postway_e2e::{ALLOW_LOOPBACK, Gateway, PATIENCE, Receiver, eventually, mail_with};
use postway_testkit::{SourceReply, postgres::PostgresDatabase};
use serde_json::{Value, json};

/// Notifications that a transaction makes due.
const PAGE: usize = 500;

/// How many notifications stand so.
fn count(database: &PostgresDatabase, condition: &str) -> usize {
    let counted = database.run(&format!("SELECT COUNT(*) FROM notification WHERE {condition}"));
    counted.trim().parse().expect("a number")
}

#[tokio::test]
async fn what_was_given_up_is_told_again_by_one_command_even_through_a_crash() -> anyhow::Result<()> {
    const MAILS: usize = 600;
    const EVENTS: usize = 2 * MAILS;
    let database = PostgresDatabase::create();
    let url = database.url();
    let env = [ALLOW_LOOPBACK, ("POSTWAY_DATABASE_URL", url.as_str())];
    let mut gateway = Gateway::start_with(&env).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    let sandboxed =
        |number| mail_with(&format!("mail-{number}"), "ada@example.net", json!({"account": "sandbox"}));
    let mails: Vec<Value> = (0..MAILS).map(sandboxed).collect();
    for some in mails.chunks(100) {
        let answer = gateway.post("/v1/messages/batch", json!({"messages": some})).await?;
        assert_eq!(answer["accepted"], some.len(), "{answer:#}");
    }
    eventually("all of it is told", async || Ok((count(&database, "state = 3") == EVENTS).then_some(())))
        .await?;
    assert!(gateway.terminate().await?.success());
    let before = receiver.count();
    assert_eq!(before, EVENTS);
    // As if no call had helped: that takes a week.
    database.run("UPDATE notification SET state = 4");

    let resend = ["webhooks", "resend", receiver.id.as_str(), "--since", "2020-01-01T00:00:00Z"];
    // It dies behind the second page.
    let dying = [&env[..], &[("FAILPOINTS", "notify_after_resend=1*off->return")]].concat();
    gateway.launch(&dying).await?;
    let ran = gateway.cli(&resend).await?;
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(!gateway.ended().await?.success(), "the failpoint was not met");
    assert_eq!(count(&database, "state = 4"), EVENTS - 2 * PAGE, "each is as it was, or is told again");

    gateway.launch(&env).await?;
    let ran = gateway.cli(&resend).await?;
    assert_eq!(ran.out.trim(), format!("{} are delivered again", EVENTS - 2 * PAGE), "{ran:?}");
    let ran = gateway.cli(&resend).await?;
    assert_eq!(ran.out.trim(), "0 are delivered again", "{ran:?}");
    receiver.wait_for(before + EVENTS, PATIENCE).await;
    eventually("all of it is taken", async || Ok((count(&database, "state = 3") == EVENTS).then_some(())))
        .await?;

    let calls = receiver.calls()?;
    let ids: BTreeSet<&str> = calls[..before].iter().map(|call| call.id.as_str()).collect();
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for call in &calls[before..] {
        assert!(ids.contains(call.id.as_str()), "it comes under the id that it had");
        let told = kinds.entry(call.message()).or_default();
        // A call whose answer was lost with the process comes again.
        if told.last() != Some(&call.kind()) {
            told.push(call.kind());
        }
    }
    assert_eq!(kinds.len(), MAILS);
    for (mail, told) in &kinds {
        assert_eq!(told, &["email.accepted", "email.sent"], "{mail}");
    }
    Ok(())
}
