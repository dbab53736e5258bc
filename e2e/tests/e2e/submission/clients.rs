//! Clients that people use: swaks, Python's smtplib, nodemailer, and Postfix's smtp-source under load.

use std::net::SocketAddr;

use anyhow::ensure;
use postway_e2e::{Gateway, Opened, PATIENCE, eventually, text};
use postway_testkit::{TestCert, node::NodeJs};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    process::Command,
};

use super::{Client, PLAIN, Stage, TLS, auth, run};

/// Waits until `count` mails are final, all of them sent.
async fn all_sent(gateway: &Gateway, count: u64) -> anyhow::Result<()> {
    eventually("all mails sent", async || {
        let stats = gateway.get("/v1/stats").await?;
        Ok((stats["by_status"]["sent"] == count).then_some(()))
    })
    .await
}

#[tokio::test]
async fn swaks_sends_in_every_way_it_knows() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let stage = Stage::set_with_tls(folder.path(), &TestCert::localhost()).await?;
    let (plain, tls) = (stage.address(PLAIN).await?, stage.address(TLS).await?);
    let ways: [(&[&str], SocketAddr, &str); 5] = [
        (&["--auth", "PLAIN"], plain, "ESMTPA"),
        (&["--auth", "LOGIN", "--pipeline"], plain, "ESMTPA"),
        (&["--tls", "--auth", "PLAIN"], plain, "ESMTPSA"),
        (&["--tlsc", "--auth", "LOGIN"], tls, "ESMTPSA"),
        (
            &["--auth", "PLAIN", "--attach", "@/dev/null", "--to", "ada@example.net,bob@example.net"],
            plain,
            "ESMTPA",
        ),
    ];
    for (number, (way, address, with)) in ways.iter().enumerate() {
        let subject = format!("Subject: swaks {number}");
        let printed = run(Command::new("swaks")
            .args(["--server", "127.0.0.1", "--port", &address.port().to_string()])
            .args(["--auth-user", "default", "--auth-password", &stage.key])
            .args(["--from", "shop@example.com", "--to", "ada@example.net", "--header", &subject])
            .args(["--body", ".\n..\nA line that begins with a dot.", "--helo", "swaks.example"])
            .args(*way))
        .await?;
        ensure!(printed.contains("250 2.0.0 Ok: queued as "), "{printed}");
        all_sent(&stage.gateway, number as u64 + 1).await?;
        let mail = stage.sink.mails().pop().expect("it was sent");
        assert_eq!(mail.header("Subject"), Some(format!("swaks {number}")));
        let trace = mail.header("Received").unwrap_or_default();
        assert!(trace.starts_with("from swaks.example ([127.0.0.1])") && trace.contains(with), "{trace}");
        let raw = String::from_utf8_lossy(&mail.raw).into_owned();
        assert!(raw.contains("\r\n.\r\n..\r\nA line"), "{raw}");
    }
    assert_eq!(stage.sink.mails()[4].recipients.len(), 2);
    Ok(())
}

const PYTHON: &str = r#"
import email.policy, os, smtplib, ssl
from email.message import EmailMessage

key, ca = os.environ["KEY"], os.environ["CA"]
trust = ssl.create_default_context(cafile=ca)

def mail(subject, **fields):
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Shop <shop@example.com>", "ada@example.net", subject
    for name, value in fields.items():
        message[name.replace("_", "-")] = value
    message.set_content("Grüße\n.\n")
    return message

with smtplib.SMTP("localhost", int(os.environ["PORT"])) as smtp:
    smtp.ehlo("python.example")
    assert smtp.has_extn("pipelining") and smtp.has_extn("chunking"), smtp.esmtp_features
    smtp.starttls(context=trust)
    smtp.login("default", key)
    smtp.send_message(mail("one", X_Postway_Tag="python", X_Postway_Client_Id="py-1"))
    smtp.send_message(mail("two", Bcc="bob@example.net"))
    smtp.send_message(mail("Grüße"), to_addrs=["ödön@example.net"])
    refused = smtp.sendmail("shop@example.com", ["ada@example.net", "no body"], mail("three").as_bytes(policy=email.policy.SMTP))
    assert refused["no body"][0] == 553, refused
    for options, expected in ((["SIZE=99999999999"], 552), (["XYZZY=1"], 555)):
        try:
            smtp.sendmail("shop@example.com", ["ada@example.net"], b"From: a@example.com\r\n\r\n", options)
        except smtplib.SMTPSenderRefused as error:
            assert error.smtp_code == expected, error
        else:
            raise AssertionError(options)
    try:
        smtp.send_message(mail("bad", X_Postway_Priority="urgent"))
    except smtplib.SMTPDataError as error:
        assert error.smtp_code == 550 and b"X-Postway-Priority" in error.smtp_error, error
    else:
        raise AssertionError("a bad option was taken")

