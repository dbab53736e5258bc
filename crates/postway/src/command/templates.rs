//! `postway templates`: mails with variables.
//!
//! `create` makes versions from files that are stored with an application's code: `NAME.subject.txt`,
//! `NAME.html`, `NAME.txt`, `NAME.mjml`, `NAME.sample.json` and `NAME.settings.json` of a folder, or a JSON
//! file as the API takes it (`template_files.rs`). An unchanged template gets no new version.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::CommandContext;
use super::template_files::{self, TemplateFile};
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::input::read_input;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::{self, PageArgs, row};

const COLUMNS: [&str; 7] = ["name", "version", "subject", "parts", "layout", "description", "created_at"];

#[derive(Debug, Subcommand)]
pub enum TemplatesCommand {
    /// List templates in their latest versions
    List(PageArgs),
    /// Show a template with its sources
    Show(TemplateShowArgs),
    /// List a template's versions
    Versions(TemplateVersionsArgs),
    /// Create templates, or new versions of them, from the files of a folder or from a JSON file
    #[command(alias = "push")]
    Create(TemplateCreateArgs),
    /// Render a template and print the result; nothing is sent
    Preview(TemplatePreviewArgs),
    /// Send a template to the given addresses alone, with [Test] before its subject
    SendTest(TemplateTestArgs),
    /// Delete a template with all its versions
    Delete(TemplateRef),
}

#[derive(Args, Debug)]
pub struct TemplateRef {
    /// The template's name
    name: String,
}

// A field must not be called `version`: that is a flag of its own.
#[derive(Args, Debug)]
pub struct TemplateShowArgs {
    /// The template's name
    name: String,
    /// The version [default: the latest]
    #[arg(long = "template-version", value_name = "N")]
    number: Option<i64>,
}

#[derive(Args, Debug)]
pub struct TemplateVersionsArgs {
    /// The template's name
    name: String,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Args, Debug)]
pub struct TemplateCreateArgs {
    /// A folder with NAME.subject.txt, NAME.html, NAME.txt, NAME.mjml, NAME.sample.json, NAME.settings.json
    /// (layout, inline_css), and in a language NAME.de.html and so on; or a JSON file
    path: PathBuf,
}

#[derive(Args, Debug)]
pub struct TemplatePreviewArgs {
    /// The template's name
    name: String,
    /// Take it from this folder or JSON file instead of the server; it is not stored
    #[arg(long, value_name = "FILE_OR_DIR", conflicts_with = "number")]
    from: Option<PathBuf>,
    /// The version [default: the latest]
    #[arg(long = "template-version", value_name = "N")]
    number: Option<i64>,
    /// The language, such as de-AT [default: the tenant's]
    #[arg(long, conflicts_with = "from")]
    locale: Option<String>,
    #[command(flatten)]
    values: TemplateVariableArgs,
    /// Print this part alone
    #[arg(long)]
    part: Option<TemplatePart>,
}

#[derive(Args, Debug)]
pub struct TemplateVariableArgs {
    /// The variables, a JSON object in a file (`-`: standard input) [default: the template's sample]
    #[arg(long, value_name = "FILE")]
    variables: Option<PathBuf>,
    /// One variable; may be repeated, and wins over --variables
    #[arg(long = "var", value_name = "NAME=VALUE")]
    vars: Vec<String>,
}

#[derive(Args, Debug)]
pub struct TemplateTestArgs {
    /// The template's name
    name: String,
    /// Where it goes, and nowhere else; may be repeated
    #[arg(long, required = true, value_name = "ADDRESS")]
    to: Vec<String>,
    /// The sender [default: the tenant's]
    #[arg(long, value_name = "ADDRESS")]
    from: Option<String>,
    /// The account that sends it
    #[arg(long)]
    account: Option<String>,
    /// The version [default: the latest]
    #[arg(long = "template-version", value_name = "N")]
    number: Option<i64>,
    /// The language, such as de-AT [default: the tenant's]
    #[arg(long)]
    locale: Option<String>,
    #[command(flatten)]
    values: TemplateVariableArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TemplatePart {
    /// The subject
    Subject,
    /// The html part
    Html,
    /// The text part
    Text,
}

impl TemplatePart {
    fn name(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::Html => "html",
            Self::Text => "text",
        }
    }
}

pub async fn run(context: &CommandContext, command: TemplatesCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "templates"];
    match command {
        TemplatesCommand::List(page) => {
            pages::print(&client, output, &all, Vec::new(), page, &COLUMNS, "no templates").await
        }
        TemplatesCommand::Show(TemplateShowArgs { name, number }) => {
            let query: Vec<_> = number.map(|number| ("version", number.to_string())).into_iter().collect();
            output.show(&client.get(&["v1", "templates", &name], &query).await?, render)
        }
        TemplatesCommand::Versions(TemplateVersionsArgs { name, page }) => {
            let path = ["v1", "templates", &name, "versions"];
            pages::print(&client, output, &path, Vec::new(), page, &COLUMNS, "no versions").await
        }
        TemplatesCommand::Create(TemplateCreateArgs { path }) => {
            let pushed = push(&client, template_files::read(&path)?).await?;
            output.show(&json!({"data": pushed}), |output, pushed| {
                let columns = ["name", "version", "created_at"];
                output.table(&columns, list(pushed, "data").iter().map(|one| row(one, &columns)))
            })
        }
        TemplatesCommand::Preview(args) => preview(&client, output, args).await,
        TemplatesCommand::SendTest(args) => send_test(&client, output, args).await,
        TemplatesCommand::Delete(TemplateRef { name }) => {
            let answer =
                client.call(Method::DELETE, &["v1", "templates", &name], &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("template {name} is deleted")),
            }
        }
    }
}

