//! One statement for many rows.
//!
//! A multi-row statement is prepared once per row count, so counts are kept to powers of two: 100 rows run as
//! 64 + 32 + 4, and the statement cache holds a handful of shapes of each.
//!
//! Hot statements say `OR FAIL`: an error rolls the whole transaction back anyway, and SQLite need not copy each page
//! it touches into a journal of the statement.

use std::sync::OnceLock;

/// The largest power: 2⁷ rows in one statement.
const POWERS: usize = 8;

/// A statement whose list of rows grows with the data.
pub struct Multi {
    head: &'static str,
    columns: usize,
    tail: &'static str,
    texts: [OnceLock<String>; POWERS],
}

impl Multi {
    /// `head`, then rows of `columns` placeholders, then `tail`. One column makes a plain list.
    pub const fn new(head: &'static str, columns: usize, tail: &'static str) -> Self {
        Self { head, columns, tail, texts: [const { OnceLock::new() }; POWERS] }
    }

    fn text(&'static self, power: usize) -> &'static str {
        self.texts[power].get_or_init(|| {
            let row = match self.columns {
                1 => "?".to_owned(),
                columns => format!("({})", vec!["?"; columns].join(",")),
            };
            format!("{}{}{}", self.head, vec![row; 1 << power].join(","), self.tail)
        })
    }

    /// Splits `items` into runs, each with the statement for its length.
    pub fn runs<'a, T>(&'static self, mut items: &'a [T]) -> impl Iterator<Item = (&'static str, &'a [T])> {
        std::iter::from_fn(move || {
            let power = (items.len().checked_ilog2()? as usize).min(POWERS - 1);
            let (run, rest) = items.split_at(1 << power);
            items = rest;
            Some((self.text(power), run))
        })
    }

    /// One of its texts, for a test that prepares every statement.
    #[cfg(test)]
    pub fn sample(&'static self) -> &'static str {
        self.text(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PAIRS: Multi = Multi::new("INSERT INTO t VALUES ", 2, " RETURNING a");

    #[test]
    fn a_hundred_rows_run_as_powers_of_two() {
        let items = [0; 100];
        let lengths: Vec<usize> = PAIRS.runs(&items).map(|(_, run)| run.len()).collect();
        assert_eq!(lengths, [64, 32, 4]);
        assert_eq!(PAIRS.sample(), "INSERT INTO t VALUES (?,?),(?,?) RETURNING a");
        assert_eq!(PAIRS.runs(&[0; 300]).map(|(_, run)| run.len()).collect::<Vec<_>>(), [128, 128, 32, 8, 4]);
    }
}
