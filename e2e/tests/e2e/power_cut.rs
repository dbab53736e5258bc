//! The power fails: what was not synced is lost or torn. Whatever was acknowledged must be on the disk as it
//! then is, and no mail whose dot was out may be sent again without a doubt.
//!
//! The run is recorded between the program and its disk (`WatchedDisk`). Each acknowledgement, and each dot
//! at the relay, is noted with the place that the recording had reached. So one run gives as many power cuts
//! as are asked for, each at a moment between any two writes, and each is started upon and audited.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use anyhow::{Context, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{Gateway, GatewayDisk, PATIENCE, check_history, eventually, mail, mail_with, noise, text};
use postway_testkit::{DiskFault, DiskLog, SinkVerb, SmtpSink, Unsynced};
use serde_json::{Value, json};

const CLIENTS: usize = 4;
/// Mails of each client in each of the two lives.
const MAILS: usize = 16;
/// The number of bodies that are too large for a row, each in a file of its own.
const LARGE_EVERY: usize = 5;
/// Files in the spool folder.
const FILES: usize = 10;
const ADMIN_KEY: (&str, &str) = ("POSTWAY_ADMIN_KEY", "an-admin-key-that-outlives-its-machine-12");

/// A promise that was made, and how far the recording had come by then.
#[derive(Clone, Debug)]
struct Promise {
    id: String,
    at: u64,
}

/// A mail that had left: its dot was out.
struct Departure {
    uid: String,
    at: u64,
}

/// A gateway on a recorded disk, with a relay that notes when each dot came.
struct Stage {
    gateway: Gateway,
    disk: GatewayDisk,
    sink: SmtpSink,
    departures: Arc<Mutex<Vec<Departure>>>,
}

impl Stage {
    async fn set() -> anyhow::Result<Self> {
        let gateway = Gateway::idle()?;
        let disk = GatewayDisk::under(&gateway)?;
        fs::create_dir_all(gateway.folder().join("spool"))?;
        let (noted, departures) = (disk.shared(), Arc::new(Mutex::new(Vec::new())));
        let departed = departures.clone();
        let sink = SmtpSink::builder().rule(move |event| {
            if event.verb == SinkVerb::Dot {
                let at = noted.position();
                let uid = header(event.body, "X-Postway-ID");
                departed.lock().expect("no holder panics").push(Departure { uid, at });
            }
            None
        });
        let mut stage = Self { gateway, disk, sink: sink.start().await, departures };
        stage.launch().await?;
        stage.gateway.relay_with(stage.sink.port(), json!({"max_connections": 4})).await?;
        stage.gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
        Ok(stage)
    }

    async fn launch(&mut self) -> anyhow::Result<()> {
        let spool = self.gateway.folder().join("spool").to_string_lossy().into_owned();
        self.gateway.launch(&self.disk.env(&[("POSTWAY_SPOOL_FOLDER", &spool), ADMIN_KEY])).await
    }

    /// Clients post their mails of this life, one after the other each. Gives what they were promised.
    async fn post(&self, life: usize) -> anyhow::Result<Vec<Promise>> {
        let clients = (0..CLIENTS).map(|client| async move {
            let mut promises = Vec::new();
            for n in 0..MAILS {
                let id = format!("mail-{life}-{client}-{n}");
                let mail = match n % LARGE_EVERY {
                    0 => large(&id),
                    _ => mail(&id, "ada@example.net"),
                };
                self.gateway.send(mail).await?;
                promises.push(Promise { id, at: self.disk.position() });
            }
            anyhow::Ok(promises)
        });
        Ok(futures::future::try_join_all(clients).await?.concat())
    }

    /// Puts files into the spool folder. Each is promised as soon as it is there.
    fn spool(&self) -> anyhow::Result<Vec<Promise>> {
        let folder = self.gateway.folder().join("spool");
        let drop_file = |n: usize| {
            let id = format!("file-{n}");
            fs::write(folder.join("unfinished"), spooled(&id).to_string())?;
            fs::rename(folder.join("unfinished"), folder.join(format!("{id}.json")))?;
            Ok(Promise { id, at: self.disk.position() })
        };
        (0..FILES).map(drop_file).collect()
    }
}

