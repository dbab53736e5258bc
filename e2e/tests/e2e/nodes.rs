//! Several nodes on one PostgreSQL: they know each other, share the queue, and carry on what a dead one had
//! in hand.

use std::time::Duration;

use postway_e2e::{
    Gateway, PATIENCE, copies, event_types, events_of, eventually, mail, nodes_of, start_node,
};
use postway_testkit::{SinkAction, SinkPause, SinkVerb, SmtpSink, postgres::PostgresDatabase};
use serde_json::json;
use tokio::time::Instant;

/// A counter that stands still for ten seconds is dead. The last beat may be some seconds old where a machine
/// is busy.
const NOT_STRUCK_BEFORE: Duration = Duration::from_secs(5);

/// Waits until a node lists `count` nodes, all of them alive, and returns how long that took.
async fn wait_for_nodes(gateway: &Gateway, count: usize) -> anyhow::Result<Duration> {
    let started = Instant::now();
    eventually(&format!("{count} living nodes"), async || {
        let nodes = nodes_of(gateway).await?;
        let alive = nodes.iter().filter(|(_, status, _)| status == "alive").count();
        Ok((nodes.len() == count && alive == count).then_some(started.elapsed()))
    })
    .await
}

#[tokio::test]
async fn nodes_list_each_other_until_they_leave_or_die() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let first = start_node(&database.url(), "first.example").await?;
    let mut second = start_node(&database.url(), "second.example").await?;
    for (asked, other) in [(&first, &second), (&second, &first)] {
        let mut nodes = nodes_of(asked).await?;
        nodes.sort();
        let mut expected =
            [(asked.url(), "alive".to_owned(), true), (other.url(), "alive".to_owned(), false)];
        expected.sort();
        assert_eq!(nodes, expected);
    }

    assert!(second.terminate().await?.success());
    assert_eq!(nodes_of(&first).await?, [(first.url(), "alive".to_owned(), true)], "it left the list itself");

    let mut third = start_node(&database.url(), "third.example").await?;
    wait_for_nodes(&first, 2).await?;
    third.kill().await?;
    assert_eq!(nodes_of(&first).await?.len(), 2, "nobody can know yet");
    let took = wait_for_nodes(&first, 1).await?;
    assert!(took >= NOT_STRUCK_BEFORE, "{took:?}");
    Ok(())
}

/// A node with one mail before its dot and one behind it, both waiting for the relay's word, and an onlooker.
struct Stage {
    sink: SmtpSink,
    at_rcpt: SinkPause,
    at_dot: SinkPause,
    busy: Gateway,
    other: Gateway,
    early: String,
    late: String,
    _database: PostgresDatabase,
}

impl Stage {
    async fn set() -> anyhow::Result<Self> {
        let database = PostgresDatabase::create();
        let (at_rcpt, at_dot) = (SinkPause::new(), SinkPause::new());
        let (rcpt_hold, dot_hold) = (at_rcpt.clone(), at_dot.clone());
        let sink = SmtpSink::builder()
            .rule(move |event| {
                let early =
                    event.verb == SinkVerb::Rcpt && event.argument.starts_with("early@") && event.tries == 1;
                early.then(|| SinkAction::Hold(rcpt_hold.clone()))
            })
            // The other mail waits before its dot, so the first dot is this one's.
            .once(SinkVerb::Dot, SinkAction::Hold(dot_hold).recorded())
            .start()
            .await;
        let busy = start_node(&database.url(), "busy.example").await?;
        busy.relay_with(sink.port(), json!({"max_connections": 4})).await?;
        let early = busy.send(mail("early", "early@example.net")).await?;
        let late = busy.send(mail("late", "late@example.net")).await?;
        at_rcpt.reached().await;
        at_dot.reached().await;
        // Only now, so that it cannot have taken them itself.
        let other = start_node(&database.url(), "other.example").await?;
        wait_for_nodes(&other, 2).await?;
        Ok(Self { sink, at_rcpt, at_dot, busy, other, early, late, _database: database })
    }

