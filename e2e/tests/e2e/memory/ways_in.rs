//! Ways in beside the API: events of providers, mail from other servers, handshakes and requests over TLS, and
//! sign-ins. Each is used up as far as it can be.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
};

use anyhow::{Context, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{Gateway, eventually, text};
use postway_testkit::{Http2Client, TestCert};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::{ATTACKERS, MIB, connect, linger, zeros};

/// How many events an attacker reports: each is stored, and a disk has an end.
const EVENTS_OF_EACH: usize = 80;
/// How many report at once.
const REPORTERS: usize = 8;

/// Writes the certificate of the listeners; the variables that open them.
pub fn open(folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let certificate = TestCert::localhost();
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    std::fs::write(file("cert.pem"), &certificate.cert_pem)?;
    std::fs::write(file("key.pem"), &certificate.key_pem)?;
    let env = [
        ("POSTWAY_HTTP_TLS_LISTEN", "127.0.0.1:0".to_owned()),
        ("POSTWAY_TLS_CERTIFICATE_FILE", file("cert.pem")),
        ("POSTWAY_TLS_KEY_FILE", file("key.pem")),
        ("POSTWAY_RECEPTION_LISTEN", "127.0.0.1:0".to_owned()),
        ("POSTWAY_RECEPTION_SENDERS", "off".to_owned()),
        ("POSTWAY_RECEPTION_MAX_PER_MINUTE", "1000000".to_owned()),
    ];
    Ok(env.map(|(name, value)| (name.to_owned(), value)).to_vec())
}

/// The address that follows these words in a text.
fn address(text: &str, words: &str) -> anyhow::Result<Option<SocketAddr>> {
    let told = text.split(words).nth(1).and_then(|rest| rest.split_whitespace().next());
    told.map(|address| address.parse().with_context(|| address.to_owned())).transpose()
}

/// A hook of an attacker.
struct AttackersHook {
    url: String,
    authorization: String,
}

/// The ways in, open and with what an attacker needs.
pub struct NewerWaysIn {
    url: String,
    tls: SocketAddr,
    reception: SocketAddr,
    hooks: Vec<Arc<AttackersHook>>,
}

impl NewerWaysIn {
    /// Makes an account with a hook, and an address at the reception, for each attacker.
    pub async fn prepare(gateway: &Gateway) -> anyhow::Result<Self> {
        const RECEPTION: &str = "receiving mail from other servers address=";
        let reception =
            eventually("where it receives mail", async || address(&gateway.log(), RECEPTION)).await?;
        let tls = eventually("where it speaks TLS", async || address(&gateway.printed(), "https: ")).await?;
        let mut hooks = Vec::new();
        for tenant in ATTACKERS {
            let call = async |method: Method, path: &str, body: Value| -> anyhow::Result<Value> {
                let answer =
                    gateway.request(method, path).header("x-tenant", tenant).json(&body).send().await?;
                let status = answer.status();
                let body: Value = answer.json().await?;
                ensure!(status.is_success(), "{path}: {status} {body}");
                Ok(body)
            };
            let relay = json!({"id": "provider", "host": "127.0.0.1", "port": 9});
            call(Method::POST, "/v1/accounts", relay).await?;
            let made =
                call(Method::PUT, "/v1/accounts/provider/hook", json!({"provider": "postmark"})).await?;
            let path = text(&made, "url").trim_start_matches("https://mail.example.com");
            let pair = format!("postway:{}", text(&made, "secret"));
            hooks.push(Arc::new(AttackersHook {
                url: format!("{}{path}", gateway.url()),
                authorization: format!("Basic {}", BASE64_STANDARD.encode(pair)),
            }));
            let mailbox = json!({"id": "in", "addresses": [desk(tenant)], "roles": ["events"]});
            call(Method::POST, "/v1/mailboxes", mailbox).await?;
        }
        Ok(Self { url: gateway.url(), tls, reception, hooks })
    }

    /// Attacks until the time is over.
    pub fn attack(&self, lingering: &mut JoinSet<std::io::Result<()>>, until: Instant) -> anyhow::Result<()> {
        for (number, hook) in self.hooks.iter().enumerate() {
            let from: IpAddr = format!("127.0.5.{}", number + 1).parse()?;
            let http = reqwest::Client::builder().no_proxy().local_address(from).build()?;
            for reporter in 0..REPORTERS {
                lingering.spawn(report(http.clone(), hook.clone(), reporter, until));
            }
            // Bodies that do not end, and take their part of the memory meanwhile.
            let head = format!(
                "POST {} HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\nContent-Length: {}\r\n\r\n",
                hook.url.trim_start_matches(&self.url),
                hook.authorization,
                2 * MIB
            );
            let unended = bytes::Bytes::from([head.into_bytes(), vec![b' '; 2 * MIB - 1]].concat());
            let api = self.url.trim_start_matches("http://").parse()?;
            for _ in 0..40 {
                lingering.spawn(linger(from, api, unended.clone(), until));
            }
            let from: IpAddr = format!("127.0.6.{}", number + 1).parse()?;
            for session in 0..20 {
                let ends = session % 2 == 0;
                lingering.spawn(deliver(from, self.reception, ATTACKERS[number], ends, until));
            }
        }
        let hello = bytes::Bytes::from_static(b"\x16\x03\x01\x02\x00\x01");
        for number in 0..200 {
            let from: IpAddr = format!("127.0.7.{}", number / 10 + 1).parse()?;
            lingering.spawn(linger(from, self.tls, hello.clone(), until));
        }
        for number in 0..60 {
            let from: IpAddr = format!("127.0.8.{}", number + 1).parse()?;
            lingering.spawn(ask_much_at_once(from, self.tls, until));
            lingering.spawn(sign_in(self.url.clone(), from, until));
        }
        Ok(())
    }
}

fn desk(tenant: &str) -> String {
    format!("desk@{tenant}.test")
}

/// Reports events that cost the most for their size, each another one.
async fn report(
    http: reqwest::Client,
    hook: Arc<AttackersHook>,
    reporter: usize,
    until: Instant,
) -> std::io::Result<()> {
    let zeros = zeros(2 * MIB - 1_024);
    for number in 0..EVENTS_OF_EACH / REPORTERS {
        if Instant::now() >= until {
            break;
        }
        let body =
            format!("{{\"RecordType\":\"Bounce\",\"MessageID\":\"{reporter}-{number}\",\"x\":{zeros}}}");
        let request = http.post(&hook.url).header("authorization", &hook.authorization).body(body);
        // A refusal is an answer, too.
        let _ = request.send().await;
    }
    Ok(())
}

/// Delivers mails as another server would; or one without an end.
async fn deliver(
    from: IpAddr,
    to: SocketAddr,
    tenant: &'static str,
    ends: bool,
    until: Instant,
) -> std::io::Result<()> {
    let line = format!("{}\r\n", "0123456789abcdef".repeat(50));
    let mut mail = format!("Subject: x\r\n\r\n{}", line.repeat(9 * MIB / line.len())).into_bytes();
    if ends {
        mail.extend_from_slice(b".\r\n");
    }
    let session = async {
        let mut stream = connect(from, to).await?;
        for (said, expected) in [
            (String::new(), "220"),
            ("EHLO mx.example.org\r\n".to_owned(), "250 "),
            ("MAIL FROM:<>\r\n".to_owned(), "250 "),
            (format!("RCPT TO:<{}>\r\n", desk(tenant)), "250 "),
            ("DATA\r\n".to_owned(), "354"),
        ] {
            stream.write_all(said.as_bytes()).await?;
            let mut heard = Vec::new();
            while !String::from_utf8_lossy(&heard).contains(expected) {
                if stream.read_buf(&mut heard).await? == 0 || heard.len() > 10_000 {
                    return Ok(());
                }
            }
        }
        stream.write_all(&mail).await?;
        let mut answer = [0; 512];
        while stream.read(&mut answer).await? > 0 {}
        std::io::Result::Ok(())
    };
    timeout_at(until, session).await.unwrap_or(Ok(()))
}

/// As many requests at once as a connection takes, each with a long head and a body without an end.
async fn ask_much_at_once(from: IpAddr, to: SocketAddr, until: Instant) -> std::io::Result<()> {
    let filler = "x".repeat(30 * 1024);
    let fields = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", "/v1/session"),
        ("content-type", "application/json"),
        ("x-filler", &filler),
    ];
    let body = vec![b' '; 15 * 1024];
    let session = async {
        let mut client = Http2Client::connect(from, to).await?;
        for _ in 0..64 {
            client.begin(&fields, &body).await?;
        }
        // It is answered, or it waits.
        while client.answer().await.is_ok() {}
        std::future::pending().await
    };
    timeout_at(until, session).await.unwrap_or(Ok(()))
}

/// Tries passwords, each of which takes memory and time to compare.
async fn sign_in(url: String, from: IpAddr, until: Instant) -> std::io::Result<()> {
    let http = reqwest::Client::builder().no_proxy().local_address(from).build();
    let http = http.map_err(std::io::Error::other)?;
    let tried = json!({"user": "ada", "password": "a password that is wrong", "code": "123456"});
    while Instant::now() < until {
        // A refusal is an answer, too.
        let _ = http.post(format!("{url}/v1/session")).json(&tried).send().await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Ok(())
}
