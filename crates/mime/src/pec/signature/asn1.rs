//! Reads ASN.1 in BER, with definite and indefinite lengths, in place.
//!
//! Certificates are DER, but the structure around them is not: most providers write it as a stream, with
//! indefinite lengths and content in pieces (X.690, 8.1.3.6), which DER readers refuse. Nothing is recursive.
//! Finding the end of an indefinite length is linear, and happens once for each of the few levels that are
//! opened.

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
pub(super) struct MalformedAsn1;

/// One value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asn1Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// With tag and length.
    pub(super) whole: &'a [u8],
}

impl<'a> Asn1Element<'a> {
    /// A reader of the values inside it.
    pub(super) fn open(&self) -> Asn1Reader<'a> {
        Asn1Reader { rest: self.content }
    }

    /// The octets of an octet string, joined if they come in pieces.
    pub(super) fn octets(&self) -> Result<Cow<'a, [u8]>, MalformedAsn1> {
        if self.tag & CONSTRUCTED == 0 {
            return Ok(Cow::Borrowed(self.content));
        }
        let mut joined = Vec::new();
        let mut pieces = self.open();
        while let Some(piece) = pieces.next()? {
            if piece.tag != OCTET_STRING {
                return Err(MalformedAsn1);
            }
            joined.extend_from_slice(piece.content);
        }
        Ok(Cow::Owned(joined))
    }
}

/// Reads values one after the other.
#[derive(Clone, Copy)]
pub(super) struct Asn1Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Asn1Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next value; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Asn1Element<'a>>, MalformedAsn1> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (tag, length, start) = header(self.rest)?;
        let (content_end, end) = match length {
            Some(length) => {
                let end = start.checked_add(length).ok_or(MalformedAsn1)?;
                (end, end)
            }
            None => {
                let content = self.rest.get(start..).ok_or(MalformedAsn1)?;
                let end = start + end_of_indefinite(content)?;
                (end - END.len(), end)
            }
        };
        let whole = self.rest.get(..end).ok_or(MalformedAsn1)?;
        self.rest = &self.rest[end..];
        Ok(Some(Asn1Element { tag, content: &whole[start..content_end], whole }))
    }

    /// The next value, which must have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Result<Asn1Element<'a>, MalformedAsn1> {
        self.optional(tag)?.ok_or(MalformedAsn1)
    }

    /// The next value if it has this tag; otherwise nothing is read.
    pub(super) fn optional(&mut self, tag: u8) -> Result<Option<Asn1Element<'a>>, MalformedAsn1> {
        if self.rest.first() == Some(&tag) { self.next() } else { Ok(None) }
    }

    /// The next value, an octet string in one or more pieces.
    pub(super) fn octet_string(&mut self) -> Result<Asn1Element<'a>, MalformedAsn1> {
        match self.next()? {
            Some(found) if found.tag & !CONSTRUCTED == OCTET_STRING => Ok(found),
            _ => Err(MalformedAsn1),
        }
    }
}

/// Tag, length (`None`: indefinite) and the offset of the content.
fn header(bytes: &[u8]) -> Result<(u8, Option<usize>, usize), MalformedAsn1> {
    let [tag, first, ..] = *bytes else { return Err(MalformedAsn1) };
    // The structures read here have no tags of several bytes.
    if tag & 0x1F == 0x1F {
        return Err(MalformedAsn1);
    }
    match first {
        0..INDEFINITE => Ok((tag, Some(usize::from(first)), 2)),
        INDEFINITE if tag & CONSTRUCTED != 0 => Ok((tag, None, 2)),
        INDEFINITE => Err(MalformedAsn1),
        _ => {
            let count = usize::from(first & 0x7F);
            let digits = bytes.get(2..2 + count).filter(|digits| digits.len() <= 4).ok_or(MalformedAsn1)?;
            let length = digits.iter().fold(0_usize, |length, digit| (length << 8) | usize::from(*digit));
            Ok((tag, Some(length), 2 + count))
        }
    }
}

/// The end of content of indefinite length, its end marker included.
fn end_of_indefinite(content: &[u8]) -> Result<usize, MalformedAsn1> {
    let mut at = 0;
    let mut open = 1_usize;
    while open > 0 {
        let rest = content.get(at..).ok_or(MalformedAsn1)?;
        if rest.starts_with(&END) {
            open -= 1;
            at += END.len();
            continue;
        }
        let (_, length, start) = header(rest)?;
        if length.is_none() {
            open += 1;
        }
        at = at.checked_add(start).and_then(|at| at.checked_add(length.unwrap_or(0))).ok_or(MalformedAsn1)?;
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
        let mut reader = Asn1Reader::new(&bytes);
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
            assert!(Asn1Reader::new(bytes).next().is_err(), "{bytes:?}");
        }
    }
}
