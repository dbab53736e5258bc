//! A file too large to mail is kept, and a link to it is mailed.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{ALLOW_LOOPBACK, Bucket, Gateway, Opened, files_below, mail_with, noise, text};
use postway_testkit::{HttpSource, SmtpSink, SourceReply};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};

const PUBLIC: &str = "https://files.example.com";
const FILE_BYTES: usize = 2_000_000;
const REWRITE: &str = r#"{"large_files": {"policy": "rewrite", "above_bytes": 1000000, "link_days": 7}}"#;

/// A gateway whose tenant wants links for files of more than a megabyte.
async fn start(sink: &SmtpSink, env: &[(&str, &str)]) -> anyhow::Result<Gateway> {
    let gateway = Gateway::start_with(env).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", serde_json::from_str(REWRITE)?).await?;
    Ok(gateway)
}

/// The first link in a text.
fn link<'a>(text: &'a str, begins: &str) -> &'a str {
    let from = text.find(begins).unwrap_or_else(|| panic!("no link in {text}"));
    text[from..].split([' ', '"', '\n', '\r']).next().unwrap_or_default()
}

#[tokio::test]
async fn a_large_file_is_mailed_as_a_link_that_gives_it_to_whoever_has_it() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = start(&sink, &[("POSTWAY_PUBLIC_URL", PUBLIC), ALLOW_LOOPBACK]).await?;
    let (given, fetched) = (noise(FILE_BYTES), noise(FILE_BYTES));
    let source = HttpSource::start().await;
    source.serve("/b.bin", SourceReply::ok(fetched.clone()));
    let files = json!([
        {"filename": "a \"b\".bin", "content": BASE64_STANDARD.encode(&given)},
        {"filename": "b.bin", "url": source.url("/b.bin")},
        {"filename": "small.txt", "content": "aGVsbG8="},
    ]);
    let request =
        json!({"text": "See below.", "html": "<body><p>See below.</p></body>", "attachments": files});
    gateway.send(mail_with("linked", "ada@example.net", request)).await?;
    gateway.wait_for("linked", "sent").await?;
    let mail = &sink.mails()[0];
    assert!(mail.raw.len() < 10_000, "{} bytes were mailed", mail.raw.len());
    let opened = Opened::of(mail)?;
    assert_eq!(opened.files, [("small.txt".to_owned(), b"hello".to_vec())]);
    assert!(
        opened.text.contains("a \"b\".bin (2.0 MB, until ") && opened.text.contains("b.bin (2.0 MB"),
        "{}",
        opened.text
    );
    let begins = format!("{PUBLIC}/files/");
    let links: Vec<&str> = opened.text.lines().filter(|line| line.starts_with(&begins)).collect();
    assert_eq!(links.len(), 2, "{}", opened.text);
    assert!(links.iter().all(|link| opened.html.contains(link)), "{}", opened.html);

    // It outlives the process, and its names are safe.
    gateway.kill().await?;
    gateway.launch(&[("POSTWAY_PUBLIC_URL", PUBLIC)]).await?;
    let anybody = reqwest::Client::builder().no_proxy().build()?;
    for (link, file) in links.iter().zip([&given, &fetched]) {
        let answer = anybody.get(link.replace(PUBLIC, &gateway.url())).send().await?;
        assert_eq!(answer.status(), StatusCode::OK);
        let headers = answer.headers().clone();
        assert_eq!(headers[header::CONTENT_TYPE], "application/octet-stream");
        assert_eq!(headers[header::CONTENT_LENGTH], FILE_BYTES.to_string().as_str());
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert!(headers[header::CONTENT_DISPOSITION].to_str()?.starts_with("attachment; filename"));
        assert!(answer.bytes().await? == file.as_slice());
    }
    let token = links[0].strip_prefix(&begins).unwrap_or_default();
    let turned = |at: usize| {
        let other = if token.as_bytes()[at] == b'A' { "B" } else { "A" };
        format!("{}{other}{}", &token[..at], &token[at + 1..])
    };
    let wrong =
        ["x", &token[1..], &token[..token.len() - 1], &turned(0), &turned(40), &turned(token.len() - 4)];
    for token in wrong.map(str::to_owned) {
        let answer = anybody.get(format!("{}/files/{token}", gateway.url())).send().await?;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{token}");
    }
    Ok(())
}

#[tokio::test]
async fn a_file_is_kept_once_however_often_its_mail_is_tried() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().greylist(2).start().await;
    let gateway = start(&sink, &[("POSTWAY_PUBLIC_URL", PUBLIC)]).await?;
    let file = BASE64_STANDARD.encode(noise(FILE_BYTES));
    let with = |id: &str| {
        mail_with(id, "ada@example.net", json!({"attachments": [{"filename": "a.bin", "content": file}]}))
    };
    gateway.send(with("one")).await?;
    let sent = gateway.wait_for("one", "sent").await?;
    assert_eq!(sent["attempt"], 3, "{sent:#}");
    gateway.send(with("two")).await?;
    gateway.wait_for("two", "sent").await?;
    let sizes = files_below(&gateway.data_dir().join("blobs"))?;
    let sizes: Vec<u64> =
        sizes.iter().map(|file| Ok(file.metadata()?.len())).collect::<anyhow::Result<_>>()?;
    assert_eq!(sizes.iter().filter(|size| **size == FILE_BYTES as u64).count(), 1, "{sizes:?}");
    Ok(())
}

#[tokio::test]
async fn without_a_public_address_a_bucket_signs_the_link() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let bucket = Bucket::create().await?;
    let gateway = start(&sink, &bucket.env()).await?;
    let file = noise(FILE_BYTES);
    let files =
        json!({"attachments": [{"filename": "Übersicht.bin", "content": BASE64_STANDARD.encode(&file)}]});
    gateway.send(mail_with("signed", "ada@example.net", files)).await?;
    gateway.wait_for("signed", "sent").await?;
    let opened = Opened::of(&sink.mails()[0])?;
    let link = link(&opened.text, "http://127.0.0.1");
    assert!(link.contains("X-Amz-Signature=") && link.contains("X-Amz-Expires=604800"), "{link}");
    let answer = reqwest::Client::builder().no_proxy().build()?.get(link).send().await?;
    assert_eq!(answer.status(), StatusCode::OK, "{link}");
    assert!(answer.bytes().await? == file.as_slice());
    Ok(())
}

#[tokio::test]
async fn without_any_address_the_mail_is_refused_and_the_setting_named() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = start(&sink, &[]).await?;
    let files: Value =
        json!({"attachments": [{"filename": "a.bin", "content": BASE64_STANDARD.encode(noise(FILE_BYTES))}]});
    let (status, answer) = gateway
        .call(Method::POST, "/v1/messages", Some(mail_with("nowhere", "ada@example.net", files)))
        .await?;
    let told = match status {
        StatusCode::ACCEPTED => text(&gateway.wait_for("nowhere", "invalid").await?, "reason").to_owned(),
        _ => answer.to_string(),
    };
    assert!(told.contains("attachments[0]") && told.contains("public_url"), "{status}: {told}");
    assert!(sink.mails().is_empty());
    Ok(())
}
