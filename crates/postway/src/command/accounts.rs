//! `postway accounts`: how mail leaves.
//!
//! A password, the secret half of an AWS key, or the key of a provider's API is read from a file, the
//! environment or the terminal; on the command line it would appear in the list of processes. `--password`
//! exists for those who accept that.

use std::path::PathBuf;

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use postway_domain::{AccountKind, provider_account::AccountSecret};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::CommandContext;
use super::authorize::{AuthorizeArgs, authorize};
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::input::read_input;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::secret_input::{ask_for_missing_secret, ask_password, read_grant, read_secret};

#[derive(Debug, Subcommand)]
pub enum AccountsCommand {
    /// List accounts
    List,
    /// Show one account
    Show(AccountRef),
    /// Create an account
    Create(AccountCreateArgs),
    /// Change some settings of an account; another host or endpoint needs the password again
    Update(AccountUpdateArgs),
    /// Delete an account
    Delete(AccountRef),
    /// Connect, secure and sign in; with --to, send a test mail as well
    Test(AccountTestArgs),
    /// Ask a person for consent, so that the account can sign in with OAuth tokens
    Authorize(AuthorizeArgs),
    /// Stop sending the mail of an account
    Suspend(AccountRef),
    /// Send the mail of an account again
    Activate(AccountRef),
}

#[derive(Args, Debug)]
pub struct AccountTestArgs {
    /// The account's id
    id: String,
    /// Send a test mail to this address
    #[arg(long, value_name = "ADDRESS")]
    to: Option<String>,
    /// Its sender [default: the account's return path or user name]
    #[arg(long, value_name = "ADDRESS", requires = "to")]
    from: Option<String>,
}

#[derive(Args, Debug)]
pub struct AccountRef {
    /// The account's id
    id: String,
}

#[derive(Args, Debug)]
pub struct AccountCreateArgs {
    /// The account's id
    #[arg(required_unless_present = "json_file")]
    id: Option<String>,
    #[command(flatten)]
    settings: AccountSettingsArgs,
}

#[derive(Args, Debug)]
pub struct AccountUpdateArgs {
    /// The account's id
    id: String,
    #[command(flatten)]
    settings: AccountSettingsArgs,
}

#[derive(Args, Debug, Default)]
struct AccountSettingsArgs {
    /// The kind of account (create: smtp by default)
    #[arg(long, value_parser = PossibleValuesParser::new(AccountKind::ALL.map(AccountKind::as_str)))]
    kind: Option<String>,
    /// The relay's host
    #[arg(long)]
    host: Option<String>,
    /// The relay's port [default: 587 for starttls, 465 for implicit, else 25]
    #[arg(long)]
    port: Option<u16>,
    /// How the connection is protected (create: starttls by default)
    #[arg(long, value_parser = ["starttls", "implicit", "none", "opportunistic"])]
    tls: Option<String>,
    /// The user name for AUTH
    #[arg(long)]
    username: Option<String>,
    /// The password; others on this machine can see it in the list of processes
    #[arg(long, conflicts_with = "password_file")]
    password: Option<String>,
    /// A file with the password (`-`: standard input); also POSTWAY_ACCOUNT_PASSWORD, else it is asked for.
    /// Another host, port, region or endpoint, or weaker TLS, needs it again
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// A file with the grant as a JSON object, as the API takes `oauth`, instead of a password (`-`: standard
    /// input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["password", "password_file"])]
    oauth_file: Option<PathBuf>,
    /// SES: the AWS region
    #[arg(long)]
    region: Option<String>,
    /// SES: the public half of the key; the secret half is read like a password
    #[arg(long, value_name = "ID")]
    access_key_id: Option<String>,
    /// SES: the configuration set that every mail names
    #[arg(long, value_name = "NAME")]
    configuration_set: Option<String>,
    /// SES: where to call instead of the region's own endpoint
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Providers: a file with the key of the API (`-`: standard input); with --kind it can also be read like
    /// a password
    #[arg(long, value_name = "FILE", conflicts_with_all = ["password", "password_file", "oauth_file"])]
    api_key_file: Option<PathBuf>,
    /// Providers: where to call instead of the provider's own address; the address of an http account
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Mailgun: the sending domain
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Postmark: the message stream
    #[arg(long, value_name = "STREAM")]
    message_stream: Option<String>,
    /// The most mails in any minute (0: no limit)
    #[arg(long, value_name = "N")]
    per_minute: Option<u32>,
    /// The most mails in any hour (0: no limit)
    #[arg(long, value_name = "N")]
    per_hour: Option<u32>,
    /// The most mails in any day (0: no limit)
    #[arg(long, value_name = "N")]
    per_day: Option<u32>,
    /// What happens to mail beyond a limit
    #[arg(long, value_parser = ["defer", "reject"])]
    beyond_limit: Option<String>,
    /// Mails on the first, second, … day of a new account
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    warm_up: Option<Vec<u32>>,
    /// The most connections at the same time, per node (create: 10 by default)
    #[arg(long, value_name = "N")]
    max_connections: Option<u32>,
    /// The envelope sender
    #[arg(long, value_name = "ADDRESS")]
    return_path: Option<String>,
    /// The account that takes over when this one fails
    #[arg(long, value_name = "ACCOUNT")]
    fallback: Option<String>,
    /// What happens to mail in doubt: `hold` never sends twice
    #[arg(long, value_parser = ["resend", "hold"])]
    on_doubt: Option<String>,
    /// A proxy for all its connections: socks5://user@host:port or http://user@host:port
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// A file with the proxy's password
    #[arg(long, value_name = "FILE")]
    proxy_password_file: Option<PathBuf>,
    /// The address of the server that connections leave from (needs the admin key)
    #[arg(long, value_name = "ADDRESS")]
    source_address: Option<String>,
    /// The reports to ask relays for, as parameters of SMTP: "NOTIFY=SUCCESS,FAILURE RET=HDRS"
    #[arg(long, value_name = "PARAMETERS")]
    dsn: Option<String>,
    /// Further settings as a JSON object, as the API takes them (`-`: standard input); flags win
    #[arg(long, value_name = "FILE")]
    json_file: Option<PathBuf>,
}

