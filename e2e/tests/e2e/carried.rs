//! What Postfix carries is carried: mail of old, lazy and rich programs goes through the SMTP door of the
//! real binary, and arrives as it was handed in, except for changes that its history lists. What others signed
//! still verifies.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{Gateway, PATIENCE, eventually, text};
use postway_testkit::{
    Dkimpy, SmtpSink,
    dovecot::{Dovecot, PASSWORD},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

/// What it logs when it takes mail.
const PLAIN: &str = "taking mail over SMTP address=";

/// A gateway that takes mail over SMTP and hands it to a sink.
async fn stage(sink: &SmtpSink) -> anyhow::Result<Gateway> {
    let mut gateway = Gateway::idle()?;
    gateway
        .launch(&[("POSTWAY_SMTP_LISTEN", "127.0.0.1:0"), ("POSTWAY_SMTP_EHLO_NAME", "mx.example")])
        .await?;
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
    Ok(gateway)
}

/// A session that has logged in.
struct Session {
    stream: BufReader<TcpStream>,
}

impl Session {
    async fn open(gateway: &Gateway) -> anyhow::Result<Self> {
        let key =
            gateway.post("/v1/tenants/default/keys", json!({"name": "smtp", "scopes": ["send"]})).await?;
        let address: SocketAddr = eventually("a word of where it takes mail", async || {
            let log = gateway.log();
            let told = log.split_once(PLAIN).and_then(|(_, rest)| rest.split_whitespace().next());
            told.map(|word| word.parse().context("no address")).transpose()
        })
        .await?;
        let mut session = Self { stream: BufReader::new(TcpStream::connect(address).await?) };
        session.hear("220").await?;
        session.say(b"EHLO me.example\r\n", "250").await?;
        let login = BASE64_STANDARD.encode(format!("\0default\0{}", text(&key, "key")));
        session.say(format!("AUTH PLAIN {login}\r\n").as_bytes(), "235").await?;
        Ok(session)
    }

    async fn hear(&mut self, code: &str) -> anyhow::Result<String> {
        loop {
            let mut line = String::new();
            timeout(PATIENCE, self.stream.read_line(&mut line)).await??;
            ensure!(line.starts_with(code), "expected {code}, heard {line:?}");
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(line.trim_end().to_owned());
            }
        }
    }

    async fn say(&mut self, words: &[u8], code: &str) -> anyhow::Result<String> {
        self.stream.get_mut().write_all(words).await?;
        self.hear(code).await
    }

    /// Hands in a mail; the uid of the message that it is.
    async fn send(&mut self, mail: &[u8]) -> anyhow::Result<String> {
        self.say(b"MAIL FROM:<cron@example.com>\r\n", "250").await?;
        self.say(b"RCPT TO:<ada@example.net>\r\n", "250").await?;
        self.say(b"DATA\r\n", "354").await?;
        let answer = self.say(&[mail, b".\r\n"].concat(), "250").await?;
        Ok(answer.rsplit(' ').next().context("no uid")?.to_owned())
    }
}

/// The mail at the sink that this message is.
async fn arrived(sink: &SmtpSink, uid: &str) -> anyhow::Result<Vec<u8>> {
    let found = || sink.mails().into_iter().find(|mail| mail.postway_id.as_deref() == Some(uid));
    eventually("the mail at the relay", async || Ok(found().map(|mail| mail.raw))).await
}

/// What the history says was changed.
async fn changes(gateway: &Gateway, uid: &str) -> anyhow::Result<Vec<String>> {
    let message = gateway.get(&format!("/v1/messages/{uid}")).await?;
    let events = message["events"].as_array().context("no events")?;
    let validated = events.iter().find(|event| event["type"] == "validated");
    let changes = validated.with_context(|| format!("{message:#}"))?["data"]["changes"].as_array().cloned();
    Ok(changes.unwrap_or_default().iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

const REST: &str = "\r\nMessage-ID: <ticket-77.1@desk>\r\nDate: Tue, 1 Jul 2003 10:52:37 +0200\r\nMIME-Version: 1.0\r\n\r\n.Hi\r\n";

#[tokio::test]
async fn odd_mail_arrives_as_it_was_handed_in() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = stage(&sink).await?;
    let mut session = Session::open(&gateway).await?;
    for header in [
        "From: mdadm <cron@example.com>\r\nTo: root",
        "From: a@example.com\r\nTo: Customers",
        "From: a@example.com\r\nTo: (recipient list suppressed)",
        "From: a@example.com\r\nTo: Doe, John <ada@example.net>",
        "From: a@example.com\r\nTo: ada@example.net, broken@, <also broken>",
        "From: a@example.com\r\nTo: x\r\nTo: y\r\nReply-To: z\r\nSubject: one\r\nSubject:  two  \r\n\tfolded",
        "From: a@example.com\r\nReferences: <ticket-77@desk>\r\nX-Odd:",
    ] {
        let mail = format!("{header}{REST}");
        let uid = session.send(mail.replace("\r\n.", "\r\n..").as_bytes()).await?;
        let raw = String::from_utf8(arrived(&sink, &uid).await?)?;
        assert!(raw.ends_with(&format!("\r\nX-Postway-ID: {uid}\r\n{mail}")), "{raw}");
        assert_eq!(changes(&gateway, &uid).await?, Vec::<String>::new(), "{header}");
    }
    Ok(())
}

#[tokio::test]
async fn what_no_server_may_take_is_mended_and_told() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = stage(&sink).await?;
    let mut session = Session::open(&gateway).await?;
    let long =
        format!("From: a@example.com\r\nX-Long: {}{REST}{}\r\n", "word ".repeat(400), "x".repeat(3_000));
    let cases: [(&[u8], &[u8], &[&str]); 5] = [
        (
            b"From: root (Cron Daemon)\r\nTo: root",
            b"\r\nFrom: \"Cron Daemon\" <cron@example.com>\r\nX-Original-From: root (Cron Daemon)\r\nTo: root\r\n",
            &["from_completed"],
        ),
        (b"To: root", b"\r\nFrom: <cron@example.com>\r\nTo: root\r\n", &["from_completed"]),
        (
            b"From: Zo\xeb <a@example.com>\r\nSubject: Gr\xfc\xdfe",
            b"\r\nFrom: =?utf-8?B?Wm/Dqw==?= <a@example.com>\r\nSubject: =?utf-8?",
            &["header_8bit_encoded"],
        ),
        (
            "From: a@example.com\r\nSubject: Gr\u{fc}\u{df}e".as_bytes(),
            b"\r\nSubject: =?utf-8?",
            &["header_8bit_encoded"],
        ),
        (long.as_bytes(), b"\r\nContent-Transfer-Encoding: quoted-printable\r\n", &["header_lines_folded", "long_lines_reencoded"]),
    ];
    for (header, expected, told) in cases {
        let rest = if header == long.as_bytes() { "" } else { REST };
        let uid = session.send(&[header, rest.replace("\r\n.", "\r\n..").as_bytes()].concat()).await?;
        let raw = arrived(&sink, &uid).await?;
        let shown = String::from_utf8_lossy(&raw);
        assert!(raw.windows(expected.len()).any(|window| window == expected), "{shown}");
        assert!(raw.is_ascii() && raw.split(|byte| *byte == b'\n').all(|line| line.len() <= 999), "{shown}");
        assert!(shown.contains("\r\nMessage-ID: <ticket-77.1@desk>\r\n"), "{shown}");
        assert_eq!(changes(&gateway, &uid).await?, told, "{shown}");
    }
    Ok(())
}

