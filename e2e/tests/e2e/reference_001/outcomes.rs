//! What comes after sending: hard and soft bounces by their codes, the receipts of certified mail, a client
//! that is dead beside one that lives, the week that reports are kept; and files from the client.

use postway_e2e::{ALLOW_LOOPBACK, Gateway, Opened, PATIENCE, eventually, text};
use postway_testkit::{HttpSource, SmtpSink, SourceReply};
use reqwest::Method;
use serde_json::{Value, json};

use super::{World, message, notification, receipt, with};

/// "Bounce Types": permanent and temporary ones. A full mailbox and a policy are no reason never to write
/// again, whatever their code. Requirements 20, 41, 49, 50.
#[tokio::test]
async fn bounces_are_hard_or_soft_by_their_codes() -> anyhow::Result<()> {
    let world = World::make().await?;
    world.watch().await?;
    let cases = [
        ("550", "5.1.1", "no such user", "hard"),
        ("551", "5.1.6", "user has moved", "hard"),
        ("553", "5.1.3", "mailbox name not allowed", "hard"),
        ("552", "5.2.2", "mailbox full", "soft"),
        ("550", "5.7.1", "message rejected due to local policy", "soft"),
        ("421", "4.4.2", "service not available", "soft"),
        ("450", "4.2.1", "mailbox busy", "soft"),
        ("451", "4.3.0", "local error in processing", "soft"),
        ("452", "4.3.1", "insufficient system storage", "soft"),
    ];
    let id = |n: usize| format!("m-{n}");
    let to = |n: usize| format!("u{n}@example.net");
    let added = world.add((0..cases.len()).map(|n| message(&id(n), &to(n))).collect()).await?;
    assert_eq!(added["queued"], cases.len(), "{added}");
    for (n, (code, status, words, kind)) in cases.iter().enumerate() {
        world.until(&id(n), "sent", |shown| shown["sent_ts"].is_i64()).await?;
        let diagnostic = format!("{code} {status} {words}");
        world.come_back(&notification(&world.mail(&id(n)), &to(n), "failed", status, &diagnostic));
        let told = world.until_told(&id(n), "bounced").await?;
        let shown = world.until(&id(n), "bounced", |shown| shown["bounce_ts"].is_i64()).await?;
        for (field, value) in
            [("bounce_type", *kind), ("bounce_code", *code), ("bounce_reason", &*diagnostic)]
        {
            assert_eq!(
                (&shown[field], &told[field]),
                (&json!(value), &json!(value)),
                "{field} of {diagnostic}"
            );
        }
        world.assert_viewed(&id(n), &shown, &["bounce_type", "bounce_code", "bounce_reason"]);
    }

    // A notice of success is no bounce.
    world.add(vec![message("arrived", "ada@example.net")]).await?;
    world.until("arrived", "sent", |shown| shown["sent_ts"].is_i64()).await?;
    let notice =
        notification(&world.mail("arrived"), "ada@example.net", "delivered", "2.0.0", "250 2.0.0 Ok");
    world.come_back(&notice);
    world.gateway.wait_until("arrived", "delivered", |message| message["outcome"] == "delivered").await?;
    let arrived = world.shown("arrived").await?;
    assert!(arrived["bounce_ts"].is_null() && arrived["bounce_type"].is_null(), "{arrived:#}");
    world.assert_viewed("arrived", &arrived, &["bounce_type", "bounce_code", "bounce_ts"]);
    Ok(())
}

/// "PEC Fields": taken, then delivered, each with its time. Requirements 45, 46.
#[tokio::test]
async fn certified_mail_that_arrives_has_the_times_of_both_receipts() -> anyhow::Result<()> {
    let world = World::make().await?;
    world.watch().await?;
    world.add(vec![with(message("certified", "ada@pec.example"), json!({"account_id": "pec"}))]).await?;
    world.until("certified", "sent", |shown| shown["sent_ts"].is_i64()).await?;
    let mail = world.mail("certified");
    world.come_back(&receipt(&mail, "accettazione", "nessuno", ""));
    let taken = world.until("certified", "taken", |shown| shown["pec_rda_ts"].is_i64()).await?;
    assert!(taken["pec_rdc_ts"].is_null(), "{taken:#}");
    let to = "<consegna>ada@pec.example</consegna>";
    world.come_back(&receipt(&mail, "avvenuta-consegna", "nessuno", to));
    let delivered = world.until("certified", "delivered", |shown| shown["pec_rdc_ts"].is_i64()).await?;
    assert_eq!(delivered["pec_rda_ts"], taken["pec_rda_ts"]);
    assert!(delivered["pec_error"].is_null() && delivered["pec_error_ts"].is_null(), "{delivered:#}");
    let times = "floor(extract(epoch FROM pec_rda_ts)), floor(extract(epoch FROM pec_rdc_ts)), pec_error IS NULL, \
         pec_error_ts IS NULL";
    let sql = format!("SELECT {times} FROM postway_views.messages WHERE id = 'certified'");
    let expected = format!("{}|{}|t|t", delivered["pec_rda_ts"], delivered["pec_rdc_ts"]);
    assert_eq!(world.database.run(&sql), expected);
    Ok(())
}

