//! SMTP submission on the real binary: real clients, keys, TLS, kills, and a database that goes away.

mod clients;
mod compose;
mod durable;
mod hostile_mail;
mod keys;
mod known_clients;
mod networks;
mod tls;

use std::{net::SocketAddr, path::Path, process::Stdio};

use anyhow::{Context, bail, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{Gateway, PATIENCE, eventually, text};
use postway_testkit::{SmtpSink, TestCert};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::Command,
    time::timeout,
};

const MAIL: &str = "From: Shop <shop@example.com>\r\nTo: ada@example.net\r\nSubject: Hello\r\n\r\nHi.\r\n";
/// What it logs when it takes mail.
const PLAIN: &str = "taking mail over SMTP address=";
const TLS: &str = "taking mail over SMTP under TLS address=";

/// A gateway that takes mail over SMTP and hands it to a sink.
struct Stage {
    gateway: Gateway,
    sink: SmtpSink,
    env: Vec<(String, String)>,
    /// A tenant's key that may send.
    key: String,
    lives: usize,
}

impl Stage {
    async fn set() -> anyhow::Result<Self> {
        Self::set_with(&[]).await
    }

    async fn set_with(env: &[(&str, &str)]) -> anyhow::Result<Self> {
        let mut stage = Self::idle(env).await?;
        stage.launch(&[]).await?;
        stage.furnish().await?;
        Ok(stage)
    }

    /// The same with a certificate, in this folder.
    async fn set_with_tls(folder: &Path, certificate: &TestCert) -> anyhow::Result<Self> {
        write(folder, certificate)?;
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        Self::set_with(&[
            ("POSTWAY_SMTP_TLS_LISTEN", "127.0.0.1:0"),
            ("POSTWAY_SMTP_TLS_CERTIFICATE_FILE", &file("cert.pem")),
            ("POSTWAY_SMTP_TLS_KEY_FILE", &file("key.pem")),
        ])
        .await
    }

    /// One that was not started yet.
    async fn idle(env: &[(&str, &str)]) -> anyhow::Result<Self> {
        let own = [("POSTWAY_SMTP_LISTEN", "127.0.0.1:0"), ("POSTWAY_SMTP_EHLO_NAME", "mx.example")];
        let env = own.iter().chain(env).map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Ok(Self {
            gateway: Gateway::idle()?,
            sink: SmtpSink::start().await,
            env,
            key: String::new(),
            lives: 0,
        })
    }

    fn env<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let own = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        own.chain(more.iter().copied()).collect()
    }

    async fn launch(&mut self, more: &[(&str, &str)]) -> anyhow::Result<()> {
        let env: Vec<(String, String)> =
            self.env(more).into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let env: Vec<(&str, &str)> =
            env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.gateway.launch(&env).await?;
        self.lives += 1;
        Ok(())
    }

    /// An account that leads to the sink, and a key.
    async fn furnish(&mut self) -> anyhow::Result<()> {
        self.gateway.relay_with(self.sink.port(), json!({"max_connections": 4})).await?;
        self.gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
        self.key = self.new_key(json!({"name": "smtp", "scopes": ["send"]})).await?;
        Ok(())
    }

    async fn new_key(&self, key: serde_json::Value) -> anyhow::Result<String> {
        Ok(text(&self.gateway.post("/v1/tenants/default/keys", key).await?, "key").to_owned())
    }

    /// Where this life listens, by the words with which it says so.
    async fn address(&self, words: &str) -> anyhow::Result<SocketAddr> {
        let lives = self.lives;
        eventually("a word of where it takes mail", async || {
            let log = self.gateway.log();
            let told = log.match_indices(words).nth(lives - 1);
            let word =
                told.and_then(|(at, _)| log[at + words.len()..].split_whitespace().next().map(str::to_owned));
            word.map(|word| word.parse().context("no address")).transpose()
        })
        .await
    }

    /// A client that was greeted.
    async fn client(&self) -> anyhow::Result<Client> {
        let mut client = Client::connect(self.address(PLAIN).await?).await?;
        client.expect("220").await?;
        Ok(client)
    }

    /// A client with a key.
    async fn sender(&self) -> anyhow::Result<Client> {
        let mut client = self.client().await?;
        client.log_in("default", &self.key).await?;
        Ok(client)
    }
}

fn write(folder: &Path, certificate: &TestCert) -> anyhow::Result<()> {
    std::fs::write(folder.join("key.pem"), &certificate.key_pem)?;
    std::fs::write(folder.join("cert.pem"), &certificate.cert_pem)?;
    std::fs::write(folder.join("ca.pem"), &certificate.ca_pem)?;
    Ok(())
}

/// A client without mercy.
struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self { stream: TcpStream::connect(address).await?, unread: Vec::new() })
    }

    async fn say(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(self.stream.write_all(text.as_bytes()).await?)
    }

    /// The last line of the next reply.
    async fn reply(&mut self) -> anyhow::Result<String> {
        loop {
            while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                if line.get(3) == Some(&b' ') {
                    return Ok(String::from_utf8(line)?.trim_end().to_owned());
                }
            }
            let read =
                timeout(PATIENCE, self.stream.read_buf(&mut self.unread)).await.context("no answer")??;
            ensure!(read > 0, "the connection ended");
        }
    }

    async fn expect(&mut self, start: &str) -> anyhow::Result<String> {
        let reply = self.reply().await?;
        ensure!(reply.starts_with(start), "{reply} instead of {start}");
        Ok(reply)
    }

    async fn ask(&mut self, line: &str) -> anyhow::Result<String> {
        self.say(&format!("{line}\r\n")).await?;
        self.reply().await
    }

    async fn log_in(&mut self, username: &str, key: &str) -> anyhow::Result<()> {
        self.say("EHLO client.example\r\n").await?;
        self.expect("250").await?;
        self.say(&auth(username, key)).await?;
        self.expect("235").await.map(drop)
    }

    /// Hands a mail over; what the answer is.
    async fn send(&mut self, mail: &str) -> anyhow::Result<String> {
        self.say("MAIL FROM:<shop@example.com>\r\nRCPT TO:<ada@example.net>\r\nDATA\r\n").await?;
        for start in ["250", "250", "354"] {
            self.expect(start).await?;
        }
        self.say(&format!("{mail}.\r\n")).await?;
        self.reply().await
    }
}

fn auth(username: &str, key: &str) -> String {
    format!("AUTH PLAIN {}\r\n", BASE64_STANDARD.encode(format!("\0{username}\0{key}")))
}

/// The uid in the answer to a mail that was taken.
fn uid_of(reply: &str) -> anyhow::Result<String> {
    match reply.strip_prefix("250 2.0.0 Ok: queued as ") {
        Some(uid) => Ok(uid.to_owned()),
        None => bail!("not taken: {reply}"),
    }
}

/// Runs a program that must succeed; what it prints.
async fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(PATIENCE * 2, output).await.context("it did not end")??;
    let printed =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success(), "{}:\n{printed}", output.status);
    Ok(printed)
}
