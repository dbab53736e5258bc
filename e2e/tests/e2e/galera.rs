//! A real multi-primary cluster: three database nodes, three gateways, each on another of them. Under load a
//! database node and a gateway are killed, a database node is cut off from the others, and one stands still.

use std::{sync::Arc, time::Duration};

use postway_e2e::{Gateway, Load, a_while, audit, eventually, node_env, nodes_of, start_node};
use postway_testkit::{
    SinkAction, SinkVerb, SmtpSink,
    galera::{GaleraCluster, NODES},
};
use serde_json::json;
use tokio::task::spawn_blocking;

const NAMES: [&str; NODES] = ["first.example", "second.example", "third.example"];
const DOT_DELAY: Duration = Duration::from_millis(20);

/// The cluster under load, each gateway of which has sent mail.
struct BusyCluster {
    cluster: Arc<GaleraCluster>,
    urls: [String; NODES],
    sink: SmtpSink,
    gateways: Vec<Gateway>,
    load: Load,
}

impl BusyCluster {
    async fn start() -> anyhow::Result<Self> {
        let cluster = Arc::new(spawn_blocking(GaleraCluster::start).await?);
        let urls = cluster.create_database();
        let sink =
            SmtpSink::builder().on(SinkVerb::Dot, SinkAction::Delay(DOT_DELAY).recorded()).start().await;
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
        Ok(Self { cluster, urls, sink, gateways, load })
    }

    /// Ends the load, and compares the books.
    async fn audit(self) -> anyhow::Result<()> {
        for gateway in &self.gateways {
            gateway.wait_until_ready().await?;
        }
        let acknowledged = self.load.stop().await?;
        audit(&self.gateways[0], &self.sink, &acknowledged).await.map(drop)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_a_database_node_and_a_gateway_loses_nothing() -> anyhow::Result<()> {
    let mut busy = BusyCluster::start().await?;
    busy.cluster.kill(1);
    a_while(3_000..4_000).await;
    busy.gateways[2].kill().await?;
    a_while(1_000..2_000).await;
    busy.gateways[2].launch(&node_env(&busy.urls[2], NAMES[2])).await?;
    let restarting = busy.cluster.clone();
    spawn_blocking(move || restarting.restart(1)).await?;
    busy.load.wait_for(200.max(busy.load.acknowledged() + 50)).await?;
    busy.audit().await
}

/// The gateway of the node that is cut off takes no mail, and that of the node that stands still is isolated:
/// others take its work over. Both go on when their nodes are back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_node_that_is_cut_off_and_one_that_stands_still_lose_nothing() -> anyhow::Result<()> {
    let busy = BusyCluster::start().await?;
    busy.cluster.cut_off(1);
    let others_go_on = async |busy: &BusyCluster| busy.load.wait_for(busy.load.acknowledged() + 50).await;
    others_go_on(&busy).await?;
    a_while(3_000..5_000).await;
    let reconnecting = busy.cluster.clone();
    spawn_blocking(move || reconnecting.reconnect(1)).await?;
    busy.gateways[1].wait_until_ready().await?;
    others_go_on(&busy).await?;

    busy.cluster.freeze(2);
    others_go_on(&busy).await?;
    // Longer than a node may go without a heartbeat.
    a_while(12_000..14_000).await;
    let thawing = busy.cluster.clone();
    spawn_blocking(move || thawing.thaw(2)).await?;
    busy.gateways[2].wait_until_ready().await?;
    others_go_on(&busy).await?;
    busy.audit().await
}
