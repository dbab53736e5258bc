//! A reader leaves a stream by the link in the header, and stays away after a crash.

use postway_e2e::{Gateway, column, event_types, mail_with};
use postway_testkit::SmtpSink;
use reqwest::header::ACCEPT_LANGUAGE;
use serde_json::json;

const PUBLIC: (&str, &str) = ("POSTWAY_PUBLIC_URL", "https://mail.example.com");

/// The path of the link in a mail.
fn link(raw: &[u8]) -> anyhow::Result<String> {
    let text = String::from_utf8_lossy(raw).replace("\r\n ", " ");
    let line = text.lines().find(|line| line.starts_with("List-Unsubscribe: "));
    let url = line.and_then(|line| line.split(['<', '>']).nth(1)).unwrap_or_default();
    let path = url.strip_prefix("https://mail.example.com");
    path.map(str::to_owned).ok_or_else(|| anyhow::anyhow!("no link in {text}"))
}

#[tokio::test]
async fn a_reader_leaves_and_stays_away_after_a_crash() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start_with(&[PUBLIC]).await?;
    gateway.relay_to(sink.port()).await?;
    let add = ["streams", "add", "news", "--name", "Weekly letter", "--unsubscribe", "true"];
    let made = gateway.cli(&add).await?;
    assert_eq!(made.code, Some(0), "{made:?}");
    let of_stream = || json!({"stream": "news"});
    gateway.send(mail_with("one", "Ada@example.net", of_stream())).await?;
    gateway.wait_for("one", "sent").await?;
    let link = link(&sink.mails()[0].raw)?;
    // Waits until after its reader has left.
    gateway.post("/v1/batches/news/suspend", json!({})).await?;
    gateway.send(mail_with("waiting", "ada@example.net", of_stream())).await?;

    let reader = reqwest::Client::builder().no_proxy().build()?;
    let at = format!("{}{link}", gateway.url());
    let page = reader.get(&at).header(ACCEPT_LANGUAGE, "fr").send().await?;
    assert_eq!((page.status().as_u16(), page.headers()["content-language"].to_str()?), (200, "fr"));
    assert!(page.text().await?.contains("Weekly letter"));
    let clicked = reader.post(&at).body("List-Unsubscribe=One-Click");
    let clicked = clicked.header("content-type", "application/x-www-form-urlencoded").send().await?;
    assert_eq!(clicked.status(), 200);

    gateway.kill().await?;
    gateway.launch(&[PUBLIC]).await?;
    let one = gateway.get("/v1/messages/one").await?;
    assert_eq!(event_types(&one).iter().filter(|kind| **kind == "unsubscribed").count(), 1, "{one:#}");
    gateway.post("/v1/batches/news/activate", json!({})).await?;
    let waiting = gateway.wait_for("waiting", "suppressed").await?;
    assert_eq!(column(&waiting, "recipients", "status"), ["suppressed"]);
    gateway.send(mail_with("receipt", "ada@example.net", json!({}))).await?;
    gateway.wait_for("receipt", "sent").await?;
    assert_eq!(sink.mails().len(), 2, "her other mail is sent");
    let log = gateway.log();
    assert!(!log.contains("ada@") && !log.contains(&link[15..60]), "neither readers nor links are logged");

    let at = format!("{}{link}", gateway.url());
    let back = reader.post(&at).body("undo=1").header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(back.send().await?.status(), 200);
    gateway.send(mail_with("two", "ada@example.net", of_stream())).await?;
    gateway.wait_for("two", "sent").await?;
    Ok(())
}
