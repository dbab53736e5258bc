//! A row of a result, read by position. A value that cannot be read is an error that names its table, its
//! column and its row.

use std::any::type_name;

use postway_domain::Time;

use super::Value;
use crate::error::StoreError;

/// The longest name of a row in an error.
const NAME_BYTES_MAX: usize = 64;

/// A row of a result.
pub(crate) struct Row {
    pub values: Vec<Value>,
    /// The statement that returned it, for errors.
    pub statement: &'static str,
}

impl Row {
    /// The error for a value that is not what the statement's reader expects.
    fn wrong(&self, index: usize) -> StoreError {
        self.wrong_because(index, "is not what it should be")
    }

    fn wrong_because(&self, index: usize, reason: impl std::fmt::Display) -> StoreError {
        StoreError::Unexpected(format!("a stored value {}{reason}", self.locate(index)))
    }

    /// Says which value it is: table and column as the statement names them, and the row by its first id.
    fn locate(&self, index: usize) -> String {
        let column = columns(self.statement).nth(index).map_or_else(|| index.to_string(), str::to_owned);
        let table = table(self.statement).unwrap_or("?");
        let id = self.values.iter().find_map(|value| match value {
            Value::Bytes(Some(bytes)) if bytes.len() == 16 => {
                Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
            }
            Value::Text(Some(text)) if is_name(text) => Some(text.clone()),
            Value::Int(_) | Value::Bool(_) | Value::Text(_) | Value::Bytes(_) => None,
        });
        let id: String = id.unwrap_or_else(|| "unknown".to_owned());
        format!("in table {table}, column {column}, row {id} ")
    }

    pub fn opt_int(&self, index: usize) -> Result<Option<i64>, StoreError> {
        match self.values.get(index) {
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
        match self.values.get(index) {
            Some(Value::Text(text)) => Ok(text.as_deref()),
            // Some databases return texts with a binary collation as bytes.
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
        match self.values.get(index) {
            Some(Value::Bytes(bytes)) => Ok(bytes.as_deref()),
            Some(Value::Int(None) | Value::Bool(None) | Value::Text(None)) => Ok(None),
            _ => Err(self.wrong(index)),
        }
    }

    pub fn id16(&self, index: usize) -> Result<[u8; 16], StoreError> {
        let bytes = self.opt_bytes(index)?.ok_or_else(|| self.wrong(index))?;
        bytes.try_into().map_err(|_| self.wrong_because(index, "is not an id of 16 bytes"))
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
        let text = self.text(index)?;
        text.parse().map_err(|_| self.unparsable::<T>(index))
    }

    pub fn opt_parsed<T: std::str::FromStr>(&self, index: usize) -> Result<Option<T>, StoreError> {
        let text = self.opt_text(index)?;
        text.map(|text| text.parse().map_err(|_| self.unparsable::<T>(index))).transpose()
    }

    pub fn json<T: serde::de::DeserializeOwned>(&self, index: usize) -> Result<T, StoreError> {
        serde_json::from_str(self.text(index)?)
            .map_err(|error| self.wrong_because(index, format_args!("is not the expected JSON: {error}")))
    }

    fn unparsable<T>(&self, index: usize) -> StoreError {
        self.wrong_because(index, format_args!("does not parse as {}", type_name::<T>()))
    }
}

/// Whether a text is a name, and not content, an address or a secret.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain)
}

/// The selected columns as the statement writes them.
fn columns(statement: &str) -> impl Iterator<Item = &str> {
    let list = statement.split_once("SELECT ").map_or("", |(_, list)| list);
    let mut depth = 0_usize;
    let mut is_over = false;
    let parts = list.split_inclusive([',', '(', ')', ' ']);
    let mut start = 0;
    let mut end = 0;
    let mut cuts = Vec::new();
    for part in parts {
        end += part.len();
        match part.as_bytes().last() {
            Some(b'(') => depth += 1,
            Some(b')') => depth = depth.saturating_sub(1),
            Some(b',') if depth == 0 => {
                cuts.push((start, end - 1));
                start = end;
            }
            _ if depth == 0 && part.trim() == "FROM" => {
                cuts.push((start, end - part.len()));
                is_over = true;
                break;
            }
            _ => {}
        }
    }
    if !is_over {
        cuts.push((start, end));
    }
    cuts.into_iter().map(move |(start, end)| list[start..end].trim())
}

/// The first table that the statement reads.
fn table(statement: &str) -> Option<&str> {
    let (_, rest) = statement.split_once(" FROM ")?;
    rest.split([' ', ',', '(', ')']).find(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_is_absent_whatever_its_type() {
        let row = row(vec![Value::Text(None), Value::Int(None), Value::Bytes(Some(b"a".to_vec()))]);
        assert_eq!(row.opt_int(0).unwrap(), None);
        assert_eq!(row.opt_text(1).unwrap(), None);
        assert_eq!(row.text(2).unwrap(), "a");
        assert!(row.int(2).is_err() && row.int(9).is_err() && row.text(0).is_err());
    }

    fn row(values: Vec<Value>) -> Row {
        Row { values, statement: "SELECT uid, COALESCE(a, b), m.due_at FROM message m WHERE uid = ?" }
    }

    #[test]
    fn a_value_that_cannot_be_read_is_located() {
        let row = row(vec![Value::Bytes(Some(vec![0xa5; 16])), Value::Int(Some(1)), Value::text("soon")]);
        let error = row.time(2).unwrap_err().to_string();
        let id = "a5".repeat(16);
        assert!(error.contains(&format!("in table message, column m.due_at, row {id} ")), "{error}");
        assert!(row.text(1).unwrap_err().to_string().contains("column COALESCE(a, b)"));
        assert!(row.int(9).unwrap_err().to_string().contains("column 9"));
    }
}
