//! Comma-separated values (RFC 4180), as spreadsheets write them: quotes where needed, doubled inside, CRLF or LF.

/// A record and the line it begins on, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) line: usize,
    pub(super) fields: Vec<String>,
}

/// The records of a text; empty lines are none. A quote that is never closed takes the rest of the text into its field.
pub(super) fn records(text: &str) -> impl Iterator<Item = Record> {
    let mut chars = text.chars().peekable();
    let mut line = 1;
    std::iter::from_fn(move || {
        loop {
            chars.peek()?;
            let begins = line;
            let mut fields = vec![String::new()];
            let mut quoted = false;
            while let Some(c) = chars.next() {
                line += usize::from(c == '\n');
                let field = fields.last_mut()?;
                match c {
                    '"' if quoted && chars.peek() == Some(&'"') => {
                        chars.next();
                        field.push('"');
                    }
                    '"' if quoted => quoted = false,
                    '"' if field.is_empty() => quoted = true,
                    ',' if !quoted => fields.push(String::new()),
                    '\n' if !quoted => break,
                    '\r' if !quoted => {}
                    c => field.push(c),
                }
            }
            if fields.iter().any(|field| !field.trim().is_empty()) {
                return Some(Record { line: begins, fields });
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
        let read: Vec<Record> = records(std::str::from_utf8(&bytes).unwrap()).collect();
        assert_eq!(read.iter().map(|record| record.fields.clone()).collect::<Vec<_>>(), rows);
        assert_eq!(read.iter().map(|record| record.line).collect::<Vec<_>>(), [1, 3, 4]);
    }

    #[test]
    fn loose_texts_are_read_as_meant() {
        let read: Vec<Vec<String>> = records("a,b\n\n,\r\nc\"d,\"e").map(|record| record.fields).collect();
        assert_eq!(read, [["a", "b"], ["c\"d", "e"]]);
        assert_eq!(records("").count(), 0);
    }
}
