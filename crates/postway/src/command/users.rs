//! `postway users`: the people who operate the gateway, their invitations and sessions. Needs the admin key.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::CommandContext;
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::{self, PageArgs, row};

const COLUMNS: [&str; 6] = ["name", "display_name", "role", "tenants", "has_password", "disabled_at"];
const FIELDS: [&str; 12] = [
    "name",
    "display_name",
    "email",
    "role",
    "tenants",
    "read_content",
    "issuer",
    "has_password",
    "recovery_codes",
    "passkeys",
    "disabled_at",
    "updated_at",
];
const ROLES: [&str; 4] = ["viewer", "operator", "manager", "admin"];

#[derive(Debug, Subcommand)]
pub enum UsersCommand {
    /// List users
    List(PageArgs),
    /// Show one user
    Show(UserRef),
    /// Create a user and print an invitation, this once
    #[command(alias = "add")]
    Create(UserCreateArgs),
    /// Change a user: its role, its tenants, or whether it may sign in
    Update(UserUpdateArgs),
    /// Print an invitation, by which the user sets a new password and authenticator app, or a passkey
    Invite(UserRef),
    /// List where a user is signed in, or sign it out everywhere
    Sessions(UserSessionsArgs),
    /// Delete a user
    #[command(alias = "remove")]
    Delete(UserRef),
}

#[derive(Args, Debug)]
pub struct UserRef {
    /// The user's name
    name: String,
}

#[derive(Args, Debug)]
pub struct UserCreateArgs {
    /// The user's name: what it signs in with, and what the audit log shows
    name: String,
    /// What the user may do
    #[arg(long, value_parser = ROLES)]
    role: String,
    /// The tenants that the role applies to (may be repeated)
    #[arg(long = "for", value_name = "TENANT", required_unless_present = "all_tenants")]
    tenants: Vec<String>,
    /// The role applies to all tenants, also to those that come later
    #[arg(long, conflicts_with = "tenants")]
    all_tenants: bool,
    /// What people call the person
    #[arg(long)]
    display_name: Option<String>,
    /// The address, by which the first sign-in at a provider finds the user
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// Let a viewer or operator read bodies where a tenant guards them
    #[arg(long)]
    read_content: bool,
    /// Print no invitation: the user signs in at a provider
    #[arg(long)]
    no_invitation: bool,
}

#[derive(Args, Debug)]
pub struct UserUpdateArgs {
    /// The user's name
    name: String,
    /// What the user may do
    #[arg(long, value_parser = ROLES)]
    role: Option<String>,
    /// The tenants that the role applies to (may be repeated)
    #[arg(long = "for", value_name = "TENANT")]
    tenants: Vec<String>,
    /// The role applies to all tenants
    #[arg(long, conflicts_with = "tenants")]
    all_tenants: bool,
    /// What people call the person
    #[arg(long)]
    display_name: Option<String>,
    /// The address
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// Whether a viewer or operator reads bodies where a tenant guards them
    #[arg(long, value_name = "BOOL")]
    read_content: Option<bool>,
    /// Whether the user may not sign in
    #[arg(long, value_name = "BOOL")]
    disabled: Option<bool>,
}

#[derive(Args, Debug)]
pub struct UserSessionsArgs {
    /// The user's name
    name: String,
    /// Sign the user out everywhere
    #[arg(long)]
    end: bool,
}

/// Runs the command.
pub async fn run(context: &CommandContext, command: UsersCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "users"];
    match command {
        UsersCommand::List(page) => {
            pages::print(&client, output, &all, Vec::new(), page, &COLUMNS, "no users").await
        }
        UsersCommand::Show(UserRef { name }) => {
            output.show(&client.get(&["v1", "users", &name], &[]).await?, render)
        }
        UsersCommand::Create(args) => {
            let body = args.body();
            let made = client.call(Method::POST, &all, &[], RequestBody::Json(&body)).await?;
            if args.no_invitation {
                return output.show(&made, render);
            }
            invite(&client, output, &args.name).await
        }
        UsersCommand::Update(args) => {
            let (body, path) = (args.body(), ["v1", "users", &args.name]);
            output.show(&client.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await?, render)
        }
        UsersCommand::Invite(UserRef { name }) => invite(&client, output, &name).await,
        UsersCommand::Sessions(UserSessionsArgs { name, end: false }) => {
            let sessions = client.get(&["v1", "users", &name, "sessions"], &[]).await?;
            output.show(&sessions, |output, sessions| {
                let columns = ["id", "began_at", "seen_at", "way", "address", "agent"];
                output.table(&columns, list(sessions, "data").iter().map(|one| row(one, &columns)))
            })
        }
        UsersCommand::Sessions(UserSessionsArgs { name, end: true }) => {
            let path = ["v1", "users", &name, "sessions"];
            say(&client, output, &path, &format!("user {name} is signed out everywhere")).await
        }
        UsersCommand::Delete(UserRef { name }) => {
            let path = ["v1", "users", &name];
            say(&client, output, &path, &format!("user {name} is deleted")).await
        }
    }
}

async fn say(
    client: &ApiClient,
    output: CommandOutput,
    path: &[&str],
    done: &str,
) -> Result<(), CommandFailure> {
    let answer = client.call(Method::DELETE, path, &[], RequestBody::Empty).await?;
    match output.is_json() {
        true => output.json(&answer),
        false => output.text(done),
    }
}

async fn invite(client: &ApiClient, output: CommandOutput, name: &str) -> Result<(), CommandFailure> {
    let path = ["v1", "users", name, "invitation"];
    let mut made = client.call(Method::POST, &path, &[], RequestBody::Empty).await?;
    let link = format!("{}{}", client.base().as_str().trim_end_matches('/'), field(&made, "path"));
    made["link"] = json!(link);
    output.show(&made, |output, made| {
        output.fields(["user", "link", "expires_at"].map(|name| (name, field(made, name))))
    })?;
    if !output.is_json() {
        eprintln!("pass the link on in private: whoever opens it sets the password; it works once");
    }
    Ok(())
}

impl UserCreateArgs {
    fn body(&self) -> Value {
        let mut body = json!({
            "name": self.name, "role": self.role, "tenants": tenants(&self.tenants, self.all_tenants),
            "read_content": self.read_content,
        });
        if let Some(object) = body.as_object_mut() {
            insert(object, "display_name", self.display_name.as_deref());
            insert(object, "email", self.email.as_deref());
        }
        body
    }
}

impl UserUpdateArgs {
    fn body(&self) -> Value {
        let mut body = Map::new();
        insert(&mut body, "role", self.role.as_deref());
        insert(&mut body, "display_name", self.display_name.as_deref());
        insert(&mut body, "email", self.email.as_deref());
        insert(&mut body, "read_content", self.read_content);
        insert(&mut body, "disabled", self.disabled);
        if self.all_tenants || !self.tenants.is_empty() {
            body.insert("tenants".to_owned(), tenants(&self.tenants, self.all_tenants));
        }
        Value::Object(body)
    }
}

/// The tenants as the API takes them: null for all of them.
fn tenants(named: &[String], all: bool) -> Value {
    if all { Value::Null } else { json!(named) }
}

fn insert(body: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body.insert(name.to_owned(), value.into());
    }
}

fn render(output: CommandOutput, user: &Value) -> String {
    output.fields(FIELDS.map(|name| (name, field(user, name))))
}
