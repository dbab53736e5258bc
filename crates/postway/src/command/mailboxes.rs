//! `postway mailboxes`: IMAP folders that are watched.
//!
//! A password or token is read from a file, the environment or the terminal; on the command line it would
//! appear in the list of processes. `--password` exists for those who accept that.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::CommandContext;
use super::authorize::{AuthorizeArgs, authorize};
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::input::read_input;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::row;
use crate::cli::secret_input::{ask_for_missing_secret, ask_password, read_grant, read_secret};

/// The settings that decide where the secret of a mailbox is sent; changing one needs the secret again.
const DESTINATION_FIELDS: [&str; 5] = ["host", "port", "tls", "ca_pem", "proxy"];
/// The fields that say that a secret is stored, and the fields that set a new one.
const SECRETS: [(&str, &str); 2] = [("password_set", "password"), ("token_set", "token")];

#[derive(Debug, Subcommand)]
pub enum MailboxesCommand {
    /// List mailboxes, with how far behind they are and what is wrong with them
    List,
    /// Show one mailbox
    Show(MailboxRef),
    /// Create a mailbox, which is watched from then on
    #[command(alias = "add")]
    Create(MailboxCreateArgs),
    /// Change some settings of a mailbox; another server or proxy needs the password again
    Update(MailboxUpdateArgs),
    /// Connect, secure, sign in and open the folder (exit code 1 if a step fails)
    Test(MailboxRef),
    /// Ask a person for consent, so that the mailbox can be opened with OAuth tokens
    Authorize(AuthorizeArgs),
    /// Stop reading a mailbox
    Suspend(MailboxRef),
    /// Read a mailbox again, from where reading stopped
    Activate(MailboxRef),
    /// Delete a mailbox, with its rules and all that is stored of its mail
    #[command(alias = "remove")]
    Delete(MailboxRef),
}

#[derive(Args, Debug)]
pub struct MailboxRef {
    /// The mailbox's id
    id: String,
}

#[derive(Args, Debug)]
pub struct MailboxCreateArgs {
    /// The mailbox's id [default: one is made]
    #[arg(long)]
    id: Option<String>,
    #[command(flatten)]
    settings: MailboxSettingsArgs,
}

#[derive(Args, Debug)]
pub struct MailboxUpdateArgs {
    /// The mailbox's id
    id: String,
    #[command(flatten)]
    settings: MailboxSettingsArgs,
}

#[derive(Args, Debug, Default)]
pub struct MailboxSettingsArgs {
    /// The IMAP server
    #[arg(long)]
    host: Option<String>,
    /// Its port [default: 993, or 143 without implicit TLS]
    #[arg(long)]
    port: Option<u16>,
    /// How the connection is protected [default: implicit]
    #[arg(long, value_parser = ["implicit", "starttls", "none"])]
    tls: Option<String>,
    /// The user name
    #[arg(long)]
    username: Option<String>,
    /// The password; others on this machine can see it in the list of processes
    #[arg(long, conflicts_with_all = ["password_file", "token_file"])]
    password: Option<String>,
    /// A file with the password (`-`: standard input); also POSTWAY_MAILBOX_PASSWORD, else it is asked for.
    /// Another host, port or proxy, or weaker TLS, needs it again
    #[arg(long, value_name = "FILE", conflicts_with = "token_file")]
    password_file: Option<PathBuf>,
    /// A file with an OAuth 2 bearer token, instead of a password (`-`: standard input)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A file with the grant as a JSON object, as the API takes `oauth`, instead of either (`-`: standard
    /// input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["password", "password_file", "token_file"])]
    oauth_file: Option<PathBuf>,
    /// The folder to watch [default: INBOX]
    #[arg(long)]
    folder: Option<String>,
    /// What its mail is processed for; may be repeated [default: forward]
    #[arg(long = "role", value_name = "ROLE", value_parser = ["forward", "bounces", "pec", "events", "domain_reports"])]
    roles: Vec<String>,
    /// An address whose mail it gets from the reception, instead of from a folder: `desk@example.com`,
    /// `*@example.com`, or `@bounces.example.com` for signed envelope senders; may be repeated
    #[arg(long = "address", value_name = "ADDRESS", conflicts_with_all = ["host", "username"])]
    addresses: Vec<String>,
    /// The name of the mail server in its Authentication-Results, so that they are believed
    #[arg(long, value_name = "NAME")]
    authserv_id: Option<String>,
    /// What it is for
    #[arg(long)]
    description: Option<String>,
    /// Seconds between two polls if the server does not announce new mail [default: 60]
    #[arg(long, value_name = "N")]
    poll_seconds: Option<u32>,
    /// Where to begin: now, beginning, newest:N, after:UID or a time [default: now]
    #[arg(long, value_parser = start)]
    start: Option<Value>,
    /// What happens to forwarded mail in doubt: `hold` never sends twice
    #[arg(long, value_parser = ["resend", "hold"])]
    on_doubt: Option<String>,
    /// A proxy to connect through: socks5://user@host:port or http://host:port
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// A file with the proxy's password
    #[arg(long, value_name = "FILE")]
    proxy_password_file: Option<PathBuf>,
    /// Further settings as a JSON object, as the API takes them (`-`: standard input); flags win
    #[arg(long, value_name = "FILE")]
    json_file: Option<PathBuf>,
}

