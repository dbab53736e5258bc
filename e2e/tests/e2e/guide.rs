//! The guide does what it says: its examples in Python and Node, the shell blocks marked `run` on its pages,
//! and its backup, all against the real binary.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, ensure};
use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use postway_e2e::{
    ALLOW_LOOPBACK, Client, Gateway, PATIENCE, binary, column, event_types, eventually, mail_with, noise,
    text,
};
use postway_testkit::{ClosedPort, SmtpSink, node::NodeJs};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide");

/// Where Python or Node is, by a program's ending.
async fn interpreter(name: &str) -> String {
    match name.ends_with(".py") {
        true => "python3".to_owned(),
        false => NodeJs::installed().say("console.log(process.execPath)", &[]).await.trim().to_owned(),
    }
}

/// An example, to be run in the gateway's folder with the gateway's address and key.
async fn example(gateway: &Gateway, name: &str) -> Command {
    let mut command = Command::new(interpreter(name).await);
    command
        .arg(Path::new(GUIDE).join("examples").join(name))
        .current_dir(gateway.folder())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("POSTWAY_URL", gateway.url())
        .env("POSTWAY_API_KEY", gateway.key())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs an example to its end; what it printed.
async fn run(gateway: &Gateway, name: &str) -> anyhow::Result<String> {
    let output =
        timeout(PATIENCE, example(gateway, name).await.output()).await.context("it did not end")??;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {error}");
    Ok(String::from_utf8(output.stdout)?)
}

/// An example that goes on until it is dropped, and its lines.
struct Running {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("its output is piped")?).lines();
        Ok(Self { _child: child, lines })
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        let line = timeout(PATIENCE, self.lines.next_line()).await.context("it prints nothing more")??;
        line.context("it has ended")
    }
}

fn mail(id: &str) -> Value {
    json!({"id": id, "from": "shop@example.com", "to": "ada@example.net", "subject": "Hello", "text": "Hi"})
}

#[tokio::test]
async fn programs_hand_over_once_and_wait_for_the_outcome() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    for (name, id) in [("python/send.py", "order-1001"), ("node/send.mjs", "order-2001")] {
        let printed = run(&gateway, name).await?;
        assert!(printed.starts_with("409 conflict\n"), "{name}: {printed}");
        assert!(printed.contains(&format!("{id} sent ")), "{name}: {printed}");
        let message = gateway.message(id).await?;
        assert_eq!(column(&message, "attempts", "outcome"), ["sent"], "{message:#}");
        assert_eq!(event_types(&message), ["accepted", "validated", "ready", "sending", "sent"]);
    }
    assert_eq!(gateway.get("/v1/stats").await?["by_status"]["sent"], 2);
    Ok(())
}

#[tokio::test]
async fn programs_hold_a_batch_and_release_it() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    for (name, batch) in [("python/newsletter.py", "news-2030-01"), ("node/newsletter.mjs", "news-2030-02")] {
        let printed = run(&gateway, name).await?;
        for line in ["News for Grace []", "2 accepted, 1 rejected", "-2 to: ", "ready ["] {
            assert!(printed.contains(line), "{name} did not print {line}: {printed}");
        }
        let last = printed.lines().last().unwrap_or_default();
        assert!(last.contains("'batch'"), "{name} was not held: {last}");
        for (number, subject) in [(0, "News for Ada"), (1, "News for Grace")] {
            let message = gateway.wait_for(&format!("{batch}-{number}"), "sent").await?;
            assert_eq!((text(&message, "subject"), text(&message, "batch")), (subject, batch));
        }
        let (status, _) = gateway.call(Method::GET, &format!("/v1/messages/{batch}-2"), None).await?;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    Ok(())
}

