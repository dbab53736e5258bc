//! 004: the outbox and the directory of recipients, in PostgreSQL and in MariaDB.

use postway_e2e::{Gateway, PATIENCE, column, text};
use postway_testkit::{
    SmtpSink,
    mariadb::{MariaDb, run_in},
    postgres::PostgresDatabase,
};
use serde_json::json;

use super::{moving, stays, wrong};

const COMPANY: &str = "5d1f7c1e-0000-4000-8000-000000000001";
const KNOWN: &str = "5d1f7c1e-0000-4000-8000-0000000000aa";

fn outbox_id(number: u32) -> String {
    format!("5d1f7c1e-0000-4000-8000-1{number:011}")
}

/// The tables in the spelling of the programs, and rows in every status. `quote` is how the database quotes
/// names.
fn filled(text: &str, quote: char) -> String {
    let columns = |names: &str| {
        names.split(' ').map(|name| format!("{quote}{name}{quote}")).collect::<Vec<_>>().join(", ")
    };
    let table = |name: &str, spec: &[(&str, &str)]| {
        let columns = spec.iter().map(|(name, kind)| format!("{quote}{name}{quote} {kind}"));
        format!("CREATE TABLE {name} ({});", columns.collect::<Vec<_>>().join(", "))
    };
    let id = "CHAR(36) PRIMARY KEY";
    let recipients = table(
        "recipients",
        &[
            ("id", id),
            ("companyId", "CHAR(36)"),
            ("externalId", "VARCHAR(64)"),
            ("razaoSocial", "VARCHAR(150)"),
            ("nome", "VARCHAR(120)"),
            ("email", "VARCHAR(254)"),
            ("cpfCnpj", "VARCHAR(20)"),
            ("deletedAt", "TIMESTAMP NULL"),
        ],
    );
    let outbox = table(
        "email_outbox",
        &[
            ("id", id),
            ("companyId", "CHAR(36)"),
            ("recipientId", "CHAR(36)"),
            ("to", "VARCHAR(254)"),
            ("cc", text),
            ("bcc", text),
            ("replyTo", "VARCHAR(254)"),
            ("subject", "VARCHAR(150)"),
            ("html", text),
            ("status", "VARCHAR(20)"),
            ("attempts", "INTEGER"),
            ("lastError", text),
            ("processedAt", "TIMESTAMP NULL"),
            ("requestId", "VARCHAR(64)"),
        ],
    );
    let mails = [(1, "RECEIVED"), (2, "RETRY_SCHEDULED"), (3, "SENT_ATTEMPT"), (4, "SENT"), (5, "FAILED")]
        .map(|(number, status)| {
            let id = outbox_id(number);
            format!("('{id}', '{COMPANY}', 'ada@example.net', 'Nota {number}', '<p>Olá</p>', '{status}', 1, 'req-{number}')")
        });
    let known = outbox_id(6);
    format!(
        "{recipients} {outbox}
        INSERT INTO recipients ({}) VALUES ('{KNOWN}', '{COMPANY}', 'C-1', 'ACME', 'ada@example.net', '12345678901');
        INSERT INTO recipients ({}) VALUES ('x', '{COMPANY}', 'old@example.net', CURRENT_TIMESTAMP);
        INSERT INTO email_outbox ({}) VALUES {};
        INSERT INTO email_outbox ({}) VALUES ('{known}', '{COMPANY}', '{KNOWN}', 'ada@example.net', '[\"bob@example.net\"]', 'Nota 6',
            '<p>Olá</p>', 'VALIDATED');",
        columns("id companyId externalId razaoSocial email cpfCnpj"),
        columns("id companyId email deletedAt"),
        columns("id companyId to subject html status attempts requestId"),
        mails.join(", "),
        columns("id companyId recipientId to cc subject html status"),
    )
}

