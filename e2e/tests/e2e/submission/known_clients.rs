//! Clients that are known without a key: by the server that speaks for them (XCLIENT), or by their certificate.

use anyhow::{Context, ensure};
use postway_testkit::{TestCa, TestCert};
use serde_json::json;
use tokio::process::Command;

use super::{MAIL, PLAIN, Stage, TLS, run, uid_of, write};

/// What swaks prints; it ends with an error if a step is refused.
async fn swaks(stage: &Stage, words: &str, args: &[&str]) -> anyhow::Result<(bool, String)> {
    let address = stage.address(words).await?;
    let output = Command::new("swaks")
        .args(["--server", "127.0.0.1", "--port", &address.port().to_string(), "--helo", "swaks.example"])
        .args(["--from", "shop@example.com", "--to", "ada@example.net"])
        .args(args)
        .output()
        .await?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[tokio::test]
async fn swaks_speaks_for_its_client_from_a_named_server_alone() -> anyhow::Result<()> {
    let stage = Stage::set_with(&[
        ("POSTWAY_SMTP_XCLIENT_NETWORKS", "127.0.0.1"),
        ("POSTWAY_SMTP_OPEN_NETWORKS", "192.0.2.0/24=default/relay"),
        ("POSTWAY_SMTP_PLAINTEXT_NETWORKS", "198.51.100.0/24"),
    ])
    .await?;
    let bound =
        stage.new_key(json!({"name": "b", "scopes": ["send"], "allow_ips": ["198.51.100.7"]})).await?;
    let login = ["--auth", "PLAIN", "--auth-user", "default", "--auth-password", &bound];
    let (sent, said) = swaks(&stage, PLAIN, &["--xclient-addr", "192.0.2.7"]).await?;
    ensure!(sent && said.contains("250 2.0.0 Ok: queued as "), "an open network needs no key: {said}");
    let (sent, said) =
        swaks(&stage, PLAIN, &[&["--xclient-addr", "198.51.100.7"], &login[..]].concat()).await?;
    ensure!(sent && said.contains("250 2.0.0 Ok: queued as "), "its allow_ips see the client: {said}");
    let (sent, said) =
        swaks(&stage, PLAIN, &[&["--xclient-addr", "198.51.100.8"], &login[..]].concat()).await?;
    ensure!(!sent && said.contains("allow_ips"), "{said}");
    let (sent, said) = swaks(&stage, PLAIN, &["--xclient-addr", "203.0.113.9"]).await?;
    ensure!(!sent && said.contains("530 5.7.0"), "nobody else has the network's rights: {said}");
    stage.gateway.wait_until_settled(postway_e2e::PATIENCE).await?;
    let traces: Vec<String> = stage.sink.mails().iter().filter_map(|mail| mail.header("Received")).collect();
    ensure!(traces.iter().any(|trace| trace.contains("[192.0.2.7]")), "{traces:?}");
    // From elsewhere it is neither offered nor taken.
    let other = Stage::set_with(&[("POSTWAY_SMTP_XCLIENT_NETWORKS", "10.0.0.8")]).await?;
    let mut client = other.client().await?;
    let refused = client.ask("XCLIENT ADDR=192.0.2.7").await?;
    ensure!(refused.starts_with("550 5.7.1"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn a_client_is_known_by_its_certificate() -> anyhow::Result<()> {
    let (folder, ca) = (tempfile::tempdir()?, TestCa::new());
    let server = ca.issue(&["localhost", "127.0.0.1"]);
    write(folder.path(), &server)?;
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let keep = |name: &str, certificate: &TestCert| -> anyhow::Result<()> {
        std::fs::write(file(&format!("{name}.pem")), &certificate.cert_pem)?;
        std::fs::write(file(&format!("{name}.key")), &certificate.key_pem)?;
        Ok(())
    };
    // One that is known by its fingerprint alone, one by its name, and two that only claim that name.
    keep("pinned", &TestCa::new().issue(&["whoever.example"]))?;
    keep("named", &ca.issue(&["app.example.com"]))?;
    keep("other", &ca.issue(&["other.example.com"]))?;
    keep("forged", &TestCa::new().issue(&["app.example.com"]))?;
    let printed = run(Command::new("openssl").args([
        "x509",
        "-noout",
        "-fingerprint",
        "-sha256",
        "-in",
        &file("pinned.pem"),
    ]))
    .await?;
    let fingerprint = printed.trim().rsplit('=').next().context("no fingerprint")?;
    let known = format!("sha256:{fingerprint}=default, san:app.example.com=default/relay");
    let stage = Stage::set_with(&[
        ("POSTWAY_SMTP_TLS_LISTEN", "127.0.0.1:0"),
        ("POSTWAY_TLS_CERTIFICATE_FILE", &file("cert.pem")),
        ("POSTWAY_TLS_KEY_FILE", &file("key.pem")),
        ("POSTWAY_SMTP_CLIENT_CERTIFICATES", &known),
        ("POSTWAY_SMTP_CLIENT_CA_FILE", &file("ca.pem")),
    ])
    .await?;
    for (name, opens) in [("pinned", true), ("named", true), ("other", false), ("forged", false)] {
        let (cert, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key")));
        for (words, tls) in [(TLS, "--tlsc"), (PLAIN, "--tls")] {
            let (sent, said) = swaks(&stage, words, &[tls, "--tls-cert", &cert, "--tls-key", &key]).await?;
            ensure!(sent == opens, "{name} {tls}: {said}");
        }
    }
    // Without one, and with one that means nothing, a key opens as ever.
    let login = ["--auth", "PLAIN", "--auth-user", "default", "--auth-password", &stage.key];
    let (cert, key) = (file("forged.pem"), file("forged.key"));
    for shown in [&["--tlsc"][..], &["--tlsc", "--tls-cert", &cert, "--tls-key", &key]] {
        let (sent, said) = swaks(&stage, TLS, &[shown, &login[..]].concat()).await?;
        ensure!(sent, "{said}");
    }
    ensure!(stage.gateway.log().contains("smtp.client_certificates"), "the log says by which entry");
    Ok(())
}

#[tokio::test]
async fn a_quota_is_told_to_clients_of_smtp_and_kept_over_a_kill() -> anyhow::Result<()> {
    let mut stage = Stage::set().await?;
    stage.gateway.patch("/v1/tenants/default", json!({"daily_quota": {"messages": 3}})).await?;
    let mut client = stage.sender().await?;
    uid_of(&client.send(MAIL).await?)?;
    uid_of(&client.send(MAIL).await?)?;
    stage.gateway.kill().await?;
    stage.launch(&[]).await?;
    let mut client = stage.sender().await?;
    uid_of(&client.send(MAIL).await?)?;
    let refused = client.send(MAIL).await?;
    ensure!(refused.starts_with("452 4.7.0") && refused.contains("daily quota"), "{refused}");
    Ok(())
}
