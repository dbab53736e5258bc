//! 002: MariaDB tables of watched mailboxes and of tasks, and the mailboxes on a real IMAP server.

use postway_e2e::{Gateway, PATIENCE, column};
use postway_testkit::{
    SmtpSink,
    dovecot::{Dovecot, PASSWORD},
    mariadb::{MariaDb, run_in},
};
use serde_json::json;

use super::{moving, stays, wrong};

const SCHEMA: &str = "
CREATE TABLE monitored_emails (id INT UNSIGNED NOT NULL AUTO_INCREMENT, email_address VARCHAR(255) NOT NULL UNIQUE,
    email_password VARCHAR(255) NOT NULL, description TEXT, is_active BOOLEAN NOT NULL DEFAULT TRUE,
    last_seen_uid BIGINT NOT NULL DEFAULT 0, last_scanned_at DATETIME(6) NULL,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    updated_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), PRIMARY KEY (id));
CREATE TABLE monitored_emails_tasks (id INT UNSIGNED NOT NULL AUTO_INCREMENT, inbox_email VARCHAR(320) NOT NULL,
    uid INT UNSIGNED NOT NULL, subject TEXT, email_date DATETIME(6),
    status ENUM('received','in_progress','forwarded','skipped_no_match','error') NOT NULL DEFAULT 'received',
    attempt_count INT NOT NULL DEFAULT 0, error_message TEXT,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    updated_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id), UNIQUE KEY uk_mail_uid (inbox_email, uid), KEY idx_pending (inbox_email, status, id));
";

fn received(number: u32) -> Vec<u8> {
    format!(
        "From: c{number}@example.org\r\nTo: desk@example.com\r\nSubject: Order {number}\r\n\
         Message-ID: <order-{number}@example.org>\r\nDate: Sun, 15 Nov 2026 10:00:00 +0000\r\n\r\nHello\r\n"
    )
    .into_bytes()
}

#[tokio::test]
async fn a_monitor_on_mariadb_moves_and_forwards_what_was_not_forwarded() -> anyhow::Result<()> {
    let dovecot = Dovecot::shared();
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_untouched(&[]).await?;
    gateway.relay_to(sink.port()).await?;
    // The old monitor forwarded 1 and 2, registered 3 and failed, and has not seen 4.
    let user = "moving-desk@example.com";
    for number in 1..=4 {
        dovecot.append(user, "INBOX", &received(number));
    }
    let url = MariaDb::shared().create_database();
    run_in(
        &url,
        &format!(
            "{SCHEMA}
            INSERT INTO monitored_emails (email_address, email_password, is_active, last_seen_uid) VALUES
                ('{user}', '{PASSWORD}', TRUE, 3), ('retired@example.com', 'p', FALSE, 9),
                ('busy@example.com', 'p', TRUE, 50);
            INSERT INTO monitored_emails_tasks (inbox_email, uid, status, attempt_count) VALUES
                ('{user}', 1, 'forwarded', 1), ('{user}', 2, 'skipped_no_match', 1), ('{user}', 3, 'error', 1),
                ('busy@example.com', 40, 'received', 0), ('busy@example.com', 41, 'forwarded', 1),
                ('busy@example.com', 42, 'in_progress', 1), ('busy@example.com', 43, 'error', 3);"
        ),
    );
    let port = dovecot.port().to_string();
    let bare = ["check", "002", "--database", &url];
    let (code, report) = moving(&gateway, &bare).await?;
    assert_eq!((code, wrong(&report).len()), (Some(1), 2), "no host is known: {report:#}");
    let source =
        ["002", "--database", &url, "--imap-host", "127.0.0.1", "--imap-port", &port, "--imap-tls", "none"];
    let with = |verb| -> Vec<&str> { [verb].into_iter().chain(source).collect() };
    let (code, report) = moving(&gateway, &with("check")).await?;
    assert_eq!((code, &report["carried"]), (Some(1), &json!({"mailboxes": 2})), "{report:#}");
    assert_eq!(column(&report, "undecided_rows", "key"), ["4", "6"], "{report:#}");
    assert_eq!(
        (stays(&report, "open tasks"), stays(&report, "error"), stays(&report, "not active")),
        (1, 1, 1)
    );
    assert!(!report.to_string().contains(PASSWORD), "{report:#}");
    assert_eq!(column(&gateway.get("/v1/mailboxes").await?, "data", "id"), [""; 0]);

    let (code, report) = moving(&gateway, &with("import")).await?;
    assert_eq!((code, &report["carried"]), (Some(0), &json!({"mailboxes": 2})), "{report:#}");
    let (code, report) = moving(&gateway, &with("import")).await?;
    assert_eq!((code, &report["already_here"]), (Some(0), &json!({"mailboxes": 2})), "{report:#}");
    let busy = gateway.get("/v1/mailboxes/busy-example.com").await?;
    assert_eq!((&busy["start"], &busy["active"]), (&json!({"after_uid": 50}), &json!(false)), "{busy:#}");

    let id = "moving-desk-example.com";
    let forward =
        json!({"do": "forward", "to": ["team@example.net"], "account": "relay", "from": "desk@example.com"});
    let rule = json!({"id": "orders", "mailbox": id, "match": [{"field": "subject", "regex": "^Order"}], "actions": [forward]});
    gateway.post("/v1/rules", rule).await?;
    gateway.post(&format!("/v1/mailboxes/{id}/activate"), json!({})).await?;
    let mails = sink.wait_for(2, PATIENCE).await;
    let mut subjects: Vec<String> = mails.iter().filter_map(|mail| mail.header("Subject")).collect();
    subjects.sort();
    assert_eq!(subjects, ["Fwd: Order 3", "Fwd: Order 4"], "each once, none before its time");
    Ok(())
}