pub async fn run(context: &CommandContext, command: MailboxesCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "mailboxes"];
    match command {
        MailboxesCommand::List => output.show(&client.get(&all, &[]).await?, render_list),
        MailboxesCommand::Show(MailboxRef { id }) => {
            output.show(&client.get(&["v1", "mailboxes", &id], &[]).await?, render)
        }
        MailboxesCommand::Create(MailboxCreateArgs { id, settings }) => {
            let mut body = settings.into_body(|| ask_password().map(Some))?;
            body.extend(id.map(|id| ("id".to_owned(), Value::from(id))));
            let body = Value::Object(body);
            output.show(&client.call(Method::POST, &all, &[], RequestBody::Json(&body)).await?, render)
        }
        MailboxesCommand::Update(MailboxUpdateArgs { id, settings }) => {
            let mut body = settings.into_body(|| Ok(None))?;
            let path = ["v1", "mailboxes", &id];
            ask_for_missing_secret(&client, &path, &mut body, &DESTINATION_FIELDS, &SECRETS).await?;
            let body = Value::Object(body);
            output.show(&client.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await?, render)
        }
        MailboxesCommand::Test(MailboxRef { id }) => {
            let path = ["v1", "mailboxes", &id, "test"];
            let tested = client.call(Method::POST, &path, &[], RequestBody::Empty).await?;
            output.show(&tested, |output, tested| {
                let columns = ["step", "ok", "detail"];
                output.table(&columns, list(tested, "steps").iter().map(|step| row(step, &columns)))
            })?;
            match tested["ok"] == true {
                true => Ok(()),
                false => Err(CommandFailure::Failed(anyhow::anyhow!("the mailbox {id} cannot be read"))),
            }
        }
        MailboxesCommand::Authorize(args) => {
            output.show(&authorize(&client, "mailboxes", args).await?, render)
        }
        MailboxesCommand::Suspend(MailboxRef { id }) => {
            let path = ["v1", "mailboxes", &id, "suspend"];
            output.show(&client.call(Method::POST, &path, &[], RequestBody::Empty).await?, render)
        }
        MailboxesCommand::Activate(MailboxRef { id }) => {
            let path = ["v1", "mailboxes", &id, "activate"];
            output.show(&client.call(Method::POST, &path, &[], RequestBody::Empty).await?, render)
        }
        MailboxesCommand::Delete(MailboxRef { id }) => {
            let answer =
                client.call(Method::DELETE, &["v1", "mailboxes", &id], &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("mailbox {id} is removed")),
            }
        }
    }
}

/// Where to begin, as the API takes it.
fn start(text: &str) -> Result<Value, String> {
    if let Some(uid) = text.strip_prefix("after:") {
        let uid: u32 =
            uid.parse().map_err(|_| "write after:UID with a number, such as after:4711".to_owned())?;
        return Ok(json!({"after_uid": uid}));
    }
    match (text, text.strip_prefix("newest:")) {
        ("now" | "beginning", _) => Ok(json!(text)),
        (_, Some(count)) => match count.parse::<u32>() {
            Ok(count) => Ok(json!({"newest": count})),
            Err(_) => Err("write newest:N with a number, such as newest:100".to_owned()),
        },
        _ => match text.parse::<postway_domain::Time>() {
            Ok(_) => Ok(json!({"since": text})),
            Err(_) => {
                Err("write now, beginning, newest:100, after:4711 or a time like 2030-01-31T09:00:00Z"
                    .to_owned())
            }
        },
    }
}