#[tokio::test]
async fn what_others_signed_still_verifies_over_smtp_and_as_a_redirect() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = stage(&sink).await?;
    let mail = "From: Desk  <desk@example.com>\r\nTo: root,\r\n\t Ada <ada@example.net>\r\nSubject:  two  spaces\r\n\
        MESSAGE-ID: <ticket-77.1@desk>\r\nDate: Tue, 1 Jul 2003 10:52:37 +0200\r\nMime-Version: 1.0\r\n\
        Content-Type: text/plain;\r\n\tcharset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\nX-PM-Tag: theirs\r\n\r\nGr\u{fc}\u{df}e \r\n\r\n";
    let (signed, record) = tokio::task::spawn_blocking(|| Dkimpy::start().sign(mail.as_bytes())).await?;
    let uid = Session::open(&gateway).await?.send(&signed).await?;
    let submitted = arrived(&sink, &uid).await?;

    let dovecot = Dovecot::start();
    dovecot.append("desk", "INBOX", &signed);
    let mailbox = json!({
        "id": "desk", "host": "127.0.0.1", "port": dovecot.port(), "tls": "none", "username": "desk", "password": PASSWORD,
        "roles": ["forward"], "start": "beginning", "poll_seconds": 5,
    });
    let forward = json!({"do": "forward", "to": ["team@example.net"], "as": "redirect", "account": "relay", "from": "desk@example.com"});
    gateway.post("/v1/mailboxes", mailbox).await?;
    let rule = json!({"id": "all", "mailbox": "desk", "match": [{"field": "subject", "regex": "spaces"}], "actions": [forward]});
    gateway.post("/v1/rules", rule).await?;
    sink.wait_for(2, PATIENCE).await;
    let redirected = sink.mails().remove(1).raw;
    assert!(String::from_utf8_lossy(&redirected).starts_with("X-Postway-Forwarded: "));

    tokio::task::spawn_blocking(move || {
        let mut judge = Dkimpy::start();
        let records = [(record.0.as_str(), record.1.as_str())];
        assert_eq!(judge.verify(&signed, &records), Ok(()), "as it was signed");
        assert_eq!(judge.verify(&submitted, &records), Ok(()), "{}", String::from_utf8_lossy(&submitted));
        assert_eq!(judge.verify(&redirected, &records), Ok(()), "{}", String::from_utf8_lossy(&redirected));
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn relays_without_extensions_get_what_they_take() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().capabilities(&["PIPELINING"]).start().await;
    let gateway = stage(&sink).await?;
    let mut session = Session::open(&gateway).await?;
    let mail = "From: a@example.com\r\nSubject: Gr\u{fc}\u{df}e\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nGr\u{fc}\u{df}e from a town on the Rhine\r\n";
    let uid = session.send(mail.as_bytes()).await?;
    let raw = String::from_utf8(arrived(&sink, &uid).await?)?;
    assert!(raw.is_ascii() && raw.ends_with("\r\n\r\nGr=C3=BC=C3=9Fe from a town on the Rhine\r\n"), "{raw}");
    let message = eventually("the mail to be sent", async || {
        let message = gateway.get(&format!("/v1/messages/{uid}")).await?;
        Ok(Some(message).filter(|message| message["status"] == "sent"))
    })
    .await?;
    assert!(message.to_string().contains(r#""converted":["body"]"#), "{message:#}");
    Ok(())
}
