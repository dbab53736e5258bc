//! A disk that fails, is full, is slow or has rotted: nothing is acknowledged that it does not hold, whoever
//! asks is told, and work goes on by itself once the disk does.

use std::{fs, time::Duration};

use postway_e2e::{
    ALLOW_LOOPBACK, Gateway, GatewayDisk, Load, Opened, PATIENCE, audit, eventually, files_below, mail,
    mail_with, noise, text,
};
use postway_testkit::{DiskFault, HttpSource, SinkPause, SmtpSink, SourceReply};
use reqwest::{Method, StatusCode};
use serde_json::json;

const DATABASE: &str = "/postway.db";

/// A gateway on a disk that can be broken, with a relay.
struct Stage {
    gateway: Gateway,
    disk: GatewayDisk,
    sink: SmtpSink,
}

impl Stage {
    async fn set(env: &[(&str, &str)]) -> anyhow::Result<Self> {
        let mut gateway = Gateway::idle()?;
        let disk = GatewayDisk::under(&gateway)?;
        gateway.launch(&disk.env(env)).await?;
        let sink = SmtpSink::start().await;
        gateway.relay_to(sink.port()).await?;
        Ok(Self { gateway, disk, sink })
    }

    async fn is_ready(&self) -> anyhow::Result<bool> {
        let (status, _) = self.gateway.call(Method::GET, "/health/ready", None).await?;
        Ok(status == StatusCode::OK)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fails_or_is_full_costs_nothing_acknowledged() -> anyhow::Result<()> {
    let stage = Stage::set(&[]).await?;
    let load = Load::start(&[stage.gateway.client()], true);
    let faults = [
        DiskFault::Write(DiskFault::ENOSPC),
        DiskFault::Write(DiskFault::EIO),
        DiskFault::Sync(DiskFault::EIO),
    ];
    for fault in faults {
        load.wait_for(load.acknowledged() + 20).await?;
        let (refusals, hits) = (load.refusals(), stage.disk.hits()?);
        stage.disk.break_with(fault, DATABASE)?;
        eventually("refusals", async || Ok((load.refusals() >= refusals + 5).then_some(()))).await?;
        eventually("trouble", async || Ok((!stage.is_ready().await?).then_some(()))).await?;
        let (live, _) = stage.gateway.call(Method::GET, "/health/live", None).await?;
        assert_eq!(live, StatusCode::OK);
        let refused =
            stage.gateway.request(Method::POST, "/v1/messages").json(&mail("no", "ada@example.net"));
        let refused = refused.send().await?;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "{fault:?}");
        assert!(refused.headers().contains_key("retry-after"), "{fault:?}");
        assert!(stage.disk.hits()? > hits, "{fault:?} did not strike");
        stage.disk.mend()?;
        stage.gateway.wait_until_ready().await?;
    }
    load.wait_for(load.acknowledged() + 20).await?;
    let acknowledged = load.stop().await?;
    let doubts = audit(&stage.gateway, &stage.sink, &acknowledged).await?;
    assert_eq!(doubts, 0, "every answer of the relay was kept until it could be written");
    Ok(())
}

/// Its earlier life left a lease behind, which a start takes back before it takes work: on a full disk it
/// cannot.
#[tokio::test]
async fn a_start_on_a_full_disk_waits_for_room() -> anyhow::Result<()> {
    let (sink, hold) = (SmtpSink::start().await, SinkPause::new());
    sink.hold_next_dot(&hold);
    let mut gateway = Gateway::idle()?;
    let disk = GatewayDisk::under(&gateway)?;
    gateway.launch(&disk.env(&[])).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.send(mail("in-hand", "ada@example.net")).await?;
    gateway.wait_for("in-hand", "sending").await?;
    gateway.kill().await?;

    disk.break_with(DiskFault::Write(DiskFault::ENOSPC), DATABASE)?;
    gateway.launch_early(&disk.env(&[])).await?;
    gateway.wait_for_log("the database cannot be ", 2).await?;
    assert!(gateway.is_running()?, "{}", gateway.log());
    let (status, _) = gateway.call(Method::GET, "/health/ready", None).await?;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    disk.mend()?;
    gateway.announced().await?;
    gateway.wait_until_ready().await?;
    gateway.send(mail_with("new", "ada@example.net", json!({"account": "sandbox"}))).await?;
    Ok(())
}

/// The folder of large bodies is full, and the database is not.
#[tokio::test]
async fn a_body_that_cannot_be_kept_is_refused_and_small_mail_goes_on() -> anyhow::Result<()> {
    let stage = Stage::set(&[]).await?;
    let large = |id: &str| mail_with(id, "ada@example.net", json!({"text": "x".repeat(200_000)}));
    for fault in [
        DiskFault::Create(DiskFault::ENOSPC),
        DiskFault::Write(DiskFault::EIO),
        DiskFault::Sync(DiskFault::EIO),
    ] {
        stage.disk.break_with(fault, "/blobs/")?;
        let (status, answer) = stage.gateway.call(Method::POST, "/v1/messages", Some(large("large"))).await?;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{fault:?}: {answer}");
        let id = format!("small-{fault:?}").replace(['(', ')'], "-");
        stage.gateway.send(mail(&id, "ada@example.net")).await?;
        stage.gateway.wait_for(&id, "sent").await?;
        stage.disk.mend()?;
    }
    stage.gateway.send(large("large")).await?;
    stage.gateway.wait_for("large", "sent").await?;
    assert_eq!(stage.sink.mails().len(), 4, "what was refused was not sent");
    Ok(())
}

/// A file is in the spool while the disk takes nothing.
#[tokio::test]
async fn a_spooled_file_waits_for_the_disk_and_is_one_mail() -> anyhow::Result<()> {
    let mut gateway = Gateway::idle()?;
    let disk = GatewayDisk::under(&gateway)?;
    let folder = gateway.folder().join("spool");
    fs::create_dir_all(&folder)?;
    let spool = folder.to_string_lossy().into_owned();
    gateway.launch(&disk.env(&[("POSTWAY_SPOOL_FOLDER", &spool)])).await?;
    let sink = SmtpSink::start().await;
    gateway.relay_to(sink.port()).await?;
    for (n, (fault, part)) in [
        (DiskFault::Write(DiskFault::ENOSPC), DATABASE),
        (DiskFault::Sync(DiskFault::EIO), DATABASE),
        (DiskFault::Create(DiskFault::ENOSPC), "/spool/taken/"),
    ]
    .into_iter()
    .enumerate()
    {
        disk.break_with(fault, part)?;
        let hits = disk.hits()?;
        let id = format!("file-{n}");
        let file = json!({"id": id, "account": "relay", "from": "shop@example.com", "to": "ada@example.net",
            "subject": "From a file", "body_text": "Hi\n"});
        fs::write(folder.join("unfinished"), file.to_string())?;
        fs::rename(folder.join("unfinished"), folder.join(format!("{id}.json")))?;
        eventually("the fault", async || Ok((disk.hits()? > hits + 2).then_some(()))).await?;
        assert_eq!(files_below(&folder)?.len(), 1, "{fault:?}: it is there");
        assert!(files_below(&folder.join("failed"))?.is_empty(), "{fault:?}: it is not to blame");
        disk.mend()?;
        eventually("the file to be taken", async || Ok(files_below(&folder)?.is_empty().then_some(())))
            .await?;
        gateway.wait_for(&id, "sent").await?;
        assert_eq!(sink.mails().len(), n + 1);
    }
    Ok(())
}

/// What is fetched is kept beside for the next time. Where it cannot be kept, it is fetched again.
#[tokio::test]
async fn a_full_cache_costs_no_mail() -> anyhow::Result<()> {
    let stage = Stage::set(&[ALLOW_LOOPBACK]).await?;
    let source = HttpSource::start().await;
    let faults = [DiskFault::Create(DiskFault::ENOSPC), DiskFault::Write(DiskFault::ENOSPC)];
    let files = [noise(20_000), noise(20_000)];
    for ((n, fault), file) in faults.into_iter().enumerate().zip(&files) {
        let path = format!("/file-{n}");
        source.serve(&path, SourceReply::ok(file.clone()));
        stage.disk.break_with(fault, "/cache/")?;
        let hits = stage.disk.hits()?;
        let id = format!("mail-{n}");
        let attached = json!({"attachments": [{"filename": "a.bin", "url": source.url(&path)}]});
        stage.gateway.send(mail_with(&id, "ada@example.net", attached)).await?;
        stage.gateway.wait_for(&id, "sent").await?;
        assert!(stage.disk.hits()? > hits, "{fault:?} did not strike");
        stage.disk.mend()?;
    }
    for (mail, file) in stage.sink.mails().iter().zip(files) {
        assert!(Opened::of(mail)?.files == [("a.bin".to_owned(), file)], "its file is whole");
    }
    Ok(())
}

/// Each sync takes a third of a second: clients that come meanwhile share the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_sync_is_shared_and_times_nobody_out() -> anyhow::Result<()> {
    const MAILS: usize = 120;
    let stage = Stage::set(&[]).await?;
    stage.gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    stage.disk.break_with(DiskFault::SlowSync(300), DATABASE)?;
    let before = stage.disk.syncs()?;
    let posts = (0..MAILS).map(|n| stage.gateway.send(mail(&format!("mail-{n}"), "ada@example.net")));
    futures::future::try_join_all(posts).await?;
    let syncs = stage.disk.syncs()? - before;
    assert!(syncs as usize * 4 < MAILS, "{syncs} syncs for {MAILS} mails");
    assert!(stage.is_ready().await?, "slow is not away");