pub async fn run(context: &CommandContext, command: AccountsCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    match command {
        AccountsCommand::List => {
            let accounts = client.get(&["v1", "accounts"], &[]).await?;
            output.show(&accounts, |output, accounts| {
                output.table(&COLUMNS, list(accounts, "data").iter().map(listed))
            })
        }
        AccountsCommand::Show(AccountRef { id }) => {
            output.show(&client.get(&["v1", "accounts", &id], &[]).await?, render)
        }
        AccountsCommand::Create(AccountCreateArgs { id, settings }) => {
            let mut body = settings.into_body(|| ask_password().map(Some))?;
            body.entry("kind").or_insert_with(|| json!("smtp"));
            if let Some(id) = id {
                body.insert("id".to_owned(), Value::String(id));
            }
            let body = Value::Object(body);
            output.show(
                &client.call(Method::POST, &["v1", "accounts"], &[], RequestBody::Json(&body)).await?,
                render,
            )
        }
        AccountsCommand::Update(AccountUpdateArgs { id, settings }) => {
            // A change of the user name may leave the password as it was, so the password is not asked for.
            let mut body = settings.into_body(|| Ok(None))?;
            let path = ["v1", "accounts", &id];
            ask_for_missing_secret(&client, &path, &mut body, &DESTINATION_FIELDS, &SECRETS).await?;
            let body = Value::Object(body);
            output.show(&client.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await?, render)
        }
        AccountsCommand::Delete(AccountRef { id }) => {
            let answer =
                client.call(Method::DELETE, &["v1", "accounts", &id], &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("account {id} is deleted")),
            }
        }
        AccountsCommand::Test(AccountTestArgs { id, to, from }) => {
            let mut body = Map::new();
            body.extend(to.map(|to| ("to".to_owned(), Value::from(to))));
            body.extend(from.map(|from| ("from".to_owned(), Value::from(from))));
            let path = ["v1", "accounts", &id, "test"];
            let body = Value::Object(body);
            let tested = client.call(Method::POST, &path, &[], RequestBody::Json(&body)).await?;
            output.show(&tested, |output, tested| {
                let columns = ["step", "ok", "duration_ms", "detail"];
                let row = |step: &Value| columns.iter().map(|column| field(step, column)).collect();
                output.table(&columns, list(tested, "steps").iter().map(row))
            })?;
            match tested["ok"] == true {
                true => Ok(()),
                false => Err(CommandFailure::Failed(anyhow::anyhow!("the account {id} does not work"))),
            }
        }
        AccountsCommand::Authorize(args) => output.show(&authorize(&client, "accounts", args).await?, render),
        AccountsCommand::Suspend(AccountRef { id }) => {
            let path = ["v1", "accounts", &id, "suspend"];
            output.show(&client.call(Method::POST, &path, &[], RequestBody::Empty).await?, render)
        }
        AccountsCommand::Activate(AccountRef { id }) => {
            let path = ["v1", "accounts", &id, "activate"];
            output.show(&client.call(Method::POST, &path, &[], RequestBody::Empty).await?, render)
        }
    }
}

const COLUMNS: [&str; 9] =
    ["id", "kind", "host", "port", "tls", "username", "max_connections", "suspended", "circuit"];

/// The row of an account in a list. Its circuit appears only while it is open; `show` has the details.
fn listed(account: &Value) -> Vec<String> {
    let cell = |column: &&str| match *column {
        "circuit" if account["circuit"]["state"] == "open" => {
            format!("open ({})", field(&account["circuit"], "code"))
        }
        "circuit" => String::new(),
        column => field(account, column),
    };
    COLUMNS.iter().map(cell).collect()
}

