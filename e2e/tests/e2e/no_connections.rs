//! The database server has no connection left for the gateway: accepts are refused with a time to come back,
//! nothing that was acknowledged is lost, and work goes on by itself when there is room again.

use postway_e2e::{Load, audit, eventually, mail, start_node};
use postway_testkit::{SmtpSink, postgres::PostgresDatabase};
use reqwest::{Method, StatusCode};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_free_connection_is_waited_for() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let (name, role) = (database.run("SELECT current_database()"), "guest_of_few_connections");
    database.run(&format!("CREATE ROLE {role} LOGIN; ALTER DATABASE {name} OWNER TO {role}"));
    let sink = SmtpSink::start().await;
    let node = start_node(&database.url().replace("postway@", &format!("{role}@")), "node.example").await?;
    node.relay_with(sink.port(), json!({"max_connections": 4})).await?;
    let load = Load::start(&[node.client()], true);
    let limit = |connections: i32| {
        database.run(&format!("ALTER ROLE {role} CONNECTION LIMIT {connections}"));
        database.run(&format!(
            "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE usename = '{role}'"
        ));
    };
    // None at all, and fewer than it wants: those that it gets must not be spent on reading alone.
    for connections in [0, 2] {
        load.wait_for(load.acknowledged() + 40).await?;
        let refusals = load.refusals();
        limit(connections);
        if connections == 0 {
            eventually("refusals", async || Ok((load.refusals() >= refusals + 10).then_some(()))).await?;
            let refused = node.request(Method::POST, "/v1/messages").json(&mail("no", "ada@example.net"));
            let refused = refused.send().await?;
            assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(refused.headers().contains_key("retry-after"), "{:?}", refused.headers());
            let (ready, _) = node.call(Method::GET, "/health/ready", None).await?;
            assert_eq!(ready, StatusCode::SERVICE_UNAVAILABLE);
        } else {
            // Each post is taken or refused; none hangs.
            let ended = || load.acknowledged() + load.refusals();
            let before = ended();
            eventually("answers", async || Ok((ended() >= before + 20).then_some(()))).await?;
        }
        let (live, _) = node.call(Method::GET, "/health/live", None).await?;
        assert_eq!(live, StatusCode::OK);
        database.run(&format!("ALTER ROLE {role} CONNECTION LIMIT -1"));
        node.wait_until_ready().await?;
    }
    load.wait_for(load.acknowledged() + 40).await?;
    let acknowledged = load.stop().await?;
    let doubts = audit(&node, &sink, &acknowledged).await?;
    assert_eq!(doubts, 0, "every answer of the relay was kept until it could be written");
    Ok(())
}
