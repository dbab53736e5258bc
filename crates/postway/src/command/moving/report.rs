//! The result of reading an old system, as tables and as JSON.

use std::collections::BTreeMap;

use indicatif::HumanCount;
use postway_moving::{CarriedKind, HistoryRows, ReferenceSystem, RowFault, RowLocation, UndecidedRow};
use serde_json::{Value, json};

use super::carrier::MovingMode;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, printable};

/// The most rows that are listed one by one; the others are counted.
const LISTED_MAX: usize = 1_000;
/// The longest text of the old database that is shown.
const SHOWN_CHARS_MAX: usize = 300;

/// The result of a rehearsal or an import.
#[derive(Clone, Debug)]
pub struct MovingReport {
    system: ReferenceSystem,
    pub mode: MovingMode,
    carried: BTreeMap<CarriedKind, u64>,
    here: BTreeMap<CarriedKind, u64>,
    stayed: BTreeMap<(String, String, String), u64>,
    pub left: FirstItems<UndecidedRow>,
    pub wrong: FirstItems<RowFault>,
    notes: Vec<String>,
}

/// The first of many, and how many there are.
#[derive(Clone, Debug)]
pub struct FirstItems<T> {
    first: Vec<T>,
    count: u64,
}

impl<T> FirstItems<T> {
    /// Adds an item.
    pub fn push(&mut self, one: T) {
        self.count += 1;
        if self.first.len() < LISTED_MAX {
            self.first.push(one);
        }
    }

    /// Adds `count` items of which only the first is shown.
    pub fn extend(&mut self, more: impl IntoIterator<Item = T>) {
        more.into_iter().for_each(|one| self.push(one));
    }
}

impl<T> Default for FirstItems<T> {
    fn default() -> Self {
        Self { first: Vec::new(), count: 0 }
    }
}

impl MovingReport {
    /// An empty report.
    pub fn new(system: ReferenceSystem, mode: MovingMode) -> Self {
        Self {
            system,
            mode,
            carried: BTreeMap::new(),
            here: BTreeMap::new(),
            stayed: BTreeMap::new(),
            left: FirstItems::default(),
            wrong: FirstItems::default(),
            notes: Vec::new(),
        }
    }

    /// Counts rows that carry over, or were imported.
    pub fn carried(&mut self, kind: CarriedKind, count: u64) {
        *self.carried.entry(kind).or_default() += count;
    }

    /// Counts a row that existed already.
    pub fn here(&mut self, kind: CarriedKind) {
        *self.here.entry(kind).or_default() += 1;
    }

    /// Counts rows that need not move.
    pub fn stayed(&mut self, HistoryRows { table, what, count, why }: HistoryRows) {
        *self.stayed.entry((table, what, why)).or_default() += count;
    }

