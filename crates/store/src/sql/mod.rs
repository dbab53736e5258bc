//! SQL that is written once for every database.
//!
//! What is neither hot nor peculiar to one database goes through here: texts with `?` for each value, rows as plain
//! values. A text may have a second form for MySQL, which has its own words for "unless it is there", and a third where
//! servers lock what SQLite need not. Hot paths speak to their driver directly.

pub(crate) mod decode;
pub mod durability;
pub(crate) mod multi_row;
pub mod schema;
pub mod server_info;
mod session;
pub(crate) mod waiting_lanes;

use async_trait::async_trait;
use postway_domain::Time;

use crate::{error::StoreError, record::Changed};

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

    /// About how much a statement grows by it.
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

/// The values of a statement, each into its form.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::sql::Value::from($value)),*] };
}
pub(crate) use values;

/// A row as it came.
pub(crate) struct Row(pub Vec<Value>);

impl Row {
    fn wrong(&self, index: usize) -> StoreError {
        StoreError::Unexpected(format!("a stored value that is not what it should be, in column {index}"))
    }

    pub fn opt_int(&self, index: usize) -> Result<Option<i64>, StoreError> {
        match self.0.get(index) {
            Some(Value::Int(number)) => Ok(*number),
            Some(Value::Bool(flag)) => Ok(flag.map(i64::from)),
            Some(Value::Text(None) | Value::Bytes(None)) => Ok(None),
            _ => Err(self.wrong(index)),
        }
    }

    pub fn int(&self, index: usize) -> Result<i64, StoreError> {
        self.opt_int(index)?.ok_or_else(|| self.wrong(index))
    }

    pub fn opt_text(&self, index: usize) -> Result<Option<&str>, StoreError> {
        match self.0.get(index) {
            Some(Value::Text(text)) => Ok(text.as_deref()),
            // Texts that are compared byte by byte are bytes to some databases.
            Some(Value::Bytes(bytes)) => {
                bytes.as_deref().map(std::str::from_utf8).transpose().map_err(|_| self.wrong(index))
            }
            Some(Value::Int(None) | Value::Bool(None)) => Ok(None),
            _ => Err(self.wrong(index)),
        }
    }

    pub fn text(&self, index: usize) -> Result<&str, StoreError> {
        self.opt_text(index)?.ok_or_else(|| self.wrong(index))
    }

    pub fn opt_bytes(&self, index: usize) -> Result<Option<&[u8]>, StoreError> {
        match self.0.get(index) {
            Some(Value::Bytes(bytes)) => Ok(bytes.as_deref()),
            Some(Value::Int(None) | Value::Bool(None) | Value::Text(None)) => Ok(None),
            _ => Err(self.wrong(index)),
        }
    }

    pub fn id16(&self, index: usize) -> Result<[u8; 16], StoreError> {
        decode::id16(self.opt_bytes(index)?.ok_or_else(|| self.wrong(index))?)
    }

    pub fn opt_id32(&self, index: usize) -> Result<Option<[u8; 32]>, StoreError> {
        let bytes = self.opt_bytes(index)?;
        bytes.map(|bytes| bytes.try_into().map_err(|_| self.wrong(index))).transpose()
    }

    pub fn id32(&self, index: usize) -> Result<[u8; 32], StoreError> {
        self.opt_id32(index)?.ok_or_else(|| self.wrong(index))
    }

    pub fn opt_u32(&self, index: usize) -> Result<Option<u32>, StoreError> {
        self.opt_int(index)?.map(|number| u32::try_from(number).map_err(|_| self.wrong(index))).transpose()
    }

    pub fn u32(&self, index: usize) -> Result<u32, StoreError> {
        self.opt_u32(index)?.ok_or_else(|| self.wrong(index))
    }

    pub fn opt_string(&self, index: usize) -> Result<Option<String>, StoreError> {
        Ok(self.opt_text(index)?.map(str::to_owned))
    }

    pub fn opt_time(&self, index: usize) -> Result<Option<Time>, StoreError> {
        Ok(self.opt_int(index)?.map(Time::from_millis))
    }

    pub fn time(&self, index: usize) -> Result<Time, StoreError> {
        self.int(index).map(Time::from_millis)
    }

    pub fn parsed<T: std::str::FromStr>(&self, index: usize) -> Result<T, StoreError> {
        decode::parsed(self.text(index)?)
    }

    pub fn opt_parsed<T: std::str::FromStr>(&self, index: usize) -> Result<Option<T>, StoreError> {
        self.opt_text(index)?.map(decode::parsed).transpose()
    }

    pub fn json<T: serde::de::DeserializeOwned>(&self, index: usize) -> Result<T, StoreError> {
        serde_json::from_str(self.text(index)?)
            .map_err(|error| StoreError::Unexpected(format!("a stored JSON value: {error}")))
    }
}

/// A statement, in one form, two or three.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
    pub mysql: &'static str,
}

impl Sql {
    /// In words that all have.
    pub const fn same(text: &'static str) -> Self {
        Self { sqlite: text, postgres: text, mysql: text }
    }

    /// In the words of SQLite and PostgreSQL, and in those of MySQL.
    pub const fn or_mysql(common: &'static str, mysql: &'static str) -> Self {
        Self { sqlite: common, postgres: common, mysql }
    }

    /// In the words of each, for rows that servers must lock.
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

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self::same(text)
    }
}

/// A connection, perhaps inside a transaction.
#[async_trait]
pub(crate) trait Session: Send {
    /// Runs a statement; how many rows it touched.
    async fn execute(&mut self, sql: Sql, values: Vec<Value>) -> Result<u64, StoreError>;

    /// Inserts a row; `false` if its key is taken. MySQL says that by an error, which undoes no more than the statement;
    /// for the others the text must say `ON CONFLICT DO NOTHING`.
    async fn insert(&mut self, sql: Sql, values: Vec<Value>) -> Result<bool, StoreError>;

    /// Runs a query.
    async fn rows(&mut self, sql: Sql, values: Vec<Value>) -> Result<Vec<Row>, StoreError>;
}

/// `?` into `$1`, `$2`, … None of our texts has a question mark of another meaning.
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

/// For an insert that says whether the row is new.
pub(crate) fn is_new(new: bool) -> Changed {
    if new { Changed::Done } else { Changed::Exists }
}

/// For an update or a deletion that says whether there was a row.
pub(crate) fn was_there(rows: u64) -> Changed {
    if rows == 0 { Changed::Missing } else { Changed::Done }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_marks_are_numbered() {
        assert_eq!(numbered("SELECT ? FROM t WHERE a = ?"), "SELECT $1 FROM t WHERE a = $2");
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
    }

    #[test]
    fn a_null_is_absent_whatever_its_type() {
        let row = Row(vec![Value::Text(None), Value::Int(None), Value::Bytes(Some(b"a".to_vec()))]);
        assert_eq!(row.opt_int(0).unwrap(), None);
        assert_eq!(row.opt_text(1).unwrap(), None);
        assert_eq!(row.text(2).unwrap(), "a");
        assert!(row.int(2).is_err() && row.int(9).is_err() && row.text(0).is_err());
    }
}
