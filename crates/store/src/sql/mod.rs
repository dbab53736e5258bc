//! SQL that is written once for every database.
//!
//! Statements that are neither hot nor specific to one database are written here once: texts with `?` for
//! each value, rows as plain values. A text may have a second form for MySQL, which has its own syntax for
//! "unless it exists", and a third if servers must lock what SQLite need not. Hot paths use their driver
//! directly.

pub(crate) mod decode;
pub mod durability;
pub(crate) mod multi_row;
mod row;
pub mod schema;
pub mod server_info;
mod session;
pub(crate) mod waiting_lanes;

use async_trait::async_trait;
use postway_domain::Time;

use crate::{error::StoreError, record::ChangeResult};

pub(crate) use row::Row;
pub(crate) use session::{MysqlSession, PostgresSession, SqliteSession, bound, in_time, without_nul};

/// A value of a column; `None` is NULL, which still has a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Int(Option<i64>),
    Bool(Option<bool>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl Value {
    pub fn text(text: impl Into<String>) -> Self {
        Value::Text(Some(text.into()))
    }

    pub fn int(number: i64) -> Self {
        Value::Int(Some(number))
    }

    /// The number of a column that is never NULL.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => *number,
            Value::Bool(_) | Value::Text(_) | Value::Bytes(_) => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => text.as_deref(),
            Value::Int(_) | Value::Bool(_) | Value::Bytes(_) => None,
        }
    }

    /// Roughly how much it adds to the size of a statement.
    pub fn size(&self) -> usize {
        const OVERHEAD: usize = 9;
        OVERHEAD
            + match self {
                Value::Text(Some(text)) => text.len(),
                Value::Bytes(Some(bytes)) => bytes.len(),
                Value::Int(_) | Value::Bool(_) | Value::Text(None) | Value::Bytes(None) => 0,
            }
    }
}

macro_rules! values_from {
    ($($from:ty => |$value:ident| $into:expr;)*) => {
        $(impl From<$from> for Value {
            fn from($value: $from) -> Self {
                $into
            }
        })*
    };
}

values_from! {
    i64 => |number| Value::Int(Some(number));
    bool => |flag| Value::Bool(Some(flag));
    u32 => |number| Value::Int(Some(number.into()));
    Option<i64> => |number| Value::Int(number);
    Option<u32> => |number| Value::Int(number.map(i64::from));
    Time => |time| Value::Int(Some(time.as_millis()));
    Option<Time> => |time| Value::Int(time.map(Time::as_millis));
    &str => |text| Value::Text(Some(text.to_owned()));
    String => |text| Value::Text(Some(text));
    Option<&str> => |text| Value::Text(text.map(ToOwned::to_owned));
    Option<String> => |text| Value::Text(text);
    &[u8; 16] => |bytes| Value::Bytes(Some(bytes.to_vec()));
    &[u8; 32] => |bytes| Value::Bytes(Some(bytes.to_vec()));
    Vec<u8> => |bytes| Value::Bytes(Some(bytes));
    Option<Vec<u8>> => |bytes| Value::Bytes(bytes);
}

/// The values of a statement, each converted to a [`Value`].
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::sql::Value::from($value)),*] };
}
pub(crate) use values;

/// A statement, in one form, two or three.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SqlText {
    pub sqlite: &'static str,
    pub postgres: &'static str,
    pub mysql: &'static str,
}

impl SqlText {
    /// One text for all three databases.
    pub const fn same(text: &'static str) -> Self {
        Self { sqlite: text, postgres: text, mysql: text }
    }

    /// One text for SQLite and PostgreSQL, and one for MySQL.
    pub const fn or_mysql(common: &'static str, mysql: &'static str) -> Self {
        Self { sqlite: common, postgres: common, mysql }
    }

    /// A text for each database, for rows that servers must lock.
    pub const fn of_each(sqlite: &'static str, postgres: &'static str, mysql: &'static str) -> Self {
        Self { sqlite, postgres, mysql }
    }

    fn sqlite_text(&self) -> &'static str {
        self.sqlite
    }

    fn mysql_text(&self) -> &'static str {
        self.mysql
    }
}

impl From<&'static str> for SqlText {
    fn from(text: &'static str) -> Self {
        Self::same(text)
    }
}

/// A connection, perhaps inside a transaction.
#[async_trait]
pub(crate) trait SqlSession: Send {
    /// Runs a statement. Returns the number of affected rows.
    async fn execute(&mut self, sql: SqlText, values: Vec<Value>) -> Result<u64, StoreError>;

    /// Inserts a row; `false` if its key is taken. MySQL reports that with an error, which undoes only the
    /// statement; for the others the text must say `ON CONFLICT DO NOTHING`.
    async fn insert(&mut self, sql: SqlText, values: Vec<Value>) -> Result<bool, StoreError>;

    /// Runs a query.
    async fn rows(&mut self, sql: SqlText, values: Vec<Value>) -> Result<Vec<Row>, StoreError>;
}

/// Replaces `?` by `$1`, `$2`, … No text of ours has a question mark with another meaning.
pub(crate) fn numbered(text: &str) -> String {
    let mut numbered = String::with_capacity(text.len() + 16);
    for (n, piece) in text.split('?').enumerate() {
        if n > 0 {
            numbered.push_str(&format!("${n}"));
        }
        numbered.push_str(piece);
    }
    numbered
}

/// The result of an insert, from whether the row is new.
pub(crate) fn is_new(new: bool) -> ChangeResult {
    if new { ChangeResult::Done } else { ChangeResult::Exists }
}

/// The result of an update or a deletion, from the number of affected rows.
pub(crate) fn was_there(rows: u64) -> ChangeResult {
    if rows == 0 { ChangeResult::Missing } else { ChangeResult::Done }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_marks_are_numbered() {
        assert_eq!(numbered("SELECT ? FROM t WHERE a = ?"), "SELECT $1 FROM t WHERE a = $2");
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
    }
}
