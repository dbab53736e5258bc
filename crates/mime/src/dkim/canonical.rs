//! Splits a message into fields and body, and writes both in `relaxed` form (RFC 6376, 3.4.2 and 3.4.4).
//!
//! A body is handed on in slices of the message itself, interrupted only where white space changes, so a
//! large attachment is hashed without a copy. Both forms require CRLF, which [`fields`] and [`check_breaks`]
//! ensure.

use super::DkimError;

/// One header field, as a slice of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignedField<'a> {
    pub(super) name: &'a [u8],
    /// The text after the colon, with its folds and without its last CRLF.
    value: &'a [u8],
}

impl<'a> SignedField<'a> {
    /// A field from its text without the last CRLF.
    pub(super) fn read(text: &'a [u8]) -> Option<Self> {
        let colon = text.iter().position(|byte| *byte == b':')?;
        let name = text[..colon].trim_ascii_end();
        let good = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
        good.then_some(Self { name, value: &text[colon + 1..] })
    }

    /// Writes the relaxed form without a final CRLF.
    pub(super) fn write_relaxed(&self, out: &mut Vec<u8>) {
        out.extend(self.name.iter().map(u8::to_ascii_lowercase));
        out.push(b':');
        let start = out.len();
        let mut after_space = false;
        for byte in self.value {
            match byte {
                b' ' | b'\t' => after_space = true,
                // Unfolding removes the line break and keeps the white space.
                b'\r' | b'\n' => {}
                other => {
                    if after_space && out.len() > start {
                        out.push(b' ');
                    }
                    after_space = false;
                    out.push(*other);
                }
            }
        }
    }
}

/// Refuses line breaks that are not CRLF.
pub(super) fn check_breaks(message: &[u8]) -> Result<(), DkimError> {
    let mut at = 0;
    while let Some(found) = message[at..].iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        at += found;
        if !message[at..].starts_with(b"\r\n") {
            return Err(DkimError::LineBreak { at });
        }
        at += 2;
    }
    Ok(())
}

/// The header fields, in order, and the body.
pub(super) fn fields(message: &[u8]) -> Result<(Vec<SignedField<'_>>, &[u8]), DkimError> {
    let mut fields = Vec::new();
    let mut start = 0;
    while start < message.len() {
        if message[start..].starts_with(b"\r\n") {
            return Ok((fields, &message[start + 2..]));
        }
        let end = field_end(message, start);
        fields.push(SignedField::read(&message[start..end]).ok_or(DkimError::Header { at: start })?);
        start = end + 2;
    }
    Ok((fields, &[]))
}

/// The end of the field that begins at `start`, without its last CRLF.
fn field_end(message: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        let Some(found) = message[at..].iter().position(|byte| *byte == b'\r') else {
            return message.len();
        };
        at += found;
        if !matches!(message.get(at + 2), Some(b' ' | b'\t')) {
            return at;
        }
        at += 2;
    }
}

/// Passes the relaxed form of a body to `hand_on`, piece by piece.
pub(super) fn relax_body<'a>(body: &'a [u8], mut hand_on: impl FnMut(&'a [u8])) {
    // Blank lines and white space at the end do not belong to the body.
    let Some(last) = body.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) else {
        return;
    };
    let body = &body[..=last];
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    // The start of the text that has not been handed on yet.
    let mut kept = 0;
    let mut at = 0;
    while let Some(found) = body[at..].iter().position(is_space) {
        let start = at + found;
        // The body does not end with white space, so the index below is valid.
        let width = body[start..].iter().take_while(|byte| is_space(byte)).count();
        at = start + width;
        let ends_line = body[at] == b'\r';
        if !ends_line && body[start..at] == *b" " {
            continue;
        }
        hand_on(&body[kept..start]);
        if !ends_line {
            hand_on(b" ");
        }
        kept = at;
    }
    hand_on(&body[kept..]);
    hand_on(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relaxed_body(body: &str) -> String {
        let mut out = Vec::new();
        relax_body(body.as_bytes(), |piece| out.extend_from_slice(piece));
        String::from_utf8(out).unwrap()
    }

    fn relaxed_header(header: &str) -> String {
        let (fields, _) = fields(header.as_bytes()).unwrap();
        let mut out = Vec::new();
        for field in fields {
            field.write_relaxed(&mut out);
            out.extend_from_slice(b"\r\n");
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_example_of_the_rfc_comes_out_as_printed() {
        // RFC 6376, 3.4.5.
        let message = "A: X\r\nB : Y\t\r\n\tZ  \r\n\r\n C \r\nD \t E\r\n\r\n\r\n";
        assert_eq!(relaxed_header(message), "a:X\r\nb:Y Z\r\n");
        let (_, body) = fields(message.as_bytes()).unwrap();
        assert_eq!(relaxed_body(std::str::from_utf8(body).unwrap()), " C\r\nD E\r\n");
    }

    #[test]
    fn a_body_that_shows_nothing_is_empty() {
        for body in ["", "\r\n", "\r\n\r\n", " ", "\t \r\n", " \r\n\r\n\t\r\n"] {
            assert_eq!(relaxed_body(body), "", "{body:?}");
        }
    }

    #[test]
    fn the_end_of_a_body_is_one_line_break_whatever_it_was() {
        for body in ["a", "a\r\n", "a \t", "a \r\n", "a\r\n \r\n", "a\r\n\r\n\t \r\n\r\n"] {
            assert_eq!(relaxed_body(body), "a\r\n", "{body:?}");
        }
    }

    #[test]
    fn white_space_inside_a_body_becomes_one_space_and_blank_lines_stay() {
        assert_eq!(relaxed_body("\r\n \t\r\n\ta  b\tc \r\n\r\nd"), "\r\n\r\n a b c\r\n\r\nd\r\n");
    }

    #[test]
    fn a_body_without_white_space_to_change_is_handed_on_in_one_piece() {
        let body = format!("{}\r\n", "QUJD".repeat(19)).repeat(1000);
        let mut pieces = Vec::new();
        relax_body(body.as_bytes(), |piece| pieces.push(piece.len()));
        assert_eq!(pieces, [body.len() - 2, 2]);
    }

    #[test]
    fn folds_and_white_space_of_a_field_are_relaxed() {
        assert_eq!(relaxed_header("SubJect \t:\r\n\t a\r\n \r\n \t b \r\n"), "subject:a b\r\n");
        assert_eq!(relaxed_header("Empty:\r\nUtf: é  è"), "empty:\r\nutf:é è\r\n");
    }

    #[test]
    fn what_is_no_header_is_refused() {
        assert_eq!(fields(b"From: a\r\nno field\r\n\r\n"), Err(DkimError::Header { at: 9 }));
        assert_eq!(fields(b" folded: first\r\n\r\n"), Err(DkimError::Header { at: 0 }));
        assert_eq!(fields(b": x\r\n"), Err(DkimError::Header { at: 0 }));
    }

    #[test]
    fn a_bare_line_break_is_found_wherever_it_is() {
        assert_eq!(check_breaks(b"a: b\r\n\r\nc\r\n"), Ok(()));
        for (message, at) in [(&b"a\nb"[..], 1), (b"a\r\n\rb", 3), (b"a\r\r\n", 1), (b"ab\r", 2)] {
            assert_eq!(check_breaks(message), Err(DkimError::LineBreak { at }));
        }
    }
}
