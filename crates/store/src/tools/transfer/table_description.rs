//! The description of a table that is copied.

/// The type of a column, whatever the database calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
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
pub(super) struct CopiedColumn {
    pub name: &'static str,
    pub kind: ColumnKind,
}

/// A table.
#[derive(Debug)]
pub(super) struct CopiedTable {
    pub name: &'static str,
    /// How many of the first columns are the primary key.
    pub key: usize,
    /// Every column that is not generated.
    pub columns: &'static [CopiedColumn],
    /// The size of a row as an SQL expression, if a full page of rows would not fit into memory.
    pub bytes: Option<&'static str>,
    /// The SQL expression that is summed besides counting rows: numbers that a change of a row raises; `0` if
    /// there are none.
    pub summed: &'static str,
    /// The SQL condition for rows that a first start writes: these may be in the target, and are replaced.
    pub seeds: Option<&'static str>,
}

impl CopiedTable {
    pub(super) const fn new(name: &'static str, key: usize, columns: &'static [CopiedColumn]) -> Self {
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
    pub fn key_columns(&self) -> &'static [CopiedColumn] {
        &self.columns[..self.key]
    }
}

/// A column of 64-bit numbers.
pub(super) const fn int(name: &'static str) -> CopiedColumn {
    CopiedColumn { name, kind: ColumnKind::Int }
}

/// A column of yes or no.
pub(super) const fn bool(name: &'static str) -> CopiedColumn {
    CopiedColumn { name, kind: ColumnKind::Bool }
}

/// A column of text.
pub(super) const fn text(name: &'static str) -> CopiedColumn {
    CopiedColumn { name, kind: ColumnKind::Text }
}

/// A column of bytes.
pub(super) const fn bytes(name: &'static str) -> CopiedColumn {
    CopiedColumn { name, kind: ColumnKind::Bytes }
}
