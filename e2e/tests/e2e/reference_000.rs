//! Reference 000, an outbox of mails on MySQL with callbacks: its document from top to bottom, on MariaDB as
//! its users have it.
//!
//! `model` walks the mail and the two tables, `states` the eleven states and the two ways through them,
//! `files` where mails and requests are kept and where files come from, `callbacks` what is told and what a
//! crash in a call leaves, also of two nodes, `locks` what is seen of locks and indexes.
//!
//! Shown elsewhere, on the same stores: every refusal of a late change (`conformance::fence`,
//! `conformance::settle`), several processors at once (`conformance::claim`, `node_kill_loop.rs`), history
//! and change in one transaction (`crash_points.rs`, `power_cut.rs`), no way out of PROCESSING and INTAKING
//! after a crash (`kill_loop.rs`, `preparation_kill.rs`), paths that climb out of a folder (`fetch::tests` of
//! intake), line breaks in headers and the same id twice (`api/tests/compat/reference_000.rs`), the history
//! that grows for ever (`retention.rs`).
//!
//! Each requirement under its number, with the tests that show it here and elsewhere: `requirements/000.md`.

mod callbacks;
mod files;
mod locks;
mod model;
mod states;

use std::process::Command;

use anyhow::{Context, ensure};
use postway_e2e::{Gateway, eventually, text};
use postway_testkit::{HttpSource, mariadb::MariaDb};
use serde_json::{Value, json};

/// The door.
const EMAILS: &str = "/compat/000/emails";

/// A gateway on a MariaDB of its own, with the views of reference 000.
struct Moved {
    gateway: Gateway,
    url: String,
}

impl Moved {
    /// Starts it with these variables as well. Mail goes to the relay at this port.
    async fn start(port: u16, env: &[(&str, &str)]) -> anyhow::Result<Self> {
        let url = MariaDb::shared().create_database();
        let mut gateway = Gateway::idle()?;
        gateway.launch(&[&[("POSTWAY_DATABASE_URL", url.as_str())], env].concat()).await?;
        gateway.relay_with(port, json!({"max_connections": 4})).await?;
        gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
        let database = [("POSTWAY_DATABASE_URL", url.as_str())];
        let installed = gateway.run(&["views", "install", "--index"], &database, b"").await?;
        ensure!(installed.code == Some(0), "{installed:?}");
        Ok(Self { gateway, url })
    }

    /// Has it report to this receiver, in the words of an outbox.
    async fn call_back(&self, receiver: &HttpSource) -> anyhow::Result<()> {
        let client = json!({"url": receiver.url(""), "path": "/callback", "auth": {"type": "none"}});
        let settings = json!({"callback_form": "outbox", "client_sync": client});
        self.gateway.patch("/v1/tenants/default", settings).await.map(drop)
    }

    /// Posts a mail with these fields besides.
    async fn post(&self, id: &str, fields: Value) -> anyhow::Result<()> {
        let mut mail = json!({"id": id, "from": "shop@example.com", "to": "ada@example.net", "subject": "Your order",
            "body_text": "Thank you."});
        if let (Some(mail), Value::Object(fields)) = (mail.as_object_mut(), fields) {
            mail.extend(fields);
        }
        let answer = self.gateway.post(EMAILS, json!({"data": [mail]})).await?;
        ensure!(answer["summary"]["successful"] == 1, "{answer:#}");
        Ok(())
    }

    /// A mail as the door shows it.
    async fn show(&self, id: &str) -> anyhow::Result<Value> {
        self.gateway.get(&format!("{EMAILS}/{id}")).await
    }

    /// Waits until a mail has this status, and the table says the same of it as the door.
    async fn reaches(&self, id: &str, status: &str) -> anyhow::Result<Value> {
        eventually(&format!("{id} to be {status}"), async || {
            let shown = self.show(id).await?;
            Ok((shown["status"] == status).then_some(()))
        })
        .await?;
        self.agrees(id).await
    }

    /// What door and tables say of a mail that stands still, which is the same.
    async fn agrees(&self, id: &str) -> anyhow::Result<Value> {
        let shown = self.show(id).await?;
        let columns = "status, version, updated_at, created_at, eml_file_path, payload_file_path, reason";
        let rows = self.sql(&format!("SELECT {columns} FROM emails WHERE id = '{id}'"))?;
        let [row] = &rows[..] else { anyhow::bail!("{id} has {} rows", rows.len()) };
        let at = |field: &str| text(&shown, field).replace('T', " ").replace('Z', "000");
        let or_null = |field: &str| shown[field].as_str().unwrap_or("NULL").to_owned();
        let expected = [
            or_null("status"),
            shown["version"].to_string(),
            at("updated_at"),
            at("created_at"),
            or_null("eml_file_path"),
            or_null("payload_file_path"),
            or_null("reason"),
        ];
        ensure!(*row == expected, "the table has {row:?}, the door {expected:?}");
        let words = self.history(id)?;
        ensure!(words.last().map(String::as_str) == shown["status"].as_str(), "{words:?} of {shown:#}");
        let history = shown["history"].as_array().context("no history")?;
        let told: Vec<&str> = history.iter().map(|row| text(row, "status")).collect();
        ensure!(told == words, "the table has {words:?}, the door {told:?}");
        Ok(shown)
    }

    /// The words of a mail's history, in order.
    fn history(&self, id: &str) -> anyhow::Result<Vec<String>> {
        let rows =
            self.sql(&format!("SELECT status FROM email_statuses WHERE email_id = '{id}' ORDER BY id"))?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Runs a statement in the views' database, as a program of the application would; its rows.
    fn sql(&self, statement: &str) -> anyhow::Result<Vec<Vec<String>>> {
        let (rest, socket) = self.url.split_once("?socket=").context("no socket in the URL")?;
        let database = rest.rsplit('/').next().context("no database in the URL")?;
        let ran = Command::new("mariadb")
            .args(["--no-defaults", "--user=root", "--batch", "--skip-column-names"])
            .arg(format!("--socket={socket}"))
            .arg(format!("--database={database}_views"))
            .arg(format!("--execute={statement}"))
            .output()?;
        ensure!(ran.status.success(), "{statement}: {}", String::from_utf8_lossy(&ran.stderr));
        let rows = String::from_utf8(ran.stdout)?;
        Ok(rows.lines().map(|row| row.split('\t').map(str::to_owned).collect()).collect())
    }
}

/// The n-th id.
fn id(n: usize) -> String {
    format!("0190a000-0000-7000-8000-{n:012}")
}
