//! What a command prints: tables for people, the server's JSON for programs.
//!
//! Everything for the reader goes to standard output, everything about the run to standard error. A closed
//! pipe ends the command quietly. Colours appear on a terminal only, and not with `NO_COLOR`.

use std::io::{self, IsTerminal, Write};

use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use serde_json::Value;

use crate::cli::failure::CommandFailure;

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct CommandOutput {
    json: bool,
    colour: bool,
}

impl CommandOutput {
    /// Prints JSON if `json`, else tables.
    pub fn new(json: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || is_dumb();
        Self { json, colour: io::stdout().is_terminal() && !plain }
    }

    /// Whether there may be colours.
    pub fn colours(self) -> bool {
        self.colour
    }

    /// Whether JSON is printed.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Prints the server's JSON, or what `render` makes of it for people.
    pub fn show(
        self,
        value: &Value,
        render: impl FnOnce(Self, &Value) -> String,
    ) -> Result<(), CommandFailure> {
        if self.json { self.json(value) } else { self.text(&render(self, value)) }
    }

    /// Prints one JSON value on one line.
    pub fn json(self, value: &Value) -> Result<(), CommandFailure> {
        self.text(&value.to_string())
    }

    /// Prints text and ends it with a line break.
    pub fn text(self, text: &str) -> Result<(), CommandFailure> {
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.extend_from_slice(text.trim_end_matches('\n').as_bytes());
        bytes.push(b'\n');
        self.bytes(&bytes)
    }

    /// Prints bytes as they are.
    pub fn bytes(self, bytes: &[u8]) -> Result<(), CommandFailure> {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => CommandFailure::OutputClosed,
            _ => CommandFailure::Failed(anyhow::Error::new(error).context("cannot write the output")),
        })
    }

    /// A table with a head; columns named `status` are coloured on a terminal.
    pub fn table(self, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
        let mut table = plain_table();
        table.set_header(head.iter().map(|name| Cell::new(name.to_uppercase())));
        for row in rows {
            table.add_row(head.iter().zip(row).map(|(name, text)| self.cell(name, text)));
        }
        trimmed(&table)
    }

    /// A table of names and values without a head; rows without a value are left out.
    pub fn fields(self, rows: impl IntoIterator<Item = (&'static str, String)>) -> String {
        let mut table = plain_table();
        for (name, text) in rows {
            if !text.is_empty() {
                table.add_row([Cell::new(name), self.cell(name, text)]);
            }
        }
        trimmed(&table)
    }

    fn cell(self, name: &str, text: String) -> Cell {
        let colour = match text.as_str() {
            _ if name != "status" || !self.colour => None,
            "sent" => Some(Color::Green),
            "failed" | "invalid" => Some(Color::Red),
            "in_doubt" | "scheduled" | "captured" => Some(Color::Yellow),
            "cancelled" | "expired" | "suppressed" => Some(Color::DarkGrey),
            _ => None,
        };
        let cell = Cell::new(printable(&text));
        match colour {
            Some(colour) => cell.fg(colour),
            None => cell,
        }
    }
}

/// Whether the terminal understands nothing but text.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb")
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table
}

fn trimmed(table: &Table) -> String {
    table.trim_fmt().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A subject or reply comes from strangers: control characters must not reach a terminal.
pub fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
}

/// A field of a JSON object as text: strings bare, null and absent as nothing, lists joined.
pub fn field(value: &Value, name: &str) -> String {
    match value.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let items =
                items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            items.collect::<Vec<_>>().join(", ")
        }
        Some(other) => other.to_string(),
    }
}

/// The objects of a list field; nothing if it is absent.
pub fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_has_a_head_and_a_row_for_each_message() {
        let output = CommandOutput { json: false, colour: false };
        let table = output
            .table(&["id", "status"], [vec!["a".into(), "sent".into()], vec!["b".into(), "ready".into()]]);
        let lines: Vec<&str> = table.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("ID") && lines[0].ends_with("STATUS"));
        assert!(lines[2].starts_with('b') && lines[2].ends_with("ready"));
    }

    #[test]
    fn fields_without_a_value_are_left_out() {
        let output = CommandOutput { json: false, colour: false };
        let text = output.fields([("id", "a".to_owned()), ("batch", String::new())]);
        assert!(text.contains("id") && !text.contains("batch"));
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb"), "a\u{fffd}[31mb");
    }

    #[test]
    fn a_field_is_shown_without_quotes_and_null_as_nothing() {
        let value = json!({"s": "x", "n": null, "i": 3, "l": ["a", "b"]});
        let shown: Vec<String> =
            ["s", "n", "i", "l", "none"].iter().map(|name| field(&value, name)).collect();
        assert_eq!(shown, ["x", "", "3", "a, b", ""]);
    }
}
