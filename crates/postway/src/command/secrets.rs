//! `postway secrets`: the key that encrypts stored credentials.

use clap::Subcommand;
use reqwest::Method;

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{field, list};

#[derive(Debug, Subcommand)]
pub enum SecretsCommand {
    /// Encrypt every stored secret with the current key; the previous key must still be configured
    Rotate,
}

pub async fn run(context: &CommandContext, command: SecretsCommand) -> Result<(), CommandFailure> {
    let SecretsCommand::Rotate = command;
    let path = ["v1", "secrets", "rotate"];
    let done = context.client()?.call(Method::POST, &path, &[], RequestBody::Empty).await?;
    context.output.show(&done, |output, done| {
        let counted = ["accounts", "tenants", "recipients", "dkim_keys", "webhooks", "mailboxes"];
        output.fields(counted.map(|name| (name, field(done, name))))
    })?;
    let left: Vec<String> = ["unreadable", "busy"]
        .into_iter()
        .flat_map(|name| list(&done, name).iter().map(move |place| format!("\n  {name}: {place}")))
        .collect();
    match left.is_empty() {
        true => Ok(()),
        false => {
            Err(CommandFailure::Refused(format!("not everything could be sealed anew:{}", left.concat())))
        }
    }
}
