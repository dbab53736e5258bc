//! Certificates on the real binary.

use postway_testkit::TestCert;
use tokio::process::Command;

use super::{Stage, TLS, run, write};

/// Whether a client that trusts this certificate's authority alone gets a greeting.
async fn greets(stage: &Stage, trusted: &TestCert) -> anyhow::Result<bool> {
    let folder = tempfile::tempdir()?;
    write(folder.path(), trusted)?;
    let script = "import os, smtplib, ssl\n\
        trust = ssl.create_default_context(cafile=os.environ['CA'])\n\
        try:\n    smtplib.SMTP_SSL('localhost', int(os.environ['PORT']), context=trust).quit()\n    print('greeted')\n\
        except ssl.SSLError:\n    print('refused')\n";
    let port = stage.address(TLS).await?.port().to_string();
    let ca = folder.path().join("ca.pem");
    let said = run(Command::new("python3").args(["-c", script]).env("CA", ca).env("PORT", port)).await?;
    Ok(said.contains("greeted"))
}

#[tokio::test]
async fn a_new_certificate_is_taken_over_without_a_restart_and_a_broken_one_is_not() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (old, new) = (TestCert::localhost(), TestCert::localhost());
    let stage = Stage::set_with_tls(folder.path(), &old).await?;
    assert!(greets(&stage, &old).await? && !greets(&stage, &new).await?);
    std::fs::write(folder.path().join("cert.pem"), "half a certificate")?;
    stage.gateway.wait_for_log("THE NEW CERTIFICATE CANNOT BE USED", 1).await?;
    assert!(greets(&stage, &old).await?);
    write(folder.path(), &new)?;
    stage.gateway.wait_for_log("the certificate was read anew", 1).await?;
    assert!(greets(&stage, &new).await? && !greets(&stage, &old).await?);
    Ok(())
}

#[tokio::test]
async fn a_certificate_that_is_not_there_is_told_at_the_start() -> anyhow::Result<()> {
    let missing = [
        ("POSTWAY_SMTP_TLS_LISTEN", "127.0.0.1:0"),
        ("POSTWAY_SMTP_TLS_CERTIFICATE_FILE", "/nonexistent/cert.pem"),
        ("POSTWAY_SMTP_TLS_KEY_FILE", "/nonexistent/key.pem"),
    ];
    let mut stage = Stage::idle(&missing).await?;
    let error = stage.launch(&[]).await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("cannot read /nonexistent/cert.pem"), "{error}");
    Ok(())
}