impl MailboxSettingsArgs {
    /// The settings as the API takes them; `ask` is the last resort for the password of a user name.
    fn into_body(
        self,
        ask: impl FnOnce() -> Result<Option<String>, CommandFailure>,
    ) -> Result<Map<String, Value>, CommandFailure> {
        let mut body = match &self.json_file {
            Some(path) => serde_json::from_slice(&read_input(path)?).map_err(|error| {
                CommandFailure::Usage(format!("{} is not a JSON object of settings: {error}", path.display()))
            })?,
            None => Map::new(),
        };
        if let Some(path) = &self.oauth_file {
            body.insert("oauth".to_owned(), read_grant(path)?);
        }
        let has_grant = body.get("oauth").is_some_and(Value::is_object);
        let token = self.token_file.as_deref().map(read_secret).transpose()?;
        let given = match (&self.password, &self.password_file) {
            (Some(password), _) => Some(password.clone()),
            (None, Some(path)) => Some(read_secret(path)?),
            (None, None) => std::env::var("POSTWAY_MAILBOX_PASSWORD").ok().filter(|text| !text.is_empty()),
        };
        let has_secret = token.is_some() || body.contains_key("password") || body.contains_key("token");
        let password = match given {
            _ if token.is_some() || has_grant => None,
            None if self.username.is_some() && !has_secret => ask()?,
            given => given,
        };
        let proxy_password = self.proxy_password_file.as_deref().map(read_secret).transpose()?;
        let settings = [
            ("host", self.host.map(Value::from)),
            ("port", self.port.map(Value::from)),
            ("tls", self.tls.map(Value::from)),
            ("username", self.username.map(Value::from)),
            ("password", password.map(Value::from)),
            ("token", token.map(Value::from)),
            ("folder", self.folder.map(Value::from)),
            ("roles", (!self.roles.is_empty()).then(|| Value::from(self.roles))),
            ("addresses", (!self.addresses.is_empty()).then(|| Value::from(self.addresses))),
            ("authserv_id", self.authserv_id.map(Value::from)),
            ("description", self.description.map(Value::from)),
            ("poll_seconds", self.poll_seconds.map(Value::from)),
            ("start", self.start),
            ("on_doubt", self.on_doubt.map(Value::from)),
            ("proxy", self.proxy.map(Value::from)),
            ("proxy_password", proxy_password.map(Value::from)),
        ];
        body.extend(settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Ok(body)
    }
}

fn render_list(output: CommandOutput, mailboxes: &Value) -> String {
    let columns = [
        "id",
        "host",
        "username",
        "folder",
        "addresses",
        "roles",
        "active",
        "lag",
        "last_scanned_at",
        "error",
    ];
    output.table(&columns, list(mailboxes, "data").iter().map(|mailbox| row(mailbox, &columns)))
}

fn render(output: CommandOutput, mailbox: &Value) -> String {
    const FIELDS: [&str; 26] = [
        "id",
        "host",
        "port",
        "tls",
        "username",
        "auth",
        "oauth",
        "folder",
        "addresses",
        "roles",
        "active",
        "description",
        "poll_seconds",
        "start",
        "proxy",
        "all_tenants",
        "attempts_max",
        "on_doubt",
        "authserv_id",
        "last_scanned_at",
        "lag",
        "error",
        "error_since",
        "uid_validity",
        "last_seen_uid",
        "updated_at",
    ];
    output.fields(FIELDS.map(|name| (name, field(mailbox, name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_begin_is_said_in_words() {
        assert_eq!(start("now"), Ok(json!("now")));
        assert_eq!(start("newest:100"), Ok(json!({"newest": 100})));
        assert_eq!(start("after:4711"), Ok(json!({"after_uid": 4711})));
        assert_eq!(start("2030-01-31T09:00:00Z"), Ok(json!({"since": "2030-01-31T09:00:00Z"})));
        assert!(start("newest:many").is_err() && start("yesterday").is_err());
    }

    #[test]
    fn a_token_file_stands_in_the_place_of_a_password_and_nobody_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "t0ken\n").unwrap();
        let settings =
            MailboxSettingsArgs { username: Some("u".into()), token_file: Some(path), ..Default::default() };
        let body = settings.into_body(|| panic!("the token is known")).unwrap();
        assert_eq!(Value::Object(body), json!({"username": "u", "token": "t0ken"}));
    }

    #[test]
    fn only_what_is_given_is_sent() {
        let settings =
            MailboxSettingsArgs { roles: vec!["pec".into()], port: Some(143), ..Default::default() };
        let body = settings.into_body(|| panic!("no user name, no question")).unwrap();
        assert_eq!(Value::Object(body), json!({"port": 143, "roles": ["pec"]}));
    }
}