with smtplib.SMTP_SSL("localhost", int(os.environ["TLS_PORT"]), context=trust) as smtp:
    try:
        smtp.login("default", "pw_wrong")
    except smtplib.SMTPAuthenticationError as error:
        assert error.smtp_code == 535, error
    else:
        raise AssertionError("a wrong key opened")
    smtp.login("default", key)
    smtp.send_message(mail("four"))
"#;

#[tokio::test]
async fn pythons_smtplib_sends() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let stage = Stage::set_with_tls(folder.path(), &TestCert::localhost()).await?;
    run(Command::new("python3")
        .args(["-c", PYTHON])
        .env("KEY", &stage.key)
        .env("CA", folder.path().join("ca.pem"))
        .env("PORT", stage.address(PLAIN).await?.port().to_string())
        .env("TLS_PORT", stage.address(TLS).await?.port().to_string()))
    .await?;
    all_sent(&stage.gateway, 5).await?;
    let mut subjects = Vec::new();
    for mail in stage.sink.mails() {
        let opened = Opened::of(&mail)?;
        assert_eq!(opened.text.replace("\r\n", "\n"), "Grüße\n.\n");
        subjects.push((opened.subject.clone(), mail.recipients.len()));
        assert!(mail.header("Bcc").is_none() && mail.header("X-Postway-Tag").is_none());
    }
    subjects.sort();
    let expected = [("Grüße", 1), ("four", 1), ("one", 1), ("three", 1), ("two", 2)];
    assert_eq!(subjects, expected.map(|(subject, count)| (subject.to_owned(), count)));
    let message = stage.gateway.message("py-1").await?;
    assert_eq!(message["tags"][0], "python", "{message:#}");
    Ok(())
}

const NODEMAILER: &str = r#"
import { readFileSync } from "node:fs";
import nodemailer from "nodemailer";

const { KEY, CA, PORT, TLS_PORT } = process.env;
const common = { host: "localhost", auth: { user: "default", pass: KEY }, tls: { ca: readFileSync(CA) } };
const starttls = nodemailer.createTransport({ ...common, port: Number(PORT), requireTLS: true, pool: true, maxConnections: 3 });
const mail = (subject, more = {}) => ({
    from: "Shop <shop@example.com>", to: "Ada <ada@example.net>", subject, text: "Hällo\n.\n", html: "<p>Hällo</p>",
    attachments: [{ filename: "notes.txt", content: "x".repeat(100_000) }], ...more,
});
await starttls.verify();
const sent = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => starttls.sendMail(mail(`pool ${n}`))));
for (const one of sent) {
    if (!/^250 2\.0\.0 Ok: queued as [0-9a-f-]{36}$/.test(one.response)) throw new Error(one.response);
}
starttls.close();
const secure = nodemailer.createTransport({ ...common, port: Number(TLS_PORT), secure: true });
const options = { "X-Postway-Batch": "node", "X-Postway-Tag": "Grüße", "X-Postway-Idempotency-Key": "0123456789abcdef".repeat(8) };
const tries = [];
for (const _ of [1, 2]) tries.push(await secure.sendMail(mail("secure", { bcc: "bob@example.net", headers: options })));
if (tries[0].response !== tries[1].response || tries[0].messageId === tries[1].messageId) throw new Error(JSON.stringify(tries));
let refused;
try {
    await secure.sendMail(mail("late", { headers: { "X-Postway-Send-At": "whenever" } }));
} catch (error) {
    refused = error;
}
if (refused?.responseCode !== 550 || !refused.response.includes("X-Postway-Send-At")) throw new Error(String(refused));
const wrong = nodemailer.createTransport({ ...common, port: Number(TLS_PORT), secure: true, auth: { user: "default", pass: "no" } });
await wrong.verify().then(() => { throw new Error("a wrong key opened"); }, (error) => {
    if (error.code !== "EAUTH" || error.responseCode !== 535) throw error;
});
"#;