#[tokio::test]
async fn programs_follow_the_feed_and_go_on_where_they_were() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    for (name, language) in [("python/feed.py", "python"), ("node/feed.mjs", "node")] {
        let (first, second) = (format!("{language}-1"), format!("{language}-2"));
        let cursor = gateway.folder().join(format!("{language}.cursor"));
        let follow = async || {
            let mut command = example(&gateway, name).await;
            command.env("CURSOR_FILE", &cursor);
            Running::start(command)
        };
        gateway.send(mail(&first)).await?;
        let mut running = follow().await?;
        while running.line().await? != format!("email.sent {first}") {}
        // Its cursor is written after the line.
        let kept = fs::read_to_string(&cursor).unwrap_or_default();
        gateway.send(mail(&second)).await?;
        assert_eq!(running.line().await?, format!("email.accepted {second}"));
        assert_eq!(running.line().await?, format!("email.sent {second}"));
        let moved = async || Ok(fs::read_to_string(&cursor).ok().filter(|now| *now != kept));
        eventually("its cursor to move", moved).await?;
        drop(running);

        let third = format!("{language}-3");
        gateway.send(mail(&third)).await?;
        let mut again = follow().await?;
        let line = again.line().await?;
        assert!(!line.ends_with(&first), "{name} began anew: {line}");
        let mut line = line;
        while line != format!("email.sent {third}") {
            line = again.line().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn receivers_believe_what_is_signed_and_nothing_else() -> anyhow::Result<()> {
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    for name in ["python/receiver.py", "node/receiver.mjs"] {
        // Where it listens is known only once it has its secret.
        let made = gateway
            .post("/v1/webhooks", json!({"url": "http://127.0.0.1:9/", "events": ["*"], "active": false}))
            .await?;
        let mut command = example(&gateway, name).await;
        command.env("WEBHOOK_SECRET", text(&made, "secret")).env("PORT", "0");
        let mut receiver = Running::start(command)?;
        let said = receiver.line().await?;
        let port = said.strip_prefix("listening on ").with_context(|| format!("it said {said}"))?;
        let url = format!("http://127.0.0.1:{port}/");
        let webhook = format!("/v1/webhooks/{}", text(&made, "id"));
        gateway.patch(&webhook, json!({"url": url, "active": true})).await?;

        let tried = gateway.post(&format!("{webhook}/test"), json!({})).await?;
        assert_eq!(tried["ok"], true, "{name}: {tried}");
        assert_eq!(receiver.line().await?.trim_end(), "webhook.test");

        let id = name.replace('/', "-");
        gateway.send(mail(&id)).await?;
        assert_eq!(receiver.line().await?, format!("email.accepted {id}"));
        assert_eq!(receiver.line().await?, format!("email.sent {id}"));
        let told = gateway.wait_until_reported(&id).await?;

        let secret = text(&made, "secret");
        let now = text(&told, "created_at").parse::<Timestamp>()?.as_second();
        let someone = BASE64_STANDARD.encode(noise(32));
        assert_eq!(call(&url, &someone, now).await?, StatusCode::UNAUTHORIZED, "{name}: another secret");
        assert_eq!(call(&url, secret, now - 3_600).await?, StatusCode::UNAUTHORIZED, "{name}: an hour ago");
        // What is called twice is dealt with once, and of what was refused nothing was said.
        for _ in 0..2 {
            assert_eq!(call(&url, secret, now).await?, StatusCode::NO_CONTENT, "{name}");
        }
        assert_eq!(receiver.line().await?, "email.sent by-hand");
        let last = format!("{id}-2");
        gateway.send(mail(&last)).await?;
        assert_eq!(receiver.line().await?, format!("email.accepted {last}"));
        gateway.call(Method::DELETE, &webhook, None).await?;
    }
    Ok(())
}

/// Calls a receiver as the gateway would have at that time, signed with this secret.
async fn call(url: &str, secret: &str, timestamp: i64) -> anyhow::Result<StatusCode> {
    let body = r#"{"type":"email.sent","data":{"id":"by-hand"}}"#;
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret))?;
    let signed = format!("msg_1.{timestamp}.{body}");
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes());
    let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
    let request = http
        .post(url)
        .header("webhook-id", "msg_1")
        .header("webhook-timestamp", timestamp)
        .header("webhook-signature", format!("v1,{}", BASE64_STANDARD.encode(signature)));
    Ok(request.body(body).send().await?.status())
}

/// The shell blocks of a page that are marked `run`, below a heading where one is given.
fn shell(page: &str, heading: Option<&str>) -> anyhow::Result<String> {
    let page = fs::read_to_string(Path::new(GUIDE).join(page))?;
    let section = match heading {
        Some(heading) => {
            let (_, rest) = page.split_once(heading).with_context(|| format!("no {heading}"))?;
            rest.split_once("\n## ").map_or(rest, |(section, _)| section)
        }
        None => &page,
    };
    let blocks = section.split("```sh run\n").skip(1).filter_map(|rest| rest.split("```").next());
    let script = blocks.collect::<Vec<_>>().join("\n");
    ensure!(!script.is_empty(), "nothing to run");
    Ok(script)
}

