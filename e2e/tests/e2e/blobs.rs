//! Bodies too large for the database: kept in a folder or in a bucket, sent from there, and what if they are
//! gone.

use std::{fs, path::PathBuf};

use anyhow::Context;
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{
    Bucket, Client, Gateway, Opened, event_types, events_of, eventually, files_below, mail_with, node_env,
    noise, start_node, text,
};
use postway_testkit::{SmtpSink, postgres::PostgresDatabase};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// A file that makes a mail of 3 MiB: base64 takes a third more.
const FILE_BYTES: usize = 9 * 256 * 1024;

fn large(id: &str) -> (Value, Vec<u8>) {
    let file = noise(FILE_BYTES);
    let files = json!([{"filename": "a.bin", "content": BASE64_STANDARD.encode(&file)}]);
    (mail_with(id, "ada@example.net", json!({"attachments": files})), file)
}

/// Checks that request and mail can be read back as they came and as they went; returns the names of their
/// blobs.
async fn check_readable(
    gateway: &Client,
    sink: &SmtpSink,
    request: &Value,
    file: &[u8],
) -> anyhow::Result<[String; 2]> {
    let id = text(request, "id");
    let message = gateway.message(id).await?;
    let mail = &sink.mails()[0];
    assert!(mail.raw.len() > 3 * 1024 * 1024, "{}", mail.raw.len());
    assert!(Opened::of(mail)?.files == [("a.bin".to_owned(), file.to_vec())]);
    let (status, _, raw) = gateway.bytes(&format!("/v1/messages/{id}/raw")).await?;
    assert!(status == StatusCode::OK && raw == mail.raw, "what is read back is what was sent");
    let (status, headers, payload) = gateway.bytes(&format!("/v1/messages/{id}/payload")).await?;
    assert_eq!(
        (status, headers["content-type"].as_bytes()),
        (StatusCode::OK, b"application/json".as_slice())
    );
    assert!(serde_json::from_slice::<Value>(&payload)? == *request);
    Ok(["payload_file_path", "eml_file_path"].map(|field| text(&message, field).to_owned()))
}

/// The files of a gateway's blobs, without those being written.
fn blob_files(gateway: &Gateway) -> anyhow::Result<Vec<PathBuf>> {
    Ok(files_below(&gateway.data_dir().join("blobs"))?)
}

/// The file of a composed mail.
async fn mail_file(gateway: &Gateway, id: &str) -> anyhow::Result<PathBuf> {
    let message = gateway.message(id).await?;
    let name = last(text(&message, "eml_file_path"));
    let files = blob_files(gateway)?;
    files.into_iter().find(|file| file.ends_with(name)).with_context(|| format!("no file {name}"))
}

/// The end of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[tokio::test]
async fn a_large_mail_is_kept_in_a_folder_and_sent_from_there() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    let (request, file) = large("large");
    gateway.send(request.clone()).await?;
    assert_eq!(blob_files(&gateway)?.len(), 2, "one for the request and one for the mail");
    // What was acknowledged survives.
    gateway.kill().await?;
    gateway.launch(&[]).await?;
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    gateway.wait_for("large", "sent").await?;

    let mut names = check_readable(&gateway, &sink, &request, &file).await?;
    names.sort();
    let kept = blob_files(&gateway)?;
    let named: Vec<PathBuf> = names.iter().map(|name| gateway.data_dir().join("blobs").join(name)).collect();
    assert_eq!(kept, named, "the paths of a message are those of its files, below the place for blobs");
    Ok(())
}

#[tokio::test]
async fn a_large_mail_is_kept_in_a_bucket_and_sent_by_another_node() -> anyhow::Result<()> {
    let (bucket, database) = (Bucket::create().await?, PostgresDatabase::create());
    let url = database.url();
    let sink = SmtpSink::start().await;
    let env = |name| [node_env(&url, name), bucket.env()].concat();
    let mut first = Gateway::start_with(&env("first.example")).await?;
    let second = Gateway::start_with(&env("second.example")).await?;
    first.relay_to(sink.port()).await?;
    first.post("/v1/accounts/relay/suspend", json!({})).await?;
    let (request, file) = large("large");
    first.send(request.clone()).await?;
    assert!(first.terminate().await?.success());

    second.post("/v1/accounts/relay/activate", json!({})).await?;
    second.wait_for("large", "sent").await?;
    assert_eq!(sink.mails()[0].helo, "second.example");
    let names = check_readable(&second, &sink, &request, &file).await?;
    let kept = bucket.blobs().await?;
    let mut names = names.each_ref().map(|name| last(name));
    names.sort();
    assert_eq!(kept.iter().map(|blob| last(blob)).collect::<Vec<_>>(), names);
    for node in [&first, &second] {
        assert!(blob_files(node)?.is_empty(), "no node has them on its own disk");
    }
    Ok(())
}

