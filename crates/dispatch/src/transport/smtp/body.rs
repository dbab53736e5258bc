//! Prepares the body for the wire: dot-stuffing (RFC 5321 4.5.2) and the refusal of bare line ends.
//!
//! A lone CR or LF is how a second mail is smuggled past a relay that reads line ends differently from the
//! next one. Such a body is refused and never repaired, since a repair would also break its signature. The
//! composer produces none.

use std::borrow::Cow;

use thiserror::Error;

/// Line ends are searched in blocks of this size; the comparison loop over one block compiles to vector code.
const BLOCK: usize = 32;

/// The body has a CR without LF or an LF without CR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the body has a bare line end at byte {at}; lines must end in CR LF")]
pub(super) struct BareLineEnd {
    at: usize,
}

/// The result of scanning a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BodyScan {
    /// Lines that start with a dot.
    dots: usize,
    /// The last line ends in CR LF, or the body is empty.
    terminated: bool,
}

/// Checks every line end of the body.
pub(super) fn scan(body: &[u8]) -> Result<BodyScan, BareLineEnd> {
    let mut dots = usize::from(body.first() == Some(&b'.'));
    let mut at = 0;
    while at < body.len() {
        if let Some(block) = body.get(at..at + BLOCK)
            && !block.iter().fold(false, |found, &b| found | (b == b'\r') | (b == b'\n'))
        {
            at += BLOCK;
            continue;
        }
        let end = (at + BLOCK).min(body.len());
        while at < end {
            match body[at] {
                b'\n' => return Err(BareLineEnd { at }),
                b'\r' if body.get(at + 1) == Some(&b'\n') => {
                    dots += usize::from(body.get(at + 2) == Some(&b'.'));
                    at += 2;
                }
                b'\r' => return Err(BareLineEnd { at }),
                _ => at += 1,
            }
        }
    }
    Ok(BodyScan { dots, terminated: body.is_empty() || body.ends_with(b"\r\n") })
}

/// The body as it is written, without the final dot. Borrows unless bytes have to be added.
pub(super) fn dot_stuffed(body: &[u8], scan: BodyScan) -> Cow<'_, [u8]> {
    if scan.dots == 0 && scan.terminated {
        return Cow::Borrowed(body);
    }
    let mut wire = Vec::with_capacity(body.len() + scan.dots + 2);
    for line in body.split_inclusive(|&b| b == b'\n') {
        if line.first() == Some(&b'.') {
            wire.push(b'.');
        }
        wire.extend_from_slice(line);
    }
    if !scan.terminated {
        wire.extend_from_slice(b"\r\n");
    }
    Cow::Owned(wire)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(body: &str) -> String {
        String::from_utf8(dot_stuffed(body.as_bytes(), scan(body.as_bytes()).unwrap()).into_owned()).unwrap()
    }

    #[test]
    fn dots_are_doubled_at_line_starts_only() {
        assert_eq!(wire(".\r\n..\r\na.b\r\n.c\r\n"), "..\r\n...\r\na.b\r\n..c\r\n");
        assert_eq!(wire(""), "");
        assert_eq!(wire("no end"), "no end\r\n");
        assert_eq!(wire("."), "..\r\n");
        assert_eq!(wire("\r\n.\r\n"), "\r\n..\r\n");
    }

    #[test]
    fn a_body_without_dots_is_not_copied() {
        let body = format!("{}\r\n", "x".repeat(500));
        assert!(matches!(dot_stuffed(body.as_bytes(), scan(body.as_bytes()).unwrap()), Cow::Borrowed(_)));
    }

    #[test]
    fn bare_line_ends_are_refused_wherever_they_are() {
        for at in 0..100 {
            for bare in [b'\r', b'\n'] {
                let mut body = vec![b'x'; 100];
                body[at] = bare;
                assert_eq!(scan(&body), Err(BareLineEnd { at }));
            }
        }
        for smuggle in ["a\n.\nb", "a\r.\rb", "a\r\n.\nb\r\n", "a\n.\r\nb\r\n", "a\r\r\nb\r\n"] {
            assert!(scan(smuggle.as_bytes()).is_err(), "{smuggle:?}");
        }
    }

    #[test]
    fn a_line_end_is_found_wherever_blocks_meet() {
        for before in 0..70 {
            let body = format!("{}\r\n.{}\r\n", "x".repeat(before), "y".repeat(70));
            let scan = scan(body.as_bytes()).unwrap();
            assert_eq!(scan, BodyScan { dots: 1, terminated: true }, "{before}");
            assert!(wire(&body).contains("\r\n..y"));
        }
    }
}