    // One that takes longer than a look at the store may: whoever routes traffic is told.
    stage.disk.break_with(DiskFault::SlowSync(4_000), DATABASE)?;
    eventually("trouble", async || Ok((!stage.is_ready().await?).then_some(()))).await?;
    stage.disk.mend()?;
    stage.gateway.wait_until_ready().await?;
    stage.gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    stage.gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(stage.sink.mails().len(), MAILS, "each went once");
    Ok(())
}

/// Bytes of the file have changed under it: it does not start, or says so wherever they are met.
#[tokio::test]
async fn a_rotten_database_is_refused_with_a_sentence() -> anyhow::Result<()> {
    let mut gateway = Gateway::start().await?;
    for n in 0..50 {
        let fields = json!({"account": "sandbox", "text": "x".repeat(5_000)});
        gateway.send(mail_with(&format!("mail-{n}"), "ada@example.net", fields)).await?;
    }
    gateway.wait_until_settled(PATIENCE).await?;
    assert!(gateway.terminate().await?.success());
    let file = gateway.data_dir().join("postway.db");
    let sound = fs::read(&file)?;
    let rot = |from: usize, to: usize| {
        let mut rotten = sound.clone();
        rotten[from..to].fill(0xa5);
        fs::write(&file, rotten)
    };

    // The head, and the schema behind it.
    for (from, to) in [(0, 100), (100, 8_192)] {
        rot(from, to)?;
        let ran = gateway.run(&["serve"], &[("POSTWAY_HTTP_LISTEN", "127.0.0.1:0")], b"").await?;
        assert!(ran.code.is_some_and(|code| code != 0), "{from}: {ran:?}");
        let last = ran.err.lines().last().unwrap_or_default();
        assert!(last.starts_with("postway: ") && last.contains("database"), "{from}: {last}");
        let ran = gateway.run(&["doctor", "--json"], &[], b"").await?;
        assert_ne!(ran.code, Some(0), "{ran:?}");
    }

    // Everything behind the schema: whatever is asked, no answer pretends that nothing is there.
    rot(16 * 8_192, sound.len())?;
    let mut started = Gateway::idle()?;
    fs::create_dir_all(started.data_dir())?;
    for name in ["postway.db", "secret.key", "admin.key"] {
        fs::copy(gateway.data_dir().join(name), started.data_dir().join(name))?;
    }
    if started.launch(&[]).await.is_ok() {
        let (status, answer) = started.call(Method::GET, "/v1/messages", None).await?;
        assert!(status.is_server_error(), "{status} {answer}");
        assert!(!text(&answer["error"], "message").is_empty(), "{answer}");
        let mail = mail_with("new", "ada@example.net", json!({"account": "sandbox"}));
        let (status, answer) = started.call(Method::POST, "/v1/messages", Some(mail)).await?;
        assert!(status.is_server_error(), "{status} {answer}");
        assert!(started.log().contains("malformed"), "{}", started.log());
    } else {
        let log = started.log();
        assert!(log.lines().last().is_some_and(|line| line.contains("malformed")), "{log}");
    }

    fs::write(&file, &sound)?;
    gateway.launch(&[]).await?;
    assert_eq!(gateway.get("/v1/stats").await?["by_status"]["sent"], 50, "nothing was written meanwhile");
    tokio::time::timeout(Duration::from_secs(60), gateway.wait_until_ready()).await?
}

/// Its files go on without a name, and would be gone with the process.
#[tokio::test]
async fn nothing_is_acknowledged_into_a_data_folder_that_is_gone() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let sink = SmtpSink::start().await;
    gateway.relay_to(sink.port()).await?;
    gateway.send(mail("before", "ada@example.net")).await?;
    sink.wait_for(1, PATIENCE).await;
    let elsewhere = gateway.folder().join("elsewhere");
    fs::rename(gateway.data_dir(), &elsewhere)?;
    let refused = gateway.request(Method::POST, "/v1/messages").json(&mail("lost", "ada@example.net"));
    let refused = refused.send().await?;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    let (ready, _) = gateway.call(Method::GET, "/health/ready", None).await?;
    assert_eq!(ready, StatusCode::SERVICE_UNAVAILABLE);
    fs::rename(&elsewhere, gateway.data_dir())?;
    gateway.send(mail("after", "ada@example.net")).await?;
    sink.wait_for(2, PATIENCE).await;
    Ok(())
}
