//! Comma-separated values (RFC 4180), as spreadsheets write them: quotes where needed, doubled inside, CRLF
//! or LF.

/// The most columns of a record.
const COLUMNS_MAX: usize = 32;
/// The most bytes of a record.
pub(super) const RECORD_BYTES_MAX: usize = 64 * 1024;

/// A record and the line it begins on, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvRecord {
    pub(super) line: usize,
    pub(super) fields: Vec<String>,
    /// The bound that the record exceeds; what is beyond it is not in the fields.
    pub(super) excess: Option<RecordExcess>,
}

/// The bound that a record exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RecordExcess {
    #[error("has more than {COLUMNS_MAX} columns")]
    Columns,
    #[error("has more than {RECORD_BYTES_MAX} bytes")]
    Bytes,
}

/// The records of a text, without empty lines. A quote that is never closed takes the rest of the text into
/// its field.
pub(super) fn records(text: &str) -> impl Iterator<Item = CsvRecord> {
    let mut chars = text.chars().peekable();
    let mut line = 1;
    std::iter::from_fn(move || {
        loop {
            chars.peek()?;
            let begins = line;
            let mut fields = vec![String::new()];
            let (mut quoted, mut bytes, mut excess) = (false, 0, None);
            while let Some(c) = chars.next() {
                line += usize::from(c == '\n');
                bytes += c.len_utf8();
                if bytes > RECORD_BYTES_MAX {
                    excess = excess.or(Some(RecordExcess::Bytes));
                }
                let count = fields.len();
                let field = fields.last_mut()?;
                match c {
                    '"' if quoted && chars.peek() == Some(&'"') => {
                        chars.next();
                        field.push('"');
                    }
                    '"' if quoted => quoted = false,
                    '"' if field.is_empty() => quoted = true,
                    '\n' if !quoted => break,
                    // The record is read to its end, but not stored.
                    _ if excess.is_some() => {}
                    ',' if !quoted && count == COLUMNS_MAX => excess = Some(RecordExcess::Columns),
                    ',' if !quoted => fields.push(String::new()),
                    '\r' if !quoted => {}
                    c => field.push(c),
                }
            }
            if excess.is_some() || fields.iter().any(|field| !field.trim().is_empty()) {
                return Some(CsvRecord { line: begins, fields, excess });
            }
        }
    })
}

/// Writes one record.
pub(super) fn write(into: &mut Vec<u8>, fields: &[&str]) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            into.push(b',');
        }
        if field.contains([',', '"', '\n', '\r']) {
            into.push(b'"');
            into.extend_from_slice(field.replace('"', "\"\"").as_bytes());
            into.push(b'"');
        } else {
            into.extend_from_slice(field.as_bytes());
        }
    }
    into.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let rows = [vec!["a,b", "say \"hi\"", "two\nlines"], vec!["", "x", ""], vec!["plain", "é", "z"]];
        let mut bytes = Vec::new();
        rows.iter().for_each(|row| write(&mut bytes, row));
        let read: Vec<CsvRecord> = records(std::str::from_utf8(&bytes).unwrap()).collect();
        assert_eq!(read.iter().map(|record| record.fields.clone()).collect::<Vec<_>>(), rows);
        assert_eq!(read.iter().map(|record| record.line).collect::<Vec<_>>(), [1, 3, 4]);
    }

    #[test]
    fn loose_texts_are_read_as_meant() {
        let read: Vec<Vec<String>> = records("a,b\n\n,\r\nc\"d,\"e").map(|record| record.fields).collect();
        assert_eq!(read, [["a", "b"], ["c\"d", "e"]]);
        assert_eq!(records("").count(), 0);
    }

    #[test]
    fn a_record_without_end_is_read_over_and_not_kept() {
        let many = ",x".repeat(100_000);
        let long = format!("a,\"{}\",b", "x\n".repeat(100_000));
        let text = format!("{many}\n{long}\r\nlast\n\"{}", "y".repeat(100_000));
        let read: Vec<CsvRecord> = records(&text).collect();
        let kept: Vec<_> =
            read.iter().map(|record| (record.line, record.fields.len(), record.excess)).collect();
        assert_eq!(
            kept,
            [
                (1, 32, Some(RecordExcess::Columns)),
                (2, 2, Some(RecordExcess::Bytes)),
                (100_003, 1, None),
                (100_004, 1, Some(RecordExcess::Bytes)),
            ]
        );
        let bytes = |record: &CsvRecord| record.fields.iter().map(String::len).sum::<usize>();
        assert!(read.iter().map(bytes).max().unwrap() <= RECORD_BYTES_MAX);
        assert_eq!(read[2].fields, ["last"]);
    }
}
