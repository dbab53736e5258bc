//! Attachments from elsewhere: fetched, checked, tried again, refused.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{ALLOW_LOOPBACK, ALLOW_NOTHING, Gateway, Opened, event_types, mail_with, noise, text};
use postway_testkit::{HttpSource, SmtpSink, SourceReply};
use serde_json::{Value, json};

fn with_files(id: &str, files: Value) -> Value {
    mail_with(id, "ada@example.net", json!({"attachments": files}))
}

#[tokio::test]
async fn files_from_anywhere_arrive_byte_for_byte() -> anyhow::Result<()> {
    let (given, linked, asked, read) = (noise(3_000), noise(300_000), noise(70_000), noise(50_000));
    let source = HttpSource::start().await;
    source.serve("/moved", SourceReply::redirect(302, source.url("/linked")));
    source.serve("/linked", SourceReply::ok(linked.clone()));
    source.serve("/documents", SourceReply::ok(asked.clone()));
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::idle()?;
    let folder = gateway.folder().join("documents");
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("d.bin"), &read)?;
    let folder = folder.to_string_lossy().into_owned();
    gateway.launch(&[ALLOW_LOOPBACK, ("POSTWAY_ATTACHMENTS_FOLDERS", &folder)]).await?;
    gateway.relay_to(sink.port()).await?;
    let endpoint =
        json!({"url": source.url(""), "path": "/documents", "auth": {"type": "bearer", "token": "s3cr3t"}});
    gateway.patch("/v1/tenants/default", json!({"attachment_endpoint": endpoint})).await?;

    let path = format!("{folder}/d.bin");
    let files = json!([
        {"filename": "a.bin", "content": BASE64_STANDARD.encode(&given)},
        {"filename": "b.bin", "url": source.url("/moved")},
        {"filename": "c.bin", "endpoint": "doc_id=7"},
        {"filename": "d.bin", "path": path},
    ]);
    gateway.send(with_files("four", files)).await?;
    let message = gateway.wait_for("four", "sent").await?;
    let steps = ["accepted", "validating", "validated", "ready", "sending", "sent"];
    assert_eq!(event_types(&message), steps, "{message:#}");
    let name = |name: &str, bytes: &Vec<u8>| (name.to_owned(), bytes.clone());
    let expected =
        [name("a.bin", &given), name("b.bin", &linked), name("c.bin", &asked), name("d.bin", &read)];
    assert!(Opened::of(&sink.mails()[0])?.files == expected, "some file came changed, or not at all");

    let requests = source.requests();
    let asked = requests.iter().find(|request| request.path == "/documents").expect("the endpoint was asked");
    assert_eq!((asked.method.as_str(), asked.body.as_slice()), ("POST", b"doc_id=7".as_slice()));
    assert_eq!(asked.header("authorization"), Some("Bearer s3cr3t"));
    assert!(
        requests
            .iter()
            .filter(|one| one.path != "/documents")
            .all(|one| one.header("authorization").is_none())
    );

    // The old form: one field, distinguished by its beginning.
    let old = json!([{"filename": "b.bin", "storage_path": source.url("/linked")}, {"filename": "d.bin", "storage_path": path}]);
    gateway.send(with_files("old", old)).await?;
    gateway.wait_for("old", "sent").await?;
    assert!(Opened::of(&sink.mails()[1])?.files == [name("b.bin", &linked), name("d.bin", &read)]);
    Ok(())
}

#[tokio::test]
async fn a_private_address_makes_the_mail_invalid_and_is_named() -> anyhow::Result<()> {
    let source = HttpSource::start().await;
    source.serve("/a.bin", SourceReply::ok("a"));
    let gateway = Gateway::start_with(&[ALLOW_NOTHING]).await?;
    gateway.relay_with(9, json!({"host": "relay.example"})).await?;
    let port = source.address().port();
    // Whatever disguise it comes in: a number, a mapped address, a name.
    for (id, host, told) in [
        ("plain", "127.0.0.1", "127.0.0.1"),
        ("number", "2130706433", "127.0.0.1"),
        ("mapped", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
        ("name", "localhost", "localhost"),
    ] {
        let url = format!("http://{host}:{port}/a.bin");
        gateway.send(with_files(id, json!([{"filename": "a.bin", "url": url}]))).await?;
        let message = gateway.wait_for(id, "invalid").await?;
        let reason = text(&message, "reason");
        let expected = format!("attachments[0].url: {told}:{port} is a private address");
        assert!(reason.starts_with(&expected), "{id}: {reason}");
        assert_eq!(text(&message["error"], "code"), "INVALID_PAYLOAD", "{message:#}");
        assert_eq!(event_types(&message), ["accepted", "validating", "invalid"], "{message:#}");
    }
    assert!(source.requests().is_empty(), "nobody called");
    Ok(())
}

#[tokio::test]
async fn a_source_that_fails_for_now_is_tried_again() -> anyhow::Result<()> {
    let document = noise(10_000);
    let source = HttpSource::start().await;
    // It asks for time enough to look at what waits.
    let busy = SourceReply::status(503).header("retry-after", "12");
    source.serve_in_turn("/a.bin", vec![busy, SourceReply::ok(document.clone())]);
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.send(with_files("patient", json!([{"filename": "a.bin", "url": source.url("/a.bin")}]))).await?;
    let waiting = gateway.wait_for("patient", "scheduled").await?;
    assert!(text(&waiting, "reason").contains("503"), "{waiting:#}");
    let explained = gateway.get("/v1/messages/patient/explain").await?;
    let gate = &explained["gates"][0];
    assert_eq!(text(gate, "gate"), "retry", "{explained:#}");
    assert!(text(gate, "reason").contains("503") && gate["until"].is_string(), "{explained:#}");
    assert!(explained["next_at"].is_string(), "{explained:#}");

    let sent = gateway.wait_for("patient", "sent").await?;
    assert_eq!(
        event_types(&sent),
        ["accepted", "validating", "scheduled", "validating", "validated", "ready", "sending", "sent"],
        "{sent:#}"
    );
    assert!(sent["error"].is_null() && sent["reason"].is_null(), "what is over is not told: {sent:#}");
    assert_eq!(Opened::of(&sink.mails()[0])?.files, [("a.bin".to_owned(), document)]);
    Ok(())
}
