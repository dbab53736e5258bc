//! TLS on the HTTP port, as curl and openssl see it: HTTP/2, certificates that change, and the way from plain
//! HTTP.

use std::{net::SocketAddr, path::Path, process::Stdio};

use anyhow::{Context, ensure};
use postway_e2e::{Gateway, eventually};
use postway_testkit::TestCert;
use tokio::process::Command;

fn write(folder: &Path, certificate: &TestCert) -> anyhow::Result<()> {
    std::fs::write(folder.join("ca.pem"), &certificate.ca_pem)?;
    std::fs::write(folder.join("key.pem"), &certificate.key_pem)?;
    std::fs::write(folder.join("cert.pem"), &certificate.cert_pem)?;
    Ok(())
}

fn address(gateway: &Gateway, words: &str) -> anyhow::Result<SocketAddr> {
    let printed = gateway.printed();
    let line = printed.lines().find_map(|line| line.trim().strip_prefix(words));
    Ok(line.with_context(|| format!("no `{words}` in {printed}"))?.trim().parse()?)
}

async fn gateway(folder: &Path) -> anyhow::Result<(Gateway, SocketAddr, SocketAddr)> {
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let gateway = Gateway::start_with(&[
        ("POSTWAY_HTTP_TLS_LISTEN", "127.0.0.1:0"),
        ("POSTWAY_HTTP_REDIRECT_LISTEN", "127.0.0.1:0"),
        ("POSTWAY_TLS_CERTIFICATE_FILE", &file("cert.pem")),
        ("POSTWAY_TLS_KEY_FILE", &file("key.pem")),
    ])
    .await?;
    eventually("the addresses", async || Ok(address(&gateway, "http to https:").ok())).await?;
    let (tls, redirect) = (address(&gateway, "https:")?, address(&gateway, "http to https:")?);
    Ok((gateway, tls, redirect))
}

/// What curl prints for an HTTPS URL under a trusted certificate; `None` if it fails.
async fn curl(folder: &Path, ca: &str, args: &[&str]) -> anyhow::Result<Option<String>> {
    let output = Command::new("curl")
        .args(["-sS", "--max-time", "30", "--noproxy", "*", "--cacert"])
        .arg(folder.join(ca))
        .args(args)
        .output()
        .await?;
    Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
}

async fn openssl(address: SocketAddr, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("openssl")
        .args(["s_client", "-connect", &address.to_string()])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn curl_and_openssl_speak_tls_with_the_api() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    write(folder.path(), &TestCert::localhost())?;
    let (gateway, tls, redirect) = gateway(folder.path()).await?;
    let url = format!("https://localhost:{}", tls.port());
    let key = format!("X-API-Key: {}", gateway.key());
    for (flag, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let asked = format!("{url}/v1/tenants");
        let args = [flag, "-H", &key, "-w", "\n%{http_version} %{http_code}", &asked];
        let answer = curl(folder.path(), "ca.pem", &args).await?.context("curl failed")?;
        ensure!(answer.ends_with(&format!("\n{version} 200")) && answer.contains("default"), "{answer}");
    }
    // Many requests at once over one connection, some with bodies of a size.
    let body = folder.path().join("body.json");
    let html = "x".repeat(400_000);
    let message = serde_json::json!({
        "from": "a@example.com", "to": ["b@example.net"], "subject": "large", "html": html,
    });
    std::fs::write(&body, message.to_string())?;
    let asked = format!("{url}/v1/messages");
    let data = format!("@{}", body.display());
    let mut args = vec!["--http2", "--parallel", "-H", &key, "-H", "Content-Type: application/json"];
    args.extend(["--data-binary", &data, "-w", "%{http_code}\n"]);
    let silent: Vec<&str> = (0..20).flat_map(|_| ["-o", "/dev/null", &asked]).collect();
    args.extend(silent);
    let answer = curl(folder.path(), "ca.pem", &args).await?.context("curl failed")?;
    ensure!(answer.matches("202").count() == 20, "{answer}");

    let said = openssl(tls, &["-alpn", "h2,http/1.1"]).await?;
    ensure!(said.contains("ALPN protocol: h2"), "{said}");
    let said = openssl(tls, &["-alpn", "http/1.1", "-tls1_2"]).await?;
    ensure!(said.contains("ALPN protocol: http/1.1") && said.contains("TLSv1.2"), "{said}");
    let said = openssl(tls, &["-tls1_1"]).await?;
    ensure!(!said.contains("Cipher is ECDHE"), "{said}");

    // From plain HTTP, readers are led there, and keys are refused.
    let plain = format!("http://localhost:{}", redirect.port());
    let asked = format!("{plain}/docs?x=1");
    let answer = curl(folder.path(), "ca.pem", &["-i", &asked]).await?.context("curl failed")?;
    ensure!(answer.starts_with("HTTP/1.1 308"), "{answer}");
    ensure!(answer.contains(&format!("location: https://localhost:{}/docs?x=1", tls.port())), "{answer}");
    let args = ["-L", "-w", "\n%{http_version} %{http_code}", &asked];
    let answer = curl(folder.path(), "ca.pem", &args).await?.context("curl failed")?;
    ensure!(answer.ends_with("\n2 200"), "{}", &answer[answer.len().saturating_sub(200)..]);
    let asked = format!("{plain}/v1/messages");
    let answer = curl(folder.path(), "ca.pem", &["-i", "-H", &key, &asked]).await?.context("curl failed")?;
    ensure!(answer.starts_with("HTTP/1.1 403") && answer.contains("HTTPS"), "{answer}");
    Ok(())
}

