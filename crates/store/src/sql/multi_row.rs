//! One statement for many rows.
//!
//! A multi-row statement is prepared once per row count, so the number of counts is limited: every one below
//! sixteen, and powers of two above. 100 rows run as 64 + 32 + 4, 30 rows as 16 + 14. What mostly has many
//! rows at once may be wide ([`MultiRow::wide`]).

use std::sync::OnceLock;

use crate::sql::SqlText;

/// Below this, there is a statement for each row count.
const EXACT: usize = 16;
/// The largest power of two: 2⁷ rows in one statement.
const POWER_MAX: u32 = 7;
/// That of wide statements.
const POWER_WIDE: u32 = 9;
const TEXTS: usize = EXACT + (POWER_WIDE - EXACT.ilog2() + 1) as usize;

/// A statement whose list of rows grows with the data.
pub(crate) struct MultiRow {
    head: &'static str,
    row: RepeatedPart,
    tail: &'static str,
    power_max: u32,
    texts: [OnceLock<String>; TEXTS],
}

/// The part of the text that is repeated for each row.
enum RepeatedPart {
    /// This number of placeholders in brackets; a single one has no brackets.
    Placeholders(usize),
    /// A piece of SQL, and its separator.
    Piece { sql: &'static str, between: &'static str },
}

/// The largest count up to `rows` that has a statement, and the index of that statement.
fn shape(rows: usize, power_max: u32) -> (usize, usize) {
    if rows < EXACT {
        return (rows, rows);
    }
    let power = rows.ilog2().min(power_max);
    (1 << power, EXACT + (power - EXACT.ilog2()) as usize)
}

impl MultiRow {
    /// `head`, then rows of `columns` placeholders, then `tail`. One column makes a plain list.
    pub const fn new(head: &'static str, columns: usize, tail: &'static str) -> Self {
        Self {
            head,
            row: RepeatedPart::Placeholders(columns),
            tail,
            power_max: POWER_MAX,
            texts: [const { OnceLock::new() }; TEXTS],
        }
    }

    /// `head`, then `sql` once per row separated by `between`, then `tail`.
    pub const fn of_pieces(
        head: &'static str,
        sql: &'static str,
        between: &'static str,
        tail: &'static str,
    ) -> Self {
        Self {
            head,
            row: RepeatedPart::Piece { sql, between },
            tail,
            power_max: POWER_MAX,
            texts: [const { OnceLock::new() }; TEXTS],
        }
    }

    /// The same for up to 512 rows in one statement: for what is done in the background, with few values in a
    /// row.
    pub const fn wide(mut self) -> Self {
        self.power_max = POWER_WIDE;
        self
    }

    fn text(&'static self, rows: usize, place: usize) -> &'static str {
        self.texts[place].get_or_init(|| {
            let list = match self.row {
                RepeatedPart::Placeholders(1) => vec!["?"; rows].join(","),
                RepeatedPart::Placeholders(columns) => {
                    vec![format!("({})", vec!["?"; columns].join(",")); rows].join(",")
                }
                RepeatedPart::Piece { sql, between } => vec![sql; rows].join(between),
            };
            format!("{}{list}{}", self.head, self.tail)
        })
    }

    /// Splits `items` into runs, each with the statement for its length.
    pub fn runs<'a, T>(&'static self, mut items: &'a [T]) -> impl Iterator<Item = (&'static str, &'a [T])> {
        std::iter::from_fn(move || {
            let (rows, place) = shape(items.len(), self.power_max);
            let (run, rest) = items.split_at(rows);
            items = rest;
            (rows > 0).then(|| (self.text(rows, place), run))
        })
    }

    /// One of its texts, for a test that prepares every statement.
    #[cfg(test)]
    pub fn sample(&'static self) -> &'static str {
        self.text(2, 2)
    }
}

/// The same statement for each database.
pub(crate) struct MultiRowSql {
    pub sqlite: MultiRow,
    pub postgres: MultiRow,
    pub mysql: MultiRow,
}

impl MultiRowSql {
    /// Splits `items` into runs, each with the statement for its length.
    pub fn runs<'a, T>(&'static self, items: &'a [T]) -> impl Iterator<Item = (SqlText, &'a [T])> {
        // The lengths of runs depend only on the number of items, so they are the same for all three.
        let others = self.postgres.runs(items).zip(self.mysql.runs(items));
        self.sqlite.runs(items).zip(others).map(|((sqlite, run), ((postgres, _), (mysql, _)))| {
            (SqlText::of_each(sqlite, postgres, mysql), run)
        })
    }

    /// One of its texts, for a test that prepares every statement.
    #[cfg(test)]
    pub fn sample(&'static self) -> SqlText {
        SqlText::of_each(self.sqlite.sample(), self.postgres.sample(), self.mysql.sample())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PAIRS: MultiRow = MultiRow::new("INSERT INTO t VALUES ", 2, " RETURNING a");

    static EITHER: MultiRow =
        MultiRow::of_pieces("SELECT 1 FROM t WHERE ", "(a = ? AND b = ?)", " OR ", " LIMIT 1");

    #[test]
    fn pieces_are_repeated_as_they_are() {
        let text = "SELECT 1 FROM t WHERE (a = ? AND b = ?) OR (a = ? AND b = ?) LIMIT 1";
        assert_eq!(EITHER.sample(), text);
    }

    static WIDE: MultiRow = MultiRow::new("DELETE FROM t WHERE a IN (", 1, ")").wide();

    #[test]
    fn a_wide_statement_takes_more_rows_at_once() {
        let lengths = |rows: usize| -> Vec<usize> {
            WIDE.runs(&vec![0; rows]).map(|(sql, run)| run.len().min(sql.matches('?').count())).collect()
        };
        assert_eq!((lengths(512), lengths(1_100)), (vec![512], vec![512, 512, 64, 12]));
    }

    #[test]
    fn many_rows_run_as_powers_of_two_and_a_rest() {
        let items = [0; 100];
        let lengths: Vec<usize> = PAIRS.runs(&items).map(|(_, run)| run.len()).collect();
        assert_eq!(lengths, [64, 32, 4]);
        assert_eq!(PAIRS.sample(), "INSERT INTO t VALUES (?,?),(?,?) RETURNING a");
        assert_eq!(PAIRS.runs(&[0; 300]).map(|(_, run)| run.len()).collect::<Vec<_>>(), [128, 128, 32, 12]);
        assert_eq!(PAIRS.runs(&[0; 31]).map(|(_, run)| run.len()).collect::<Vec<_>>(), [16, 15]);
        assert_eq!(PAIRS.runs::<u8>(&[]).count(), 0);
        for (sql, run) in PAIRS.runs(&[0; 255]) {
            assert_eq!(sql.matches('?').count(), run.len() * 2);
        }
    }
}
