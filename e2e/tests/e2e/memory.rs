//! Two tenants do all they can to use up the memory, at once, and strangers with them; the process stays below
//! its ceiling, and a third one's mail goes.

mod ways_in;

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{ALLOW_LOOPBACK, Gateway, eventually, mail_with, text};
use postway_testkit::{
    HttpSource, SmtpSink, SourceReply,
    dovecot::{Dovecot, PASSWORD},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{Instant, timeout},
};

use self::ways_in::NewerWaysIn;

const MIB: usize = 1024 * 1024;
/// What the process may take, as the guide says: with the SMTP listener, mailboxes and the reception.
const CEILING: u64 = (1024 + 384 + 128) * MIB as u64;
/// How long the attack lasts.
const ATTACK: Duration = Duration::from_secs(12);
/// What a process may take that neither listens for SMTP nor watches mailboxes, as the guide says.
const PLAIN_CEILING: u64 = 1024 * MIB as u64;
const ATTACKERS: [&str; 2] = ["mallory", "eve"];

/// Where the gateway is, and who asks: attackers come from addresses of their own, like strangers do.
#[derive(Clone)]
struct Attacker {
    http: reqwest::Client,
    url: String,
    key: String,
    tenant: &'static str,
    until: Instant,
}

impl Attacker {
    /// Posts the same body again and again until the attack is over; how often it was answered, and how by
    /// the first.
    async fn post(self, path: &'static str, body: bytes::Bytes) -> Vec<u16> {
        let mut answers = Vec::new();
        while Instant::now() < self.until {
            let request = self.http.post(format!("{}{path}", self.url)).bearer_auth(&self.key);
            let request = request.header("x-tenant", self.tenant).header("content-type", "application/json");
            if let Ok(answer) = request.body(body.clone()).send().await {
                answers.push(answer.status().as_u16());
            }
        }
        answers
    }
}

async fn connect(from: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    socket.connect(to).await
}

/// Sends these bytes, reads at most a few, and stays until the attack is over or the gateway ends it.
async fn linger(from: IpAddr, to: SocketAddr, bytes: bytes::Bytes, until: Instant) -> std::io::Result<()> {
    let mut stream = connect(from, to).await?;
    let asks = async {
        stream.write_all(&bytes).await?;
        let mut byte = [0];
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            if stream.read(&mut byte).await? == 0 {
                return std::io::Result::Ok(());
            }
        }
    };
    match tokio::time::timeout_at(until, asks).await {
        Ok(ended) => ended,
        Err(_) => Ok(()),
    }
}

fn zeros(bytes: usize) -> String {
    format!("[{}0]", "0,".repeat(bytes / 2))
}

/// The bodies that cost the most for their size, and where they go.
fn bodies(source: &HttpSource) -> Vec<(&'static str, usize, String)> {
    let variables = |name: &str, json: &str| {
        format!(
            "{{\"from\":\"a@example.com\",\"to\":\"b@example.net\",\"template\":{{\"name\":\"{name}\",\"variables\":{json}}}}}"
        )
    };
    let objects = format!("{{\"list\":[{}{{\"a\":0}}]}}", "{\"a\":0},".repeat(24_000));
    let mail = BASE64_STANDARD.encode([&b"Subject: x\r\n\r\n"[..], &vec![b'x'; 8 * MIB]].concat());
    let rule =
        json!({"match": {"all": [{"field": "has_attachment", "value": true}]}, "actions": [{"do": "stop"}]});
    let item =
        r#"{"from":"a@example.com","to":"b@example.net","template":{"name":"long","variables":{"list":[]}}}"#;
    let file = |path: &str| {
        json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t",
               "attachments": [{"filename": "a.bin", "url": source.url(path)}]})
    };
    vec![
        ("/v1/messages", 8, variables("none", &format!("{{\"a\":{}}}", zeros(4 * MIB)))),
        ("/v1/messages", 8, variables("long", &objects)),
        ("/v1/messages?dry_run=true", 8, variables("long", &objects)),
        ("/v1/messages/batch", 4, format!("{{\"messages\":[{}]}}", vec![item; 1_000].join(","))),
        ("/v1/rules/dry-run", 4, format!("{{\"rule\":{},\"raw\":\"eA==\"}}", zeros(4 * MIB))),
        ("/v1/rules/dry-run", 4, format!("{{\"rule\":{rule},\"raw\":\"{mail}\"}}")),
        ("/v1/templates/long/preview", 8, format!("{{\"variables\":{objects}}}")),
        ("/v1/templates/preview", 4, format!("{{\"text\":\"x\",\"variables\":{{\"a\":{}}}}}", zeros(MIB))),
        ("/v1/suppressions/import?format=jsonl", 2, zeros(15 * MIB)),
        ("/v1/suppressions/import?format=csv", 2, ",".repeat(15 * MIB)),
        ("/v1/webhooks", 4, format!("{{\"x\":{}}}", zeros(MIB - 16))),
        ("/v1/bulk-actions", 2, format!("{{\"filter\":{}}}", zeros(MIB - 16))),
        ("/v1/routes/try", 2, format!("{{\"tags\":{}}}", zeros(MIB - 16))),
        ("/v1/users", 2, format!("{{\"tenants\":{}}}", zeros(MIB - 16))),
        ("/v1/messages?dry_run=true", 20, file("/stalled").to_string()),
        ("/v1/messages?dry_run=true", 8, file("/endless").to_string()),
        ("/v1/messages", 4, file("/endless").to_string()),
    ]
}

