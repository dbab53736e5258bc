//! `EmlFilePath`, `PayloadFilePath` and the files that mails carry.

use postway_e2e::{ALLOW_LOOPBACK, Opened, files_below, text};
use postway_testkit::SmtpSink;
use serde_json::{Value, json};

use super::{EMAILS, Moved, id};

/// Without the setting there is no file, and no path: the bytes are in the database, and come by HTTP.
/// Requirements 3, 4.
#[tokio::test]
async fn a_path_is_a_file_or_null() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut moved = Moved::start(sink.port(), &[]).await?;
    moved.post(&id(1), json!({})).await?;
    let inline = moved.reaches(&id(1), "SENT").await?;
    assert!(inline["eml_file_path"].is_null() && inline["payload_file_path"].is_null(), "{inline:#}");
    let large = json!({"body_text": "x".repeat(200_000)});
    moved.post(&id(2), large).await?;

    // From now on all of it is kept as files.
    assert!(moved.gateway.terminate().await?.success());
    let url = moved.url.clone();
    let env = [("POSTWAY_DATABASE_URL", url.as_str()), ("POSTWAY_STORAGE_MAX_INLINE_BYTES", "0")];
    moved.gateway.launch(&env).await?;
    moved.post(&id(3), json!({})).await?;
    moved.gateway.kill().await?;
    moved.gateway.launch(&env).await?;
    for n in [2, 3] {
        let shown = moved.reaches(&id(n), "SENT").await?;
        for (field, part) in [("eml_file_path", "raw"), ("payload_file_path", "payload")] {
            let path = text(&shown, field);
            assert!(path.starts_with(|first: char| first.is_ascii_hexdigit()), "{shown:#}");
            let kept = std::fs::read(moved.gateway.data_dir().join("blobs").join(path))?;
            let (_, _, given) = moved.gateway.bytes(&format!("/v1/messages/{}/{part}", id(n))).await?;
            assert!(kept == given, "{field} of {n}: {} bytes, {} by HTTP", kept.len(), given.len());
        }
    }
    let mail = sink.mails().into_iter().find(|mail| mail.header("X-Postway-ID").is_some());
    assert!(mail.is_some(), "they were sent from their files");
    assert_eq!(moved.agrees(&id(1)).await?["eml_file_path"], Value::Null, "what was there stays where it is");
    let is_mark = |file: &std::path::PathBuf| file.components().any(|part| part.as_os_str() == "nodes");
    let kept = files_below(&moved.gateway.data_dir().join("blobs"))?;
    assert_eq!(kept.iter().filter(|file| !is_mark(file)).count(), 4, "two of each mail: {kept:?}");
    Ok(())
}

/// Relative paths are below the folder that is open to the tenant; a mail whose file comes too late goes when
/// it is requeued. Requirements 32, 43.
#[tokio::test]
async fn attachments_by_relative_path_and_name_and_a_file_that_comes_late() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let folder = tempfile::TempDir::new()?;
    std::fs::create_dir(folder.path().join("bills"))?;
    std::fs::write(folder.path().join("bills/7.pdf"), "seven")?;
    std::os::unix::fs::symlink("/etc/hostname", folder.path().join("bills/out.pdf"))?;
    let open = folder.path().to_string_lossy().into_owned();
    let moved = Moved::start(sink.port(), &[ALLOW_LOOPBACK, ("POSTWAY_ATTACHMENTS_FOLDERS", &open)]).await?;
    let files = json!(["bills/7.pdf", {"path": "bills/7.pdf", "name": "Bill of May.pdf"}]);
    moved.post(&id(1), json!({"attachments": files, "subject": "s".repeat(400)})).await?;
    moved.reaches(&id(1), "SENT").await?;
    let mail = sink.mails().remove(0);
    let seven = b"seven".to_vec();
    let expected = [("7.pdf".to_owned(), seven.clone()), ("Bill of May.pdf".to_owned(), seven)];
    assert_eq!(Opened::of(&mail)?.files, expected);

    moved.post(&id(2), json!({"attachments": ["bills/out.pdf"]})).await?;
    moved.post(&id(3), json!({"attachments": [{"path": "bills/8.pdf", "name": "8.pdf"}]})).await?;
    for n in [2, 3] {
        let invalid = moved.reaches(&id(n), "INVALID").await?;
        assert!(text(&invalid, "reason").contains("attachments[0].path"), "{invalid:#}");
    }
    let climbing = json!({"id": id(4), "from": "a@example.com", "to": "b@example.net", "subject": "s", "body_text": "t",
        "attachments": ["../../etc/passwd"]});
    let (status, refused) =
        moved.gateway.call(reqwest::Method::POST, EMAILS, Some(json!({"data": [climbing]}))).await?;
    assert_eq!(status.as_u16(), 422, "{refused}");

    std::fs::write(folder.path().join("bills/8.pdf"), "eight")?;
    moved.gateway.call(reqwest::Method::POST, &format!("{EMAILS}/{}/requeue", id(3)), None).await?;
    moved.reaches(&id(3), "SENT").await?;
    let words = ["ACCEPTED", "INTAKING", "INVALID", "ACCEPTED", "INTAKING", "READY", "PROCESSING", "SENT"];
    assert_eq!(moved.history(&id(3))?, words);
    let mail = sink.mails().pop().expect("it was sent");
    assert_eq!(Opened::of(&mail)?.files, [("8.pdf".to_owned(), b"eight".to_vec())]);
    Ok(())
}
