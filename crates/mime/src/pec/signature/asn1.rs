//! ASN.1 as signatures have it: BER, definite and indefinite lengths, read in place.
//!
//! Certificates are DER, but the structure around them is not: most providers write it as a stream, with lengths that
//! are not known in advance and content in pieces (X.690, 8.1.3.6), which DER readers refuse. Nothing is recursive;
//! looking for the end of an indefinite length is linear, and done once for each of the few levels that are opened.

use std::borrow::Cow;

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
/// `[n]`, constructed.
pub(super) const fn context(number: u8) -> u8 {
    0xA0 | number
}

const CONSTRUCTED: u8 = 0x20;
const INDEFINITE: u8 = 0x80;
const END: [u8; 2] = [0, 0];

/// The bytes are not ASN.1, or not of the structure that was expected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// One value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// With tag and length.
    pub(super) whole: &'a [u8],
}

impl<'a> Element<'a> {
    /// What it consists of.
    pub(super) fn open(&self) -> Reader<'a> {
        Reader { rest: self.content }
    }

    /// An octet string's octets, joined where they come in pieces.
    pub(super) fn octets(&self) -> Result<Cow<'a, [u8]>, Malformed> {
        if self.tag & CONSTRUCTED == 0 {
            return Ok(Cow::Borrowed(self.content));
        }
        let mut joined = Vec::new();
        let mut pieces = self.open();
        while let Some(piece) = pieces.next()? {
            if piece.tag != OCTET_STRING {
                return Err(Malformed);
            }
            joined.extend_from_slice(piece.content);
        }
        Ok(Cow::Owned(joined))
    }
}

/// Reads values one after the other.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next value; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Element<'a>>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (tag, length, start) = header(self.rest)?;
        let (content_end, end) = match length {
            Some(length) => {
                let end = start.checked_add(length).ok_or(Malformed)?;
                (end, end)
            }
            None => {
                let content = self.rest.get(start..).ok_or(Malformed)?;
                let end = start + end_of_indefinite(content)?;
                (end - END.len(), end)
            }
        };
        let whole = self.rest.get(..end).ok_or(Malformed)?;
        self.rest = &self.rest[end..];
        Ok(Some(Element { tag, content: &whole[start..content_end], whole }))
    }

    /// The next value, which has one of these tags.
    pub(super) fn expect(&mut self, tag: u8) -> Result<Element<'a>, Malformed> {
        self.optional(tag)?.ok_or(Malformed)
    }

    /// The next value if it has this tag; otherwise it is left.
    pub(super) fn optional(&mut self, tag: u8) -> Result<Option<Element<'a>>, Malformed> {
        if self.rest.first() == Some(&tag) { self.next() } else { Ok(None) }
    }

    /// The next value, an octet string in one or more pieces.
    pub(super) fn octet_string(&mut self) -> Result<Element<'a>, Malformed> {
        match self.next()? {
            Some(found) if found.tag & !CONSTRUCTED == OCTET_STRING => Ok(found),
            _ => Err(Malformed),
        }
    }
}

/// Tag, length (`None`: indefinite) and where the content begins.
fn header(bytes: &[u8]) -> Result<(u8, Option<usize>, usize), Malformed> {
    let [tag, first, ..] = *bytes else { return Err(Malformed) };
    // Tags of several bytes occur nowhere in what we read.
    if tag & 0x1F == 0x1F {
        return Err(Malformed);
    }
    match first {
        0..INDEFINITE => Ok((tag, Some(usize::from(first)), 2)),
        INDEFINITE if tag & CONSTRUCTED != 0 => Ok((tag, None, 2)),
        INDEFINITE => Err(Malformed),
        _ => {
            let count = usize::from(first & 0x7F);
            let digits = bytes.get(2..2 + count).filter(|digits| digits.len() <= 4).ok_or(Malformed)?;
            let length = digits.iter().fold(0_usize, |length, digit| (length << 8) | usize::from(*digit));
            Ok((tag, Some(length), 2 + count))
        }
    }
}

/// Where the content of an indefinite length ends, its end marker included.
fn end_of_indefinite(content: &[u8]) -> Result<usize, Malformed> {
    let mut at = 0;
    let mut open = 1_usize;
    while open > 0 {
        let rest = content.get(at..).ok_or(Malformed)?;
        if rest.starts_with(&END) {
            open -= 1;
            at += END.len();
            continue;
        }
        let (_, length, start) = header(rest)?;
        if length.is_none() {
            open += 1;
        }
        at = at.checked_add(start).and_then(|at| at.checked_add(length.unwrap_or(0))).ok_or(Malformed)?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indefinite_lengths_end_where_their_marker_is() {
        // SEQUENCE (indefinite) { OCTET STRING in two pieces (indefinite), INTEGER 0 }, then NULL.
        let bytes = [0x30, 0x80, 0x24, 0x80, 4, 1, b'a', 4, 2, 0, 0, 0, 0, 2, 1, 0, 0, 0, 5, 0];
        let mut reader = Reader::new(&bytes);
        let sequence = reader.expect(SEQUENCE).unwrap();
        assert_eq!(sequence.whole.len(), 18);
        let mut inner = sequence.open();
        assert_eq!(&*inner.octet_string().unwrap().octets().unwrap(), b"a\0\0");
        assert_eq!(inner.expect(INTEGER).unwrap().content, [0]);
        assert!(inner.next().unwrap().is_none());
        assert_eq!(reader.next().unwrap().unwrap().tag, 5);
    }

    #[test]
    fn lengths_beyond_the_bytes_are_malformed() {
        for bytes in [
            &[0x30, 5, 0][..],
            &[0x30, 0x84, 255, 255, 255, 255],
            &[0x30, 0x80, 2, 1],
            &[0x30],
            &[4, 0x80, 0, 0],
        ] {
            assert!(Reader::new(bytes).next().is_err(), "{bytes:?}");
        }
    }
}
