//! A value on its way from one driver to the other, and a key as it is stored between runs.

use serde_json::json;

use super::table_description::{ColumnKind, CopiedColumn};
pub(super) use crate::sql::Value;

/// The values of a row, in the order of the columns asked for.
pub(super) type Row = Vec<Value>;

/// A key as JSON: numbers and texts unchanged, bytes in hexadecimal.
pub(super) fn write_key(key: &[Value]) -> String {
    let values = key.iter().map(|value| match value {
        Value::Int(number) => json!(number),
        Value::Bool(flag) => json!(flag),
        Value::Text(text) => json!(text),
        Value::Bytes(bytes) => json!(bytes.as_deref().map(hex)),
    });
    serde_json::Value::Array(values.collect()).to_string()
}

/// Reads back what [`write_key`] wrote for these columns.
pub(super) fn read_key(text: &str, columns: &[CopiedColumn]) -> Option<Vec<Value>> {
    let values: Vec<serde_json::Value> = serde_json::from_str(text).ok()?;
    if values.len() != columns.len() {
        return None;
    }
    let read = |(value, column): (&serde_json::Value, &CopiedColumn)| {
        Some(match column.kind {
            ColumnKind::Int => Value::Int(Some(value.as_i64()?)),
            ColumnKind::Bool => Value::Bool(Some(value.as_bool()?)),
            ColumnKind::Text => Value::text(value.as_str()?),
            ColumnKind::Bytes => Value::Bytes(Some(unhex(value.as_str()?)?)),
        })
    };
    values.iter().zip(columns).map(read).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.len().is_multiple_of(2).then(|| text.as_bytes().chunks(2).map(pair).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_as_it_was() {
        let columns = [
            ("a", ColumnKind::Text),
            ("b", ColumnKind::Int),
            ("c", ColumnKind::Bytes),
            ("d", ColumnKind::Bool),
        ]
        .map(|(name, kind)| CopiedColumn { name, kind });
        let key = [
            Value::text("ü\0\"x"),
            Value::int(-7),
            Value::Bytes(Some(vec![0, 255, 16])),
            Value::Bool(Some(true)),
        ];
        assert_eq!(read_key(&write_key(&key), &columns).unwrap(), key);
        for wrong in ["", "[]", "[1]", r#"["a",1,"0",true]"#, r#"["a",1,"zz",true]"#, r#"["a",1,"é",true]"#]
        {
            assert_eq!(read_key(wrong, &columns), None, "{wrong}");
        }
    }
}