fn header(raw: &[u8], name: &str) -> String {
    let text = String::from_utf8_lossy(raw);
    let line = text.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim_start_matches(':').trim().to_owned()
}

fn large(id: &str) -> Value {
    let file = BASE64_STANDARD.encode(noise(150_000));
    mail_with(id, "ada@example.net", json!({"attachments": [{"filename": "a.bin", "content": file}]}))
}

fn spooled(id: &str) -> Value {
    json!({"id": id, "from": "shop@example.com", "to": "ada@example.net", "subject": "From a file", "body_text": "Hi\n"})
}

/// What a cut is judged by.
struct Books<'a> {
    promises: &'a [Promise],
    departures: &'a [Departure],
    log: DiskLog,
}

impl Books<'_> {
    /// Starts a gateway on the disk as it is after a power cut at this moment, lets it come to rest, and
    /// checks every promise that had been made by then. Gives the ids of the broken ones.
    async fn audit(&self, at: u64, unsynced: Unsynced, sink: &SmtpSink) -> anyhow::Result<Vec<String>> {
        let mut gateway = Gateway::idle()?;
        let folder = gateway.folder();
        fs::create_dir_all(gateway.data_dir())?;
        fs::create_dir_all(folder.join("spool"))?;
        self.log.restore(at, unsynced, &folder)?;
        let made: Vec<&Promise> = self.promises.iter().filter(|promise| promise.at <= at).collect();
        self.bring_back_files(&made, at, &folder)?;
        let before = sink.mails().len();
        let spool = folder.join("spool").to_string_lossy().into_owned();
        gateway.launch(&[("POSTWAY_SPOOL_FOLDER", &spool), ADMIN_KEY]).await?;
        let taken = folder.join("spool");
        eventually("an empty spool", async || {
            let left = postway_e2e::files_below(&taken)?;
            Ok(left.iter().all(|file| file.starts_with(taken.join("failed"))).then_some(()))
        })
        .await?;
        gateway.wait_until_settled(PATIENCE).await?;

        let after: Vec<_> =
            sink.mails().into_iter().skip(before).filter_map(|mail| mail.postway_id).collect();
        let mut broken = Vec::new();
        for promise in made {
            let (status, message) =
                gateway.call(reqwest::Method::GET, &format!("/v1/messages/{}", promise.id), None).await?;
            if !status.is_success() {
                broken.push(promise.id.clone());
                continue;
            }
            let uid = text(&message, "uid");
            let earlier = self.departures.iter().filter(|one| one.uid == uid && one.at <= at).count();
            let later = after.iter().filter(|one| *one == uid).count();
            check_history(&message, earlier + later)
                .with_context(|| format!("{} went {earlier} and {later} times: {message:#}", promise.id))?;
        }
        ensure!(gateway.terminate().await?.success(), "{}", gateway.log());
        Ok(broken)
    }

    /// Files that the program had not touched are where their application put them.
    fn bring_back_files(&self, made: &[&Promise], at: u64, folder: &Path) -> anyhow::Result<()> {
        let touched = self.log.touched(at);
        for promise in made.iter().filter(|promise| promise.id.starts_with("file-")) {
            let name = format!("spool/{}.json", promise.id);
            if !touched.iter().any(|path| path.ends_with(&name)) {
                fs::write(folder.join(name), spooled(&promise.id).to_string())?;
            }
        }
        Ok(())
    }
}

