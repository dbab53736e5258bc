//! Two nodes on one database under load, now one and now the other killed. What one had in hand is carried
//! on, by itself or by the other, and the three ledgers agree in the end as they do for one node.

use std::time::Duration;

use anyhow::Context as _;
use postway_e2e::{Load, PATIENCE, a_while, audit, eventually, node_env, start_node};
use postway_testkit::{
    SinkAction, SinkPause, SinkVerb, SmtpSink, mariadb::MariaDb, postgres::PostgresDatabase,
};
use serde_json::json;
use tokio::time::timeout;

const KILLS: usize = 12;
/// As for one node: a kill in this time makes a doubt. Two nodes share the mail, so each needs more of it.
const DOT_DELAY: Duration = Duration::from_millis(20);

async fn kill_in_turns(url: &str) -> anyhow::Result<()> {
    let sink = SmtpSink::builder().on(SinkVerb::Dot, SinkAction::Delay(DOT_DELAY).recorded()).start().await;
    let names = ["first.example", "second.example"];
    let mut nodes = [start_node(url, names[0]).await?, start_node(url, names[1]).await?];
    nodes[0].relay_with(sink.port(), json!({"max_connections": 6})).await?;
    let load = Load::start(&nodes.each_ref().map(|node| node.client()), false);
    for _ in 0..KILLS {
        a_while(100..900).await;
        let struck = usize::from(rand::random::<bool>());
        nodes[struck].kill().await?;
        // Now and then the other is alone for a while.
        a_while(0..400).await;
        nodes[struck].launch(&node_env(url, names[struck])).await?;
    }
    // However slow the machine, and wherever the kills above struck: each node has sent something, and these
    // strike a mail whose dot is out.
    load.wait_for(KILLS * 10).await?;
    eventually("mail of both nodes", async || {
        let mails = sink.mails();
        let all_sent = names.iter().all(|name| mails.iter().any(|mail| mail.helo == *name));
        Ok(all_sent.then_some(()))
    })
    .await?;
    let hold = SinkPause::new();
    sink.hold_next_dot(&hold);
    // A load that was refused has ended, and nothing would come.
    timeout(PATIENCE, hold.reached()).await.context("no mail came to its dot")?;
    for node in &mut nodes {
        node.kill().await?;
    }
    hold.release();
    for (node, name) in nodes.iter_mut().zip(names) {
        node.launch(&node_env(url, name)).await?;
    }
    let acknowledged = load.stop().await?;
    let doubts = audit(&nodes[0], &sink, &acknowledged).await?;
    assert!(doubts > 0, "the kill between the permission and the record left no doubt");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_nodes_in_turns_loses_nothing_on_postgresql() -> anyhow::Result<()> {
    kill_in_turns(&PostgresDatabase::create().url()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_nodes_in_turns_loses_nothing_on_mariadb() -> anyhow::Result<()> {
    kill_in_turns(&MariaDb::shared().create_database()).await
}
