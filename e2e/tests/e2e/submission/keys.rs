//! Who may send: the keys of the API, by its rules.

use postway_e2e::text;
use serde_json::json;

use super::{MAIL, Stage, auth, uid_of};

#[tokio::test]
async fn keys_open_by_the_rules_of_the_api() -> anyhow::Result<()> {
    let stage = Stage::set().await?;
    let created =
        stage.gateway.post("/v1/tenants", json!({"id": "acme", "name": "Acme", "test": true})).await?;
    assert_eq!(text(&created, "id"), "acme");
    let reader = stage.new_key(json!({"name": "reader", "scopes": ["read"]})).await?;
    let elsewhere =
        stage.new_key(json!({"name": "far", "scopes": ["send"], "allow_ips": ["192.0.2.0/24"]})).await?;
    let admin = stage.gateway.key();
    for (username, key, why) in [
        ("default", "pw_nobody", "does not open"),
        ("default", &*reader, "lacks the scope `send`"),
        ("default", &*elsewhere, "from your address"),
        ("nobody", &*admin, "must be a tenant that exists"),
    ] {
        let mut client = stage.client().await?;
        client.say("EHLO client.example\r\n").await?;
        client.expect("250").await?;
        client.say(&auth(username, key)).await?;
        let refused = client.expect("535 5.7.8 ").await?;
        assert!(refused.contains(why), "{refused}");
        client.say("MAIL FROM:<a@example.com>\r\n").await?;
        client.expect("530 5.7.0").await?;
    }
    // The admin key sends for the tenant that the user name names, a tenant's key for its own whatever is
    // said.
    for (username, key, tenant) in [("acme", &admin, "acme"), ("acme", &stage.key, "default")] {
        let mut client = stage.client().await?;
        client.log_in(username, key).await?;
        let uid = uid_of(&client.send(MAIL).await?)?;
        let shown = stage.gateway.request(reqwest::Method::GET, &format!("/v1/messages/{uid}"));
        let status = shown.header("X-Tenant", tenant).send().await?.status();
        assert_eq!(status, reqwest::StatusCode::OK, "{username}");
    }
    let log = stage.gateway.log();
    assert!(!log.contains(&admin) && !log.contains(&stage.key) && !log.contains("@example"), "{log}");
    Ok(())
}

#[tokio::test]
async fn a_revoked_key_ends_in_open_sessions_too() -> anyhow::Result<()> {
    let stage = Stage::set().await?;
    let mut client = stage.sender().await?;
    uid_of(&client.send(MAIL).await?)?;
    let keys = stage.gateway.get("/v1/tenants/default/keys").await?;
    let key = keys["data"].as_array().and_then(|keys| keys.first()).cloned().unwrap_or_default();
    assert!(key["last_used_at"].is_string() || key["last_used_at"].is_null(), "{key:#}");
    let revoke = format!("/v1/tenants/default/keys/{}", text(&key, "id"));
    let (status, answer) = stage.gateway.call(reqwest::Method::DELETE, &revoke, None).await?;
    assert!(status.is_success(), "{status} {answer}");
    let refused = client.send(MAIL).await?;
    assert!(refused.starts_with("550 5.7.8 "), "{refused}");
    Ok(())
}

#[tokio::test]
async fn one_client_does_not_take_all_connections() -> anyhow::Result<()> {
    let stage = Stage::set_with(&[
        ("POSTWAY_SMTP_MAX_CONNECTIONS_PER_CLIENT", "2"),
        ("POSTWAY_SMTP_MAX_RECIPIENTS", "2"),
    ])
    .await?;
    let (mut first, _second) = (stage.sender().await?, stage.client().await?);
    let refused = stage.client().await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        refused.starts_with("421 4.7.0 mx.example there are too many connections from your address"),
        "{refused}"
    );
    assert!(first.ask("MAIL FROM:<shop@example.com>").await?.starts_with("250"));
    for (address, code) in [("a", "250"), ("b", "250"), ("c", "452 4.5.3"), ("not an address", "553 5.1.3")] {
        let reply = first.ask(&format!("RCPT TO:<{address}@example.net>")).await?;
        assert!(reply.starts_with(code), "{reply}");
    }
    Ok(())
}
