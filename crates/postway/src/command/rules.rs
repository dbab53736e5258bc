//! `postway rules`: what to do with the mail of a mailbox. Rules are JSON, as the API takes them.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::input::read_input;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::row;

#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// List rules in the order in which they are tried
    List(RuleListArgs),
    /// Show one rule
    Show(RuleRef),
    /// Create a rule
    #[command(alias = "add")]
    Create(RuleCreateArgs),
    /// Change a rule
    Update(RuleUpdateArgs),
    /// Delete a rule
    #[command(alias = "remove")]
    Delete(RuleRef),
    /// Say what a rule would do with a mail, without doing it
    Try(RuleTryArgs),
}

#[derive(Args, Debug)]
pub struct RuleRef {
    /// The rule's id
    id: String,
}

#[derive(Args, Debug)]
pub struct RuleListArgs {
    /// Only those of this mailbox
    #[arg(long)]
    mailbox: Option<String>,
}

#[derive(Args, Debug)]
pub struct RuleCreateArgs {
    /// The rule as a JSON object (`-`: standard input)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The mailbox it belongs to [default: as the file says]
    #[arg(long)]
    mailbox: Option<String>,
    /// The rule's id [default: as the file says, or one is made]
    #[arg(long)]
    id: Option<String>,
}

#[derive(Args, Debug)]
pub struct RuleUpdateArgs {
    /// The rule's id
    id: String,
    /// What changes, as a JSON object (`-`: standard input)
    #[arg(value_name = "FILE", required_unless_present_any = ["position", "active"])]
    file: Option<PathBuf>,
    /// Its position; lower ones come first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    position: Option<i64>,
    /// Whether it is tried at all
    #[arg(long, value_name = "BOOL")]
    active: Option<bool>,
}

#[derive(Args, Debug)]
pub struct RuleTryArgs {
    /// A stored rule's id
    #[arg(required_unless_present = "rule")]
    id: Option<String>,
    /// A file with a rule, which is not stored
    #[arg(long, value_name = "FILE", conflicts_with = "id")]
    rule: Option<PathBuf>,
    /// A mail that came in, by its id
    #[arg(long, value_name = "ID", required_unless_present = "eml")]
    inbound: Option<String>,
    /// A file with a mail
    #[arg(long, value_name = "FILE", conflicts_with = "inbound")]
    eml: Option<PathBuf>,
}

pub async fn run(context: &CommandContext, command: RulesCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "rules"];
    match command {
        RulesCommand::List(RuleListArgs { mailbox }) => {
            let query: Vec<_> = mailbox.map(|mailbox| ("mailbox", mailbox)).into_iter().collect();
            output.show(&client.get(&all, &query).await?, render_list)
        }
        RulesCommand::Show(RuleRef { id }) => {
            output.show(&client.get(&["v1", "rules", &id], &[]).await?, render)
        }
        RulesCommand::Create(RuleCreateArgs { file, mailbox, id }) => {
            let mut body = read_rule(&file)?;
            body.extend(mailbox.map(|mailbox| ("mailbox".to_owned(), Value::from(mailbox))));
            body.extend(id.map(|id| ("id".to_owned(), Value::from(id))));
            let body = Value::Object(body);
            output.show(&client.call(Method::POST, &all, &[], RequestBody::Json(&body)).await?, render)
        }
        RulesCommand::Update(RuleUpdateArgs { id, file, position, active }) => {
            let mut body = file.as_deref().map(read_rule).transpose()?.unwrap_or_default();
            body.extend(position.map(|position| ("position".to_owned(), Value::from(position))));
            body.extend(active.map(|active| ("active".to_owned(), Value::from(active))));
            let (path, body) = (["v1", "rules", &id], Value::Object(body));
            output.show(&client.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await?, render)
        }
        RulesCommand::Delete(RuleRef { id }) => {
            let answer = client.call(Method::DELETE, &["v1", "rules", &id], &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("rule {id} is removed")),
            }
        }
        RulesCommand::Try(args) => {
            let body = args.into_body()?;
            let path = ["v1", "rules", "dry-run"];
            output.show(&client.call(Method::POST, &path, &[], RequestBody::Json(&body)).await?, render_trial)
        }
    }
}

impl RuleTryArgs {
    /// The call's body.
    fn into_body(self) -> Result<Value, CommandFailure> {
        let mut body = Map::new();
        body.extend(self.id.map(|id| ("id".to_owned(), Value::from(id))));
        if let Some(path) = &self.rule {
            body.insert("rule".to_owned(), Value::Object(read_rule(path)?));
        }
        body.extend(self.inbound.map(|inbound| ("inbound".to_owned(), Value::from(inbound))));
        if let Some(path) = &self.eml {
            body.insert("raw".to_owned(), json!(BASE64_STANDARD.encode(read_input(path)?)));
        }
        Ok(Value::Object(body))
    }
}

fn read_rule(path: &Path) -> Result<Map<String, Value>, CommandFailure> {
    serde_json::from_slice(&read_input(path)?).map_err(|error| {
        CommandFailure::Usage(format!("{} is not a rule as a JSON object: {error}", path.display()))
    })
}

fn render_list(output: CommandOutput, rules: &Value) -> String {
    let columns = ["mailbox", "position", "id", "active", "match", "actions"];
    output.table(&columns, list(rules, "data").iter().map(|rule| row(rule, &columns)))
}

fn render(output: CommandOutput, rule: &Value) -> String {
    let fields =
        ["id", "mailbox", "position", "active", "match", "actions", "follow_up", "version", "updated_at"];
    output.fields(fields.map(|name| (name, field(rule, name))))
}

fn render_trial(output: CommandOutput, trial: &Value) -> String {
    let summary =
        output.fields(["matched", "captures", "actions", "reason"].map(|name| (name, field(trial, name))));
    let columns = ["holds", "why"];
    let conditions = list(trial, "conditions");
    match conditions.is_empty() {
        true => summary,
        false => format!(
            "{summary}\n\n{}",
            output.table(&columns, conditions.iter().map(|condition| row(condition, &columns)))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_and_a_mail_are_read_from_files_for_a_trial() {
        let folder = tempfile::tempdir().unwrap();
        let (rule, mail) = (folder.path().join("rule.json"), folder.path().join("a.eml"));
        std::fs::write(&rule, r#"{"actions": [{"do": "stop"}]}"#).unwrap();
        std::fs::write(&mail, "Subject: x\r\n\r\n").unwrap();
        let args = RuleTryArgs { id: None, rule: Some(rule), inbound: None, eml: Some(mail) };
        let expected = json!({"rule": {"actions": [{"do": "stop"}]}, "raw": "U3ViamVjdDogeA0KDQo="});
        assert_eq!(args.into_body().unwrap(), expected);
    }

    #[test]
    fn a_trial_shows_each_condition() {
        let trial = json!({"matched": false, "conditions": [{"holds": false, "why": "no such subject"}],
            "captures": {}, "actions": [], "reason": null});
        assert!(render_trial(CommandOutput::new(false), &trial).contains("no such subject"));
    }
}
