//! What becomes of a gateway whose database is away, wrong, read-only or ahead of it: it says so,
//! acknowledges nothing it could not keep, and goes on by itself.

use std::time::Duration;

use anyhow::ensure;
use postway_e2e::{
    Gateway, Load, PATIENCE, audit, check_history, copies, event_types, eventually, mail, node_env,
    start_node, text,
};
use postway_testkit::{
    SinkAction, SinkPause, SinkVerb, SmtpSink, TcpProxy, mariadb::MariaDb, postgres::PostgresDatabase,
};
use reqwest::{Method, StatusCode};
use serde_json::json;

const NAME: &str = "postway.example";
/// Longer than the ten seconds after which a silent node counts as dead.
const LONG: Duration = Duration::from_secs(12);

/// Asserts that nothing is taken, and that whoever asks is told why in the one shape of an error. Gives the
/// sentence.
async fn refusal(gateway: &Gateway) -> anyhow::Result<String> {
    let (ready, answer) = gateway.call(Method::GET, "/health/ready", None).await?;
    assert_eq!(ready, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    let (live, answer) = gateway.call(Method::GET, "/health/live", None).await?;
    assert_eq!(live, StatusCode::OK, "{answer}");
    let mail = mail("refused", "ada@example.net");
    let (status, answer) = gateway.call(Method::POST, "/v1/messages", Some(mail)).await?;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    let error = &answer["error"];
    assert_eq!(text(error, "code"), "unavailable", "{answer}");
    assert!(error["request_id"].is_string() && error["details"].is_array(), "{answer}");
    Ok(text(error, "message").to_owned())
}

async fn wait_until_unready(gateway: &Gateway) -> anyhow::Result<()> {
    eventually("trouble", async || {
        let (status, _) = gateway.call(Method::GET, "/health/ready", None).await?;
        Ok((status == StatusCode::SERVICE_UNAVAILABLE).then_some(()))
    })
    .await
}

async fn sends(gateway: &Gateway, id: &str) -> anyhow::Result<()> {
    gateway.send(mail(id, "ada@example.net")).await?;
    let message = gateway.wait_for(id, "sent").await?;
    ensure!(event_types(&message) == ["accepted", "validated", "ready", "sending", "sent"], "{message:#}");
    Ok(())
}

async fn down_at_the_start(url: &str) -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let cable = TcpProxy::to(url).await;
    cable.cut();
    let mut gateway = Gateway::idle()?;
    gateway.launch_early(&node_env(cable.url(), NAME)).await?;
    assert!(refusal(&gateway).await?.contains("database"));
    gateway.wait_for_log("the database cannot be opened yet", 2).await?;
    assert_eq!(gateway.printed(), "", "it is not ready, and does not say that it is");

    cable.mend();
    gateway.announced().await?;
    gateway.wait_until_ready().await?;
    gateway.relay_to(sink.port()).await?;
    sends(&gateway, "first").await?;

    assert!(gateway.terminate().await?.success());
    cable.cut();
    gateway.launch_early(&node_env(cable.url(), NAME)).await?;
    assert!(gateway.terminate().await?.success(), "one that waits can be stopped");
    Ok(())
}

#[tokio::test]
async fn a_database_down_at_the_start_is_waited_for() -> anyhow::Result<()> {
    down_at_the_start(&PostgresDatabase::create().url()).await
}

#[tokio::test]
async fn so_is_mariadb() -> anyhow::Result<()> {
    down_at_the_start(&MariaDb::shared().create_database()).await
}

