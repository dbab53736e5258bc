//! `postway tenants`: the owners of mail. Needs the admin key.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::CommandContext;
use super::keys::{self, KeysCommand};
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::input::read_input;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::{self, PageArgs};

#[derive(Debug, Subcommand)]
pub enum TenantsCommand {
    /// List tenants
    List(PageArgs),
    /// Show one tenant
    Show(TenantRef),
    /// Create a tenant, with a sandbox account
    Create(TenantEditArgs),
    /// Change some settings of a tenant
    Update(TenantEditArgs),
    /// Delete a tenant with its mail, accounts and keys
    Delete(TenantDeleteArgs),
    /// Stop sending the mail of a tenant
    Suspend(TenantRef),
    /// Send the mail of a tenant again
    Activate(TenantActivateArgs),
    /// List, create and delete the keys of a tenant
    #[command(subcommand)]
    Keys(KeysCommand),
}

#[derive(Args, Debug)]
pub struct TenantRef {
    /// The tenant's id
    id: String,
}

#[derive(Args, Debug)]
pub struct TenantActivateArgs {
    /// The tenant's id
    #[arg(required_unless_present = "all")]
    id: Option<String>,
    /// Every tenant that is suspended
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

#[derive(Args, Debug)]
pub struct TenantDeleteArgs {
    /// The tenant's id
    id: String,
    /// Its id again, because deletion cannot be undone
    #[arg(long, value_name = "ID")]
    confirm: String,
}

#[derive(Args, Debug, Default)]
pub struct TenantEditArgs {
    /// The tenant's id
    id: String,
    /// A name that people recognise it by
    #[arg(long)]
    name: Option<String>,
    /// Its weight when tenants compete, 1 to 10000
    #[arg(long, value_name = "N")]
    weight: Option<u32>,
    /// The account of mail that names none
    #[arg(long, value_name = "ACCOUNT")]
    default_account: Option<String>,
    /// How long messages are retained after they ended and were reported
    #[arg(long, value_name = "SECONDS")]
    report_retention_seconds: Option<u64>,
    /// How many days messages are retained after they ended and were reported
    #[arg(long, value_name = "DAYS", conflicts_with = "report_retention_seconds")]
    retention_days: Option<u32>,
    /// How many days messages are retained that ended and could not be reported
    #[arg(long, value_name = "DAYS")]
    unreported_retention_days: Option<u32>,
    /// The format of its callbacks
    #[arg(long, value_parser = ["event", "outbox", "batch"])]
    callback_form: Option<String>,
    /// What happens to attachments that are too large to mail
    #[arg(long, value_parser = ["reject", "warn", "rewrite"])]
    large_files: Option<String>,
    /// The largest attachment that is not too large
    #[arg(long, value_name = "BYTES")]
    large_files_above: Option<u64>,
    /// How many days a link to a large file works
    #[arg(long, value_name = "DAYS")]
    link_days: Option<u32>,
    /// The address that gets a copy of each mail that was sent
    #[arg(long, value_name = "ADDRESS")]
    archive_to: Option<String>,
    /// The author of these copies, if the tenant has no default author
    #[arg(long, value_name = "ADDRESS")]
    archive_from: Option<String>,
    /// Whether copies of what was sent are stored beside the blobs
    #[arg(long, value_name = "true|false")]
    archive_storage: Option<bool>,
    /// Whether stored copies are encrypted with the secret key
    #[arg(long, value_name = "true|false")]
    archive_encrypt: Option<bool>,
    /// How many days stored copies are kept
    #[arg(long, value_name = "DAYS")]
    archive_days: Option<u32>,
    /// The domain that its bounces are sent to
    #[arg(long, value_name = "DOMAIN")]
    bounce_domain: Option<String>,
    /// The envelope sender of mail that names none
    #[arg(long, value_name = "ADDRESS")]
    return_path: Option<String>,
    /// The sender id for receivers that count complaints (Feedback-ID)
    #[arg(long, value_name = "ID")]
    feedback_id: Option<String>,
    /// Whether its mail says that a program sent it (Auto-Submitted)
    #[arg(long, value_name = "BOOL")]
    auto_submitted: Option<bool>,
    /// Whether it is a test tenant: mail that its sandbox captures counts as sent
    #[arg(long, value_name = "BOOL")]
    test: Option<bool>,
    /// The header field that carries the client's own id, such as X-Genro-Mail-ID
    #[arg(long, value_name = "NAME")]
    id_header: Option<String>,
    /// The language of its templates for mail that names none, such as de
    #[arg(long)]
    locale: Option<String>,
    /// What happens to mail in doubt: `hold` never sends twice
    #[arg(long, value_parser = ["resend", "hold"])]
    on_doubt: Option<String>,
    /// Whether every composed message must have html
    #[arg(long, value_name = "BOOL")]
    html_required: Option<bool>,
    /// Whether mail with html alone gets a text made of it
    #[arg(long, value_name = "BOOL")]
    auto_text: Option<bool>,
    /// Further settings as a JSON object, as the API takes them (`-`: standard input); flags win
    #[arg(long, value_name = "FILE")]
    json_file: Option<PathBuf>,
}

pub async fn run(context: &CommandContext, command: TenantsCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    match command {
        TenantsCommand::List(page) => {
            let columns = ["id", "name", "suspended", "weight", "default_account", "created_at"];
            pages::print(&client, output, &["v1", "tenants"], Vec::new(), page, &columns, "no tenants").await
        }
        TenantsCommand::Show(TenantRef { id }) => {
            output.show(&client.get(&["v1", "tenants", &id], &[]).await?, render)
        }
        TenantsCommand::Create(args) => {
            let mut body = args.settings()?;
            body.insert("id".to_owned(), Value::String(args.id));
            let body = Value::Object(body);
            output.show(
                &client.call(Method::POST, &["v1", "tenants"], &[], RequestBody::Json(&body)).await?,
                render,
            )
        }
        TenantsCommand::Update(args) => {
            let body = Value::Object(args.settings()?);
            let path = ["v1", "tenants", &args.id];
            output.show(&client.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await?, render)
        }
        TenantsCommand::Delete(TenantDeleteArgs { id, confirm }) => {
            let query = [("confirm", confirm)];
            let answer =
                client.call(Method::DELETE, &["v1", "tenants", &id], &query, RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("tenant {id} is deleted")),
            }
        }
        TenantsCommand::Suspend(TenantRef { id }) => steer(&client, output, &id, "suspend").await,
        TenantsCommand::Activate(TenantActivateArgs { id: Some(id), .. }) => {
            steer(&client, output, &id, "activate").await
        }
        TenantsCommand::Activate(TenantActivateArgs { id: None, .. }) => activate_all(&client, output).await,
        TenantsCommand::Keys(command) => keys::run(&client, output, command).await,
    }
}

