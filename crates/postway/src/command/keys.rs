//! `postway tenants keys`: the API keys of a tenant.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::row;

// Arguments are not called `tenant` and `key`: those are the global options of that name.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// List a tenant's keys
    List(KeyOwnerArgs),
    /// Create a key and print it, this once
    Create(KeyCreateArgs),
    /// Delete a key, which is refused from then on
    #[command(alias = "revoke")]
    Delete(KeyDeleteArgs),
}

#[derive(Args, Debug)]
pub struct KeyOwnerArgs {
    /// The tenant's id
    #[arg(value_name = "TENANT")]
    tenant_id: String,
}

#[derive(Args, Debug)]
pub struct KeyCreateArgs {
    /// The tenant's id
    #[arg(value_name = "TENANT")]
    tenant_id: String,
    /// A name that people recognise the key by
    #[arg(long)]
    name: Option<String>,
    /// What it may do (may be repeated) [default: send, read, manage]
    #[arg(long = "scope", value_parser = ["send", "read", "manage", "read:content"])]
    scopes: Vec<String>,
    /// When the key expires (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
    /// The networks it may be used from: an address, or a network such as 10.0.0.0/8 (may be repeated)
    #[arg(long = "allow-ip", value_name = "NETWORK")]
    allow_ips: Vec<String>,
    /// The senders of its mail: an address, a domain or a pattern such as *.example.com (may be repeated)
    #[arg(long = "allow-sender", value_name = "PATTERN")]
    allowed_senders: Vec<String>,
    /// The recipients of its mail (may be repeated)
    #[arg(long = "allow-recipient", value_name = "PATTERN")]
    allowed_recipients: Vec<String>,
}

#[derive(Args, Debug)]
pub struct KeyDeleteArgs {
    /// The tenant's id
    #[arg(value_name = "TENANT")]
    tenant_id: String,
    /// The key's id
    #[arg(value_name = "KEY")]
    key_id: String,
}

pub async fn run(
    client: &ApiClient,
    output: CommandOutput,
    command: KeysCommand,
) -> Result<(), CommandFailure> {
    match command {
        KeysCommand::List(KeyOwnerArgs { tenant_id }) => {
            let keys = client.get(&["v1", "tenants", &tenant_id, "keys"], &[]).await?;
            output.show(&keys, |output, keys| {
                let columns = [
                    "id",
                    "name",
                    "scopes",
                    "created_by",
                    "created_at",
                    "last_used_at",
                    "expires_at",
                    "revoked_at",
                ];
                output.table(&columns, list(keys, "data").iter().map(|key| row(key, &columns)))
            })
        }
        KeysCommand::Create(args) => {
            let path = ["v1", "tenants", &args.tenant_id, "keys"];
            let body = args.body();
            let made = client.call(Method::POST, &path, &[], RequestBody::Json(&body)).await?;
            output.show(&made, |output, made| {
                let fields = [
                    "id",
                    "name",
                    "scopes",
                    "allow_ips",
                    "allowed_senders",
                    "allowed_recipients",
                    "expires_at",
                    "key",
                ];
                output.fields(fields.map(|name| (name, field(made, name))))
            })?;
            if !output.is_json() {
                eprintln!("keep the key: it is not shown again");
            }
            Ok(())
        }
        KeysCommand::Delete(KeyDeleteArgs { tenant_id, key_id }) => {
            let path = ["v1", "tenants", &tenant_id, "keys", &key_id];
            let answer = client.call(Method::DELETE, &path, &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("key {key_id} is revoked")),
            }
        }
    }
}

impl KeyCreateArgs {
    fn body(&self) -> Value {
        let mut body = json!({"name": self.name, "expires_at": self.expires_at, "allow_ips": self.allow_ips});
        for (field, patterns) in
            [("allowed_senders", &self.allowed_senders), ("allowed_recipients", &self.allowed_recipients)]
        {
            if !patterns.is_empty() {
                body[field] = json!(patterns);
            }
        }
        if !self.scopes.is_empty() {
            body["scopes"] = json!(self.scopes);
        }
        body
    }
}
