//! A node whose way to the database goes silent while another's does not: it stops before the other takes its
//! mail over.

use std::time::Duration;

use postway_e2e::{copies, event_types, events_of, eventually, mail, nodes_of, start_node};
use postway_testkit::{
    SinkAction, SinkPause, SinkVerb, SmtpSink, postgres::PostgresDatabase, tcp_proxy::TcpProxy,
};
use serde_json::json;
use tokio::time::Instant;

/// Well below the minute after which a writer gives a step up, and many times what it takes to notice.
const NOTICED_WITHIN: Duration = Duration::from_secs(45);

#[tokio::test]
async fn a_permission_whose_answer_came_too_late_is_not_used() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let cable = TcpProxy::to(&database.url()).await;
    let sink = SmtpSink::start().await;
    let busy = start_node(cable.url(), "busy.example").await?;
    busy.relay_with(sink.port(), json!({"max_connections": 2})).await?;
    // The permission for the dot is durable, and the node does not hear of it.
    let silence = cable.silence_after([b"SET wire_committed = TRUE", b"COMMIT"]);
    let (uid, ()) = tokio::join!(busy.send(mail("one", "ada@example.net")), silence);
    let uid = uid?;
    let other = start_node(&database.url(), "other.example").await?;
    let one = other.wait_for("one", "sent").await?;
    assert_eq!(
        event_types(&one),
        ["accepted", "validated", "ready", "sending", "in_doubt", "sending", "resent", "sent"]
    );
    assert_eq!(copies(&sink, &uid), 1, "the other's");
    busy.wait_for_log("this node is isolated", 1).await?;

    cable.mend();
    busy.wait_for_log("this node is not isolated any more", 1).await?;
    busy.wait_for_log("an outcome came too late and was refused", 1).await?;
    let mails = sink.mails();
    assert_eq!(mails.iter().map(|mail| mail.helo.as_str()).collect::<Vec<_>>(), ["other.example"]);
    busy.send(mail("two", "ada@example.net")).await?;
    other.wait_for("two", "sent").await?;
    Ok(())
}

#[tokio::test]
async fn outcomes_land_soon_after_every_connection_went_silent() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let cable = TcpProxy::to(&database.url()).await;
    let (hold, mails) = (SinkPause::new(), 10);
    let at_dot = hold.clone();
    let sink = SmtpSink::builder().on(SinkVerb::Dot, SinkAction::Hold(at_dot).recorded()).start().await;
    let busy = start_node(cable.url(), "busy.example").await?;
    busy.relay_with(sink.port(), json!({"max_connections": mails})).await?;
    let ids: Vec<String> = (0..mails).map(|n| format!("mail-{n}")).collect();
    for id in &ids {
        busy.send(mail(id, "ada@example.net")).await?;
    }
    sink.wait_for(mails, postway_e2e::PATIENCE).await;
    let other = start_node(&database.url(), "other.example").await?;
    eventually("two nodes", async || Ok((nodes_of(&other).await?.len() == 2).then_some(()))).await?;

    cable.silence_present();
    hold.release();
    let began = Instant::now();
    for id in &ids {
        let message = other.wait_for(id, "sent").await?;
        assert_eq!(events_of(&message, "in_doubt"), 0, "{message:#}");
    }
    assert!(began.elapsed() < NOTICED_WITHIN, "{:?}", began.elapsed());
    assert_eq!(sink.mails().len(), mails, "each once");
    Ok(())
}
