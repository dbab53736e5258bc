//! A gateway outgrows its file: everything moves to a database server, and the mail goes on from there.

use jiff::{SignedDuration, Timestamp};
use postway_e2e::{Gateway, Ran, column, event_types, events_of, mail, mail_with, text};
use postway_testkit::{
    SinkAction, SinkVerb, SmtpSink, TestCert, mariadb::MariaDb, postgres::PostgresDatabase,
};
use serde_json::{Value, json};

const USER: &str = "gateway-user";
const PASSWORD: &str = "correct horse battery staple";
/// A copy of ten tables that dies at every third page is whole by then.
const RUNS_MAX: usize = 20;

/// Runs the copy in the gateway's folder.
async fn copy(gateway: &Gateway, to: &str, points: &str) -> anyhow::Result<Ran> {
    let from = format!("sqlite://{}", gateway.data_dir().join("postway.db").display());
    let args = ["migrate", "copy", "--from", &from, "--to", to, "--json"];
    gateway.run(&args, &[("FAILPOINTS", points)], b"").await
}

/// A gateway with mail in every state that moves: sent, failed, waiting for its time, and being sent when it
/// died.
async fn furnished(sink: &SmtpSink, cert: &TestCert) -> anyhow::Result<(Gateway, Timestamp)> {
    let mut gateway = Gateway::start().await?;
    let settings = json!({"tls": "starttls", "ca_pem": cert.ca_pem, "username": USER, "password": PASSWORD});
    gateway.relay_with(sink.port(), settings).await?;
    gateway.send(mail_with("done", "ada@example.net", json!({"tags": ["invoice"]}))).await?;
    let done = gateway.wait_for("done", "sent").await?;
    gateway.send(mail("lost-cause", "nobody@example.net")).await?;
    gateway.wait_for("lost-cause", "failed").await?;
    // Late enough to be waiting still when the gateway stops.
    let send_at = text(&done, "sent_at").parse::<Timestamp>()? + SignedDuration::from_secs(30);
    gateway.send(mail_with("later", "ada@example.net", json!({"send_at": send_at.to_string()}))).await?;
    sink.add_rule(|event| (event.verb == SinkVerb::Mail).then_some(SinkAction::Silence));
    gateway.send(mail("struck", "ada@example.net")).await?;
    gateway.wait_for("struck", "sending").await?;
    gateway.kill().await?;
    sink.clear_rules();
    Ok((gateway, send_at))
}

/// What must be the same before and after.
async fn seen(gateway: &Gateway) -> anyhow::Result<Vec<Value>> {
    let mut seen = vec![gateway.get("/v1/accounts").await?, gateway.get("/v1/messages?tag=invoice").await?];
    for id in ["done", "lost-cause"] {
        seen.push(gateway.message(id).await?);
        seen.push(gateway.get(&format!("/v1/messages/{id}/raw")).await?);
    }
    Ok(seen)
}

