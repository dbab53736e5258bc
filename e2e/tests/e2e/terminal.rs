//! Many messages at a terminal: lists that say to whom and why, and commands that take more than one.

use postway_e2e::{Gateway, mail_with};
use serde_json::json;

#[tokio::test]
async fn lists_say_to_whom_and_why_and_commands_take_many() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    gateway.post("/v1/accounts/sandbox/suspend", json!({})).await?;
    for n in 0..5 {
        let fields = json!({"account": "sandbox", "subject": format!("Order {n}")});
        gateway.send(mail_with(&format!("order-{n}"), &format!("ada{n}@example.net"), fields)).await?;
    }
    let listed = gateway.cli(&["messages", "list", "--held-by", "any"]).await?;
    for words in ["TO", "WHY", "DUE", "ada3@example.net", "account:sandbox"] {
        assert!(listed.out.contains(words), "{words}: {listed:?}");
    }
    let none = gateway.cli(&["messages", "list", "--held-by", "tenant"]).await?;
    assert!(none.out.is_empty() && none.err.contains("no messages"), "{none:?}");
    let found = gateway.cli(&["messages", "list", "ada3@", "--json"]).await?;
    assert!(found.out.contains("order-3") && !found.out.contains("order-2"), "{found:?}");

    let cancelled = gateway.cli(&["messages", "cancel", "order-0", "order-1"]).await?;
    assert_eq!((cancelled.code, cancelled.out.lines().count()), (Some(0), 2), "{cancelled:?}");
    let piped = gateway.cli_with(&["messages", "cancel", "-"], b"order-2 ready\norder-3\nnobody\n").await?;
    assert_eq!(piped.code, Some(4), "{piped:?}");
    assert!(
        piped.err.contains("1 of 3 were left as they were") && piped.err.contains("nobody: "),
        "{piped:?}"
    );
    for n in 0..4 {
        gateway.wait_for(&format!("order-{n}"), "cancelled").await?;
    }
    let wrong = gateway.cli(&["messages", "list", "--outcome", "lost"]).await?;
    assert!(wrong.code == Some(4) && wrong.err.contains("must be delivered, bounced"), "{wrong:?}");
    let dead = gateway.cli(&["dead-letters", "list"]).await?;
    assert!(dead.code == Some(0) && dead.err.contains("no dead letters"), "{dead:?}");
    let none = gateway.cli(&["dead-letters", "replay", "--all"]).await?;
    assert!(none.out.contains("0 are in the queue again"), "{none:?}");
    Ok(())
}
