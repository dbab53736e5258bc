//! Bulk actions on the real binary: killed in the middle, asked for from the command line, stopped.

use postway_e2e::{Gateway, events_of, eventually, mail_with, text};
use reqwest::Method;
use serde_json::{Value, json};

const MAILS: usize = 2_500;

/// A gateway with mail that waits, because its account is suspended.
async fn with_waiting(mails: usize) -> anyhow::Result<Gateway> {
    let gateway = Gateway::start().await?;
    gateway.post("/v1/accounts/sandbox/suspend", json!({})).await?;
    for start in (0..mails).step_by(200) {
        let some = start..(start + 200).min(mails);
        let messages: Vec<Value> = some
            .map(|n| mail_with(&format!("mail-{n}"), "ada@example.net", json!({"account": "sandbox"})))
            .collect();
        gateway.post("/v1/messages/batch", json!({"messages": messages})).await?;
    }
    Ok(gateway)
}

async fn ended(gateway: &Gateway, id: &str) -> anyhow::Result<Value> {
    eventually("the bulk action to end", async || {
        let now = gateway.get(&format!("/v1/bulk-actions/{id}")).await?;
        Ok((now["state"] != "running").then_some(now))
    })
    .await
}

/// `kill -9` at a commit of a slice, several times: each message is cancelled once, and the count is exact.
#[tokio::test]
async fn a_killed_gateway_goes_on_with_its_bulk_actions() -> anyhow::Result<()> {
    let mut gateway = with_waiting(MAILS).await?;
    let body = json!({"action": "cancel", "filter": {"waiting": true}, "at_most": MAILS});
    let begun = gateway.post("/v1/bulk-actions", body).await?;
    let id = text(&begun, "id").to_owned();
    assert_eq!(begun["expected"], MAILS);
    gateway.kill().await?;
    for moment in ["store_before_commit", "store_after_commit", "store_after_commit"] {
        // Eight commits, some of them slices: fewer than there are, so each life ends in the middle.
        let failpoint = format!("{moment}=8*off->return");
        gateway.launch_early(&[("FAILPOINTS", &failpoint)]).await?;
        let _ = gateway.ended().await?;
    }
    gateway.launch(&[]).await?;
    let done = ended(&gateway, &id).await?;
    assert_eq!(
        (&done["state"], &done["changed"], &done["skipped"]),
        (&json!("finished"), &json!(MAILS), &json!(0))
    );
    for n in [0, 99, 100, 101, 250, MAILS - 1] {
        let message = gateway.message(&format!("mail-{n}")).await?;
        assert_eq!(message["status"], "cancelled");
        assert_eq!(events_of(&message, "cancelled"), 1, "{message:#}");
    }
    let stats = gateway.get("/v1/stats").await?;
    assert_eq!(stats["by_status"]["cancelled"], MAILS, "{stats}");
    let audit = gateway.get("/v1/audit?limit=100").await?;
    let ends =
        audit["data"].as_array().into_iter().flatten().filter(|one| one["action"] == "bulk_action.finish");
    assert_eq!(ends.count(), 1, "its end is recorded once");
    Ok(())
}

#[tokio::test]
async fn the_command_line_says_what_it_would_do_and_does_it() -> anyhow::Result<()> {
    let gateway = with_waiting(3).await?;
    let plan = gateway.cli(&["bulk", "cancel", "--waiting", "--dry-run"]).await?;
    assert!(plan.out.contains("3 messages match; cancel applies to 3 of them"), "{plan:?}");
    // Without a terminal nothing is asked, and nothing is done.
    let asked = gateway.cli(&["bulk", "cancel", "--waiting"]).await?;
    assert_eq!(asked.code, Some(2), "{asked:?}");
    assert_eq!(gateway.message("mail-0").await?["status"], "ready");
    let done = gateway.cli(&["bulk", "cancel", "--waiting", "--yes"]).await?;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("finished"), "{done:?}");
    assert_eq!(gateway.message("mail-0").await?["status"], "cancelled");
    let listed = gateway.cli(&["bulk", "list"]).await?;
    assert!(listed.out.contains("cancel") && listed.out.contains("finished"), "{listed:?}");
    let id = gateway.get("/v1/bulk-actions").await?["data"][0]["id"].as_str().unwrap_or_default().to_owned();
    let (status, _) = gateway.call(Method::POST, &format!("/v1/bulk-actions/{id}/stop"), None).await?;
    assert_eq!(status.as_u16(), 409, "it has ended");
    Ok(())
}
