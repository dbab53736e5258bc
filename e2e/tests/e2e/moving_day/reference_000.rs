//! 000: MariaDB tables `emails` and `email_statuses`, and requests as files.

use std::time::Duration;

use postway_e2e::{Gateway, text};
use postway_testkit::{
    SmtpSink,
    mariadb::{MariaDb, run_in},
};
use serde_json::json;

use super::{moving, stays, wrong};

const SCHEMA: &str = "
CREATE TABLE emails (id CHAR(36) PRIMARY KEY,
    status ENUM('ACCEPTED','INTAKING','READY','PROCESSING','SENT','FAILED','INVALID','CALLING-SENT-CALLBACK',
        'CALLING-FAILED-CALLBACK','SENT-ACKNOWLEDGED','FAILED-ACKNOWLEDGED') NOT NULL,
    eml_file_path VARCHAR(500), payload_file_path VARCHAR(500), reason TEXT, version INT NOT NULL DEFAULT 1,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    INDEX idx_status (status), INDEX idx_status_updated (status, updated_at)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE email_statuses (id BIGINT AUTO_INCREMENT PRIMARY KEY, email_id CHAR(36) NOT NULL, status VARCHAR(50) NOT NULL,
    reason TEXT, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, INDEX idx_email_id (email_id),
    FOREIGN KEY (email_id) REFERENCES emails(id) ON DELETE CASCADE) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
";

/// A UUID that ends in a number.
fn id(number: u32) -> String {
    format!("0b0e3c52-8f0a-4f57-9a3e-{number:012}")
}

#[tokio::test]
async fn an_outbox_on_mariadb_moves() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::idle()?;
    let payloads = gateway.folder().join("payloads");
    std::fs::create_dir(&payloads)?;
    let folder = payloads.display().to_string();
    gateway.launch(&[("POSTWAY_ATTACHMENTS_FOLDERS", &folder)]).await?;
    let mail = |number: u32| {
        json!({"id": id(number), "from": "shop@example.com", "to": format!("r{number}@example.net"), "subject": "Grüße",
            "body_text": "Hi", "custom_headers": {"X-Number": number.to_string()}})
    };
    for number in 1..=4 {
        std::fs::write(payloads.join(format!("{number}.json")), mail(number).to_string())?;
    }
    // Its door takes a subject of any length, and so does the move.
    let mut long = mail(3);
    long["subject"] = "x".repeat(400).into();
    std::fs::write(payloads.join("3.json"), long.to_string())?;
    let url = MariaDb::shared().create_database();
    let row = |number: u32, status: &str, path: &str| format!("('{}', '{status}', '{path}')", id(number));
    let rows = [
        row(1, "ACCEPTED", "/var/outbox/1.json"),
        row(2, "INTAKING", "2.json"),
        row(3, "READY", "/var/outbox/3.json"),
        row(4, "PROCESSING", "4.json"),
        row(5, "SENT", "gone.json"),
        row(6, "FAILED-ACKNOWLEDGED", "gone.json"),
        row(7, "CALLING-SENT-CALLBACK", "gone.json"),
        row(8, "INVALID", "gone.json"),
    ];
    run_in(
        &url,
        &format!("{SCHEMA} INSERT INTO emails (id, status, payload_file_path) VALUES {}", rows.join(", ")),
    );
    let source = ["000", "--database", &url, "--payloads", &folder, "--payloads-were", "/var/outbox"];
    let with = |verb: &'static str, more: &[&'static str]| -> Vec<String> {
        [verb].iter().chain(&source).chain(more).map(|word| (*word).to_owned()).collect()
    };
    let run = async |args: Vec<String>| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        moving(&gateway, &args).await
    };

    // Mail must not end up in the sandbox.
    let (code, report) = run(with("check", &[])).await?;
    assert_eq!((code, report["wrong"].as_u64()), (Some(1), Some(3)), "{report:#}");
    assert!(
        report["wrong_rows"][0]["message"].as_str().is_some_and(|text| text.contains("sandbox")),
        "{report:#}"
    );
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;

    let (code, report) = run(with("check", &[])).await?;
    assert_eq!((code, &report["carried"]), (Some(1), &json!({"waiting_messages": 3})), "{report:#}");
    assert_eq!(report["undecided_rows"][0]["key"], json!(id(4)), "{report:#}");
    assert_eq!((stays(&report, "SENT"), stays(&report, "CALLING-SENT-CALLBACK")), (1, 1), "{report:#}");

    // A file that is gone, one that is somebody else's, one that is elsewhere and an attachment that is gone
    // stop everything.
    let mut attached = mail(12);
    attached["attachments"] = json!([payloads.join("gone.pdf")]);
    std::fs::write(payloads.join("12.json"), attached.to_string())?;
    let bad = [
        row(9, "READY", "gone.json"),
        row(10, "READY", "1.json"),
        row(11, "READY", "../outside.json"),
        row(12, "READY", "12.json"),
    ];
    run_in(&url, &format!("INSERT INTO emails (id, status, payload_file_path) VALUES {}", bad.join(", ")));
    let (code, report) = run(with("import", &[])).await?;
    let field = |number: u32| ("emails".to_owned(), id(number), "payload_file_path".to_owned());
    let found = wrong(&report);
    assert_eq!((code, &found[..3]), (Some(1), &[field(9), field(10), field(11)][..]), "{report:#}");
    assert!(
        found[3].1 == id(12) && found[3].2.starts_with("attachments[0]") && found.len() == 4,
        "{report:#}"
    );
    assert_eq!(sink.mails().len(), 0);
    run_in(&url, &format!("DELETE FROM emails WHERE id > '{}'", id(8)));

    let (code, report) = run(with("import", &[])).await?;
    assert_eq!((code, &report["carried"]), (Some(0), &json!({"waiting_messages": 3})), "{report:#}");
    let mails = sink.wait_for(3, Duration::from_secs(60)).await;
    assert!(mails.iter().all(|mail| mail.header("X-Number").is_some()));
    let known = gateway.get(&format!("/compat/000/emails/{}", id(1))).await?;
    assert_eq!(text(&known, "id"), id(1), "{known:#}");
    let (code, report) = run(with("import", &["--resend-doubtful"])).await?;
    assert_eq!((code, &report["carried"]), (Some(0), &json!({"waiting_messages": 1})), "{report:#}");
    assert_eq!(report["already_here"], json!({"waiting_messages": 3}), "{report:#}");
    sink.wait_for(4, Duration::from_secs(60)).await;
    assert_eq!(run_in(&url, "SELECT COUNT(*) FROM emails WHERE version = 1").trim(), "8", "it was only read");
    Ok(())
}
