//! `postway dkim`: keys that sign the mail of a domain, and the records that publish them.

use clap::{Args, Subcommand};
use postway_domain::dns::txt_line;
use reqwest::Method;
use serde_json::{Value, json};

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::row;

const COLUMNS: [&str; 5] = ["domain", "selector", "algorithm", "active", "created_at"];

#[derive(Debug, Subcommand)]
pub enum DkimCommand {
    /// Create a key and print its DNS record as a line of a zone file
    Create(DkimCreateArgs),
    /// List keys
    List(DkimListArgs),
    /// Show a key and its DNS record
    Show(DkimKeyRef),
    /// Stop a key from signing
    Suspend(DkimKeyRef),
    /// Let a key sign
    Activate(DkimKeyRef),
    /// Delete a key; this cannot be undone
    Delete(DkimKeyRef),
}

#[derive(Args, Debug)]
pub struct DkimCreateArgs {
    /// The domain to sign for
    domain: String,
    /// The name by which receivers find the key [default: pw and the month, as in pw202611]
    #[arg(long)]
    selector: Option<String>,
    /// The kind of key [default: rsa]
    #[arg(long, value_parser = ["rsa", "ed25519"])]
    algorithm: Option<String>,
}

#[derive(Args, Debug)]
pub struct DkimListArgs {
    /// Only those of this domain
    #[arg(long)]
    domain: Option<String>,
}

#[derive(Args, Debug)]
pub struct DkimKeyRef {
    /// The domain
    domain: String,
    /// The selector
    selector: String,
}

pub async fn run(context: &CommandContext, command: DkimCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "dkim"];
    let (DkimKeyRef { domain, selector }, verb) = match command {
        DkimCommand::Create(args) => {
            let body = json!({"domain": args.domain, "selector": args.selector, "algorithm": args.algorithm});
            let key = client.call(Method::POST, &all, &[], RequestBody::Json(&body)).await?;
            output.show(&key, |_, key| zone_line(key))?;
            if !output.is_json() {
                let domain = field(&key, "domain");
                eprintln!("publish this record, then check it with `postway doctor domain {domain}`");
            }
            return Ok(());
        }
        DkimCommand::List(DkimListArgs { domain }) => {
            let query: Vec<_> = domain.map(|domain| ("domain", domain)).into_iter().collect();
            return output.show(&client.get(&all, &query).await?, render_list);
        }
        DkimCommand::Show(DkimKeyRef { domain, selector }) => {
            return output.show(&client.get(&["v1", "dkim", &domain, &selector], &[]).await?, render);
        }
        DkimCommand::Delete(DkimKeyRef { domain, selector }) => {
            let path = ["v1", "dkim", &domain, &selector];
            let answer = client.call(Method::DELETE, &path, &[], RequestBody::Empty).await?;
            return match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("key {selector} of {domain} is deleted")),
            };
        }
        DkimCommand::Suspend(key) => (key, "suspend"),
        DkimCommand::Activate(key) => (key, "activate"),
    };
    let path = ["v1", "dkim", &domain, &selector, verb];
    let answer = client.call(Method::POST, &path, &[], RequestBody::Empty).await?;
    output.show(&answer, |output, key| output.fields(COLUMNS.map(|name| (name, field(key, name)))))
}

fn render_list(output: CommandOutput, keys: &Value) -> String {
    output.table(&COLUMNS, list(keys, "data").iter().map(|key| row(key, &COLUMNS)))
}

/// The record has lines of its own, so that it can be copied unchanged.
fn render(output: CommandOutput, key: &Value) -> String {
    format!("{}\n\n{}", output.fields(COLUMNS.map(|name| (name, field(key, name)))), zone_line(key))
}

fn zone_line(key: &Value) -> String {
    txt_line(&field(key, "dns_name"), &field(key, "dns_record"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_with_a_record_that_fits_a_zone_file() {
        let key = json!({
            "domain": "example.com", "selector": "pw202611", "algorithm": "rsa", "active": true,
            "dns_name": "pw202611._domainkey.example.com", "dns_record": format!("v=DKIM1; k=rsa; p={}", "A".repeat(392)),
        });
        let text = render(CommandOutput::new(false), &key);
        let line = text.lines().last().unwrap();
        assert!(
            line.starts_with("pw202611._domainkey.example.com. IN TXT \"v=DKIM1; k=rsa; p=AAA"),
            "{line}"
        );
        let strings: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
        assert!(strings.len() == 2 && strings.iter().all(|string| string.len() <= 255), "{line}");
    }
}