#[tokio::test]
async fn nodemailer_sends() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let stage = Stage::set_with_tls(folder.path(), &TestCert::localhost()).await?;
    let node = tokio::task::spawn_blocking(NodeJs::installed).await?;
    let ca = folder.path().join("ca.pem").to_string_lossy().into_owned();
    let port = stage.address(PLAIN).await?.port().to_string();
    let tls_port = stage.address(TLS).await?.port().to_string();
    node.say(NODEMAILER, &[("KEY", &stage.key), ("CA", &ca), ("PORT", &port), ("TLS_PORT", &tls_port)]).await;
    all_sent(&stage.gateway, 7).await?;
    let mails = stage.sink.mails();
    let secure = mails.iter().find(|mail| mail.header("Subject").as_deref() == Some("secure"));
    let secure = secure.expect("it was sent");
    assert_eq!(secure.recipients.len(), 2);
    let opened = Opened::of(secure)?;
    assert_eq!(opened.files.len(), 1);
    assert_eq!(opened.files[0].1, "x".repeat(100_000).into_bytes());
    let list = stage.gateway.get("/v1/messages?batch=node").await?;
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1), "the repeat was found: {list:#}");
    assert_eq!(list["data"][0]["tags"][0], "Grüße", "{list:#}");
    Ok(())
}

/// Logs in for a client that cannot: greets it once it has a session that may send.
async fn introduce(listener: TcpListener, server: SocketAddr, key: String) -> anyhow::Result<()> {
    loop {
        let (mut near, _) = listener.accept().await?;
        let key = key.clone();
        tokio::spawn(async move {
            let mut far = Client { stream: TcpStream::connect(server).await?, unread: Vec::new() };
            far.expect("220").await?;
            far.say("EHLO introduced.example\r\n").await?;
            far.expect("250").await?;
            far.say(&auth("default", &key)).await?;
            far.expect("235").await?;
            tokio::io::AsyncWriteExt::write_all(&mut near, b"220 introduced ESMTP\r\n").await?;
            copy_bidirectional(&mut near, &mut far.stream).await?;
            anyhow::Ok(())
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn smtp_source_is_served_under_load_and_nothing_is_lost() -> anyhow::Result<()> {
    const MAILS: u64 = 1_000;
    let stage = Stage::set().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let near = listener.local_addr()?;
    let introducing = tokio::spawn(introduce(listener, stage.address(PLAIN).await?, stage.key.clone()));
    let source = ["/usr/sbin/smtp-source", "/usr/lib/postfix/sbin/smtp-source"];
    let source = source.into_iter().find(|path| std::path::Path::new(path).exists()).unwrap_or("smtp-source");
    for connections in [&["-d"][..], &[]] {
        run(Command::new(source)
            .args(["-s", "20", "-l", "4096", "-f", "shop@example.com", "-t", "ada@example.net", "-S", "load"])
            .args(["-m", &(MAILS / 2).to_string()])
            .args(connections)
            .arg(near.to_string()))
        .await?;
    }
    introducing.abort();
    let stats = stage.gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(stats["by_status"]["sent"], MAILS, "{stats:#}");
    assert_eq!(stage.sink.mails().len() as u64, MAILS);
    let taken = format!("postway_smtp_messages_total{{outcome=\"accepted\"}} {MAILS}\n");
    eventually("sessions to be over, and counted", async || {
        let metrics = stage.gateway.bytes("/metrics").await?.2;
        let metrics = String::from_utf8_lossy(&metrics);
        Ok((metrics.contains(&taken) && metrics.contains("postway_smtp_sessions 0\n")).then_some(()))
    })
    .await?;
    let one = stage.gateway.get("/v1/messages?limit=1").await?;
    assert!(text(&one["data"][0], "subject").contains("load"), "{one:#}");
    Ok(())
}
