//! The context of a trace, as W3C's `traceparent` carries it between programs.
//!
//! `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`: version, trace, span, flags. Whatever cannot be
//! read is no context, and never an error: a caller's mistake about traces must not cost it a mail. Of a later
//! version the parts of this one are read. `tracestate` is not kept: it belongs to the vendors of tracing
//! systems, has up to 512 bytes, and traces are complete without it.

use std::fmt;

/// The name of the header, and of the field in mails, messages and outbox tables.
pub const TRACEPARENT: &str = "traceparent";

/// The length of version 00.
const TEXT_BYTES: usize = 55;
/// A value of a later version may be longer, but no longer than this.
const TEXT_BYTES_MAX: usize = 256;
/// The flag that says that the caller records its spans.
const SAMPLED: u8 = 0x01;

/// Identifies a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId([u8; 16]);

/// Identifies a span of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId([u8; 8]);

/// A place in a trace: the span that whatever follows belongs under, and whether it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether the spans of this trace are recorded.
    pub is_sampled: bool,
}

impl TraceId {
    /// The id of these bytes, which must not all be zero.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// Its random part as a number, by which a share of all traces is chosen.
    pub(crate) fn chance(self) -> u64 {
        let mut low = [0; 8];
        low.copy_from_slice(&self.0[8..]);
        u64::from_be_bytes(low)
    }
}

impl SpanId {
    /// The id of these bytes, which must not all be zero.
    pub fn from_bytes(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }
}

impl TraceContext {
    /// The number of bytes that it is stored in.
    pub const BYTES: usize = 25;

    /// Reads a `traceparent`; `None` if the text has another form.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = text.trim_ascii();
        if !(TEXT_BYTES..=TEXT_BYTES_MAX).contains(&text.len()) {
            return None;
        }
        let [version] = hex::<1>(&text[..2])?;
        let is_whole = match version {
            0 => text.len() == TEXT_BYTES,
            0xff => false,
            _ => text.len() == TEXT_BYTES || text[TEXT_BYTES] == b'-',
        };
        let dashes = [2, 35, 52].iter().all(|at| text[*at] == b'-');
        if !is_whole || !dashes {
            return None;
        }
        let [flags] = hex::<1>(&text[53..55])?;
        Some(Self {
            trace: TraceId::from_bytes(hex(&text[3..35])?)?,
            span: SpanId::from_bytes(hex(&text[36..52])?)?,
            is_sampled: flags & SAMPLED != 0,
        })
    }

    /// Reads the only one of these values; several are none, because nobody knows which of them counts.
    pub fn parse_only<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut values = values.into_iter();
        let first = values.next()?;
        match values.next() {
            None => Self::parse(first),
            Some(_) => None,
        }
    }

    /// The form in which it is stored: trace, span, flags.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.trace.0);
        bytes[16..24].copy_from_slice(&self.span.0);
        bytes[24] = self.flags();
        bytes
    }

    /// Reads the stored form; `None` if it is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        trace.copy_from_slice(&bytes[..16]);
        span.copy_from_slice(&bytes[16..24]);
        Some(Self {
            trace: TraceId::from_bytes(trace)?,
            span: SpanId::from_bytes(span)?,
            is_sampled: bytes[24] & SAMPLED != 0,
        })
    }

    fn flags(self) -> u8 {
        if self.is_sampled { SAMPLED } else { 0 }
    }
}

/// Reads lower-case hexadecimal digits: W3C allows no others.
fn hex<const BYTES: usize>(text: &[u8]) -> Option<[u8; BYTES]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

/// Writes a `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, self.flags())
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    const PLAIN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_written_as_it_was_read_and_stored_in_few_bytes() {
        let context = TraceContext::parse(PLAIN.as_bytes()).unwrap();
        assert_eq!(context.to_string(), PLAIN);
        assert!(context.is_sampled);
        assert_eq!(TraceContext::from_bytes(&context.to_bytes()), Some(context));
        let quiet = TraceContext::parse(PLAIN.replace("-01", "-00").as_bytes()).unwrap();
        assert!(!quiet.is_sampled && quiet.trace == context.trace);
        assert_eq!(TraceContext::from_bytes(&quiet.to_bytes()), Some(quiet));
    }

    #[test]
    fn of_a_later_version_the_known_parts_are_read() {
        let later = PLAIN.replacen("00-", "cc-", 1);
        assert_eq!(TraceContext::parse(later.as_bytes()), TraceContext::parse(PLAIN.as_bytes()));
        assert!(TraceContext::parse(format!("{later}-what-comes-then").as_bytes()).is_some());
        assert!(TraceContext::parse(format!("{later}.what").as_bytes()).is_none());
        let flags = PLAIN.replace("-01", "-ff");
        assert!(TraceContext::parse(flags.as_bytes()).unwrap().is_sampled, "other flags are not ours");
    }

    #[test]
    fn whatever_is_no_context_is_ignored() {
        let long = format!("{PLAIN}{}", "0".repeat(1 << 20));
        let later = format!("{}-{}", PLAIN.replacen("00-", "01-", 1), "x".repeat(TEXT_BYTES_MAX));
        for bad in [
            "",
            "00",
            "hello",
            &PLAIN[1..],
            &PLAIN.to_ascii_uppercase(),
            &PLAIN.replacen("00-", "ff-", 1),
            &PLAIN.replace('-', "_"),
            &PLAIN.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &PLAIN.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &PLAIN.replace("4bf9", "4bg9"),
            &PLAIN.replace("4bf9", "é4b"),
            &format!("{PLAIN}-00"),
            &format!("{PLAIN},{PLAIN}"),
            &long,
            &later,
        ] {
            assert_eq!(TraceContext::parse(bad.as_bytes()), None, "{:.80}", bad);
        }
        assert_eq!(TraceContext::parse_only([PLAIN.as_bytes(); 2]), None, "which of them?");
        assert!(TraceContext::parse_only([PLAIN.as_bytes()]).is_some());
        assert_eq!(TraceContext::from_bytes(&[0; TraceContext::BYTES]), None);
        assert_eq!(TraceContext::from_bytes(&[1; 24]), None);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic_and_mean_what_they_say() {
        const ALPHABET: &[u8] = b"0123456789abcdefABF--- \xff";
        let mut random = StdRng::seed_from_u64(1);
        let mut read = 0;
        for _ in 0..100_000 {
            let mut text = PLAIN.as_bytes().to_vec();
            for _ in 0..random.random_range(0..4) {
                let at = random.random_range(0..text.len());
                match random.random_range(0..3) {
                    0 => text[at] = ALPHABET[random.random_range(0..ALPHABET.len())],
                    1 => text.insert(at, ALPHABET[random.random_range(0..ALPHABET.len())]),
                    _ => text.truncate(at.max(1)),
                }
            }
            if let Some(context) = TraceContext::parse(&text) {
                let written = context.to_string();
                assert_eq!(TraceContext::parse(written.as_bytes()), Some(context));
                let ids = String::from_utf8_lossy(text.trim_ascii())[3..52].to_owned();
                assert_eq!(written[3..52], ids);
                read += 1;
            }
        }
        assert!((10_000..90_000).contains(&read), "{read}");
    }
}