/// Activates every suspended tenant, and prints each.
async fn activate_all(client: &ApiClient, output: CommandOutput) -> Result<(), CommandFailure> {
    let mut query = Vec::new();
    loop {
        let page = client.get(&["v1", "tenants"], &query).await?;
        let suspended = list(&page, "data").iter().filter(|tenant| tenant["suspended"] == true);
        for id in suspended.filter_map(|tenant| tenant["id"].as_str()) {
            steer(client, output, id, "activate").await?;
        }
        match page.get("next_cursor").and_then(Value::as_str) {
            Some(cursor) => query = vec![("cursor", cursor.to_owned())],
            None => return Ok(()),
        }
    }
}

async fn steer(
    client: &ApiClient,
    output: CommandOutput,
    id: &str,
    verb: &str,
) -> Result<(), CommandFailure> {
    let answer = client.call(Method::POST, &["v1", "tenants", id, verb], &[], RequestBody::Empty).await?;
    output.show(&answer, |output, answer| {
        output.fields(["id", "suspended", "suspended_since"].map(|name| (name, field(answer, name))))
    })
}

fn render(output: CommandOutput, tenant: &Value) -> String {
    const FIELDS: [&str; 24] = [
        "id",
        "name",
        "suspended",
        "suspended_since",
        "default_account",
        "weight",
        "content",
        "retention_days",
        "report_retention_seconds",
        "unreported_retention_days",
        "client_sync",
        "attachment_endpoint",
        "callback_form",
        "large_files",
        "bounce_domain",
        "return_path",
        "feedback_id",
        "auto_submitted",
        "test",
        "id_header",
        "locale",
        "on_doubt",
        "archive",
        "created_at",
    ];
    output.fields(FIELDS.map(|name| (name, field(tenant, name))))
}

