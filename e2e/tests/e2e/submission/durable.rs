//! What was answered 250 is there, whatever happens to the process or to its database.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use postway_e2e::{Acknowledged, a_while, audit, eventually, text};
use postway_testkit::{TcpProxy, postgres::PostgresDatabase};

use super::{Client, MAIL, PLAIN, Stage, uid_of};

#[tokio::test]
async fn a_mail_survives_a_kill_right_after_its_answer() -> anyhow::Result<()> {
    let mut stage = Stage::set().await?;
    for _ in 0..3 {
        let uid = uid_of(&stage.sender().await?.send(MAIL).await?)?;
        stage.gateway.kill().await?;
        stage.launch(&[]).await?;
        stage.gateway.wait_for(&uid, "sent").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_crash_before_the_answer_leaves_nothing_or_a_mail_that_is_found_again() -> anyhow::Result<()> {
    let mail = format!("X-Postway-Idempotency-Key: order-1\r\n{MAIL}");
    for (point, kept) in [("smtp_before_accept", 0), ("smtp_after_accept", 1)] {
        let mut stage = Stage::set().await?;
        assert!(stage.gateway.terminate().await?.success());
        stage.launch(&[("FAILPOINTS", &format!("{point}=1*return"))]).await?;
        assert!(stage.sender().await?.send(&mail).await.is_err(), "{point}: nothing was promised");
        assert!(!stage.gateway.ended().await?.success(), "{point} was not met");
        stage.launch(&[]).await?;
        let list = stage.gateway.get("/v1/messages").await?;
        assert_eq!(list["data"].as_array().map(Vec::len), Some(kept), "{point}: {list:#}");
        // The client tries again, as clients do.
        let uid = uid_of(&stage.sender().await?.send(&mail).await?)?;
        stage.gateway.wait_for(&uid, "sent").await?;
        let list = stage.gateway.get("/v1/messages").await?;
        assert_eq!(list["data"].as_array().map(Vec::len), Some(1), "{point}: {list:#}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answered_mail_is_lost_however_often_the_process_is_killed() -> anyhow::Result<()> {
    const KILLS: usize = 3;
    const CLIENTS: usize = 4;
    let mut stage = Stage::set().await?;
    let (address, over) =
        (Arc::new(std::sync::Mutex::new(stage.address(PLAIN).await?)), Arc::new(AtomicBool::new(false)));
    let count = Arc::new(AtomicUsize::new(0));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let (address, over, count, key) = (address.clone(), over.clone(), count.clone(), stage.key.clone());
        clients.spawn(async move {
            let mut taken = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let server = *address.lock().expect("no holder panics");
                // Each ends by a kill, or by its own count; the next begins with what the last did not hear
                // of.
                let session = async {
                    let mut client = Client::connect(server).await?;
                    client.expect("220").await?;
                    client.log_in("default", &key).await?;
                    while !over.load(Ordering::Relaxed) {
                        let id = format!("c{number}-{}", taken.len());
                        let uid =
                            uid_of(&client.send(&format!("X-Postway-Client-Id: {id}\r\n{MAIL}")).await?)?;
                        taken.push(Acknowledged { id, uid });
                        count.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    anyhow::Ok(())
                };
                if session.await.is_err() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            taken
        });
    }
    for _ in 0..KILLS {
        let before = count.load(Ordering::Relaxed);
        eventually("mail being taken", async || {
            Ok((count.load(Ordering::Relaxed) > before + 5).then_some(()))
        })
        .await?;
        a_while(50..300).await;
        stage.gateway.kill().await?;
        stage.launch(&[]).await?;
        let now = stage.address(PLAIN).await?;
        *address.lock().expect("no holder panics") = now;
    }
    let before = count.load(Ordering::Relaxed);
    eventually("mail being taken", async || Ok((count.load(Ordering::Relaxed) > before + 5).then_some(())))
        .await?;
    over.store(true, Ordering::Relaxed);
    let taken: Vec<Acknowledged> = clients.join_all().await.into_iter().flatten().collect();
    audit(&stage.gateway, &stage.sink, &taken).await?;
    Ok(())
}

#[tokio::test]
async fn a_database_that_is_away_puts_mail_off_and_takes_it_later() -> anyhow::Result<()> {
    let database = PostgresDatabase::create();
    let cable = TcpProxy::to(&database.url()).await;
    let mut stage =
        Stage::idle(&[("POSTWAY_DATABASE_URL", cable.url()), ("POSTWAY_ADMIN_KEY", &"k".repeat(40))]).await?;

    // Before there is a store nobody is greeted.
    cable.cut();
    let env: Vec<(String, String)> = stage.env.clone();
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    stage.gateway.launch_early(&env).await?;
    stage.lives += 1;
    let early = stage.client().await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(early.starts_with("421 4.3.2 mx.example this server is starting"), "{early}");
    cable.mend();
    stage.gateway.wait_until_ready().await?;
    stage.furnish().await?;

    let mut client = stage.sender().await?;
    let first = uid_of(&client.send(MAIL).await?)?;
    cable.cut();
    let put_off = client.send(MAIL).await?;
    assert!(put_off.starts_with("451 4.3.0 "), "{put_off}");
    cable.mend();
    let later =
        eventually("mail being taken again", async || Ok(uid_of(&client.send(MAIL).await?).ok())).await?;
    for uid in [&first, &later] {
        let message = stage.gateway.wait_for(uid, "sent").await?;
        assert_eq!(text(&message, "status"), "sent");
    }
    let list = stage.gateway.get("/v1/messages").await?;
    assert_eq!(list["data"].as_array().map(Vec::len), Some(2), "what was put off was not kept: {list:#}");
    Ok(())
}
