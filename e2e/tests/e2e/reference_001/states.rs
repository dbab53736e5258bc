//! "Message States": each is seen by door and table while it lasts.

use postway_testkit::{SinkPause, SourceReply};
use serde_json::json;

use super::{World, message, notification};

/// While the relay thinks, and while the client has not taken the report. Requirements 1, 2, 7, 8, 10, 11, 13.
#[tokio::test]
async fn each_state_is_seen_while_it_lasts() -> anyhow::Result<()> {
    let world = World::make().await?;
    world.watch().await?;
    let (reported, held) = SourceReply::ok("OK").held();
    world.client.serve("/mail-proxy/sync", held);
    world.gateway.patch("/v1/accounts/relay", json!({"max_connections": 1})).await?;
    let seen = async |id: &str, status: &str| -> anyhow::Result<()> {
        world.until_status(id, status).await?;
        assert_eq!(world.viewed(id, &["status"]), [status], "{id}");
        Ok(())
    };

    let at_dot = SinkPause::new();
    world.relay.hold_next_dot(&at_dot);
    world.add(vec![message("first", "ada@example.net")]).await?;
    at_dot.reached().await;
    // More than one connection has in hand.
    world.add((0..8).map(|n| message(&format!("later-{n}"), "ada@example.net")).collect()).await?;
    seen("first", "SENDING").await?;
    seen("later-7", "PENDING").await?;
    at_dot.release();
    seen("first", "SENT").await?;
    world.add(vec![message("refused", "nobody@example.net")]).await?;
    seen("refused", "ERROR").await?;

    let words = "550 5.1.1 <ada@example.net> user unknown";
    let bounce = notification(&world.mail("first"), "ada@example.net", "failed", "5.1.1", words);
    world.come_back(&bounce);
    seen("first", "BOUNCED").await?;
    let shown = world.shown("first").await?;
    assert!(shown["reported_ts"].is_null() && shown["bounce_reported_ts"].is_null(), "{shown:#}");

    reported.send_replace(true);
    seen("refused", "REPORTED").await?;
    seen("first", "REPORTED").await?;
    let shown = world.until("first", "reported", |shown| shown["bounce_reported_ts"].is_i64()).await?;
    assert!(shown["reported_ts"].is_i64(), "{shown:#}");
    Ok(())
}