impl TenantEditArgs {
    /// The settings as the API takes them.
    fn settings(&self) -> Result<Map<String, Value>, CommandFailure> {
        let mut body = match &self.json_file {
            Some(path) => serde_json::from_slice(&read_input(path)?).map_err(|error| {
                CommandFailure::Usage(format!("{} is not a JSON object of settings: {error}", path.display()))
            })?,
            None => Map::new(),
        };
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let settings = [
            ("name", text(&self.name)),
            ("weight", self.weight.map(Value::from)),
            ("default_account", text(&self.default_account)),
            ("report_retention_seconds", self.report_retention_seconds.map(Value::from)),
            ("retention_days", self.retention_days.map(Value::from)),
            ("unreported_retention_days", self.unreported_retention_days.map(Value::from)),
            ("callback_form", text(&self.callback_form)),
            ("bounce_domain", text(&self.bounce_domain)),
            ("return_path", text(&self.return_path)),
            ("feedback_id", text(&self.feedback_id)),
            ("auto_submitted", self.auto_submitted.map(Value::from)),
            ("test", self.test.map(Value::from)),
            ("id_header", text(&self.id_header)),
            ("locale", text(&self.locale)),
            ("on_doubt", text(&self.on_doubt)),
        ];
        body.extend(settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        // These are two spellings of one setting: setting one unsets the other.
        match (self.retention_days, self.report_retention_seconds) {
            (Some(_), _) => drop(body.insert("report_retention_seconds".to_owned(), Value::Null)),
            (None, Some(_)) => drop(body.insert("retention_days".to_owned(), Value::Null)),
            (None, None) => {}
        }
        let large_files = [
            ("policy", text(&self.large_files)),
            ("above_bytes", self.large_files_above.map(Value::from)),
            ("link_days", self.link_days.map(Value::from)),
        ];
        put(&mut body, "large_files", large_files);
        let archive = [
            ("to", text(&self.archive_to)),
            ("from", text(&self.archive_from)),
            ("storage", self.archive_storage.map(Value::from)),
            ("encrypt", self.archive_encrypt.map(Value::from)),
            ("days", self.archive_days.map(Value::from)),
        ];
        put(&mut body, "archive", archive);
        let content = [
            ("html_required", self.html_required.map(Value::from)),
            ("auto_text", self.auto_text.map(Value::from)),
        ];
        put(&mut body, "content", content);
        Ok(body)
    }
}

/// Sets fields of a nested object. If the object is a plain text so far, that text becomes its `policy`.
fn put<const N: usize>(body: &mut Map<String, Value>, name: &str, fields: [(&str, Option<Value>); N]) {
    for (field, value) in fields {
        let Some(value) = value else { continue };
        let within = body.entry(name).or_insert_with(|| Value::Object(Map::new()));
        if !within.is_object() {
            *within = json!({"policy": within.take()});
        }
        within[field] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_json_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenant.json");
        std::fs::write(&path, r#"{"weight": 1, "content": {"subject_chars": 9}}"#).unwrap();
        let args = TenantEditArgs {
            weight: Some(7),
            html_required: Some(true),
            large_files: Some("rewrite".into()),
            link_days: Some(5),
            json_file: Some(path),
            ..Default::default()
        };
        let body = Value::Object(args.settings().unwrap());
        let expected = json!({
            "weight": 7, "content": {"subject_chars": 9, "html_required": true},
            "large_files": {"policy": "rewrite", "link_days": 5},
        });
        assert_eq!(body, expected);
    }
}