async fn lost_in_mid_run(url: &str) -> anyhow::Result<()> {
    let sink = SmtpSink::builder()
        .on(SinkVerb::Dot, SinkAction::Delay(Duration::from_millis(8)).recorded())
        .start()
        .await;
    let cable = TcpProxy::to(url).await;
    let gateway = start_node(cable.url(), NAME).await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 6})).await?;
    let load = Load::start(&[gateway.client()], true);
    let grows_by = async |count: usize| load.wait_for(load.acknowledged() + count).await;
    // Shorter and longer than the store takes to find out whether a commit succeeded whose answer was lost.
    for outage in [0, 1, 8, 8] {
        grows_by(100).await?;
        let refusals = load.refusals();
        cable.cut_after(b"COMMIT").await;
        eventually("refusals", async || Ok((load.refusals() >= refusals + 5).then_some(()))).await?;
        refusal(&gateway).await?;
        let acknowledged = load.acknowledged();
        tokio::time::sleep(Duration::from_secs(outage)).await;
        // What was kept before the cut may be heard of a moment later, by each client once.
        let later = load.acknowledged() - acknowledged;
        assert!(later < Load::CLIENTS, "{later} were acknowledged that cannot be kept");
        cable.mend();
    }
    grows_by(100).await?;
    let acknowledged = load.stop().await?;
    let doubts = audit(&gateway, &sink, &acknowledged).await?;
    assert_eq!(doubts, 0, "every answer of the relay was kept until it could be written");
    gateway.wait_until_ready().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_lost_under_load_costs_nothing_acknowledged() -> anyhow::Result<()> {
    lost_in_mid_run(&PostgresDatabase::create().url()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_does_mariadb() -> anyhow::Result<()> {
    lost_in_mid_run(&MariaDb::shared().create_database()).await
}

/// Two nodes with mail on the wire lose sight of the database and of each other. Neither may take the other
/// for dead when it comes back, before the relay's answers have landed.
async fn lost_with_mail_on_the_wire(url: &str) -> anyhow::Result<()> {
    let hold = SinkPause::new();
    let sink = SmtpSink::builder().on(SinkVerb::Dot, SinkAction::Hold(hold.clone()).recorded()).start().await;
    let cable = TcpProxy::to(url).await;
    let nodes =
        [start_node(cable.url(), "first.example").await?, start_node(cable.url(), "second.example").await?];
    // One connection each and more mail than one node takes: so each has one on the wire.
    nodes[0].relay_with(sink.port(), json!({"max_connections": 1})).await?;
    let mut uids = Vec::new();
    for n in 0..6 {
        let id = format!("mail-{n}");
        uids.push((nodes[0].send(mail(&id, "ada@example.net")).await?, id));
    }
    let held = sink.wait_for(nodes.len(), PATIENCE).await;
    assert_ne!(held[0].helo, held[1].helo);
    cable.cut();
    hold.release();
    for node in &nodes {
        node.wait_for_log("an outcome could not be stored yet", 1).await?;
    }
    tokio::time::sleep(LONG).await;
    cable.mend();
    for (uid, id) in uids {
        let message = eventually("the outcome", async || {
            // The first reads may still find a cut connection.
            let Ok(message) = nodes[0].message(&id).await else { return Ok(None) };
            Ok((message["status"] == "sent").then_some(message))
        })
        .await?;
        let doubts = check_history(&message, copies(&sink, &uid))?;
        assert_eq!(doubts, 0, "{message:#}");
        if held.iter().any(|mail| mail.postway_id.as_deref() == Some(&uid)) {
            assert_eq!(
                event_types(&message),
                ["accepted", "validated", "ready", "sending", "sent"],
                "{message:#}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn outcomes_of_mail_on_the_wire_land_when_the_database_is_back() -> anyhow::Result<()> {
    lost_with_mail_on_the_wire(&PostgresDatabase::create().url()).await
}

#[tokio::test]
async fn so_they_do_on_mariadb() -> anyhow::Result<()> {
    lost_with_mail_on_the_wire(&MariaDb::shared().create_database()).await
}

/// Starts it where it cannot work, and gives what it says before it ends.
async fn complaint(url: &str) -> anyhow::Result<String> {
    let gateway = Gateway::idle()?;
    let env = [("POSTWAY_DATABASE_URL", url), ("POSTWAY_HTTP_LISTEN", "127.0.0.1:0")];
    let ran = gateway.run(&["serve"], &env, b"").await?;
    assert!(ran.code.is_some_and(|code| code != 0), "{url}: {ran:?}");
    assert!(!ran.out.contains("listens"), "{ran:?}");
    let last = ran.err.lines().last().unwrap_or_default().to_owned();
    assert!(last.starts_with("postway: "), "it ends with a sentence: {ran:?}");
    assert!(!ran.err.contains("hidden-word"), "the password is told: {ran:?}");
    Ok(last)
}

#[tokio::test]
async fn a_wrong_address_ends_it_with_a_sentence() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let (right, stranger) = (database.url(), "nobody:hidden-word@");
    for (url, words) in [
        ("redis://someone:hidden-word@127.0.0.1/mail".to_owned(), "unknown scheme"),
        ("postgres://someone:hidden-word@127.0.0.1".to_owned(), "names no host or no database"),
        (format!("{right}_missing"), "check the database URL"),
        (right.replace("postway@", stranger), "check the database URL"),
    ] {
        let said = complaint(&url).await?;
        assert!(said.contains(words), "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn so_does_a_wrong_address_of_mariadb() -> anyhow::Result<()> {
    let right = MariaDb::shared().create_database();
    let missing = right.replace("?socket", "_missing?socket");
    let stranger = right.replace("root@", "root:hidden-word@");
    for (url, words) in [(missing, "Unknown database"), (stranger, "Access denied")] {
        let said = complaint(&url).await?;
        assert!(said.contains(words), "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn a_role_that_may_not_make_tables_ends_it_with_a_sentence() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    database.run("CREATE ROLE onlooker LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let said = complaint(&database.url().replace("postway@", "onlooker@")).await?;
    assert!(said.contains("permission denied for schema public"), "{said}");
    Ok(())
}

/// Makes every new connection read-only or not, and ends those that are there, as a failover does.
fn make_read_only(database: &PostgresDatabase, read_only: bool) {
    let name = database.run("SELECT current_database()");
    database.run(&format!(
        "BEGIN READ WRITE; ALTER DATABASE {name} SET default_transaction_read_only = {read_only}; COMMIT"
    ));
    database.run(
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'postway'",
    );
}

#[tokio::test]
async fn a_read_only_server_is_waited_for() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let database = PostgresDatabase::create();
    let mut gateway = start_node(&database.url(), NAME).await?;
    gateway.relay_to(sink.port()).await?;
    sends(&gateway, "before").await?;

    make_read_only(&database, true);
    wait_until_unready(&gateway).await?;
    refusal(&gateway).await?;
    make_read_only(&database, false);
    gateway.wait_until_ready().await?;
    sends(&gateway, "between").await?;
    assert!(gateway.terminate().await?.success());

    make_read_only(&database, true);
    gateway.launch_early(&node_env(&database.url(), NAME)).await?;
    gateway.wait_for_log("the database cannot be used yet", 2).await?;
    refusal(&gateway).await?;
    make_read_only(&database, false);
    gateway.announced().await?;
    sends(&gateway, "after").await
}

#[tokio::test]
async fn a_schema_that_went_ahead_stops_a_node_until_it_is_taken_back() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let database = PostgresDatabase::create();
    let gateway = start_node(&database.url(), NAME).await?;
    gateway.relay_to(sink.port()).await?;
    sends(&gateway, "before").await?;

    database.run("INSERT INTO schema_migration (version, name) VALUES (99, 'contracted')");
    wait_until_unready(&gateway).await?;
    let said = refusal(&gateway).await?;
    assert!(said.contains("too old"), "{said}");
    let said = complaint(&database.url()).await?;
    assert!(said.contains("schema is at version 99") && said.contains("use a newer postway"), "{said}");

    database.run("DELETE FROM schema_migration WHERE version = 99");
    gateway.wait_until_ready().await?;
    sends(&gateway, "after").await
}