#[tokio::test]
async fn a_new_certificate_is_taken_over_and_a_broken_one_is_not() -> anyhow::Result<()> {
    let (folder, new) = (tempfile::tempdir()?, TestCert::localhost());
    write(folder.path(), &TestCert::localhost())?;
    let (gateway, tls, _) = gateway(folder.path()).await?;
    let url = format!("https://localhost:{}/health/live", tls.port());
    let live = async |ca: &str| curl(folder.path(), ca, &["-f", &url]).await;
    ensure!(live("ca.pem").await?.is_some());

    std::fs::write(folder.path().join("cert.pem"), "-----BEGIN CERTIFICATE-----\nnonsense\n")?;
    gateway.wait_for_log("THE NEW CERTIFICATE CANNOT BE USED", 1).await?;
    ensure!(live("ca.pem").await?.is_some(), "the old one stays");
    let metrics = reqwest::get(format!("{}/metrics", gateway.url())).await?.text().await?;
    ensure!(metrics.contains("postway_certificate_refused 1"), "the metrics tell it");

    std::fs::write(folder.path().join("new-ca.pem"), &new.ca_pem)?;
    std::fs::write(folder.path().join("key.pem"), &new.key_pem)?;
    std::fs::write(folder.path().join("cert.pem"), &new.cert_pem)?;
    eventually("the new certificate", async || live("new-ca.pem").await).await?;
    ensure!(live("ca.pem").await?.is_none(), "the old one is gone");
    Ok(())
}

#[tokio::test]
async fn without_a_certificate_https_has_one_of_its_own_and_says_so() -> anyhow::Result<()> {
    let gateway = Gateway::start_with(&[
        ("POSTWAY_HTTP_TLS_LISTEN", "127.0.0.1:0"),
        ("POSTWAY_SMTP_TLS_LISTEN", "127.0.0.1:0"),
    ])
    .await?;
    eventually("the address", async || Ok(address(&gateway, "smtps:").ok())).await?;
    let (web, smtp) = (address(&gateway, "https:")?, address(&gateway, "smtps:")?);
    let url = format!("https://localhost:{}/health/live", web.port());
    let answer = curl(&gateway.data_dir(), "smtp-self-signed.pem", &["-f", &url]).await?;
    ensure!(answer.is_some(), "it is trusted by who has it");
    ensure!(gateway.log().contains("A LISTENER HAS NO CERTIFICATE"), "{}", gateway.log());
    ensure!(gateway.printed().contains("https certificate: self-signed"), "{}", gateway.printed());
    // Both listeners show the same one.
    let shown = async |address| -> anyhow::Result<String> {
        let said = openssl(address, &["-showcerts"]).await?;
        let begin = said.find("-----BEGIN CERTIFICATE").context("no certificate")?;
        let end = said.find("-----END CERTIFICATE").context("no end")?;
        Ok(said[begin..end].to_owned())
    };
    ensure!(shown(web).await? == shown(smtp).await?);
    Ok(())
}