    /// What the other node has made of the two mails: one without a doubt, one with.
    async fn check_taken_over(&self) -> anyhow::Result<()> {
        let early = self.other.wait_for("early", "sent").await?;
        assert_eq!(
            event_types(&early),
            ["accepted", "validated", "ready", "sending", "ready", "sending", "sent"]
        );
        assert_eq!(copies(&self.sink, &self.early), 1, "{early:#}");
        let late = self.other.wait_for("late", "sent").await?;
        assert_eq!(
            event_types(&late),
            ["accepted", "validated", "ready", "sending", "in_doubt", "sending", "resent", "sent"]
        );
        assert_eq!(copies(&self.sink, &self.late), 2, "{late:#}");
        let resent = self.sink.mails().iter().filter(|mail| mail.helo == "other.example").count();
        assert_eq!(resent, 2);
        Ok(())
    }
}

#[tokio::test]
async fn what_a_killed_node_had_in_hand_is_sent_by_another() -> anyhow::Result<()> {
    let mut stage = Stage::set().await?;
    stage.busy.kill().await?;
    stage.check_taken_over().await?;
    wait_for_nodes(&stage.other, 1).await?;
    Ok(())
}

#[tokio::test]
async fn a_node_that_was_taken_for_dead_comes_back_and_its_late_writes_are_refused() -> anyhow::Result<()> {
    let stage = Stage::set().await?;
    stage.busy.signal("STOP").await?;
    stage.check_taken_over().await?;
    wait_for_nodes(&stage.other, 1).await?;

    // The relay's words reach it when it wakes: it has been too late for a while.
    stage.at_rcpt.release();
    stage.at_dot.release();
    stage.busy.signal("CONT").await?;
    stage.busy.wait_for_log("an outcome came too late and was refused", 2).await?;
    stage.check_taken_over().await?;
    wait_for_nodes(&stage.other, 2).await?;
    wait_for_nodes(&stage.busy, 2).await?;

    stage.busy.send(mail("awake", "ada@example.net")).await?;
    let awake = stage.busy.wait_for("awake", "sent").await?;
    assert_eq!(events_of(&awake, "in_doubt"), 0);
    assert_eq!(stage.sink.mails().len(), 4, "and nothing else went out");
    Ok(())
}

#[tokio::test]
async fn a_node_without_a_free_connection_shares_its_mail() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let sink = SmtpSink::builder()
        .on(SinkVerb::Dot, SinkAction::Delay(Duration::from_millis(300)).recorded())
        .start()
        .await;
    let first = start_node(&database.url(), "first.example").await?;
    let second = start_node(&database.url(), "second.example").await?;
    first.relay_with(sink.port(), json!({"max_connections": 1})).await?;
    let ids: Vec<String> = (0..16).map(|n| format!("mail-{n}")).collect();
    for id in &ids {
        first.send(mail(id, "ada@example.net")).await?;
    }
    let mails = sink.wait_for(ids.len(), PATIENCE).await;
    for id in &ids {
        let message = second.wait_for(id, "sent").await?;
        assert_eq!(event_types(&message), ["accepted", "validated", "ready", "sending", "sent"]);
    }
    let by = |name: &str| mails.iter().filter(|mail| mail.helo == name).count();
    let shares = (by("first.example"), by("second.example"));
    assert_eq!(shares.0 + shares.1, ids.len());
    assert!(shares.0 >= 4 && shares.1 >= 4, "{shares:?}");
    Ok(())
}

#[tokio::test]
async fn a_node_whose_identity_was_copied_does_not_start_while_the_other_runs() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let url = database.url();
    let mut first = start_node(&url, "first.example").await?;
    let mut copy = Gateway::idle()?;
    std::fs::create_dir_all(copy.data_dir())?;
    std::fs::copy(first.data_dir().join("node.id"), copy.data_dir().join("node.id"))?;
    let env = postway_e2e::node_env(&url, "copy.example");
    let listening = [env.as_slice(), &[("POSTWAY_HTTP_LISTEN", "127.0.0.1:0")]].concat();
    let refused = copy.run(&["serve"], &listening, b"").await?;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("Delete the file node.id") && refused.err.contains("copied"), "{refused:?}");
    assert_eq!(nodes_of(&first).await?, [(first.url(), "alive".to_owned(), true)], "it was left alone");
    // Its own next life, after a crash, finds a counter that stands still.
    first.kill().await?;
    copy.launch(&env).await?;
    wait_for_nodes(&copy, 1).await?;
    Ok(())
}
