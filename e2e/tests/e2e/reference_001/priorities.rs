//! "Priority Levels": 0 before 1 before 2 before 3, through the door and the one connection of an account.

use postway_e2e::PATIENCE;
use postway_testkit::ReceivedMail;
use serde_json::{Value, json};

use super::{World, message, with};

/// How many of each.
const EACH: usize = 10;

/// What is queued at once, the least urgent first, leaves in the order of urgency; one without a priority is
/// normal. Requirements 55, 56.
#[tokio::test]
async fn zero_goes_before_one_before_two_before_three() -> anyhow::Result<()> {
    let world = World::make().await?;
    world.gateway.patch("/v1/accounts/relay", json!({"max_connections": 1})).await?;
    world.gateway.post("/commands/suspend?tenant_id=default", json!({})).await?;
    let of = |priority: Option<usize>, n: usize| {
        let word = priority.map_or("none".to_owned(), |priority| priority.to_string());
        let fields = priority.map_or(json!({}), |priority| json!({"priority": priority}));
        with(message(&format!("{word}-{n}"), "ada@example.net"), fields)
    };
    let priorities = [Some(3), Some(2), None, Some(1), Some(0)];
    let mut all: Vec<Value> = Vec::new();
    for priority in priorities {
        all.extend((0..EACH).map(|n| of(priority, n)));
    }
    let count = all.len();
    // By one call, so that none has waited longer than another: who waits rises.
    assert_eq!(world.add(all).await?["queued"], count);
    world.gateway.post("/commands/activate?tenant_id=default", json!({})).await?;
    let mails = world.relay.wait_for(count, PATIENCE).await;
    let word = |mail: &ReceivedMail| {
        let id = mail.header("X-Genro-Mail-ID").unwrap_or_default();
        match id.split('-').next() {
            Some("none") => "2".to_owned(),
            other => other.unwrap_or_default().to_owned(),
        }
    };
    let order: String = mails.iter().map(word).collect();
    let expected = ["0".repeat(EACH), "1".repeat(EACH), "2".repeat(2 * EACH), "3".repeat(EACH)].concat();
    assert_eq!(order, expected);
    Ok(())
}
