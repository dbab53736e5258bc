//! The syntax of responses: atoms, strings, parentheses (RFC 3501 9).

use std::{borrow::Cow, slice};

/// One word of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResponseWord<'r> {
    /// An atom, a number or a flag; with its section in brackets, if it has one.
    Atom(&'r [u8]),
    /// The content of a quoted string or a literal.
    Text(Cow<'r, [u8]>),
    Open,
    Close,
}

/// Iterates over the words of a line.
pub(super) struct ResponseWords<'r> {
    rest: &'r [u8],
    literals: slice::Iter<'r, Vec<u8>>,
}

impl<'r> ResponseWords<'r> {
    pub(super) fn new(line: &'r [u8], literals: &'r [Vec<u8>]) -> Self {
        Self { rest: line, literals: literals.iter() }
    }

    /// The next word as a number.
    pub(super) fn number(&mut self) -> Option<u64> {
        match self.next()? {
            ResponseWord::Atom(atom) => number(atom),
            ResponseWord::Text(_) | ResponseWord::Open | ResponseWord::Close => None,
        }
    }

    /// The next word as a UID or a sequence number, which are never zero.
    pub(super) fn index(&mut self) -> Option<u32> {
        self.number().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0)
    }

    /// Skips one value: a word, or everything between parentheses, however deep.
    pub(super) fn pass_over(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.next()? {
                ResponseWord::Open => depth += 1,
                ResponseWord::Close => depth = depth.checked_sub(1)?,
                ResponseWord::Atom(_) | ResponseWord::Text(_) => {}
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn take(&mut self, count: usize) -> &'r [u8] {
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        taken
    }

    fn quoted(&mut self) -> Option<ResponseWord<'r>> {
        let inside = self.rest.get(1..)?;
        let mut has_escape = false;
        let mut at = 0;
        loop {
            match inside.get(at)? {
                b'"' => break,
                b'\\' => {
                    has_escape = true;
                    at += 2;
                }
                _ => at += 1,
            }
        }
        self.take(at + 2);
        let text = &inside[..at];
        if !has_escape {
            return Some(ResponseWord::Text(Cow::Borrowed(text)));
        }
        let mut plain = Vec::with_capacity(text.len());
        let mut octets = text.iter();
        while let Some(&octet) = octets.next() {
            plain.push(if octet == b'\\' { *octets.next()? } else { octet });
        }
        Some(ResponseWord::Text(Cow::Owned(plain)))
    }

    fn atom(&mut self) -> ResponseWord<'r> {
        let mut in_section = false;
        let end = self.rest.iter().position(|&octet| {
            match octet {
                b'[' => in_section = true,
                b']' => in_section = false,
                _ => {}
            }
            !in_section && matches!(octet, b' ' | b'(' | b')' | b'"')
        });
        ResponseWord::Atom(self.take(end.unwrap_or(self.rest.len())))
    }
}

impl<'r> Iterator for ResponseWords<'r> {
    type Item = ResponseWord<'r>;

    /// Returns `None` at the end, and always after a syntax error.
    fn next(&mut self) -> Option<ResponseWord<'r>> {
        self.rest = self.rest.trim_ascii_start();
        match self.rest.first()? {
            b'(' => {
                self.take(1);
                Some(ResponseWord::Open)
            }
            b')' => {
                self.take(1);
                Some(ResponseWord::Close)
            }
            b'"' => {
                let word = self.quoted();
                if word.is_none() {
                    self.rest = &[];
                }
                word
            }
            b'{' => {
                let end = self.rest.iter().position(|&octet| octet == b'}').unwrap_or(self.rest.len() - 1);
                self.take(end + 1);
                let literal = self.literals.next();
                if literal.is_none() {
                    self.rest = &[];
                }
                literal.map(|octets| ResponseWord::Text(Cow::Borrowed(octets)))
            }
            _ => Some(self.atom()),
        }
    }
}

/// Parses a number that consists of digits only.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart() {
        let literals = [b"lit )".to_vec()];
        let words = ResponseWords::new(br#"(A1 "q \"\\" {5} BODY[H (X Y)]<0> NIL) x"#, &literals);
        let text = |text: &'static [u8]| ResponseWord::Text(Cow::Borrowed(text));
        let expected = [
            ResponseWord::Open,
            ResponseWord::Atom(b"A1"),
            text(br#"q "\"#),
            text(b"lit )"),
            ResponseWord::Atom(b"BODY[H (X Y)]<0>"),
            ResponseWord::Atom(b"NIL"),
            ResponseWord::Close,
            ResponseWord::Atom(b"x"),
        ];
        assert!(words.eq(expected));
    }

    #[test]
    fn nonsense_ends_the_words() {
        for line in [&b"\"abc"[..], b"\"abc\\", b"{5}", b"{", b"\"", b"\"\\\""] {
            let mut words = ResponseWords::new(line, &[]);
            assert_eq!(words.next(), None, "{}", line.escape_ascii());
            assert_eq!(words.next(), None);
        }
    }

    #[test]
    fn any_depth_is_passed_over_in_one_go() {
        let line = ["(".repeat(30_000), ")".repeat(30_000), " 7".to_owned()].concat();
        let mut words = ResponseWords::new(line.as_bytes(), &[]);
        assert_eq!(words.pass_over(), Some(()));
        assert_eq!(words.index(), Some(7));
        assert_eq!(ResponseWords::new(b"((a)", &[]).pass_over(), None);
        assert_eq!(ResponseWords::new(b") a", &[]).pass_over(), None);
    }

    #[test]
    fn numbers_have_digits_only() {
        for text in ["", "+1", "-1", "1a", "99999999999999999999"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
        assert_eq!(number(b"4294967296"), Some(4_294_967_296));
        assert_eq!(ResponseWords::new(b"0", &[]).index(), None);
        assert_eq!(ResponseWords::new(b"4294967296", &[]).index(), None);
    }
}
