//! A key made by the command signs mail, and an independent verifier believes the record that was printed.

use postway_e2e::{Gateway, eventually, mail_with};
use postway_testkit::{Dkimpy, SmtpSink};
use serde_json::json;

/// The record in a line of a zone file: its name and its text.
fn record(line: &str) -> (String, String) {
    let (name, content) = line.trim().split_once(" IN TXT ").expect("it is a TXT record");
    // A text is made of strings; between them stands nothing.
    let text = content.split('"').skip(1).step_by(2).collect();
    (name.trim_end_matches('.').to_owned(), text)
}

#[tokio::test]
async fn keys_made_by_the_command_sign_and_their_records_verify() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let mut records = Vec::new();
    for (selector, algorithm) in [("r1", "rsa"), ("e1", "ed25519")] {
        let create = ["dkim", "create", "example.com", "--selector", selector, "--algorithm", algorithm];
        let made = gateway.cli(&create).await?;
        assert_eq!(made.code, Some(0), "{made:?}");
        assert!(made.err.contains("publish this record"), "{made:?}");
        let record = record(&made.out);
        assert_eq!(record.0, format!("{selector}._domainkey.example.com"));
        assert!(record.1.starts_with(&format!("v=DKIM1; k={algorithm}; p=")), "{record:?}");
        records.push(record);
    }
    let content = json!({"subject": "Grüße", "text": "Zeile  mit   Raum \n\n.Punkt\n\n\n", "html": "<p>Grüße</p>",
        "attachments": [{"filename": "a.txt", "content": "aGVsbG8="}]});
    gateway.send(mail_with("signed", "ada@example.net", content.clone())).await?;
    gateway.wait_for("signed", "sent").await?;

    let stranger = json!({"from": "a@elsewhere.example"});
    gateway.send(mail_with("unsigned", "ada@example.net", stranger)).await?;
    gateway.wait_for("unsigned", "sent").await?;
    let mails = sink.mails();
    let signatures = |raw: &[u8]| String::from_utf8_lossy(raw).matches("DKIM-Signature:").count();
    let counts: Vec<usize> = mails.iter().map(|mail| signatures(&mail.raw)).collect();
    assert_eq!(counts, [2, 0], "every active key of the author's domain signs, and no other");

    let suspended = gateway.cli(&["dkim", "suspend", "example.com", "e1"]).await?;
    assert_eq!(suspended.code, Some(0), "{suspended:?}");
    // A change is noticed within a second.
    let mut count = 0;
    let once = eventually("a mail that one key signed", async || {
        count += 1;
        let id = format!("once-{count}");
        gateway.send(mail_with(&id, "ada@example.net", content.clone())).await?;
        gateway.wait_for(&id, "sent").await?;
        Ok(sink.mails().pop().filter(|mail| signatures(&mail.raw) == 1))
    });
    let mails = [mails, vec![once.await?]].concat();
    tokio::task::spawn_blocking(move || {
        let mut verifier = Dkimpy::start();
        let records: Vec<(&str, &str)> =
            records.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(verifier.verify(&mails[0].raw, &records), Ok(()));
        assert_eq!(verifier.verify(&mails[2].raw, &records), Ok(()));
        assert!(verifier.verify(&mails[1].raw, &records).is_err(), "there is nothing to verify");
        let changed = String::from_utf8_lossy(&mails[0].raw).replacen("To: ", "To: x", 1);
        assert!(verifier.verify(changed.as_bytes(), &records).is_err(), "a changed mail is noticed");
    })
    .await?;
    Ok(())
}