/// A tenant with a template, a large stored mail and room for large files; the mail's uid.
async fn settle(gateway: &Gateway, tenant: &str) -> anyhow::Result<String> {
    gateway.post("/v1/tenants", json!({"id": tenant, "name": tenant})).await?;
    gateway
        .patch(
            &format!("/v1/tenants/{tenant}"),
            json!({"large_files": {"policy": "rewrite", "above_bytes": 1_000_000}}),
        )
        .await?;
    let call = async |path: &str, body: Value| -> anyhow::Result<Value> {
        let request = gateway.request(Method::POST, path).header("x-tenant", tenant).json(&body);
        let answer = request.send().await?;
        let status = answer.status();
        let body: Value = answer.json().await?;
        ensure!(status.is_success(), "{path}: {status} {body}");
        Ok(body)
    };
    let html = format!("<p>{}</p>{{% for one in list %}}x{{% endfor %}}", "word ".repeat(80_000));
    call("/v1/templates", json!({"name": "long", "subject": "s", "html": html})).await?;
    let content = BASE64_STANDARD.encode(vec![b'x'; 6 * MIB]);
    let large = json!({"from": "a@example.com", "to": "b@example.net", "subject": "large", "text": "t", "account": "sandbox",
                       "attachments": [{"filename": "a.bin", "content": content}]});
    Ok(text(&call("/v1/messages", large).await?, "uid").to_owned())
}

/// A mailbox of a tenant, full of mail whose text has three times its size once it is read, with rules that
/// look into all of it and compose it anew.
async fn watch(gateway: &Gateway, dovecot: &Dovecot, tenant: &str) -> anyhow::Result<()> {
    let line = [&[0x80; 900][..], b"\r\n"].concat();
    let mails: Vec<Vec<u8>> = (0..6)
        .map(|number| {
            let head = format!(
                "From: x@example.org\r\nSubject: {number} {}\r\nContent-Type: text/plain; charset=windows-1252\r\n\r\n",
                "abcd".repeat(200)
            );
            let lines = if number % 2 == 0 { 2 * MIB / line.len() } else { 6 * MIB / line.len() };
            [head.into_bytes(), line.repeat(lines)].concat()
        })
        .collect();
    dovecot.append_all(tenant, "INBOX", &mails);
    let post = async |path: &str, body: Value| -> anyhow::Result<()> {
        let request = gateway.request(Method::POST, path).header("x-tenant", tenant).json(&body);
        let answer = request.send().await?;
        ensure!(answer.status().is_success(), "{path}: {} {}", answer.status(), answer.text().await?);
        Ok(())
    };
    let mailbox = json!({
        "id": "desk", "host": "127.0.0.1", "port": dovecot.port(), "tls": "none", "username": tenant, "password": PASSWORD,
        "roles": ["forward"], "start": "beginning", "poll_seconds": 5,
    });
    post("/v1/mailboxes", mailbox).await?;
    let mut conditions = vec![json!({"field": "subject", "regex": "(?:a?b?c?d?){50}$"}); 20];
    conditions.extend(vec![json!({"field": "has_attachment", "value": false}); 20]);
    let forward = json!({"do": "forward", "to": ["team@example.net"], "as": "compose", "account": "sandbox", "from": "desk@example.com"});
    let rule = json!({"id": "all", "mailbox": "desk", "match": conditions, "actions": [forward]});
    post("/v1/rules", rule).await
}

