//! `postway suppressions`: addresses that get no mail.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Value, json};

use super::Session;
use super::scoped_suppressions::{self, ScopedCommand};
use crate::cli::client::Body;
use crate::cli::failure::Failure;
use crate::cli::input::read_input;
use crate::cli::output::{Output, field, list};
use crate::cli::pages::{self, PageArgs, row};

const COLUMNS: [&str; 5] = ["address", "reason", "note", "created_at", "expires_at"];

#[derive(Debug, Subcommand)]
pub enum SuppressionsCommand {
    /// List suppressed addresses
    List(PageArgs),
    /// Suppress addresses
    Add(AddArgs),
    /// Stop suppressing an address
    Remove(AddressRef),
    /// Say whether an address is suppressed: exit code 0 if it is, 5 if not
    Check(AddressRef),
    /// Suppress the addresses of a file; wrong lines are left out and told
    Import(ImportArgs),
    /// Print the whole list as CSV
    Export(ExportArgs),
    /// Suppressions of one stream, of a pattern of addresses, or of the whole installation
    #[command(subcommand)]
    Scoped(ScopedCommand),
}

#[derive(Args, Debug)]
pub struct AddressRef {
    /// The address
    address: String,
}

#[derive(Args, Debug)]
pub struct AddArgs {
    /// The addresses
    #[arg(required = true, value_name = "ADDRESS")]
    addresses: Vec<String>,
    /// Why
    #[arg(long, value_parser = ["manual", "hard_bounce", "complaint", "unsubscribe"])]
    reason: Option<String>,
    /// More about it
    #[arg(long)]
    note: Option<String>,
    /// Until when (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
}

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The file (`-`: standard input)
    file: PathBuf,
    /// What it is [default: jsonl for .jsonl and .ndjson, else csv]
    #[arg(long)]
    format: Option<Format>,
}

#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Where to write it [default: standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// `address,reason,note,expires_at`, or columns named in the first line
    Csv,
    /// An object or an address on each line
    Jsonl,
}

impl Format {
    fn of(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" => Self::Jsonl,
            _ => Self::Csv,
        }
    }
}

pub async fn run(session: &Session, command: SuppressionsCommand) -> Result<(), Failure> {
    let (client, output) = (session.client()?, session.output);
    let all = ["v1", "suppressions"];
    match command {
        SuppressionsCommand::Scoped(command) => scoped_suppressions::run(session, command).await,
        SuppressionsCommand::List(page) => {
            pages::print(&client, output, &all, Vec::new(), page, &COLUMNS, "no suppressed addresses").await
        }
        SuppressionsCommand::Add(args) => {
            let body = json!({
                "addresses": args.addresses, "reason": args.reason, "note": args.note, "expires_at": args.expires_at,
            });
            let added = client.call(Method::POST, &all, &[], Body::Json(&body)).await?;
            output.show(&added, |output, added| {
                output.table(&COLUMNS, list(added, "data").iter().map(|one| row(one, &COLUMNS)))
            })
        }
        SuppressionsCommand::Remove(AddressRef { address }) => {
            let path = ["v1", "suppressions", &address];
            let answer = client.call(Method::DELETE, &path, &[], Body::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("{address} gets mail again")),
            }
        }
        SuppressionsCommand::Check(AddressRef { address }) => {
            let found = client.get(&["v1", "suppressions", &address], &[]).await?;
            output.show(&found, |output, found| output.fields(COLUMNS.map(|name| (name, field(found, name)))))
        }
        SuppressionsCommand::Import(ImportArgs { file, format }) => {
            let bytes = read_input(&file)?;
            let format = match format.unwrap_or_else(|| Format::of(&file)) {
                Format::Csv => "csv",
                Format::Jsonl => "jsonl",
            };
            // The query says what the body is; its content type is not looked at then.
            let query = [("format", format.to_owned())];
            let path = ["v1", "suppressions", "import"];
            output.show(&client.call(Method::POST, &path, &query, Body::Mail(bytes)).await?, render_import)
        }
        SuppressionsCommand::Export(ExportArgs { output: file }) => {
            let path = ["v1", "suppressions", "export"];
            let bytes = client.call_for_bytes(Method::GET, &path, &[], Body::Empty).await?;
            match file {
                None => output.bytes(&bytes),
                Some(file) => {
                    let written = std::fs::write(&file, bytes);
                    Ok(written.with_context(|| format!("cannot write {}", file.display()))?)
                }
            }
        }
    }
}

fn render_import(output: Output, result: &Value) -> String {
    let counts = output.fields(["imported", "rejected"].map(|name| (name, field(result, name))));
    let errors = list(result, "errors");
    if errors.is_empty() {
        return counts;
    }
    let columns = ["line", "message"];
    format!("{counts}\n\n{}", output.table(&columns, errors.iter().map(|wrong| row(wrong, &columns))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_its_name_says() {
        for (name, format) in [("a.csv", Format::Csv), ("a.NDJSON", Format::Jsonl), ("-", Format::Csv)] {
            assert_eq!(Format::of(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn wrong_lines_are_shown_with_their_numbers() {
        let result = json!({"imported": 2, "rejected": 1, "errors": [{"line": 7, "message": "no @"}]});
        let text = render_import(Output::new(false), &result);
        assert!(text.contains('7') && text.contains("no @"), "{text}");
    }
}
