//! Tenants, their keys, their batches and their suppression lists, on the real binary.

use anyhow::Context;
use postway_e2e::{Client, Gateway, column, event_types, mail_with, text};
use postway_testkit::SmtpSink;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

/// Runs a command that prints one line of JSON.
async fn told(gateway: &Gateway, args: &[&str]) -> anyhow::Result<Value> {
    let ran = gateway.cli(&[args, &["--json"]].concat()).await?;
    anyhow::ensure!(ran.code == Some(0), "{args:?}: {ran:?}");
    serde_json::from_str(&ran.out).with_context(|| format!("{args:?}: {}", ran.out))
}

/// A request with this key instead of the admin's.
fn with_key(client: &Client, key: &str, method: Method, path: &str) -> anyhow::Result<RequestBuilder> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    Ok(http.request(method, format!("{}{path}", client.url())).bearer_auth(key))
}

async fn status_of(request: RequestBuilder) -> anyhow::Result<StatusCode> {
    Ok(request.send().await?.status())
}

/// What a GET with this key is answered.
async fn get_with(client: &Client, key: &str, path: &str) -> anyhow::Result<StatusCode> {
    status_of(with_key(client, key, Method::GET, path)?).await
}

#[tokio::test]
async fn a_tenant_sends_with_its_own_key_and_nobody_else_sees_it() -> anyhow::Result<()> {
    let gateway = Gateway::start_untouched(&[]).await?;
    let made = told(&gateway, &["tenants", "create", "acme", "--name", "Acme"]).await?;
    assert_eq!(text(&made, "default_account"), "sandbox", "{made}");
    let created = told(&gateway, &["tenants", "keys", "create", "acme", "--allow-ip", "127.0.0.0/8"]).await?;
    let key = text(&created, "key");
    let mail = json!({"id": "m", "from": "a@example.com", "to": "b@example.net", "text": "Hi"});
    let handed_over = with_key(&gateway, key, Method::POST, "/v1/messages")?.json(&mail);
    assert_eq!(status_of(handed_over).await?, StatusCode::ACCEPTED);
    assert_eq!(gateway.call(Method::GET, "/v1/messages/m", None).await?.0, StatusCode::NOT_FOUND);
    let shown = gateway.request(Method::GET, "/v1/messages/m").header("X-Tenant", "acme");
    assert_eq!(status_of(shown).await?, StatusCode::OK);

    let elsewhere =
        told(&gateway, &["tenants", "keys", "create", "acme", "--allow-ip", "192.0.2.0/24"]).await?;
    assert_eq!(get_with(&gateway, text(&elsewhere, "key"), "/v1/stats").await?, StatusCode::FORBIDDEN);
    assert_eq!(get_with(&gateway, key, "/v1/tenants").await?, StatusCode::FORBIDDEN);
    let revoked = gateway.cli(&["tenants", "keys", "revoke", "acme", text(&created, "id")]).await?;
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert_eq!(get_with(&gateway, key, "/v1/stats").await?, StatusCode::UNAUTHORIZED);

    let audit = gateway.cli(&["audit", "--export"]).await?;
    let entries: Vec<Value> = audit.out.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let actions: Vec<&str> = entries.iter().map(|entry| text(entry, "action")).collect();
    assert_eq!(actions, ["key.revoke", "key.create", "key.create", "tenant.create"]);
    assert!(!audit.out.contains(key) && !gateway.log().contains(key), "a key is shown once");
    Ok(())
}

#[tokio::test]
async fn a_suspended_batch_waits_through_a_restart_while_others_go() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    told(&gateway, &["batches", "suspend", "news"]).await?;
    for id in ["n-1", "n-2", "n-3"] {
        gateway.send(mail_with(id, "ada@example.net", json!({"batch": "news"}))).await?;
    }
    gateway.send(mail_with("order", "ada@example.net", json!({}))).await?;
    gateway.wait_for("order", "sent").await?;
    let held = gateway.message("n-1").await?;
    assert_eq!((text(&held, "status"), &held["held_by"]), ("ready", &json!(["batch:news"])), "{held:#}");
    assert_eq!(gateway.get("/v1/stats").await?["held"], 3);

    gateway.terminate().await?;
    gateway.launch(&[]).await?;
    gateway.send(mail_with("order-2", "ada@example.net", json!({}))).await?;
    gateway.wait_for("order-2", "sent").await?;
    let explained = gateway.get("/v1/messages/n-3/explain").await?;
    assert_eq!(column(&explained, "gates", "gate"), ["batch"], "{explained:#}");
    let batches = told(&gateway, &["batches", "list"]).await?;
    assert_eq!((&batches["data"][0]["suspended"], &batches["data"][0]["waiting"]), (&json!(true), &json!(3)));
    assert_eq!(sink.mails().len(), 2);

    told(&gateway, &["batches", "activate", "news"]).await?;
    for id in ["n-1", "n-2", "n-3"] {
        let sent = gateway.wait_for(id, "sent").await?;
        assert_eq!(sent["attempt"], 1, "waiting used no attempt");
    }
    assert_eq!(gateway.get("/v1/stats").await?["held"], 0);
    Ok(())
}

