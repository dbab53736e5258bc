//! SIGTERM: what is on the wire is finished, what is not started is left for the next run.

use std::time::Duration;

use postway_e2e::{Gateway, PATIENCE, event_types, events_of, mail};
use postway_testkit::{SinkAction, SinkPause, SinkVerb, SmtpSink};
use serde_json::json;
use tokio::time::Instant;

const STOPPING: &str = "stopping: finishing what is on the wire";
/// Below the usual bound of 30 s.
const SOON: Duration = Duration::from_secs(25);

/// A relay that keeps the first final dot waiting, and a gateway with a mail at that point.
async fn held_at_the_dot(env: &[(&str, &str)]) -> anyhow::Result<(SmtpSink, SinkPause, Gateway)> {
    let hold = SinkPause::new();
    let sink = SmtpSink::builder().once(SinkVerb::Dot, SinkAction::Hold(hold.clone())).start().await;
    let gateway = Gateway::start_with(env).await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 1})).await?;
    gateway.send(mail("slow", "ada@example.net")).await?;
    hold.reached().await;
    Ok((sink, hold, gateway))
}

#[tokio::test]
async fn a_stop_waits_for_the_relays_answer() -> anyhow::Result<()> {
    let (sink, hold, mut gateway) = held_at_the_dot(&[]).await?;
    gateway.signal("TERM").await?;
    gateway.wait_for_log(STOPPING, 1).await?;
    assert!(gateway.is_running()?);
    hold.release();
    assert!(gateway.ended().await?.success());

    gateway.launch(&[]).await?;
    let message = gateway.wait_for("slow", "sent").await?;
    assert_eq!(event_types(&message), ["accepted", "validated", "ready", "sending", "sent"]);
    assert_eq!(sink.mails().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_second_signal_stops_at_once() -> anyhow::Result<()> {
    // Longer than any test waits.
    let patient = [("POSTWAY_DISPATCH_DRAIN_SECONDS", "600")];
    let (_sink, _hold, mut gateway) = held_at_the_dot(&patient).await?;
    gateway.signal("TERM").await?;
    gateway.wait_for_log(STOPPING, 1).await?;
    gateway.signal("TERM").await?;
    gateway.ended().await?;

    gateway.launch(&[]).await?;
    let message = gateway.wait_for("slow", "sent").await?;
    assert_eq!(events_of(&message, "in_doubt"), 1, "its answer was not waited for: {message:#}");
    Ok(())
}

#[tokio::test]
async fn what_was_not_started_is_sent_once_after_the_restart() -> anyhow::Result<()> {
    let (sink, hold, mut gateway) = held_at_the_dot(&[]).await?;
    // The stop begins a moment after it is logged; what follows takes longer than that.
    let slow = SinkAction::Delay(Duration::from_millis(500)).recorded();
    sink.add_rule(move |event| (event.verb == SinkVerb::Dot).then(|| slow.clone()));
    let waiting = ["w1", "w2", "w3", "w4"];
    for id in waiting {
        gateway.send(mail(id, "ada@example.net")).await?;
    }
    gateway.signal("TERM").await?;
    gateway.wait_for_log(STOPPING, 1).await?;
    hold.release();
    assert!(gateway.ended().await?.success());
    let sent = sink.mails().len();
    assert!(sent <= 2, "a stop takes no new work: {sent}");

    gateway.launch(&[]).await?;
    let mails = sink.wait_for(1 + waiting.len(), PATIENCE).await;
    for id in waiting.into_iter().chain(["slow"]) {
        let message = gateway.wait_for(id, "sent").await?;
        assert_eq!(events_of(&message, "in_doubt"), 0, "{message:#}");
        assert!(!message.to_string().contains("lease lost"), "it was given back in order: {message:#}");
    }
    assert_eq!(mails.len(), 1 + waiting.len(), "each went once");
    Ok(())
}

#[tokio::test]
async fn a_relay_that_never_answers_cannot_hold_up_a_stop() -> anyhow::Result<()> {
    let (_sink, _hold, mut gateway) = held_at_the_dot(&[("POSTWAY_DISPATCH_DRAIN_SECONDS", "1")]).await?;
    let asked = Instant::now();
    assert!(gateway.terminate().await?.success());
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());

    gateway.launch(&[]).await?;
    let message = gateway.wait_for("slow", "sent").await?;
    assert_eq!(
        event_types(&message),
        ["accepted", "validated", "ready", "sending", "in_doubt", "sending", "resent", "sent"]
    );
    Ok(())
}
