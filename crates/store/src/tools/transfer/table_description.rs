//! How a table is described that is copied.

/// What a column keeps, whatever the database calls that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A 64-bit number.
    Int,
    /// Yes or no.
    Bool,
    /// UTF-8.
    Text,
    /// Bytes.
    Bytes,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub name: &'static str,
    /// How many of the columns, from the first, are the primary key.
    pub key: usize,
    /// Every column that is not generated.
    pub columns: &'static [Column],
    /// How many bytes a row takes, in SQL, where a full page of rows would not fit into memory.
    pub bytes: Option<&'static str>,
    /// What is summed besides counting rows, in SQL: numbers that a change of a row raises. `0` where there are none.
    pub summed: &'static str,
    /// Which rows a first start lays down, in SQL: these may be in the target, and are replaced.
    pub seeds: Option<&'static str>,
}

impl Table {
    pub(super) const fn new(name: &'static str, key: usize, columns: &'static [Column]) -> Self {
        Self { name, key, columns, bytes: None, summed: "0", seeds: None }
    }

    pub(super) const fn bytes(self, sql: &'static str) -> Self {
        Self { bytes: Some(sql), ..self }
    }

    pub(super) const fn summed(self, sql: &'static str) -> Self {
        Self { summed: sql, ..self }
    }

    pub(super) const fn seeds(self, sql: &'static str) -> Self {
        Self { seeds: Some(sql), ..self }
    }

    /// The columns of the primary key.
    pub fn key_columns(&self) -> &'static [Column] {
        &self.columns[..self.key]
    }
}

/// A column of 64-bit numbers.
pub(super) const fn int(name: &'static str) -> Column {
    Column { name, kind: Kind::Int }
}

/// A column of yes or no.
pub(super) const fn bool(name: &'static str) -> Column {
    Column { name, kind: Kind::Bool }
}

/// A column of text.
pub(super) const fn text(name: &'static str) -> Column {
    Column { name, kind: Kind::Text }
}

/// A column of bytes.
pub(super) const fn bytes(name: &'static str) -> Column {
    Column { name, kind: Kind::Bytes }
}