#[tokio::test]
async fn a_suppressed_recipient_is_recorded_and_not_sent() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let list = b"address,reason\nBob@example.net,hard_bounce\nnobody\n";
    let imported = gateway.cli_with(&["suppressions", "import", "-", "--json"], list).await?;
    let imported: Value = serde_json::from_str(&imported.out)?;
    assert_eq!((&imported["imported"], &imported["errors"][0]["line"]), (&json!(1), &json!(3)), "{imported}");
    assert_eq!(gateway.cli(&["suppressions", "check", "bob@example.net"]).await?.code, Some(0));
    assert_eq!(gateway.cli(&["suppressions", "check", "ada@example.net"]).await?.code, Some(5));

    let both = json!({"to": ["ada@example.net", "bob@EXAMPLE.net"]});
    gateway.send(mail_with("both", "", both)).await?;
    let sent = gateway.wait_for("both", "sent").await?;
    assert_eq!(column(&sent, "recipients", "status"), ["sent", "suppressed"], "{sent:#}");
    gateway.send(mail_with("only", "bob@example.net", json!({}))).await?;
    let ended = gateway.wait_for("only", "suppressed").await?;
    assert!(event_types(&ended).contains(&"suppressed".to_owned()), "{ended:#}");
    assert_eq!(sink.mails().len(), 1);

    let exported = gateway.cli(&["suppressions", "export"]).await?;
    assert!(exported.out.contains("bob@example.net,hard_bounce,"), "{exported:?}");
    assert_eq!(gateway.cli(&["suppressions", "remove", "bob@example.net"]).await?.code, Some(0));
    gateway.send(mail_with("again", "bob@example.net", json!({}))).await?;
    gateway.wait_for("again", "sent").await?;
    Ok(())
}

#[tokio::test]
async fn a_mail_for_later_is_sent_now_when_asked() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let mail =
        mail_with("never", "b@example.net", json!({"account": "sandbox", "send_at": "2199-01-01T00:00:00Z"}));
    let (status, answer) = gateway.call(Method::POST, "/v1/messages", Some(mail)).await?;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "years ahead is a mistake: {answer}");
    gateway.send(mail_with("now", "b@example.net", json!({"account": "sandbox"}))).await?;
    let now: jiff::Timestamp = text(&gateway.message("now").await?, "created_at").parse()?;
    let in_an_hour = (now + jiff::SignedDuration::from_hours(1)).to_string();
    gateway
        .send(mail_with("later", "b@example.net", json!({"account": "sandbox", "send_at": in_an_hour})))
        .await?;
    assert_eq!(text(&gateway.message("later").await?, "status"), "scheduled");
    assert_eq!(gateway.cli(&["messages", "retry", "later"]).await?.code, Some(0));
    let sent = gateway.wait_for("later", "sent").await?;
    assert_eq!(event_types(&sent), ["accepted", "validated", "scheduled", "replayed", "sending", "sent"]);
    Ok(())
}

#[tokio::test]
async fn a_deleted_tenant_is_gone_with_its_keys() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    told(&gateway, &["tenants", "create", "acme"]).await?;
    let key = text(&told(&gateway, &["tenants", "keys", "create", "acme"]).await?, "key").to_owned();
    assert_eq!(get_with(&gateway, &key, "/v1/stats").await?, StatusCode::OK);
    let wrong = gateway.cli(&["tenants", "delete", "acme", "--confirm", "acm"]).await?;
    assert_eq!(wrong.code, Some(4), "{wrong:?}");
    assert_eq!(gateway.cli(&["tenants", "delete", "acme", "--confirm", "acme"]).await?.code, Some(0));
    assert_eq!(get_with(&gateway, &key, "/v1/stats").await?, StatusCode::UNAUTHORIZED);
    assert_eq!(gateway.cli(&["tenants", "show", "acme"]).await?.code, Some(5));
    let again = gateway.cli(&["tenants", "create", "acme"]).await?;
    assert_eq!(again.code, Some(4), "its id is not given again: {again:?}");
    Ok(())
}