/// One whose client never answers, beside one whose client does. Requirements 29, 68.
#[tokio::test]
async fn a_tenant_whose_client_is_dead_holds_up_no_other() -> anyhow::Result<()> {
    let world = World::make().await?;
    let dead = HttpSource::start().await;
    dead.serve("/mail-proxy/sync", SourceReply::Silent);
    let tenant = json!({"id": "dead", "name": "Dead", "client_base_url": dead.url(""),
        "client_auth": {"method": "bearer", "token": "other"}});
    world.gateway.post("/tenant", tenant).await?;
    let account = json!({"id": "relay", "tenant_id": "dead", "host": "127.0.0.1", "port": world.relay.port(), "use_tls": false});
    world.gateway.post("/account", account).await?;
    let of_dead = |n: usize| {
        with(
            message(&format!("m-{n}"), "ada@example.net"),
            json!({"tenant_id": "dead", "account_id": "relay"}),
        )
    };
    world.add((0..20).map(of_dead).collect()).await?;
    dead.wait_for(1, PATIENCE).await;
    // The same id in another tenant is another message.
    world.add((0..20).map(|n| message(&format!("m-{n}"), "bob@example.net")).collect()).await?;
    for n in 0..20 {
        world.until_status(&format!("m-{n}"), "REPORTED").await?;
    }
    let list = world.gateway.get("/messages?tenant_id=dead").await?;
    let unreported =
        list["messages"].as_array().into_iter().flatten().filter(|one| one["reported_ts"].is_null());
    assert_eq!(unreported.count(), 20, "{list:#}");
    Ok(())
}

/// "Attachments": from the client's own server, asked as the client says; and what no priority is.
/// Requirements 32, 62.
#[tokio::test]
async fn a_file_comes_from_the_clients_endpoint_and_an_unknown_priority_is_rejected() -> anyhow::Result<()> {
    let world = World::make().await?;
    world.client.serve("/mail-proxy/attachments", SourceReply::ok("from the client"));
    let file = json!({"filename": "a.txt", "storage_path": "doc_id=7", "fetch_mode": "endpoint"});
    let answer = world
        .add(vec![
            with(message("filed", "ada@example.net"), json!({"attachments": [file]})),
            with(message("urgent", "ada@example.net"), json!({"priority": 9})),
        ])
        .await?;
    assert_eq!((&answer["queued"], &answer["rejected"][0]["id"]), (&json!(1), &json!("urgent")), "{answer}");
    assert!(text(&answer["rejected"][0], "reason").starts_with("priority: "), "{answer}");
    world.until_status("filed", "REPORTED").await?;
    let expected = [("a.txt".to_owned(), b"from the client".to_vec())];
    assert_eq!(Opened::of(&world.mail("filed"))?.files, expected);
    let asked = world.client.requests().into_iter().find(|request| request.path == "/mail-proxy/attachments");
    let asked = asked.expect("it was asked");
    assert_eq!((asked.method.as_str(), asked.body.as_slice()), ("POST", b"doc_id=7".as_slice()));
    assert_eq!(asked.header("authorization"), Some("Bearer s3cr3t"));
    Ok(())
}

/// "Default: 7 days": six days later what is reported is there, and eight days later it is gone. A tenant
/// that asked for five shows that retention has run. Requirements 14, 57.
#[tokio::test]
async fn what_is_reported_is_kept_for_a_week() -> anyhow::Result<()> {
    const SIX_DAYS_LATER: (&str, &str) = ("FAILPOINTS_CLOCK_SKEW_MS", "518400000");
    const EIGHT_DAYS_LATER: (&str, &str) = ("FAILPOINTS_CLOCK_SKEW_MS", "691200000");
    let relay = SmtpSink::start().await;
    let mut gateway = Gateway::start_untouched(&[ALLOW_LOOPBACK]).await?;
    let brief = json!({"id": "brief", "name": "Brief", "report_retention_seconds": 432_000});
    gateway.post("/v1/tenants", brief).await?;
    for tenant in ["default", "brief"] {
        let account = json!({"id": "relay", "tenant_id": tenant, "host": "127.0.0.1", "port": relay.port(), "use_tls": false});
        gateway.post("/compat/001/account", account).await?;
        let mail = with(message("m", "ada@example.net"), json!({"account_id": "relay", "tenant_id": tenant}));
        gateway.post("/compat/001/add-messages", json!({"messages": [mail]})).await?;
    }
    relay.wait_for(2, PATIENCE).await;
    let listed = async |gateway: &Gateway, tenant: &str| -> anyhow::Result<Vec<Value>> {
        let list = gateway.get(&format!("/compat/001/messages?tenant_id={tenant}")).await?;
        Ok(list["messages"].as_array().cloned().unwrap_or_default())
    };
    for tenant in ["default", "brief"] {
        // Without a subscriber, a message is reported as soon as its events are read.
        eventually("it to be reported", async || {
            let shown =
                gateway.request(Method::GET, "/v1/messages/m").header("X-Tenant", tenant).send().await?;
            let shown: Value = shown.error_for_status()?.json().await?;
            Ok(shown["reported_at"].is_string().then_some(()))
        })
        .await?;
    }
    let gone = async |gateway: &Gateway, tenant: &str| {
        eventually(&format!("the message of {tenant} to be gone"), async || {
            Ok(listed(gateway, tenant).await?.is_empty().then_some(()))
        })
        .await
    };
    assert!(gateway.terminate().await?.success());
    gateway.launch(&[ALLOW_LOOPBACK, SIX_DAYS_LATER]).await?;
    gone(&gateway, "brief").await?;
    assert_eq!(listed(&gateway, "default").await?.len(), 1, "a week has not passed");
    assert!(gateway.terminate().await?.success());
    gateway.launch(&[ALLOW_LOOPBACK, EIGHT_DAYS_LATER]).await?;
    gone(&gateway, "default").await
}
