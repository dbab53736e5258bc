//! A real multi-primary cluster: three database nodes, three gateways, each on another of them. A database
//! node and a gateway are killed under load.

use std::{sync::Arc, time::Duration};

use postway_e2e::{Load, a_while, audit, eventually, node_env, nodes_of, start_node};
use postway_testkit::{
    SinkAction, SinkVerb, SmtpSink,
    galera::{GaleraCluster, NODES},
};
use serde_json::json;
use tokio::task::spawn_blocking;

const NAMES: [&str; NODES] = ["first.example", "second.example", "third.example"];
const DOT_DELAY: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_a_database_node_and_a_gateway_loses_nothing() -> anyhow::Result<()> {
    let cluster = Arc::new(spawn_blocking(GaleraCluster::start).await?);
    let urls = cluster.create_database();
    let sink = SmtpSink::builder().on(SinkVerb::Dot, SinkAction::Delay(DOT_DELAY).recorded()).start().await;
    let mut gateways = Vec::new();
    for (url, name) in urls.iter().zip(NAMES) {
        gateways.push(start_node(url, name).await?);
    }
    gateways[0].relay_with(sink.port(), json!({"max_connections": 6})).await?;
    let clients: Vec<_> = gateways.iter().map(|gateway| gateway.client()).collect();
    eventually("three nodes", async || Ok((nodes_of(&clients[0]).await?.len() == NODES).then_some(())))
        .await?;
    let load = Load::start(&clients, true);
    eventually("mail of every gateway", async || {
        let mails = sink.mails();
        let all_sent = NAMES.iter().all(|name| mails.iter().any(|mail| mail.helo == *name));
        Ok(all_sent.then_some(()))
    })
    .await?;
    a_while(500..1_500).await;

    cluster.kill(1);
    a_while(3_000..4_000).await;
    gateways[2].kill().await?;
    a_while(1_000..2_000).await;
    gateways[2].launch(&node_env(&urls[2], NAMES[2])).await?;
    let restarting = cluster.clone();
    spawn_blocking(move || restarting.restart(1)).await?;
    load.wait_for(200.max(load.acknowledged() + 50)).await?;
    gateways[1].wait_until_ready().await?;

    let acknowledged = load.stop().await?;
    audit(&gateways[0], &sink, &acknowledged).await.map(drop)
}