/// What a client says that signs in with a key and begins a mail without end.
fn unended_mail(key: &str, tenant: &str) -> bytes::Bytes {
    let key = BASE64_STANDARD.encode(format!("\0{tenant}\0{key}"));
    let mut said = format!(
        "EHLO x\r\nAUTH PLAIN {key}\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\nSubject: x\r\n\r\n"
    )
    .into_bytes();
    let line = format!("{}\r\n", "0123456789abcdef".repeat(50));
    said.extend(line.repeat(9 * MIB / line.len()).into_bytes());
    said.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_stays_below_its_ceiling_whatever_is_asked_of_it() -> anyhow::Result<()> {
    let (sink, source) = (SmtpSink::start().await, HttpSource::start().await);
    source.serve("/stalled", SourceReply::Stalled { declared: 90 << 20, body: vec![b'x'; 8 * MIB] });
    source.serve("/endless", SourceReply::Endless);
    let folder = tempfile::tempdir()?;
    let ways_in = ways_in::open(folder.path())?;
    let mut env = vec![
        ALLOW_LOOPBACK,
        ("POSTWAY_SMTP_LISTEN", "127.0.0.1:0"),
        ("POSTWAY_PUBLIC_URL", "https://mail.example.com"),
    ];
    env.extend(ways_in.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let mut gateway = Gateway::start_with(&env).await?;
    gateway.relay_to(sink.port()).await?;
    let dovecot = Dovecot::start();
    let mut stored = Vec::new();
    for tenant in ATTACKERS {
        stored.push(settle(&gateway, tenant).await?);
        watch(&gateway, &dovecot, tenant).await?;
    }
    let ways_in = NewerWaysIn::prepare(&gateway).await?;
    let api: SocketAddr = gateway.url().trim_start_matches("http://").parse()?;
    const SMTP: &str = "taking mail over SMTP address=";
    let smtp: SocketAddr = eventually("a word of where it takes mail", async || {
        let log = gateway.log();
        let told = log.split(SMTP).nth(1).and_then(|rest| rest.split_whitespace().next().map(str::to_owned));
        told.map(|address| address.parse().context("no address")).transpose()
    })
    .await?;

    let bodies: Vec<_> = bodies(&source)
        .into_iter()
        .map(|(path, times, body)| (path, times, bytes::Bytes::from(body)))
        .collect();
    let unended = ATTACKERS.map(|tenant| unended_mail(&gateway.key(), tenant));
    let until = Instant::now() + ATTACK;
    let (mut posting, mut lingering) = (JoinSet::new(), JoinSet::new());
    for (number, (tenant, uid)) in ATTACKERS.into_iter().zip(&stored).enumerate() {
        let from: IpAddr = format!("127.0.1.{}", number + 1).parse()?;
        let http = reqwest::Client::builder().no_proxy().local_address(from).timeout(ATTACK * 2).build()?;
        let attacker = Attacker { http, url: gateway.url(), key: gateway.key(), tenant, until };
        for (path, times, body) in &bodies {
            for _ in 0..*times {
                posting.spawn(attacker.clone().post(path, body.clone()));
            }
        }
        // Mails over SMTP that do not end.
        let mail = &unended[number];
        for session in 0..30 {
            let from: IpAddr = format!("127.0.4.{}", number * 100 + session / 10 + 1).parse()?;
            lingering.spawn(linger(from, smtp, mail.clone(), until));
        }
        // Readers that take a byte now and then.
        for (part, readers) in [("raw", 60), ("payload", 20), ("content", 20), ("attachments/0", 20)] {
            let ask = format!(
                "GET /v1/messages/{uid}/{part} HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nX-Tenant: {tenant}\r\n\r\n",
                gateway.key()
            );
            let ask = bytes::Bytes::from(ask);
            for reader in 0..readers {
                let from: IpAddr = format!("127.0.2.{}", number * 100 + reader / 10 + 1).parse()?;
                lingering.spawn(linger(from, api, ask.clone(), until));
            }
        }
    }
    // Connections without a key, with heads and lines that do not end.
    let head = bytes::Bytes::from(format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(390 * 1024)));
    let line = bytes::Bytes::from(format!("EHLO {}", "x".repeat(MIB)));
    for number in 0..200 {
        let from: IpAddr = format!("127.0.3.{}", number / 10 + 1).parse()?;
        lingering.spawn(linger(from, api, head.clone(), until));
        lingering.spawn(linger(from, smtp, line.clone(), until));
    }
    ways_in.attack(&mut lingering, until)?;

    // In the midst of it, somebody sends a mail.
    let mut sent = 0;
    while Instant::now() < until {
        let uid = gateway.send(mail_with(&format!("ordinary-{sent}"), "ada@example.net", json!({}))).await?;
        gateway.wait_for(&uid, "sent").await?;
        sent += 1;
    }
    ensure!(sent > 0 && sink.mails().len() >= sent, "{sent} were sent, {} came", sink.mails().len());
    ensure!(gateway.is_running()?, "it died:\n{}", gateway.log());

    // What came into the mailboxes was sent on, whole where it has too much text.
    for tenant in ATTACKERS {
        eventually("the mail of the mailbox to be sent on", async || {
            let path = "/v1/inbound?status=routed&mailbox=desk";
            let request = gateway.request(Method::GET, path).header("x-tenant", tenant);
            let routed: Value = request.send().await?.json().await?;
            Ok((routed["data"].as_array().is_some_and(|mails| mails.len() == 6)).then_some(()))
        })
        .await?;
    }

    let (mut answered, mut refused) = (0, 0);
    let ended = async {
        while let Some(answers) = posting.join_next().await {
            let answers = answers?;
            answered += answers.len();
            refused += answers.iter().filter(|status| [422, 413, 503].contains(*status)).count();
            ensure!(!answers.contains(&500), "some were answered 500:\n{}", gateway.log());
        }
        anyhow::Ok(())
    };
    timeout(ATTACK * 3, ended).await.context("the attackers were not all answered")??;
    lingering.shutdown().await;
    ensure!(answered > 0 && refused > 0, "{answered} were answered, {refused} refused: that was no attack");
    let peak = gateway.peak_memory()?;
    println!(
        "peak: {} MiB; {answered} requests answered, {refused} of them refused; {sent} mails sent",
        peak >> 20
    );
    ensure!(gateway.is_running()?, "it died:\n{}", gateway.log());
    ensure!(peak < CEILING, "{} MiB at the most, beyond the ceiling", peak >> 20);
    // And it is as it was.
    let uid = gateway.send(mail_with("after", "ada@example.net", json!({}))).await?;
    gateway.wait_for(&uid, "sent").await.map(drop)
}

/// None of them does any harm: all of a tenant's programs send their large mail at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_large_posts_at_once_stay_below_the_ceiling_and_are_all_taken_in_the_end() -> anyhow::Result<()>
{
    const POSTS: usize = 50;
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let content = BASE64_STANDARD.encode(vec![b'x'; 6 * MIB]);
    let bodies = (0..POSTS).map(|n| {
        let attachment = json!({"filename": "a.bin", "content": content});
        let mail = mail_with(&format!("large-{n}"), "ada@example.net", json!({"attachments": [attachment]}));
        bytes::Bytes::from(mail.to_string())
    });
    let mut posting = JoinSet::new();
    for body in bodies {
        ensure!(body.len() >= 8_000_000, "8 MB are meant, not {}", body.len());
        let client = gateway.client();
        posting.spawn(async move {
            let mut refusals = 0;
            // As callers are asked to: what is answered 503 is sent again, as late as the answer says.
            loop {
                let request = client.request(Method::POST, "/v1/messages");
                let answer =
                    request.header("content-type", "application/json").body(body.clone()).send().await?;
                let again =
                    answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
                match (answer.status().as_u16(), again) {
                    (202, _) => return anyhow::Ok(refusals),
                    (503, Some(seconds)) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                    (status, _) => anyhow::bail!("{status}: {}", answer.text().await?),
                }
                refusals += 1;
            }
        });
    }
    let mut refusals = 0;
    let taken = async {
        while let Some(posted) = posting.join_next().await {
            refusals += posted??;
        }
        anyhow::Ok(())
    };
    timeout(ATTACK * 20, taken).await.context("some were never taken")??;
    for n in 0..POSTS {
        gateway.wait_for(&format!("large-{n}"), "sent").await?;
    }
    let peak = gateway.peak_memory()?;
    println!("peak: {} MiB; {refusals} refusals", peak >> 20);
    ensure!(gateway.is_running()?, "it died:\n{}", gateway.log());
    ensure!(peak < PLAIN_CEILING, "{} MiB at the most, beyond the ceiling", peak >> 20);
    Ok(())
}
