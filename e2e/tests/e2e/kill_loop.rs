//! SIGKILL at random moments under load, again and again. Afterwards the clients' ledger, the relay's ledger
//! and the gateway's own history must agree: nothing lost, and nothing twice that is not marked in doubt.

use std::time::Duration;

use anyhow::Context as _;
use postway_e2e::{Gateway, Load, PATIENCE, a_while, audit, binary};
use postway_testkit::{
    SinkAction, SinkPause, SinkVerb, SmtpSink, mariadb::MariaDb, postgres::PostgresDatabase,
};
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

/// The relay takes responsibility and then takes its time to say so: that is where a kill makes a doubt.
const DOT_DELAY: Duration = Duration::from_millis(8);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_kills_lose_nothing_and_duplicate_only_what_is_in_doubt() -> anyhow::Result<()> {
    kill_again_and_again(30, &[]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_do_they_on_postgresql() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    kill_again_and_again(20, &[("POSTWAY_DATABASE_URL", &database.url())]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_do_they_on_mariadb() -> anyhow::Result<()> {
    let url = MariaDb::shared().create_database();
    kill_again_and_again(20, &[("POSTWAY_DATABASE_URL", &url)]).await
}

async fn kill_again_and_again(kills: usize, env: &[(&str, &str)]) -> anyhow::Result<()> {
    let sink = SmtpSink::builder().on(SinkVerb::Dot, SinkAction::Delay(DOT_DELAY).recorded()).start().await;
    let mut gateway = Gateway::start_with(env).await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 6})).await?;
    let load = Load::start(&[gateway.client()], false);
    for _ in 0..kills {
        a_while(100..900).await;
        gateway.kill().await?;
        gateway.launch(env).await?;
    }
    // However slow the machine, and wherever the kills above struck: this one strikes a mail whose dot is
    // out.
    load.wait_for(kills * 5).await?;
    let hold = SinkPause::new();
    sink.hold_next_dot(&hold);
    // A load that was refused has ended, and nothing would come.
    timeout(PATIENCE, hold.reached()).await.context("no mail came to its dot")?;
    gateway.kill().await?;
    hold.release();
    gateway.launch(env).await?;
    let acknowledged = load.stop().await?;
    let doubts = audit(&gateway, &sink, &acknowledged).await?;
    assert!(doubts > 0, "the kill between the permission and the record left no doubt");
    Ok(())
}

/// What users repeat on their own machines: its books are its own, so they are asked once here.
#[tokio::test]
async fn a_user_counts_the_same_with_one_command() -> anyhow::Result<()> {
    let mut command = Command::new(binary()?);
    command.args(["bench", "--kills", "3", "--json"]).env_remove("POSTWAY_URL").kill_on_drop(true);
    let ran = command.output().await?;
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{told}");
    let found: Value = serde_json::from_slice(&ran.stdout)?;
    assert_eq!(found["kills"], 3, "{found}");
    assert!(found["acknowledged"].as_u64() > Some(0), "{found}");
    for fault in ["lost", "unknown", "repeated_without_doubt"] {
        assert_eq!(found[fault], 0, "{found}");
    }
    Ok(())
}