#[tokio::test]
async fn a_mail_whose_blob_is_gone_waits_and_goes_once_it_is_back() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"retry": {"delays_s": [1], "jitter": 0.0}})).await?;
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    let (request, file) = large("large");
    gateway.send(request.clone()).await?;
    let blob = mail_file(&gateway, "large").await?;
    let aside = gateway.folder().join("aside");
    fs::rename(&blob, &aside)?;
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;

    let tried = |message: &Value| message["status"] == "ready" && message["attempt"].as_i64() >= Some(2);
    let waiting = gateway.wait_until("large", "tried twice", tried).await?;
    assert_eq!(text(&waiting["error"], "code"), "body_unavailable", "{waiting:#}");
    assert_eq!(events_of(&waiting, "scheduled"), 0, "the only retry is not used: {waiting:#}");
    eventually("an explanation", async || {
        let explained = gateway.get("/v1/messages/large/explain").await?;
        Ok(explained.to_string().contains("missing").then_some(()))
    })
    .await?;
    let (status, answer) = gateway.call(Method::GET, "/v1/messages/large/raw", None).await?;
    assert!(status.is_server_error() && !answer.to_string().contains("/blobs/"), "{status} {answer}");
    assert!(sink.mails().is_empty());

    fs::rename(&aside, &blob)?;
    gateway.wait_for("large", "sent").await?;
    check_readable(&gateway, &sink, &request, &file).await?;
    Ok(())
}

/// Two nodes on one database, each with its own data folder and no `storage.url`: the usual mistake.
#[tokio::test]
async fn nodes_that_do_not_share_their_storage_say_so_and_lose_nothing() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let database = PostgresDatabase::create();
    let url = database.url();
    let mut first = start_node(&url, "first.example").await?;
    first.relay_with(sink.port(), json!({"retry": {"delays_s": [], "jitter": 0.0}})).await?;
    let mut second = start_node(&url, "second.example").await?;
    for node in [&first, &second] {
        node.wait_for_log("storage is not shared with another node", 1).await?;
        // A moment after it was logged.
        eventually("the list of nodes to tell", async || {
            let nodes = node.get("/v1/nodes").await?;
            let is_apart = |node: &Value| node["storage_apart"] == (node["is_self"] == false);
            Ok(nodes["data"].as_array().filter(|all| all.iter().all(is_apart)).map(drop))
        })
        .await?;
        // The server of the tests spares them the disk, which is told as well.
        let expected = json!(["storage_apart", "database_not_durable"]);
        assert_eq!(node.get("/health/ready").await?["warnings"], expected);
    }
    let server = second.url();
    let mut env = node_env(&url, "second.example");
    env.push(("POSTWAY_URL", &server));
    let ran = second.run(&["doctor"], &env, b"").await?;
    assert!(ran.out.contains("POSTWAY_STORAGE_URL"), "{}", ran.out);

    first.post("/v1/accounts/relay/suspend", json!({})).await?;
    let (request, file) = large("large");
    first.send(request.clone()).await?;
    assert!(first.terminate().await?.success());
    second.post("/v1/accounts/relay/activate", json!({})).await?;
    let tried = |message: &Value| message["status"] == "ready" && message["attempt"] != 0;
    let waiting = second.wait_until("large", "tried", tried).await?;
    assert_eq!(text(&waiting["error"], "code"), "body_unavailable", "{waiting:#}");
    assert!(second.terminate().await?.success());
    first.launch(&node_env(&url, "first.example")).await?;
    first.wait_for("large", "sent").await?;
    check_readable(&first, &sink, &request, &file).await?;
    Ok(())
}

#[tokio::test]
async fn a_damaged_blob_is_not_sent() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"retry": {"delays_s": [], "jitter": 0.0}})).await?;
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    gateway.send(large("large").0).await?;
    let blob = mail_file(&gateway, "large").await?;
    let mut bytes = fs::read(&blob)?;
    bytes[FILE_BYTES] ^= 1;
    fs::write(&blob, &bytes)?;
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    let failed = gateway.wait_for("large", "failed").await?;
    assert!(text(&failed, "reason").contains("damaged"), "{failed:#}");
    assert!(!event_types(&failed).contains(&"in_doubt".to_owned()), "nothing went out");
    assert!(sink.mails().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_bucket_that_is_away_is_told_and_waited_for() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let bucket = Bucket::create().await?;
    // Nobody listens there.
    let mut away = bucket.env();
    away.push(("AWS_ENDPOINT_URL", "http://127.0.0.1:9"));
    let mut gateway = Gateway::start_with(&away).await?;
    gateway.relay_to(sink.port()).await?;
    let (request, file) = large("large");
    let (status, answer) = gateway.call(Method::POST, "/v1/messages", Some(request.clone())).await?;
    assert_eq!((status, text(&answer["error"], "code")), (StatusCode::SERVICE_UNAVAILABLE, "unavailable"));
    let (status, _) = gateway.call(Method::GET, "/v1/messages/large", None).await?;
    assert_eq!(status, StatusCode::NOT_FOUND, "what was not stored was not accepted");
    gateway.send(mail_with("small", "ada@example.net", json!({"account": "sandbox"}))).await?;
    gateway.wait_for("small", "sent").await?;

    gateway.kill().await?;
    gateway.launch(&bucket.env()).await?;
    gateway.send(request.clone()).await?;
    gateway.wait_for("large", "sent").await?;
    check_readable(&gateway, &sink, &request, &file).await?;
    let names = eventually("both blobs", async || {
        let names = bucket.blobs().await?;
        Ok((names.len() == 2).then_some(names))
    });
    names.await.map(drop)
}
