//! Accounts: limits that hold, circuits that say why, pauses, trials, guards, and keys that change.

use postway_e2e::{
    ALLOW_NOTHING, Gateway, PATIENCE, column, event_types, events_of, eventually, mail, mail_with, text,
};
use postway_testkit::{ClosedPort, SmtpSink, TestCert};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const USER: &str = "gateway-user";
const PASSWORD: &str = "correct horse battery staple";

/// Submits `count` mails at once, named `m-0` and on.
async fn send_many(gateway: &Gateway, count: usize) -> anyhow::Result<()> {
    let mails: Vec<Value> = (0..count).map(|n| mail(&format!("m-{n}"), "ada@example.net")).collect();
    let answer = gateway.post("/v1/messages/batch", json!({"messages": mails})).await?;
    assert_eq!(answer["accepted"], count, "{answer:#}");
    Ok(())
}

async fn wait_for_counts(gateway: &Gateway, counts: &[(&str, usize)]) -> anyhow::Result<()> {
    let what = format!("{counts:?}");
    eventually(&what, async || {
        let stats = gateway.get("/v1/stats").await?;
        Ok(counts.iter().all(|(status, count)| stats["by_status"][status] == *count).then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_limit_is_reached_and_never_exceeded_and_the_rest_says_so() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"limits": {"per_minute": 5}})).await?;
    send_many(&gateway, 8).await?;
    wait_for_counts(&gateway, &[("sent", 5), ("ready", 3)]).await?;
    let account = gateway.get("/v1/accounts/relay").await?;
    assert_eq!(account["used"], json!({"minute": 5, "hour": null, "day": null}));
    let waiting = gateway.get("/v1/messages?status=ready").await?;
    for id in column(&waiting, "data", "id") {
        let explained = gateway.get(&format!("/v1/messages/{id}/explain")).await?;
        assert_eq!(column(&explained, "gates", "gate"), ["limit"], "{explained:#}");
        let message = gateway.message(&id).await?;
        assert_eq!(event_types(&message), ["accepted", "validated", "ready"], "waiting costs it nothing");
    }
    assert_eq!(sink.mails().len(), 5);
    // More room, and the rest goes.
    let more = json!({"limits": {"per_minute": 8}});
    gateway.call(Method::PATCH, "/v1/accounts/relay", Some(more)).await?;
    wait_for_counts(&gateway, &[("sent", 8)]).await?;
    assert_eq!(sink.mails().len(), 8);
    Ok(())
}

#[tokio::test]
async fn a_limit_that_rejects_fails_what_is_beyond() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"limits": {"per_minute": 5, "behavior": "reject"}})).await?;
    send_many(&gateway, 8).await?;
    wait_for_counts(&gateway, &[("sent", 5), ("failed", 3)]).await?;
    let failed = gateway.get("/v1/messages?status=failed").await?;
    for id in column(&failed, "data", "id") {
        let message = gateway.message(&id).await?;
        assert_eq!(text(&message["error"], "code"), "limit_exceeded", "{message:#}");
        assert_eq!(text(&message["error"], "category"), "quota");
        assert_eq!((&message["attempts"], &message["exhausted"]), (&json!([]), &json!(false)));
    }
    assert_eq!(sink.mails().len(), 5);
    Ok(())
}

#[tokio::test]
async fn a_failed_connection_takes_nothing_from_a_limit_and_no_retry() -> anyhow::Result<()> {
    let closed = ClosedPort::take();
    let gateway = Gateway::start().await?;
    let settings = json!({"limits": {"per_day": 1}, "retry": {"delays_s": [], "jitter": 0.0}});
    gateway.relay_with(closed.port(), settings).await?;
    gateway.send(mail("patient", "ada@example.net")).await?;
    let refused = gateway.wait_until_open("relay").await?;
    assert_eq!(text(&refused["circuit"], "code"), "connect_refused", "{refused:#}");
    eventually("the permit to come back", async || {
        let account = gateway.get("/v1/accounts/relay").await?;
        Ok((account["used"]["day"] == 0).then_some(()))
    })
    .await?;
    let message = gateway.wait_for("patient", "ready").await?;
    assert_eq!(message["failed_at"], json!(null));
    let sink = SmtpSink::start().await;
    gateway.call(Method::PATCH, "/v1/accounts/relay", Some(json!({"port": sink.port()}))).await?;
    gateway.wait_for("patient", "sent").await?;
    assert_eq!(gateway.get("/v1/accounts/relay").await?["used"]["day"], 1);
    Ok(())
}