/// A run of two lives: load, a clean stop, which folds the write-ahead log back, a start, load, and a kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_promise_outlives_a_power_cut_at_any_moment() -> anyhow::Result<()> {
    // As many with all unsynced bytes lost, and as many with some of them there, torn. More, by hand.
    let asked = std::env::var("POSTWAY_POWER_CUTS").ok().and_then(|count| count.parse().ok());
    let cuts: usize = asked.unwrap_or(3);
    let mut stage = Stage::set().await?;
    let begun = stage.disk.position();
    let mut promises = stage.spool()?;
    promises.extend(stage.post(1).await?);
    assert!(stage.gateway.terminate().await?.success());
    stage.launch().await?;
    promises.extend(stage.post(2).await?);
    stage.gateway.kill().await?;
    assert_eq!(promises.len(), FILES + 2 * CLIENTS * MAILS);

    let departures = std::mem::take(&mut *stage.departures.lock().expect("no holder panics"));
    assert!(departures.len() > CLIENTS, "mail left while it was recorded");
    let books = Books { promises: &promises, departures: &departures, log: stage.disk.log()? };
    let moments: Vec<u64> = books.log.moments().into_iter().filter(|at| *at >= begun).collect();
    for n in 0..cuts {
        for torn in [false, true] {
            let at = moments[rand::random_range(0..moments.len())];
            let unsynced = if torn { Unsynced::Torn(rand::random()) } else { Unsynced::Lost };
            let broken = books.audit(at, unsynced, &stage.sink).await;
            let broken = broken.with_context(|| format!("cut {n} at {at}, {unsynced:?}"))?;
            assert!(broken.is_empty(), "cut {n} at {at}, {unsynced:?}: {broken:?} are lost");
        }
    }
    // And at the very end, where everything was promised.
    let end = *moments.last().context("nothing was recorded")?;
    let broken = books.audit(end, Unsynced::Lost, &stage.sink).await?;
    assert!(broken.is_empty(), "{broken:?} are lost");
    Ok(())
}

/// What the audit above would find on a disk that says it has synced and has not: that it can find anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_lies_about_syncing_is_found_out() -> anyhow::Result<()> {
    let mut stage = Stage::set().await?;
    let mut promises = stage.post(1).await?;
    let kept = promises.len();
    stage.gateway.wait_until_settled(PATIENCE).await?;
    stage.disk.break_with(DiskFault::LostSync, "")?;
    promises.extend(stage.post(2).await?);
    assert!(stage.disk.hits()? > 0, "nothing was synced");
    stage.gateway.kill().await?;
    let departures = std::mem::take(&mut *stage.departures.lock().expect("no holder panics"));
    let books = Books { promises: &promises[..], departures: &departures, log: stage.disk.log()? };
    let end = *books.log.moments().last().context("nothing was recorded")?;
    let broken = books.audit(end, Unsynced::Lost, &stage.sink).await?;
    assert_eq!(broken.len(), promises.len() - kept, "lost with the syncs: {broken:?}");
    assert!(broken.iter().all(|id| id.starts_with("mail-2")), "{broken:?}");
    Ok(())
}

/// The same where only large bodies and their folders are not synced: their mails are known, and their bodies
/// are gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_were_never_synced_are_found_missing() -> anyhow::Result<()> {
    let mut stage = Stage::set().await?;
    stage.gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    stage.disk.break_with(DiskFault::LostSync, "/blobs")?;
    let promises = stage.post(1).await?;
    stage.gateway.kill().await?;
    let mut gateway = Gateway::idle()?;
    fs::create_dir_all(gateway.data_dir())?;
    let log = stage.disk.log()?;
    log.restore(*log.moments().last().context("nothing was recorded")?, Unsynced::Lost, &gateway.folder())?;
    gateway.launch(&[ADMIN_KEY]).await?;
    let mut missing = 0;
    for promise in &promises {
        gateway.message(&promise.id).await?;
        let (status, ..) = gateway.bytes(&format!("/v1/messages/{}/raw", promise.id)).await?;
        missing += usize::from(!status.is_success());
    }
    assert_eq!(missing, CLIENTS * MAILS.div_ceil(LARGE_EVERY), "the large ones, and no other");
    Ok(())
}