    /// Adds a note for the operator.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Adds columns that are not read.
    pub fn note_unread(&mut self, unread: &[(&'static str, Vec<String>)]) {
        for (table, columns) in unread {
            self.note(format!("{table}: not read: {}", columns.join(", ")));
        }
    }

    /// How many faults there are.
    pub fn wrong_rows(&self) -> u64 {
        self.wrong.count
    }

    /// The problem of the run, if there is one: faults, or open decisions.
    pub fn unsettled(&self) -> u64 {
        self.wrong.count + self.left.count
    }

    /// The progress so far, on one line.
    pub fn rows_read(&self) -> HumanCount {
        let counted = self.carried.values().chain(self.here.values()).sum::<u64>();
        HumanCount(counted + self.unsettled())
    }

    /// Prints the report.
    pub fn print(&self, output: CommandOutput) -> Result<(), CommandFailure> {
        output.show(&self.json(), |output, _| self.text(output))
    }

    fn json(&self) -> Value {
        let counts = |counts: &BTreeMap<CarriedKind, u64>| -> Value {
            counts.iter().map(|(kind, count)| (kind.plural().replace(' ', "_"), json!(count))).collect()
        };
        let place = |RowLocation { table, key }: &RowLocation| (json!(table), json!(shown(key)));
        json!({
            "system": self.system.as_str(),
            "imported": self.mode == MovingMode::Import,
            "complete": self.unsettled() == 0,
            "carried": counts(&self.carried),
            "already_here": counts(&self.here),
            "stayed": self.stayed.iter().map(|((table, what, why), count)| {
                json!({"table": table, "what": shown(what), "count": count, "why": why})
            }).collect::<Vec<_>>(),
            "undecided": self.left.count,
            "undecided_rows": self.left.first.iter().map(|left| {
                let (table, key) = place(&left.place);
                json!({"table": table, "key": key, "why": shown(&left.why)})
            }).collect::<Vec<_>>(),
            "wrong": self.wrong.count,
            "wrong_rows": self.wrong.first.iter().map(|fault| {
                let (table, key) = place(&fault.place);
                json!({"table": table, "key": key, "field": shown(&fault.field), "message": shown(&fault.message)})
            }).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    fn text(&self, output: CommandOutput) -> String {
        let (carried, wrong, end) = match self.mode {
            MovingMode::Rehearse => ("carries over", "wrong", "nothing was written"),
            MovingMode::Import => {
                ("brought", "left out, because it is wrong", "imported; it can be run again")
            }
        };
        let parts = [
            (carried.to_owned(), counts(&self.carried)),
            ("already here".to_owned(), counts(&self.here)),
            ("stays".to_owned(), self.stayed_text(output)),
            (first_of("somebody has to decide", &self.left), self.left_text(output)),
            (first_of(wrong, &self.wrong), self.wrong_text(output)),
            ("to know".to_owned(), self.notes.iter().map(|note| shown(note)).collect::<Vec<_>>().join("\n")),
        ];
        let parts = parts.into_iter().filter(|(_, body)| !body.is_empty());
        let parts = parts.map(|(title, body)| format!("{title}\n{}", indented(&body)));
        parts.chain([end.to_owned()]).collect::<Vec<_>>().join("\n\n")
    }

    fn stayed_text(&self, output: CommandOutput) -> String {
        let row = |((table, what, why), count): (&(String, String, String), &u64)| {
            vec![table.clone(), shown(what), HumanCount(*count).to_string(), why.clone()]
        };
        table(output, &["table", "what", "rows", "why"], self.stayed.iter().map(row).collect())
    }

    fn left_text(&self, output: CommandOutput) -> String {
        let row = |UndecidedRow { place, why }: &UndecidedRow| {
            vec![place.table.clone(), shown(&place.key), shown(why)]
        };
        table(output, &["table", "key", "why"], self.left.first.iter().map(row).collect())
    }

    fn wrong_text(&self, output: CommandOutput) -> String {
        let row = |RowFault { place, field, message }: &RowFault| {
            vec![place.table.clone(), shown(&place.key), shown(field), shown(message)]
        };
        table(output, &["table", "key", "field", "what"], self.wrong.first.iter().map(row).collect())
    }
}

/// A line for each kind that there is.
fn counts(counts: &BTreeMap<CarriedKind, u64>) -> String {
    let line = |(kind, count): (&CarriedKind, &u64)| {
        format!("{:>7} {}", HumanCount(*count).to_string(), kind.counted(*count))
    };
    counts.iter().filter(|(_, count)| **count > 0).map(line).collect::<Vec<_>>().join("\n")
}

/// A table, or an empty text if there are no rows.
fn table(output: CommandOutput, head: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() { String::new() } else { output.table(head, rows) }
}

fn first_of<T>(title: &str, listed: &FirstItems<T>) -> String {
    let count = HumanCount(listed.count);
    match listed.count > listed.first.len() as u64 {
        true => format!("{title} ({count}, of which the first {})", listed.first.len()),
        false => format!("{title} ({count})"),
    }
}

/// `1 row is`, `2 rows are`.
pub fn rows_are(count: u64) -> String {
    if count == 1 { "1 row is".to_owned() } else { format!("{} rows are", HumanCount(count)) }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Texts of the old database come from strangers: bounded, and without control characters.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    printable(&short).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_lists_the_first_of_many_and_counts_all() {
        let mut report = MovingReport::new(ReferenceSystem::Proxy, MovingMode::Rehearse);
        report.carried(CarriedKind::Message, 2);
        for key in 0..LISTED_MAX + 1 {
            let place = RowLocation { table: "messages".to_owned(), key: key.to_string() };
            report.wrong.push(RowFault::new(&place, "payload", "is no \u{1b}[31mJSON\n"));
        }
        let json = report.json();
        assert_eq!((json["wrong"].as_u64(), json["complete"].as_bool()), (Some(1_001), Some(false)));
        assert_eq!(json["wrong_rows"].as_array().map(Vec::len), Some(LISTED_MAX));
        assert_eq!(json["carried"], json!({"waiting_messages": 2}));
        let text = report.text(CommandOutput::new(false));
        assert!(text.contains("1,001, of which the first 1000") && !text.contains('\u{1b}'), "{text}");
        assert!(text.ends_with("nothing was written"), "{text}");
    }
}