/// Nothing waits for it, so only the change itself can tell the dispatcher: the next mail must go by the new
/// settings, and within the new limits.
#[tokio::test]
async fn a_change_of_an_idle_account_holds_for_the_next_mail() -> anyhow::Result<()> {
    let (old, new) = (SmtpSink::start().await, SmtpSink::start().await);
    let gateway = Gateway::start().await?;
    gateway.relay_to(old.port()).await?;
    for n in 0..3 {
        gateway.send(mail(&format!("before-{n}"), "ada@example.net")).await?;
        gateway.wait_for(&format!("before-{n}"), "sent").await?;
    }
    let change = json!({"port": new.port(), "limits": {"per_day": 2}});
    gateway.call(Method::PATCH, "/v1/accounts/relay", Some(change)).await?;
    send_many(&gateway, 4).await?;
    wait_for_counts(&gateway, &[("sent", 5), ("ready", 2)]).await?;
    assert_eq!((old.mails().len(), new.mails().len()), (3, 2));
    Ok(())
}

/// The accounts that sent each message, by how many.
async fn senders(gateway: &Gateway, count: usize) -> anyhow::Result<(usize, usize)> {
    let mut sent = (0, 0);
    for n in 0..count {
        let message = gateway.wait_for(&format!("m-{n}"), "sent").await?;
        let senders = column(&message, "attempts", "account");
        match senders.last().map(String::as_str) {
            Some("relay") => sent.0 += 1,
            Some("backup") => sent.1 += 1,
            _ => anyhow::bail!("{message:#}"),
        }
    }
    Ok(sent)
}

async fn backup_to(gateway: &Gateway, port: u16) -> anyhow::Result<()> {
    let backup = json!({"id": "backup", "kind": "smtp", "host": "127.0.0.1", "port": port, "tls": "none"});
    gateway.post("/v1/accounts", backup).await.map(drop)
}

#[tokio::test]
async fn a_fallback_sends_while_the_circuit_is_open() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let nobody = ClosedPort::take();
    let gateway = Gateway::start().await?;
    backup_to(&gateway, sink.port()).await?;
    gateway.relay_with(nobody.port(), json!({"fallback": "backup"})).await?;
    send_many(&gateway, 5).await?;
    assert_eq!(senders(&gateway, 5).await?, (0, 5));
    let message = gateway.message("m-0").await?;
    assert_eq!(text(&message, "account"), "relay", "it stays its account's mail");
    assert_eq!(sink.mails().len(), 5);
    Ok(())
}

#[tokio::test]
async fn a_fallback_sends_what_is_beyond_the_limit_of_a_day() -> anyhow::Result<()> {
    let (sink, spare) = (SmtpSink::start().await, SmtpSink::start().await);
    let gateway = Gateway::start().await?;
    backup_to(&gateway, spare.port()).await?;
    gateway.relay_with(sink.port(), json!({"fallback": "backup", "limits": {"per_day": 2}})).await?;
    send_many(&gateway, 6).await?;
    assert_eq!(senders(&gateway, 6).await?, (2, 4));
    assert_eq!((sink.mails().len(), spare.mails().len()), (2, 4));
    Ok(())
}

