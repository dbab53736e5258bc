//! `postway hooks`: the addresses to which providers report what happened to mail.

use std::path::PathBuf;

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use postway_domain::{HookProvider, ProviderEventState};
use reqwest::Method;
use serde_json::{Map, Value};

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::input::read_input;
use crate::cli::output::{CommandOutput, field};
use crate::cli::pages::{self, PageArgs};

#[derive(Debug, Subcommand)]
pub enum HooksCommand {
    /// Show the hook of an account, without its URL
    Show(HookRef),
    /// Create or change the hook of an account; a new one prints its URL, which is shown only once
    Set(Box<HookSetArgs>),
    /// Give the hook a new URL; the earlier one stops
    Rotate(HookRef),
    /// Delete the hook of an account
    #[command(alias = "remove")]
    Delete(HookRef),
    /// List what the provider reported, the newest first
    Events(HookEventsArgs),
}

#[derive(Args, Debug)]
pub struct HookRef {
    /// The account's id
    account: String,
}

#[derive(Args, Debug)]
pub struct HookEventsArgs {
    /// The account's id
    account: String,
    /// Only those in this status
    #[arg(long, value_parser = PossibleValuesParser::new(ProviderEventState::ALL.map(ProviderEventState::as_str)))]
    status: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Args, Debug)]
pub struct HookSetArgs {
    /// The account's id
    account: String,
    /// The provider that reports [default: the account's own]
    #[arg(long, value_parser = PossibleValuesParser::new(HookProvider::ALL.map(HookProvider::as_str)))]
    provider: Option<String>,
    /// SES: the ARN of an SNS topic that may report; may be given several times
    #[arg(long = "topic", value_name = "ARN")]
    topics: Option<Vec<String>>,
    /// SES: an emulator of SNS whose certificates are accepted instead of Amazon's
    #[arg(long, value_name = "URL")]
    sns_endpoint: Option<String>,
    /// SendGrid: the verification key of the signed event webhook
    #[arg(long, value_name = "KEY")]
    public_key: Option<String>,
    /// Postmark: the user name [default: postway]
    #[arg(long)]
    username: Option<String>,
    /// A file with the secret that proves calls (`-`: standard input): Mailgun's signing key, Resend's
    /// signing secret. For Postmark and http one is made and printed when it is absent
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl HookSetArgs {
    fn into_body(self) -> Result<Value, CommandFailure> {
        let mut body = Map::new();
        let fields = [
            ("provider", self.provider.map(Value::from)),
            ("topics", self.topics.map(Value::from)),
            ("sns_endpoint", self.sns_endpoint.map(Value::from)),
            ("public_key", self.public_key.map(Value::from)),
            ("username", self.username.map(Value::from)),
        ];
        body.extend(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        if let Some(path) = &self.secret_file {
            let secret = String::from_utf8(read_input(path)?).map_err(|_| {
                CommandFailure::Usage(format!("{} is not text: give a file with the secret", path.display()))
            })?;
            body.insert("secret".to_owned(), Value::from(secret.trim()));
        }
        Ok(Value::Object(body))
    }
}

pub async fn run(context: &CommandContext, command: HooksCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    match command {
        HooksCommand::Show(HookRef { account }) => {
            output.show(&client.get(&["v1", "accounts", &account, "hook"], &[]).await?, render)
        }
        HooksCommand::Set(args) => {
            let account = args.account.clone();
            let body = args.into_body()?;
            let path = ["v1", "accounts", &account, "hook"];
            output.show(&client.call(Method::PUT, &path, &[], RequestBody::Json(&body)).await?, render)
        }
        HooksCommand::Rotate(HookRef { account }) => {
            let path = ["v1", "accounts", &account, "hook", "rotate"];
            output.show(&client.call(Method::POST, &path, &[], RequestBody::Empty).await?, render)
        }
        HooksCommand::Delete(HookRef { account }) => {
            let path = ["v1", "accounts", &account, "hook"];
            let answer = client.call(Method::DELETE, &path, &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("the hook of {account} is deleted")),
            }
        }
        HooksCommand::Events(HookEventsArgs { account, status, page }) => {
            let path = ["v1", "accounts", &account, "hook", "events"];
            let filters = status.map(|status| ("status", status)).into_iter().collect();
            let nothing = "the provider reported nothing";
            pages::print(&client, output, &path, filters, page, &EVENT_COLUMNS, nothing).await
        }
    }
}

const EVENT_COLUMNS: [&str; 6] = ["created_at", "provider", "status", "kind", "message", "reason"];

fn render(output: CommandOutput, hook: &Value) -> String {
    const FIELDS: [&str; 10] = [
        "account",
        "provider",
        "url",
        "secret",
        "topics",
        "sns_endpoint",
        "public_key",
        "username",
        "secret_set",
        "updated_at",
    ];
    output.fields(FIELDS.map(|name| (name, field(hook, name))))
}
