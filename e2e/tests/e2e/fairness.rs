//! What is urgent does not wait behind what is not.

use postway_e2e::{Gateway, PATIENCE, mail_with};
use postway_testkit::{Action, Hold, SmtpSink, Verb};
use serde_json::{Value, json};

#[tokio::test]
async fn an_immediate_mail_goes_before_a_backlog_of_low_ones() -> anyhow::Result<()> {
    const BACKLOG: usize = 40;
    let hold = Hold::new();
    let sink = SmtpSink::builder().on(Verb::Dot, Action::Hold(hold.clone())).start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 1})).await?;
    let low: Vec<Value> = (0..BACKLOG)
        .map(|n| mail_with(&format!("low-{n}"), "ada@example.net", json!({"priority": "low"})))
        .collect();
    gateway.post("/v1/messages/batch", json!({"messages": low})).await?;
    hold.reached().await;
    let urgent =
        gateway.send(mail_with("urgent", "ada@example.net", json!({"priority": "immediate"}))).await?;
    hold.release();

    let mails = sink.wait_for(BACKLOG + 1, PATIENCE).await;
    let place = mails.iter().position(|mail| mail.postway_id.as_deref() == Some(&urgent));
    // Ahead of it is what was on the wire, and at most what the connection took next before a place was free.
    assert!(place.is_some_and(|place| place <= 2), "it came at {place:?}");
    Ok(())
}