#[tokio::test]
async fn a_bad_password_opens_the_circuit_also_after_a_restart_and_a_good_one_closes_it() -> anyhow::Result<()>
{
    let cert = TestCert::localhost();
    let sink = SmtpSink::builder().starttls(&cert).auth(USER, PASSWORD).start().await;
    let mut gateway = Gateway::start().await?;
    let settings = json!({"tls": "starttls", "ca_pem": cert.ca_pem, "username": USER, "password": "wrong"});
    gateway.relay_with(sink.port(), settings).await?;
    let tested = gateway.post("/v1/accounts/relay/test", json!({})).await?;
    assert_eq!(column(&tested, "steps", "step"), ["connect", "tls", "auth"], "{tested:#}");
    assert_eq!((&tested["ok"], &tested["steps"][2]["ok"]), (&json!(false), &json!(false)));

    gateway.send(mail("first", "ada@example.net")).await?;
    let before = &gateway.wait_until_open("relay").await?["circuit"];
    assert_eq!(text(before, "code"), "smtp_535", "{before:#}");
    assert!(gateway.terminate().await?.success());
    gateway.launch(&[]).await?;
    let after = &gateway.wait_until_open("relay").await?["circuit"];
    assert_eq!(text(after, "since"), text(before, "since"), "it is still the same fault");

    let right = json!({"password": PASSWORD});
    let (_, changed) = gateway.call(Method::PATCH, "/v1/accounts/relay", Some(right)).await?;
    assert_eq!(changed["circuit"]["state"], "closed", "{changed:#}");
    gateway.wait_for("first", "sent").await?;
    let body = json!({"to": "ada@example.net", "from": "shop@example.com"});
    let tested = gateway.post("/v1/accounts/relay/test", body).await?;
    assert_eq!(column(&tested, "steps", "step"), ["connect", "tls", "auth", "send"], "{tested:#}");
    assert_eq!(tested["ok"], true);
    assert_eq!(sink.mails().len(), 2);
    let ran = gateway.cli(&["accounts", "test", "relay"]).await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn a_suspended_account_holds_its_mail_and_others_go_on() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let ran = gateway.cli(&["accounts", "suspend", "relay"]).await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    gateway.send(mail("held", "ada@example.net")).await?;
    gateway.send(mail_with("free", "ada@example.net", json!({"account": "sandbox"}))).await?;
    gateway.wait_for("free", "sent").await?;
    let explained = gateway.get("/v1/messages/held/explain").await?;
    assert_eq!(column(&explained, "gates", "gate"), ["account"], "{explained:#}");
    assert!(sink.mails().is_empty());
    let activated = gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    assert_eq!(activated["suspended"], false);
    gateway.wait_for("held", "sent").await?;
    Ok(())
}

#[tokio::test]
async fn a_domain_with_a_limit_does_not_hold_up_the_others() -> anyhow::Result<()> {
    const SLOW: usize = 8;
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    // Few enough that even a slow machine would send more.
    let settings = json!({"max_connections": 1, "destinations": {"slow.example": {"per_second": 1}}});
    gateway.relay_with(sink.port(), settings).await?;
    let slow = (0..SLOW).map(|n| mail(&format!("slow-{n}"), "ada@slow.example"));
    let mails: Vec<Value> = slow.chain([mail("quick", "ada@example.net")]).collect();
    gateway.post("/v1/messages/batch", json!({"messages": mails})).await?;
    let mails = sink.wait_for(SLOW + 1, PATIENCE).await;
    let place = mails.iter().position(|mail| mail.recipients[0].contains("example.net"));
    assert!(place.is_some_and(|place| place < SLOW / 2), "it came at {place:?}");
    for n in 0..SLOW {
        let message = gateway.wait_for(&format!("slow-{n}"), "sent").await?;
        assert_eq!(message["attempts"].as_array().map(Vec::len), Some(1), "{message:#}");
        assert_eq!(events_of(&message, "scheduled"), 0, "no retry was used");
        assert_eq!(events_of(&message, "sending"), 1, "it waited without being leased: {message:#}");
    }
    Ok(())
}

#[tokio::test]
async fn every_key_reaches_private_hosts_only_where_they_are_allowed() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    for (allowed, status) in [("", StatusCode::UNPROCESSABLE_ENTITY), ("127.0.0.0/8", StatusCode::CREATED)] {
        let gateway = Gateway::start_with(&[("POSTWAY_ALLOW_PRIVATE_TARGETS", allowed)]).await?;
        let scopes = json!({"name": "k", "scopes": ["manage", "send"]});
        let key = gateway.post("/v1/tenants/default/keys", scopes).await?;
        let admin = std::fs::read_to_string(gateway.data_dir().join("admin.key"))?;
        for (id, key) in [("tenants", text(&key, "key")), ("admins", admin.trim())] {
            let wanted = json!({"id": id, "host": "127.0.0.1", "port": sink.port(), "tls": "none"});
            let caller = reqwest::Client::builder().no_proxy().build()?;
            let made = caller.post(format!("{}/v1/accounts", gateway.url())).bearer_auth(key);
            let made = made.json(&wanted).send().await?;
            let (answered, said) = (made.status(), made.text().await?);
            assert_eq!(answered, status, "{allowed:?} {id}: {said}");
            if status == StatusCode::CREATED {
                gateway.send(mail_with(id, "ada@example.net", json!({"account": id}))).await?;
                gateway.wait_for(id, "sent").await?;
            } else {
                // The line to add, as it stands inside JSON.
                let line = "allow_private_targets = [\\\"127.0.0.1/32\\\"]";
                assert!(
                    said.contains(line) && said.contains("POSTWAY_ALLOW_PRIVATE_TARGETS=127.0.0.1/32"),
                    "{said}"
                );
            }
        }
    }
    Ok(())
}

