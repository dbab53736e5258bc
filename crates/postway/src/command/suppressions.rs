//! `postway suppressions`: addresses that get no mail.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Value, json};

use super::CommandContext;
use super::scoped_suppressions::{self, ScopedSuppressionsCommand};
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::input::read_input;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::{self, PageArgs, row};

const COLUMNS: [&str; 5] = ["address", "reason", "note", "created_at", "expires_at"];

#[derive(Debug, Subcommand)]
pub enum SuppressionsCommand {
    /// List suppressed addresses
    List(PageArgs),
    /// Create suppressions of addresses, which then get no mail
    #[command(alias = "add")]
    Create(SuppressionCreateArgs),
    /// Delete the suppression of an address
    #[command(alias = "remove")]
    Delete(SuppressedAddressRef),
    /// Say whether an address is suppressed: exit code 0 if it is, 5 if not
    Check(SuppressedAddressRef),
    /// Suppress the addresses of a file; wrong lines are skipped and listed
    Import(SuppressionImportArgs),
    /// Print the complete list as CSV
    Export(SuppressionExportArgs),
    /// Suppressions of one stream, of a pattern of addresses, or of all tenants
    #[command(subcommand)]
    Scoped(ScopedSuppressionsCommand),
}

#[derive(Args, Debug)]
pub struct SuppressedAddressRef {
    /// The address
    address: String,
}

#[derive(Args, Debug)]
pub struct SuppressionCreateArgs {
    /// The addresses
    #[arg(required = true, value_name = "ADDRESS")]
    addresses: Vec<String>,
    /// The reason
    #[arg(long, value_parser = ["manual", "hard_bounce", "complaint", "unsubscribe"])]
    reason: Option<String>,
    /// A note
    #[arg(long)]
    note: Option<String>,
    /// When it expires (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
}

#[derive(Args, Debug)]
pub struct SuppressionImportArgs {
    /// The file (`-`: standard input)
    file: PathBuf,
    /// Its format [default: jsonl for .jsonl and .ndjson, else csv]
    #[arg(long)]
    format: Option<SuppressionFormat>,
}

#[derive(Args, Debug)]
pub struct SuppressionExportArgs {
    /// Where to write it [default: standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SuppressionFormat {
    /// `address,reason,note,expires_at`, or columns named in the first line
    Csv,
    /// An object or an address on each line
    Jsonl,
}

impl SuppressionFormat {
    fn of(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" => Self::Jsonl,
            _ => Self::Csv,
        }
    }
}

pub async fn run(context: &CommandContext, command: SuppressionsCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "suppressions"];
    match command {
        SuppressionsCommand::Scoped(command) => scoped_suppressions::run(context, command).await,
        SuppressionsCommand::List(page) => {
            pages::print(&client, output, &all, Vec::new(), page, &COLUMNS, "no suppressed addresses").await
        }
        SuppressionsCommand::Create(args) => {
            let body = json!({
                "addresses": args.addresses, "reason": args.reason, "note": args.note, "expires_at": args.expires_at,
            });
            let added = client.call(Method::POST, &all, &[], RequestBody::Json(&body)).await?;
            output.show(&added, |output, added| {
                output.table(&COLUMNS, list(added, "data").iter().map(|one| row(one, &COLUMNS)))
            })
        }
        SuppressionsCommand::Delete(SuppressedAddressRef { address }) => {
            let path = ["v1", "suppressions", &address];
            let answer = client.call(Method::DELETE, &path, &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("{address} gets mail again")),
            }
        }
        SuppressionsCommand::Check(SuppressedAddressRef { address }) => {
            let found = client.get(&["v1", "suppressions", &address], &[]).await?;
            output.show(&found, |output, found| output.fields(COLUMNS.map(|name| (name, field(found, name)))))
        }
        SuppressionsCommand::Import(SuppressionImportArgs { file, format }) => {
            let bytes = read_input(&file)?;
            let format = match format.unwrap_or_else(|| SuppressionFormat::of(&file)) {
                SuppressionFormat::Csv => "csv",
                SuppressionFormat::Jsonl => "jsonl",
            };
            // The query names the format, so the content type is ignored.
            let query = [("format", format.to_owned())];
            let path = ["v1", "suppressions", "import"];
            output.show(
                &client.call(Method::POST, &path, &query, RequestBody::Mail(bytes)).await?,
                render_import,
            )
        }
        SuppressionsCommand::Export(SuppressionExportArgs { output: file }) => {
            let path = ["v1", "suppressions", "export"];
            let bytes = client.call_for_bytes(Method::GET, &path, &[], RequestBody::Empty).await?;
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

fn render_import(output: CommandOutput, result: &Value) -> String {
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
        for (name, format) in [
            ("a.csv", SuppressionFormat::Csv),
            ("a.NDJSON", SuppressionFormat::Jsonl),
            ("-", SuppressionFormat::Csv),
        ] {
            assert_eq!(SuppressionFormat::of(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn wrong_lines_are_shown_with_their_numbers() {
        let result = json!({"imported": 2, "rejected": 1, "errors": [{"line": 7, "message": "no @"}]});
        let text = render_import(CommandOutput::new(false), &result);
        assert!(text.contains('7') && text.contains("no @"), "{text}");
    }
}