/// Runs a script in the gateway's folder. `curl` tells each status on standard error; those outside of `2xx`
/// and 409, which the pages show on purpose, are faults. What it printed.
async fn run_script(gateway: &Gateway, script: &str) -> anyhow::Result<String> {
    // What the page leaves running ends with it.
    const PRELUDE: &str = "set -euo pipefail\n\
        trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n\
        curl() { command curl -sS --noproxy '*' -w '%{stderr}HTTP %{http_code}\\n' \"$@\"; }\n\
        mkdir -p bin; ln -sf \"$BINARY\" bin/postway; PATH=$PWD/bin:$PATH\n";
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("{PRELUDE}{script}")])
        .current_dir(gateway.folder())
        .env("BINARY", binary()?)
        .env("POSTWAY_DATA_DIR", gateway.data_dir())
        .env("POSTWAY_URL", gateway.url())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(2 * PATIENCE, command.output()).await.context("it did not end")??;
    let error = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{error}\n{printed}");
    let statuses = error.lines().filter_map(|line| line.strip_prefix("HTTP "));
    let wrong: Vec<&str> = statuses.filter(|status| !status.starts_with('2') && *status != "409").collect();
    ensure!(wrong.is_empty(), "{wrong:?}: {printed}");
    Ok(printed)
}

/// A page's addresses, as they are in a test: this gateway's, and none that are not on this machine.
fn at_home(script: &str, gateway: &Client) -> String {
    script
        .replace("http://127.0.0.1:8520", &gateway.url())
        .replace("https://app.example.com", "http://127.0.0.1:9")
        .replace("smtp.example.com", "127.0.0.1")
}

#[tokio::test]
async fn every_line_of_the_pages_runs() -> anyhow::Result<()> {
    for page in ["../../README.md", "http.md", "reports.md"] {
        let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
        let printed = run_script(&gateway, &at_home(&shell(page, None)?, &gateway)).await;
        let printed = printed.with_context(|| page.to_owned())?;
        assert!(printed.contains(r#""data":["#), "{page}: {printed}");
    }
    Ok(())
}

#[tokio::test]
async fn the_five_minutes_are_as_the_page_says() -> anyhow::Result<()> {
    let gateway = Gateway::start_untouched(&[]).await?;
    let port = ClosedPort::take().port().to_string();
    let script = at_home(&shell("start.md", None)?, &gateway)
        .replace("postway sink", &format!("postway sink --listen 127.0.0.1:{port}"))
        .replace("--port 2525", &format!("--port {port}"));
    let printed = run_script(&gateway, &script).await?;
    for text in [r#""status":"accepted""#, "Subject: Hello", "Welcome, Ada"] {
        assert!(printed.contains(text), "{text}: {printed}");
    }
    assert_eq!(gateway.message("hello-1").await?["account"], "sandbox");
    // One sent by name, one by the account that became the default.
    assert_eq!(printed.matches("\ntook ").count(), 2, "{printed}");
    Ok(())
}

#[tokio::test]
async fn a_backup_is_restored_as_the_page_says() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().auth("shop", "s3cret").start().await;
    let mut gateway = Gateway::start().await?;
    let login = json!({"username": "shop", "password": "s3cret", "allow_plaintext_auth": true});
    gateway.relay_with(sink.port(), login).await?;
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    // Larger than what is kept in the database.
    let file = BASE64_STANDARD.encode(noise(300_000));
    let attachments = json!([{"filename": "noise.bin", "content": file}]);
    let fields = json!({"attachments": attachments});
    gateway.send(mail_with("large", "ada@example.net", fields)).await?;
    gateway.send(mail("before")).await?;
    gateway.wait_for("before", "sent").await?;

    let backup = gateway.folder().join("backup");
    fs::create_dir(&backup)?;
    let places = |script: String, data: &Path| {
        script
            .replace("/var/lib/postway", &data.display().to_string())
            .replace("/backup", &backup.display().to_string())
    };
    let blocks = shell("operations.md", Some("## Backup"))?;
    let (take, put_back) = blocks.split_once("# restore\n").context("the page has both ways")?;
    run_script(&gateway, &places(take.to_owned(), &gateway.data_dir())).await?;
    gateway.send(mail("after")).await?;
    gateway.wait_for("after", "sent").await?;
    assert!(gateway.terminate().await?.success());

    let lost: PathBuf = gateway.folder().join("lost");
    fs::rename(gateway.data_dir(), &lost)?;
    run_script(&gateway, &places(put_back.to_owned(), &gateway.data_dir())).await?;
    gateway.launch(&[]).await?;
    gateway.wait_for("before", "sent").await?;
    let tenant = gateway.get("/v1/tenants/default").await?;
    assert!(!tenant["suspended_since"].is_null() || tenant["suspended"] == true, "it is held: {tenant}");
    gateway.post("/v1/tenants/default/activate", json!({})).await?;
    let (status, _) = gateway.call(Method::GET, "/v1/messages/after", None).await?;
    assert_eq!(status, StatusCode::NOT_FOUND, "it came after the backup");
    // The stored password opens, and the body is there.
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    gateway.wait_for("large", "sent").await?;
    assert_eq!(sink.mails().len(), 1);
    Ok(())
}