/// As after an upgrade, or after its network was taken off the list: mail waits, the log says why, and the
/// line that it names sends it.
#[tokio::test]
async fn a_private_relay_that_is_no_longer_allowed_keeps_its_mail_and_is_told_of() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    assert!(gateway.terminate().await?.success());

    gateway.launch(&[ALLOW_NOTHING]).await?;
    gateway.send(mail("kept", "ada@example.net")).await?;
    eventually("a word about the host", async || {
        let log = gateway.log();
        let told =
            log.lines().find(|line| line.contains("account default/relay") && line.contains("127.0.0.1/32"));
        Ok(told.map(str::to_owned))
    })
    .await?;
    let explained = eventually("a circuit that is open", async || {
        let explained = gateway.get("/v1/messages/kept/explain").await?.to_string();
        Ok(explained.contains("POSTWAY_ALLOW_PRIVATE_TARGETS=127.0.0.1/32").then_some(explained))
    })
    .await?;
    assert!(!explained.contains("failed"), "{explained}");
    let doctor = gateway.cli(&["doctor"]).await?;
    assert!(doctor.out.contains("The log of the server's start"), "{doctor:?}");
    assert!(sink.mails().is_empty() && gateway.terminate().await?.success());

    gateway.launch(&[("POSTWAY_ALLOW_PRIVATE_TARGETS", "127.0.0.1/32")]).await?;
    gateway.wait_for("kept", "sent").await?;
    assert_eq!(sink.mails().len(), 1);
    Ok(())
}

#[tokio::test]
async fn the_secret_key_is_replaced_and_no_password_is_lost() -> anyhow::Result<()> {
    const NEW: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let sink = SmtpSink::builder().auth(USER, PASSWORD).start().await;
    let mut gateway = Gateway::start().await?;
    let settings = json!({"username": USER, "password": PASSWORD, "allow_plaintext_auth": true});
    gateway.relay_with(sink.port(), settings).await?;
    assert!(gateway.terminate().await?.success());
    let old = std::fs::read_to_string(gateway.data_dir().join("secret.key"))?;

    let both = [("POSTWAY_SECRET_KEY", NEW), ("POSTWAY_SECRET_KEY_PREVIOUS", old.trim())];
    gateway.launch(&both).await?;
    gateway.send(mail("before", "ada@example.net")).await?;
    gateway.wait_for("before", "sent").await?;
    let ran = gateway.cli(&["--json", "secrets", "rotate"]).await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let done: Value = serde_json::from_str(&ran.out)?;
    assert_eq!((&done["accounts"], &done["unreadable"]), (&json!(1), &json!([])));
    assert!(gateway.terminate().await?.success());

    gateway.launch(&[("POSTWAY_SECRET_KEY", NEW)]).await?;
    gateway.send(mail("after", "ada@example.net")).await?;
    gateway.wait_for("after", "sent").await?;
    assert_eq!(sink.mails()[1].user.as_deref(), Some(USER));
    Ok(())
}

#[tokio::test]
async fn a_username_without_a_password_is_refused_where_nobody_can_be_asked() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let args = ["accounts", "create", "shop", "--host", "smtp.example.com", "--username", "shop"];
    let ran = gateway.cli(&args).await?;
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("--password-file"), "{}", ran.err);
    let from_file = [&args[..], &["--password-file", "-"]].concat();
    let ran = gateway.cli_with(&from_file, PASSWORD.as_bytes()).await?;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    Ok(())
}
