//! `postway dev`: mail without keys on this machine, shown at once, forgotten at the end, closed to others.

use std::{fs, path::PathBuf, process::Stdio};

use postway_e2e::{Browser, PATIENCE, binary, eventually};
use postway_testkit::accessibility;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
};

use crate::page::picture;

/// A port that was free a moment ago.
async fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port())
}

fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains("postway-dev-")).collect()
}

struct Dev {
    child: Child,
    http: u16,
    smtp: u16,
}

impl Dev {
    async fn start() -> anyhow::Result<Self> {
        let (http, smtp) = (free_port().await?, free_port().await?);
        let mut command = Command::new(binary()?);
        command.args(["dev", "--http", &http.to_string(), "--smtp", &smtp.to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
        let dev = Self { child, http, smtp };
        eventually("it to be ready", async || {
            let ready = Client::new().get(dev.url("/health/ready")).send().await;
            Ok(ready.is_ok_and(|answer| answer.status().is_success()).then_some(()))
        })
        .await?;
        Ok(dev)
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.http)
    }
}

/// One mail over SMTP, as a program without any settings sends it.
async fn submit(port: u16, to: &str, subject: &str) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let html = "<p style=\"display: flex\">Hello</p><a href=\"#\">nowhere</a><img src=\"data:image/png;base64,AAAA\">";
    let mail = format!(
        "EHLO app\r\nMAIL FROM:<app@shop.test>\r\nRCPT TO:<{to}>\r\nDATA\r\nFrom: app@shop.test\r\nTo: {to}\r\nSubject: {subject}\r\n\
         MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n{html}\r\n.\r\nQUIT\r\n"
    );
    let mut said = String::new();
    // One command at a time, as those do that know no better.
    let mut buffer = [0; 1_024];
    let mut in_data = false;
    let read = stream.read(&mut buffer).await?;
    said += &String::from_utf8_lossy(&buffer[..read]);
    for line in mail.split_inclusive("\r\n") {
        stream.write_all(line.as_bytes()).await?;
        let ends_data = in_data && line == ".\r\n";
        if in_data && !ends_data {
            continue;
        }
        let read = stream.read(&mut buffer).await?;
        said += &String::from_utf8_lossy(&buffer[..read]);
        in_data = line == "DATA\r\n";
    }
    anyhow::ensure!(said.contains("\n250 ") || said.contains("queued"), "{said}");
    anyhow::ensure!(!said.contains("\n5"), "{said}");
    Ok(())
}

#[tokio::test]
async fn mail_is_taken_without_keys_shown_and_forgotten() -> anyhow::Result<()> {
    let mut dev = Dev::start().await?;
    submit(dev.smtp, "ada@shop.test", "First of all").await?;
    submit(dev.smtp, "bob@shop.test", "Second to none").await?;
    let http = Client::new();
    let mail =
        json!({"from": "a@shop.test", "to": "refused@shop.test", "subject": "No", "text": "x", "id": "no"});
    let answer = http.post(dev.url("/v1/messages")).json(&mail).send().await?;
    assert_eq!(answer.status(), StatusCode::ACCEPTED);
    eventually("the sandbox to refuse it", async || {
        let message: Value = http.get(dev.url("/v1/messages/no")).send().await?.json().await?;
        Ok((message["status"] == "failed").then_some(()))
    })
    .await?;
    // Neither another site nor another name for this machine.
    for (name, value) in
        [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("host", "evil.example")]
    {
        let answer = http.get(dev.url("/v1/messages")).header(name, value).send().await?;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{name}");
    }

    let browser = Browser::start(1280, 900).await?;
    browser.open(&dev.url("/#/inbox")).await?;
    browser.wait_for_text("Second to none").await?;
    browser.type_into("#inbox-search", "first").await?;
    browser.wait_until("the search", "return document.querySelectorAll('.mails li').length === 1").await?;
    browser.run("document.querySelector('.mails button').click()").await?;
    browser.wait_until("the mail", "return !!document.querySelector('iframe.mail')").await?;
    browser.click("Phone").await?;
    browser
        .wait_until("its width", "return document.querySelector('iframe.mail').clientWidth <= 390")
        .await?;
    browser.run(&accessibility::script()).await?;
    let found = browser.run("return axe.run().then(({ violations }) => violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(' ')}`))").await?;
    assert_eq!(found, json!([]));
    browser.screenshot(&picture("dev-inbox")).await?;
    browser.click("Checks").await?;
    browser.wait_for_text("1 link to nowhere").await?;
    browser.wait_for_text("Uses display: flex or grid").await?;
    browser.wait_for_text("1 without alt").await?;
    browser.screenshot(&picture("dev-checks")).await?;
    let pid = dev.child.id().unwrap_or_default().to_string();
    let before = folders().len();
    Command::new("kill").args(["-TERM", &pid]).status().await?;
    tokio::time::timeout(PATIENCE, dev.child.wait()).await??;
    assert!(folders().len() < before, "its folder is gone");
    Ok(())
}
