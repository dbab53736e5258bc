//! SMTP for programs that are older, lazier or further away: networks, proxies, proofs, bare line feeds, a
//! certificate of its own.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::ensure;
use postway_e2e::{PATIENCE, text};
use serde_json::json;
use tokio::process::Command;

use super::{MAIL, PLAIN, Stage, TLS, run, uid_of};

/// What a message's own view says of it, once it is sent.
async fn sent_as(stage: &Stage, subject: &str) -> anyhow::Result<String> {
    let stats = stage.gateway.wait_until_settled(PATIENCE).await?;
    let mails = stage.sink.mails();
    let mail = mails.iter().find(|mail| mail.header("Subject").as_deref() == Some(subject));
    let mail = mail.ok_or_else(|| anyhow::anyhow!("{subject} was not sent: {stats:#}"))?;
    Ok(String::from_utf8_lossy(&mail.raw).into_owned())
}

#[tokio::test]
async fn swaks_behind_a_proxy_is_known_by_its_own_address() -> anyhow::Result<()> {
    let stage = Stage::set_with(&[
        ("POSTWAY_SMTP_PROXY_NETWORKS", "127.0.0.0/8"),
        ("POSTWAY_SMTP_PLAINTEXT_NETWORKS", "192.0.2.0/24"),
    ])
    .await?;
    let bound =
        stage.new_key(json!({"name": "bound", "scopes": ["send"], "allow_ips": ["192.0.2.7"]})).await?;
    let port = stage.address(PLAIN).await?.port().to_string();
    let swaks = |version: &str, family: &str, source: &str| {
        let mut swaks = Command::new("swaks");
        swaks
            .args(["--server", "127.0.0.1", "--port", &port, "--helo", "swaks.example"])
            .args(["--auth", "PLAIN", "--auth-user", "default", "--auth-password", &bound])
            .args(["--from", "shop@example.com", "--to", "ada@example.net"])
            .args(["--header", &format!("Subject: version {version}")])
            .args(["--proxy-version", version, "--proxy-family", family, "--proxy-source", source])
            .args(["--proxy-source-port", "50000", "--proxy-dest", "127.0.0.1", "--proxy-dest-port", "25"]);
        swaks
    };
    for (version, family) in [("1", "TCP4"), ("2", "AF_INET")] {
        run(&mut swaks(version, family, "192.0.2.7")).await?;
        let raw = sent_as(&stage, &format!("version {version}")).await?;
        assert!(raw.starts_with("Received: from swaks.example ([192.0.2.7])\r\n"), "{raw}");
    }
    let elsewhere = run(&mut swaks("1", "TCP4", "192.0.2.8")).await.unwrap_err().to_string();
    assert!(elsewhere.contains("535 5.7.8") && elsewhere.contains("allow_ips"), "{elsewhere}");
    let far = run(&mut swaks("1", "TCP4", "203.0.113.1")).await.unwrap_err().to_string();
    assert!(!far.contains("235 "), "no key is shown in the clear: {far}");
    Ok(())
}

const WITHOUT_A_KEY: &str = r#"
import os, smtplib
with smtplib.SMTP("localhost", int(os.environ["PORT"])) as smtp:
    # As `sendmail` with bytes does it: line feeds alone, and a line that is a dot.
    smtp.sendmail("cron@example.com", ["ada@example.net"], b"From: cron@example.com\nSubject: bytes\n\nOne\n.\nTwo\n")
"#;

#[tokio::test]
async fn programs_without_a_key_or_cr_send_from_a_network_that_is_named() -> anyhow::Result<()> {
    let stage =
        Stage::set_with(&[("POSTWAY_SMTP_OPEN_NETWORKS", "127.0.0.0/8=default/relay,::1=default")]).await?;
    let port = stage.address(PLAIN).await?.port().to_string();
    run(Command::new("python3").args(["-c", WITHOUT_A_KEY]).env("PORT", &port)).await?;
    let raw = sent_as(&stage, "bytes").await?;
    assert!(raw.contains("with ESMTP id ") && raw.contains("\r\n\r\nOne\r\n.\r\nTwo\r\n"), "{raw}");
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("mail.txt");
    std::fs::write(&file, "From: shop@example.com\nSubject: curl\n\nHi.\n")?;
    run(Command::new("curl")
        .args(["-sS", "--mail-from", "shop@example.com", "--mail-rcpt", "ada@example.net", "-T"])
        .arg(&file)
        .arg(format!("smtp://127.0.0.1:{port}/curl.example")))
    .await?;
    let raw = sent_as(&stage, "curl").await?;
    assert!(raw.contains("Subject: curl\r\n") && raw.contains("\r\n\r\nHi.\r\n"), "{raw}");
    let log = stage.gateway.log();
    assert!(
        log.contains("smtp.open_networks") && log.contains("127.0.0.0/8"),
        "the log says by which rule: {log}"
    );
    Ok(())
}

const SCRAM: &str = r#"
import base64, hashlib, hmac, os, smtplib