async fn moves_to(url: &str) -> anyhow::Result<()> {
    let cert = TestCert::localhost();
    let sink = SmtpSink::builder()
        .starttls(&cert)
        .auth(USER, PASSWORD)
        .rcpt("nobody@", "550 5.1.1 no such user here")
        .start()
        .await;
    let (mut gateway, send_at) = furnished(&sink, &cert).await?;

    let (mut runs, mut cut_short) = (0, 0);
    let done = loop {
        runs += 1;
        assert!(runs < RUNS_MAX, "it does not get on");
        let ran = copy(&gateway, url, "copy_page=2*off->1*return").await?;
        match ran.code {
            Some(_) => break ran,
            None => cut_short += 1,
        }
    };
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(cut_short > 2, "it was cut short {cut_short} times only");
    let report: Value = serde_json::from_str(&done.out)?;
    assert_eq!(report["complete"], true);
    assert!(report["tables"].as_array().is_some_and(|tables| tables.len() >= 10), "{report:#}");
    let counts = |side: &str| -> Vec<i64> {
        let tables = report["tables"].as_array().map_or(&[][..], Vec::as_slice);
        tables.iter().filter_map(|table| table[side].as_i64()).collect()
    };
    assert_eq!(counts("source"), counts("target"), "{report:#}");
    let again = copy(&gateway, url, "").await?;
    assert!(again.code == Some(1) && again.err.contains("empty database"), "{again:?}");

    gateway.launch(&[("POSTWAY_DATABASE_URL", url)]).await?;
    let moved = seen(&gateway).await?;
    let struck = gateway.wait_for("struck", "sent").await?;
    assert_eq!(events_of(&struck, "in_doubt"), 0, "{struck:#}");
    let later = gateway.wait_for("later", "sent").await?;
    assert_eq!(
        event_types(&later),
        ["accepted", "validated", "scheduled", "sending", "sent"],
        "it was not sent before"
    );
    assert!(text(&later, "sent_at").parse::<Timestamp>()? >= send_at, "{later:#}");
    let stats = gateway.get("/v1/stats").await?;
    assert_eq!(
        (&stats["by_status"]["sent"], &stats["by_status"]["failed"]),
        (&json!(3), &json!(1)),
        "{stats:#}"
    );
    // The same id is the same mail, in the new house too.
    gateway.send(mail("struck", "ada@example.net")).await?;
    assert_eq!(sink.mails().len(), 3);
    assert!(sink.mails().iter().all(|mail| mail.user.as_deref() == Some(USER)), "the password moved along");
    assert!(gateway.terminate().await?.success());

    // The old house is as it was left.
    sink.add_rule(|event| (event.verb == SinkVerb::Mail).then_some(SinkAction::reply("451 4.3.0 not now")));
    gateway.launch(&[]).await?;
    assert_eq!(seen(&gateway).await?, moved);
    assert_eq!(column(&moved[2], "recipients", "status"), ["sent"]);
    Ok(())
}

#[tokio::test]
async fn a_gateway_moves_to_postgresql_and_its_mail_goes_on() -> anyhow::Result<()> {
    moves_to(&PostgresDatabase::create().url()).await
}

#[tokio::test]
async fn a_gateway_moves_to_mariadb_and_its_mail_goes_on() -> anyhow::Result<()> {
    moves_to(&MariaDb::shared().create_database()).await
}

#[tokio::test]
async fn a_copy_that_dies_after_its_last_page_is_ended_by_the_next() -> anyhow::Result<()> {
    let mut gateway = Gateway::start().await?;
    assert!(gateway.terminate().await?.success());
    let new = format!("sqlite://{}", gateway.folder().join("new.db").display());
    assert_eq!(copy(&gateway, &new, "copy_counted=1*return").await?.code, None);
    let ended = copy(&gateway, &new, "").await?;
    let report: Value = serde_json::from_str(&ended.out)?;
    assert_eq!((&report["complete"], &report["rows_copied"]), (&json!(true), &json!(0)), "{ended:?}");
    gateway.launch(&[("POSTWAY_DATABASE_URL", &new)]).await?;
    assert_eq!(column(&gateway.get("/v1/accounts").await?, "data", "id"), ["sandbox"]);
    Ok(())
}

#[tokio::test]
async fn a_copy_that_cannot_be_says_what_to_do() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let file = |name: &str| format!("sqlite://{}", gateway.folder().join(name).display());
    let running = copy(&gateway, &file("new.db"), "").await?;
    assert!(running.code == Some(1) && running.err.contains("stop it first"), "{running:?}");
    let nowhere = copy(&gateway, "mysql://user:hunter2@127.0.0.1", "").await?;
    assert!(nowhere.code == Some(2) && nowhere.err.contains("names no database"), "{nowhere:?}");
    assert!(!nowhere.err.contains("hunter2"), "{nowhere:?}");
    let missing = gateway
        .run(&["migrate", "copy", "--from", &file("none.db"), "--to", &file("new.db")], &[], b"")
        .await?;
    assert!(missing.code == Some(5) && missing.err.contains("none.db"), "{missing:?}");
    Ok(())
}
