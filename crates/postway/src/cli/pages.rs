//! Lists that come in pages: one page, or all of them.

use clap::Args;
use serde_json::Value;

use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};

/// The part of a list to show.
#[derive(Args, Clone, Debug, Default)]
pub struct PageArgs {
    /// How many (with --all: how many at a time)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Continue a list where an earlier one ended
    #[arg(long)]
    cursor: Option<String>,
    /// Follow the list to its end; with --json, one page a line
    #[arg(long)]
    all: bool,
}

/// Prints a list as a table of these columns. `nothing` is printed if it is empty.
pub async fn print(
    client: &ApiClient,
    output: CommandOutput,
    path: &[&str],
    filters: Vec<(&'static str, String)>,
    page: PageArgs,
    columns: &[&str],
    nothing: &str,
) -> Result<(), CommandFailure> {
    print_rows(client, output, path, filters, page, (columns, &|item| row(item, columns)), nothing).await
}

/// The columns of a table, and an item's values in their order.
pub type TableRows<'a> = (&'a [&'a str], &'a (dyn Fn(&Value) -> Vec<String> + Sync));

/// Prints a list as a table whose rows are made by a function.
pub async fn print_rows(
    client: &ApiClient,
    output: CommandOutput,
    path: &[&str],
    filters: Vec<(&'static str, String)>,
    page: PageArgs,
    (columns, cells): TableRows<'_>,
    nothing: &str,
) -> Result<(), CommandFailure> {
    let mut query = filters;
    query.extend(page.limit.map(|limit| ("limit", limit.to_string())));
    query.extend(page.cursor.map(|cursor| ("cursor", cursor)));
    let mut shown = 0;
    loop {
        let answer = client.get(path, &query).await?;
        let items = list(&answer, "data");
        if output.is_json() {
            output.json(&answer)?;
        } else if !items.is_empty() {
            output.text(&output.table(columns, items.iter().map(cells)))?;
        }
        shown += items.len();
        match answer.get("next_cursor").and_then(Value::as_str) {
            Some(cursor) if page.all => {
                query.retain(|(name, _)| *name != "cursor");
                query.push(("cursor", cursor.to_owned()));
            }
            Some(cursor) if !output.is_json() => {
                eprintln!("there are more: add --all, or --cursor {cursor}");
                return Ok(());
            }
            _ => break,
        }
    }
    if shown == 0 && !output.is_json() {
        eprintln!("{nothing}");
    }
    Ok(())
}

/// An item's values in the order of the columns.
pub fn row(item: &Value, columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| field(item, column)).collect()
}
