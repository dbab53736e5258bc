//! A rolling upgrade, seen by the nodes that are not upgraded yet: a newer program has brought the schema
//! further. As long as it only added to it, they go on, also through a restart; once it took something away
//! they write nothing more, say so, and lose nothing.
//!
//! What a newer program does to the schema is simulated: there is one program here. `POSTWAY_OLD_BINARY`
//! names a really older one, which then runs beside this one.

use std::path::PathBuf;

use postway_e2e::{Gateway, Load, audit, eventually, mail, node_env, start_node};
use postway_testkit::{SmtpSink, postgres::PostgresDatabase};
use reqwest::{Method, StatusCode};
use serde_json::json;

/// What a later version may do to the tables while older programs work on them, one table at a time.
const EXPAND: [&str; 9] = [
    "ALTER TABLE message ADD COLUMN hue TEXT",
    "ALTER TABLE content ADD COLUMN hue TEXT DEFAULT 'none'",
    "ALTER TABLE event ADD COLUMN hue BIGINT NOT NULL DEFAULT 7",
    "ALTER TABLE recipient ADD COLUMN hue TEXT",
    "ALTER TABLE account ADD COLUMN hue TEXT",
    "ALTER TABLE tenant ADD COLUMN hue TEXT",
    "CREATE TABLE hue (name TEXT PRIMARY KEY)",
    "CREATE INDEX message_hue ON message (hue)",
    "INSERT INTO schema_migration (version, name, writable_from) VALUES (99, 'expanded', 1)",
];
const CONTRACT: &str = "INSERT INTO schema_migration (version, name) VALUES (100, 'contracted')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_program_goes_on_beside_a_newer_schema_until_it_is_left_behind() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let sink = SmtpSink::start().await;
    let url = database.url();
    let first = start_node(&url, "first.example").await?;
    let mut second = start_node(&url, "second.example").await?;
    first.relay_with(sink.port(), json!({"max_connections": 4})).await?;
    let load = Load::start(&[first.client(), second.client()], true);
    load.wait_for(60).await?;

    for statement in EXPAND {
        database.run(statement);
    }
    load.wait_for(load.acknowledged() + 60).await?;
    // It also starts on what it does not know.
    second.kill().await?;
    second.launch(&node_env(&url, "second.example")).await?;
    load.wait_for(load.acknowledged() + 60).await?;
    assert_eq!(load.refusals(), 0, "an expanded schema is no obstacle\n{}", first.log());

    database.run(CONTRACT);
    for node in [&first, &second] {
        eventually("the node to stop writing", async || {
            let (status, _) = node.call(Method::GET, "/health/ready", None).await?;
            Ok((status == StatusCode::SERVICE_UNAVAILABLE).then_some(()))
        })
        .await?;
        node.wait_for_log("use a newer postway", 1).await?;
    }
    let (refusals, acknowledged) = (load.refusals(), load.acknowledged());
    eventually("refusals", async || Ok((load.refusals() >= refusals + 20).then_some(()))).await?;
    assert!(load.acknowledged() - acknowledged <= Load::CLIENTS, "nothing more is taken");

    // The newer program is withdrawn, or this is it: the mail goes on.
    database.run("DELETE FROM schema_migration WHERE version = 100");
    load.wait_for(load.acknowledged() + 60).await?;
    let acknowledged = load.stop().await?;
    audit(&first, &sink, &acknowledged).await?;
    Ok(())
}

/// Starts a node that is the older program, where there is one.
async fn start_older(url: &str) -> anyhow::Result<Gateway> {
    let mut node = Gateway::idle()?;
    if let Some(program) = std::env::var_os("POSTWAY_OLD_BINARY") {
        node.become_program(PathBuf::from(program));
    }
    node.launch(&node_env(url, "older.example")).await?;
    Ok(node)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_before_this_one_goes_on_beside_it_or_says_why_not_and_loses_nothing()
-> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let sink = SmtpSink::start().await;
    let url = database.url();
    let older = start_older(&url).await?;
    older.relay_with(sink.port(), json!({"max_connections": 4})).await?;
    let before: Vec<_> = (0..60).map(|n| mail(&format!("before-{n}"), "ada@example.net")).collect();
    let mut all = Load::of(&[older.client()], &before).finish().await?;

    // This one brings the schema up to date under it.
    let newer = start_node(&url, "newer.example").await?;
    let load = Load::start(&[older.client(), newer.client()], true);
    load.wait_for(200).await?;
    let is_left_behind = older.log().contains("use a newer postway");
    assert!(is_left_behind || load.refusals() == 0, "it refuses and does not say why\n{}", older.log());
    all.extend(load.stop().await?);
    audit(&newer, &sink, &all).await?;
    Ok(())
}