fn render(output: CommandOutput, account: &Value) -> String {
    const FIELDS: [&str; 30] = [
        "id",
        "kind",
        "host",
        "port",
        "tls",
        "username",
        "oauth",
        "region",
        "access_key_id",
        "configuration_set",
        "endpoint",
        "base_url",
        "domain",
        "message_stream",
        "max_connections",
        "return_path",
        "fallback",
        "pec",
        "on_doubt",
        "proxy",
        "proxy_password_set",
        "source_address",
        "dsn",
        "limits",
        "used",
        "warm_up",
        "destinations",
        "retry",
        "suspended",
        "circuit",
    ];
    output.fields(FIELDS.map(|name| (name, field(account, name))))
}

impl AccountSettingsArgs {
    /// The settings as the API takes them; `ask` is the last resort for the password of a user name.
    fn into_body(
        self,
        ask: impl FnOnce() -> Result<Option<String>, CommandFailure>,
    ) -> Result<Map<String, Value>, CommandFailure> {
        let mut body = match &self.json_file {
            Some(path) => {
                let bytes = read_input(path)?;
                serde_json::from_slice(&bytes).map_err(|error| {
                    CommandFailure::Usage(format!(
                        "{} is not a JSON object of settings: {error}",
                        path.display()
                    ))
                })?
            }
            None => Map::new(),
        };
        if let Some(path) = &self.oauth_file {
            body.insert("oauth".to_owned(), read_grant(path)?);
        }
        // The field of the secret depends on the field of the user name.
        let is_ses = self.access_key_id.is_some() || self.region.is_some() || self.endpoint.is_some();
        let said = self.kind.as_deref().or_else(|| body.get("kind").and_then(Value::as_str));
        let asked_by_kind = said.and_then(AccountKind::from_word).map(AccountKind::secret);
        let secret = match asked_by_kind {
            _ if self.api_key_file.is_some() => "api_key",
            Some(AccountSecret::ApiKey | AccountSecret::OptionalApiKey) => "api_key",
            _ if is_ses => "secret_access_key",
            _ => "password",
        };
        let is_named = self.username.is_some()
            || self.access_key_id.is_some()
            || asked_by_kind == Some(AccountSecret::ApiKey);
        let password = match self.password_given()? {
            _ if body.get("oauth").is_some_and(Value::is_object) => None,
            None if is_named && !body.contains_key(secret) => ask()?,
            given => given,
        };
        let proxy_password = self.proxy_password_file.as_deref().map(read_secret).transpose()?;
        let limits = [
            ("per_minute", self.per_minute.map(Value::from)),
            ("per_hour", self.per_hour.map(Value::from)),
            ("per_day", self.per_day.map(Value::from)),
            ("behavior", self.beyond_limit.map(Value::from)),
        ];
        let limits: Map<String, Value> =
            limits.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let settings = [
            ("kind", self.kind.map(Value::from)),
            ("host", self.host.map(Value::from)),
            ("port", self.port.map(Value::from)),
            ("tls", self.tls.map(Value::from)),
            ("username", self.username.map(Value::from)),
            (secret, password.map(Value::from)),
            ("region", self.region.map(Value::from)),
            ("access_key_id", self.access_key_id.map(Value::from)),
            ("configuration_set", self.configuration_set.map(Value::from)),
            ("endpoint", self.endpoint.map(Value::from)),
            ("base_url", self.base_url.map(Value::from)),
            ("domain", self.domain.map(Value::from)),
            ("message_stream", self.message_stream.map(Value::from)),
            ("limits", (!limits.is_empty()).then_some(Value::Object(limits))),
            ("warm_up", self.warm_up.map(|per_day| json!({"per_day": per_day}))),
            ("max_connections", self.max_connections.map(Value::from)),
            ("return_path", self.return_path.map(Value::from)),
            ("fallback", self.fallback.map(Value::from)),
            ("on_doubt", self.on_doubt.map(Value::from)),
            ("proxy", self.proxy.map(Value::from)),
            ("proxy_password", proxy_password.map(Value::from)),
            ("source_address", self.source_address.map(Value::from)),
            ("dsn", self.dsn.map(Value::from)),
        ];
        body.extend(settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Ok(body)
    }

    fn password_given(&self) -> Result<Option<String>, CommandFailure> {
        if let Some(password) = &self.password {
            return Ok(Some(password.clone()));
        }
        if let Some(path) = self.password_file.as_ref().or(self.api_key_file.as_ref()) {
            return read_secret(path).map(Some);
        }
        Ok(std::env::var("POSTWAY_ACCOUNT_PASSWORD").ok().filter(|password| !password.is_empty()))
    }
}

/// The settings that decide where the secret of an account is sent; changing one needs the secret again.
const DESTINATION_FIELDS: [&str; 9] =
    ["host", "port", "tls", "allow_plaintext_auth", "ca_pem", "region", "endpoint", "base_url", "proxy"];
/// The fields that say that a secret is stored, and the fields that set a new one.
const SECRETS: [(&str, &str); 3] = [
    ("password_set", "password"),
    ("secret_access_key_set", "secret_access_key"),
    ("api_key_set", "api_key"),
];

#[cfg(test)]
mod tests;