async fn a_pipeline_moves(url: &str, run: impl Fn(&str) -> String, quote: char) -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_untouched(&[]).await?;
    let (code, report) = moving(&gateway, &["check", "004", "--database", url]).await?;
    assert_eq!(code, Some(1), "{report:#}");
    assert!(wrong(&report).iter().all(|(_, _, field)| field == "companyId"), "{report:#}");

    gateway.relay_to(sink.port()).await?;
    gateway
        .patch(
            "/v1/tenants/default",
            json!({"default_account": "relay", "default_from": "Acme <mail@acme.example>"}),
        )
        .await?;
    let tenant_of = format!("{COMPANY}=default");
    let source = ["004", "--database", url, "--tenant-of", &tenant_of];
    let with = |verb| -> Vec<&str> { [verb].into_iter().chain(source).collect() };
    let (code, report) = moving(&gateway, &with("check")).await?;
    assert_eq!(
        (code, &report["carried"]),
        (Some(1), &json!({"recipients": 1, "waiting_messages": 3})),
        "{report:#}"
    );
    assert_eq!(report["undecided_rows"][0]["key"], json!(outbox_id(3)), "{report:#}");
    assert_eq!(
        (stays(&report, "SENT"), stays(&report, "FAILED"), stays(&report, "deleted")),
        (1, 1, 1),
        "{report:#}"
    );

    // A row that fails a check here, and a status that there is not.
    let q = quote;
    run(&format!(
        "UPDATE email_outbox SET html = '<script>x</script>' WHERE {q}subject{q} = 'Nota 2'; \
         UPDATE email_outbox SET status = 'LOST' WHERE {q}subject{q} = 'Nota 5'"
    ));
    let (code, report) = moving(&gateway, &with("import")).await?;
    let found = wrong(&report);
    let expected = |key: &str, field: &str| ("email_outbox".to_owned(), key.to_owned(), field.to_owned());
    assert_eq!(
        (code, found),
        (Some(1), vec![expected("LOST", "status"), expected(&outbox_id(2), "html")]),
        "{report:#}"
    );
    assert_eq!(gateway.get("/v1/recipients").await?["data"], json!([]), "nothing is half imported");
    run(&format!(
        "UPDATE email_outbox SET html = '<p>Oi</p>' WHERE {q}subject{q} = 'Nota 2'; \
         UPDATE email_outbox SET status = 'FAILED' WHERE {q}subject{q} = 'Nota 5'"
    ));

    let (code, report) = moving(&gateway, &with("import")).await?;
    assert_eq!(
        (code, &report["carried"]),
        (Some(0), &json!({"recipients": 1, "waiting_messages": 3})),
        "{report:#}"
    );
    let mails = sink.wait_for(3, PATIENCE).await;
    let known = mails.iter().find(|mail| mail.header("Subject").as_deref() == Some("Nota 6"));
    assert_eq!(known.map(|mail| mail.recipients.len()), Some(2), "cc gets it too");
    let entry = gateway.get("/v1/recipients/external:C-1").await?;
    assert_eq!((text(&entry, "name"), text(&entry, "address")), ("ACME", "ada@example.net"), "{entry:#}");
    assert!(!entry.to_string().contains("12345678901"), "{entry:#}");
    let (code, report) = moving(&gateway, &with("import")).await?;
    assert_eq!((code, &report["carried"]), (Some(0), &json!({})), "{report:#}");
    assert_eq!(report["already_here"], json!({"recipients": 1, "waiting_messages": 3}), "{report:#}");
    assert_eq!(sink.mails().len(), 3);
    for number in [1, 2] {
        let moved = gateway.get(&format!("/v1/messages?request_id=req-{number}")).await?;
        assert_eq!(column(&moved, "data", "id"), [outbox_id(number)], "{moved:#}");
    }
    Ok(())
}

#[tokio::test]
async fn a_pipeline_on_postgresql_moves() -> anyhow::Result<()> {
    let old = PostgresDatabase::create();
    old.run(&filled("TEXT", '"'));
    a_pipeline_moves(&old.url(), |sql| old.run(sql), '"').await
}

#[tokio::test]
async fn a_pipeline_on_mariadb_moves() -> anyhow::Result<()> {
    let url = MariaDb::shared().create_database();
    run_in(&url, &filled("LONGTEXT", '`'));
    a_pipeline_moves(&url, |sql| run_in(&url, sql), '`').await
}
