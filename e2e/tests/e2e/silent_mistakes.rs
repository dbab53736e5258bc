//! Mistakes that would otherwise show too late are reported at once, each with a remedy.

use std::fs;

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{Gateway, eventually, noise};
use serde_json::{Value, json};

#[tokio::test]
async fn a_log_level_that_is_none_is_refused() -> anyhow::Result<()> {
    let gateway = Gateway::idle()?;
    for wrong in ["loud", "debgu"] {
        let ran = gateway.run(&["config", "check"], &[("POSTWAY_LOG", wrong)], b"").await?;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(&format!("`{wrong}` is no level; use error, warn, info")), "{ran:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_secret_key_that_opens_nothing_is_told_by_the_log_by_health_and_by_doctor() -> anyhow::Result<()> {
    let mut gateway = Gateway::start().await?;
    let account = json!({"id": "relay", "kind": "smtp", "host": "127.0.0.1", "port": 9, "tls": "none",
        "username": "shop", "password": "s3cret", "allow_plaintext_auth": true});
    gateway.post("/v1/accounts", account).await?;
    let warnings = async |gateway: &Gateway| {
        let health: Value = gateway.get("/health/ready").await?;
        anyhow::Ok(health["warnings"].clone())
    };
    assert!(warnings(&gateway).await?.is_null());
    assert!(gateway.terminate().await?.success());

    let file = gateway.data_dir().join("secret.key");
    let right = fs::read_to_string(&file)?;
    fs::write(&file, BASE64_STANDARD.encode(noise(32)))?;
    gateway.launch(&[]).await?;
    gateway.wait_for_log("stored secrets do not open", 1).await?;
    assert!(gateway.log().contains("account/default/relay"), "{}", gateway.log());
    eventually("a warning", async || {
        Ok((warnings(&gateway).await? == json!(["secret_key_wrong"])).then_some(()))
    })
    .await?;
    let ran = gateway.cli(&["doctor", "--json", "--dns", "127.0.0.1:9"]).await?;
    assert!(ran.out.contains("stored secrets do not open with the server's secret key"), "{}", ran.out);
    assert!(gateway.terminate().await?.success());

    // The key that sealed them is put beside the new one.
    gateway.launch(&[("POSTWAY_SECRET_KEY_PREVIOUS", right.trim())]).await?;
    assert!(warnings(&gateway).await?.is_null());
    Ok(())
}

#[tokio::test]
async fn whoever_waits_is_told_at_once_what_for() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    gateway.post("/v1/accounts/sandbox/suspend", json!({})).await?;
    let mail = ["send", "--from", "a@example.com", "--to", "b@example.net", "--subject", "x", "--text", "x"];
    let ran =
        gateway.cli(&[&mail[..], &["--id", "order-1", "--wait", "--wait-seconds", "3"]].concat()).await?;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let first = ran.err.lines().next().unwrap_or_default();
    assert!(first.starts_with("accepted order-1 ") || first.starts_with("ready order-1 "), "{ran:?}");
    assert!(ran.err.contains("its account `sandbox` is suspended since"), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn an_address_in_use_is_told_with_who_has_it() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let address = gateway.url().trim_start_matches("http://").to_owned();
    let other = Gateway::idle()?;
    let ran = other.run(&["serve"], &[("POSTWAY_HTTP_LISTEN", &address)], b"").await?;
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains(&format!("{address} is in use by ")), "{ran:?}");
    assert!(ran.err.contains("choose another address with http.listen (POSTWAY_HTTP_LISTEN)"), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn tls_to_a_port_without_it_is_told_with_what_to_write() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let url = gateway.url().replace("http://", "https://");
    let ran = gateway.run(&["stats"], &[("POSTWAY_URL", &url)], b"").await?;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("speaks no TLS; write http://"), "{ran:?}");
    Ok(())
}