def scram(user, key):
    """The client's side of RFC 5802, written from the document."""
    state = {}
    def answer(challenge=None):
        if challenge is None or (not state and challenge == b""):
            state["bare"] = f"n={user},r=clientnonce"
            return "n,," + state["bare"]
        challenge = challenge.decode()
        if "v" not in state:
            fields = dict(part.split("=", 1) for part in challenge.split(","))
            salted = hashlib.pbkdf2_hmac("sha256", key.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
            mac = lambda k, m: hmac.new(k, m, hashlib.sha256).digest()
            client_key = mac(salted, b"Client Key")
            last = f"c=biws,r={fields['r']}"
            exchange = f"{state['bare']},{challenge},{last}".encode()
            proof = bytes(a ^ b for a, b in zip(client_key, mac(hashlib.sha256(client_key).digest(), exchange)))
            state["v"] = base64.b64encode(mac(mac(salted, b"Server Key"), exchange)).decode()
            return f"{last},p={base64.b64encode(proof).decode()}"
        assert challenge == "v=" + state["v"], "the server does not know the key"
        return ""
    return answer

key, admin = os.environ["KEY"], os.environ["ADMIN"]
for user, secret in (("default", key), (key.split("_")[1], key), ("admin", admin), ("default", admin)):
    with smtplib.SMTP("localhost", int(os.environ["PORT"])) as smtp:
        smtp.ehlo("python.example")
        assert "SCRAM-SHA-256" in smtp.esmtp_features["auth"], smtp.esmtp_features
        smtp.auth("SCRAM-SHA-256", scram(user, secret))
        smtp.sendmail("shop@example.com", ["ada@example.net"], f"From: shop@example.com\r\nSubject: by {user}\r\n\r\nHi\r\n")

answers = set()
for user, secret in (("default", "pw_wrong_key"), ("nobody", key), ("acme", key), ("AAAAAAAA", key)):
    with smtplib.SMTP("localhost", int(os.environ["PORT"])) as smtp:
        smtp.ehlo("python.example")
        try:
            smtp.auth("SCRAM-SHA-256", scram(user, secret))
        except smtplib.SMTPAuthenticationError as error:
            assert error.smtp_code == 535, error
            answers.add(error.smtp_error)
        else:
            raise AssertionError(f"{user} opened")
assert len(answers) == 1, answers
"#;

#[tokio::test]
async fn a_key_is_proven_by_its_id_its_tenant_or_as_the_admin_key() -> anyhow::Result<()> {
    let stage = Stage::set().await?;
    stage.gateway.post("/v1/tenants", json!({"id": "acme", "name": "Acme", "test": true})).await?;
    run(Command::new("python3")
        .args(["-c", SCRAM])
        .env("KEY", &stage.key)
        .env("ADMIN", stage.gateway.key())
        .env("PORT", stage.address(PLAIN).await?.port().to_string()))
    .await?;
    let stats = stage.gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(stats["by_status"]["sent"], 4, "{stats:#}");
    let log = stage.gateway.log();
    assert!(!log.contains(&stage.key) && !log.contains(&stage.gateway.key()), "{log}");
    Ok(())
}

#[tokio::test]
async fn without_a_certificate_one_is_made_kept_and_said() -> anyhow::Result<()> {
    let mut stage = Stage::set_with(&[("POSTWAY_SMTP_TLS_LISTEN", "127.0.0.1:0")]).await?;
    let files =
        ["smtp-self-signed.pem", "smtp-self-signed.key"].map(|name| stage.gateway.data_dir().join(name));
    let made = [std::fs::read(&files[0])?, std::fs::read(&files[1])?];
    assert_eq!(std::fs::metadata(&files[1])?.permissions().mode() & 0o777, 0o600);
    for life in 1..=2 {
        let log = stage.gateway.log();
        ensure!(log.contains("made one of its own"), "{log}");
        let sent = run(Command::new("python3")
            .args([
                "-c",
                "import os, smtplib, ssl\n\
                 trust = ssl.create_default_context(cafile=os.environ['CA'])\n\
                 with smtplib.SMTP_SSL('localhost', int(os.environ['PORT']), context=trust) as smtp:\n\
                 \x20   smtp.login('default', os.environ['KEY'])\n\
                 \x20   print(smtp.noop())\n",
            ])
            .env("CA", &files[0])
            .env("KEY", &stage.key)
            .env("PORT", stage.address(TLS).await?.port().to_string()))
        .await?;
        assert!(sent.contains("250"), "life {life}: {sent}");
        assert!(stage.gateway.terminate().await?.success());
        stage.launch(&[]).await?;
        assert_eq!([std::fs::read(&files[0])?, std::fs::read(&files[1])?], made, "it is used again");
    }
    Ok(())
}

#[tokio::test]
async fn wishes_about_reports_that_a_relay_does_not_take_are_on_record() -> anyhow::Result<()> {
    let stage = Stage::set().await?;
    let mut client = stage.sender().await?;
    for (line, code) in [
        ("MAIL FROM:<shop@example.com> RET=HDRS ENVID=QQ314159", "250"),
        ("RCPT TO:<ada@example.net> NOTIFY=NEVER ORCPT=rfc822;ada@example.org", "250"),
        ("DATA", "354"),
    ] {
        let reply = client.ask(line).await?;
        ensure!(reply.starts_with(code), "{line}: {reply}");
    }
    let uid = uid_of(&client.ask(&format!("{MAIL}.")).await?)?;
    stage.gateway.wait_for(&uid, "sent").await?;
    let message = stage.gateway.get(&format!("/v1/messages/{uid}")).await?;
    let sent = message["events"].as_array().into_iter().flatten().find(|event| event["type"] == "sent");
    assert_eq!(sent.map(|event| text(&event["data"], "dsn")), Some("not_offered"), "{message:#}");
    assert!(!stage.sink.mails()[0].mail_parameters.contains("RET"));
    Ok(())
}