/// Stores templates. A template that extends another is refused until the other exists, so refused ones are
/// tried again as long as others succeed.
async fn push(client: &ApiClient, templates: Vec<TemplateFile>) -> Result<Vec<Value>, CommandFailure> {
    let mut pushed = Vec::with_capacity(templates.len());
    let mut waiting = templates;
    while !waiting.is_empty() {
        let before = waiting.len();
        let (mut refused, mut first) = (Vec::new(), None);
        for named in waiting {
            let body = Value::Object(named.template.clone());
            let path = ["v1", "templates", &named.name];
            match client.call(Method::PUT, &path, &[], RequestBody::Json(&body)).await {
                Ok(stored) => pushed.push(stored),
                Err(CommandFailure::Refused(message)) => {
                    first.get_or_insert_with(|| format!("template {}: {message}", named.name));
                    refused.push(named);
                }
                Err(failure) => return Err(failure),
            }
        }
        match first {
            Some(message) if refused.len() == before => return Err(CommandFailure::Refused(message)),
            _ => waiting = refused,
        }
    }
    Ok(pushed)
}

async fn preview(
    client: &ApiClient,
    output: CommandOutput,
    args: TemplatePreviewArgs,
) -> Result<(), CommandFailure> {
    let variables = args.values.read()?;
    let made = match &args.from {
        Some(path) => {
            let mut source = template_files::read_one(path, &args.name)?;
            if let Some(variables) = variables {
                source.insert("variables".to_owned(), Value::Object(variables));
            }
            let body = Value::Object(source);
            client.call(Method::POST, &["v1", "templates", "preview"], &[], RequestBody::Json(&body)).await?
        }
        None => {
            let body = json!({"variables": variables, "version": args.number, "locale": args.locale});
            let path = ["v1", "templates", &args.name, "preview"];
            client.call(Method::POST, &path, &[], RequestBody::Json(&body)).await?
        }
    };
    match args.part {
        Some(part) => output.text(&field(&made, part.name())),
        None => output.show(&made, render_preview),
    }
}

async fn send_test(
    client: &ApiClient,
    output: CommandOutput,
    args: TemplateTestArgs,
) -> Result<(), CommandFailure> {
    let variables = args.values.read()?;
    let body = json!({
        "to": args.to, "from": args.from, "account": args.account, "version": args.number, "locale": args.locale,
        "variables": variables,
    });
    let path = ["v1", "templates", &args.name, "test"];
    let answer = client.call(Method::POST, &path, &[], RequestBody::Json(&body)).await?;
    output.show(&answer, |output, answer| {
        output.fields(["id", "status"].map(|name| (name, field(answer, name))))
    })
}

impl TemplateVariableArgs {
    fn read(&self) -> Result<Option<Map<String, Value>>, CommandFailure> {
        let mut variables = match &self.variables {
            Some(path) => Some(serde_json::from_slice(&read_input(path)?).map_err(|error| {
                CommandFailure::Usage(format!(
                    "{} is not a JSON object of variables: {error}",
                    path.display()
                ))
            })?),
            None => None,
        };
        for pair in &self.vars {
            let (name, value) = crate::cli::input::pair(pair)?;
            variables.get_or_insert_with(Map::new).insert(name, Value::from(value));
        }
        Ok(variables)
    }
}

fn render(output: CommandOutput, template: &Value) -> String {
    let fields =
        ["name", "version", "subject", "layout", "inline_css", "description", "sample", "created_at"];
    let text = output.fields(fields.map(|name| (name, field(template, name))));
    with_parts(text, template, &["html", "mjml", "text"])
}

fn render_preview(output: CommandOutput, made: &Value) -> String {
    let mut text =
        output.fields(["name", "version", "locale", "subject"].map(|name| (name, field(made, name))));
    let warnings = list(made, "warnings");
    if !warnings.is_empty() {
        let columns = ["field", "code", "message"];
        let table = output.table(&columns, warnings.iter().map(|one| row(one, &columns)));
        text.push_str(&format!("\n\na message made so would be refused\n{table}"));
    }
    with_parts(text, made, &["text", "html"])
}

/// Prints long parts below the fields, each under its name.
fn with_parts(mut text: String, value: &Value, parts: &[&str]) -> String {
    for part in parts {
        let source = field(value, part);
        if !source.is_empty() {
            // It is printed unchanged, except for control characters.
            let shown = source.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "\u{fffd}");
            text.push_str(&format!("\n\n--- {part}\n{}", shown.trim_end()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_variables_win_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("variables.json");
        std::fs::write(&path, r#"{"name": "Ada", "items": [1]}"#).unwrap();
        let args = TemplateVariableArgs { variables: Some(path), vars: vec!["name=Bob=x".into()] };
        let variables = Value::Object(args.read().unwrap().unwrap());
        assert_eq!(variables, json!({"name": "Bob=x", "items": [1]}));
    }

    #[test]
    fn a_preview_shows_what_would_be_refused() {
        let made = json!({
            "version": 2, "subject": "Hi", "html": "<p>\u{1b}Hi</p>", "text": "Hi",
            "warnings": [{"field": "html", "code": "INVALID_TEMPLATE", "message": "has a script"}],
        });
        let text = render_preview(CommandOutput::new(false), &made);
        assert!(text.contains("has a script") && text.contains("--- html\n<p>\u{fffd}Hi</p>"), "{text}");
    }
}
