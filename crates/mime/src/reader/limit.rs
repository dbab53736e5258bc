//! How much of a mail is taken apart, and what is said where a mail has more.
//!
//! Every number here bounds work or memory that a stranger's mail can ask for. None of them is an error: what was read up
//! to the limit is kept, the rest of the mail stays part of its bytes, and the limit is noted so that whoever shows, stores
//! or forwards the mail can say what was left out.

use std::fmt;

/// Multiparts inside each other that are opened. A mail of people has three or four.
pub const DEPTH_MAX: usize = 16;
/// Parts that are told apart.
pub const PARTS_MAX: usize = 1_000;
/// Header fields that are kept of one part.
pub const FIELDS_OF_PART_MAX: usize = 1_000;
/// Header fields that are kept of the whole mail.
pub const FIELDS_IN_ALL_MAX: usize = 10_000;
/// How far into the header of one part fields are kept.
pub const HEADER_BYTES_MAX: usize = 256 * 1024;
/// How much of one field's value is kept.
pub const FIELD_BYTES_MAX: usize = 32 * 1024;
/// The longest boundary (RFC 2046 allows 70).
pub const BOUNDARY_BYTES_MAX: usize = 256;
/// How much content of one mail is decoded, all parts together.
pub const DECODED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Steps for each byte of the mail: a line of a header, a line that may be a delimiter, and each open boundary that such a
/// line is compared with is one. Mail of people needs less than one for twenty bytes.
pub const STEPS_PER_BYTE_MAX: usize = 2;
/// Steps that every mail has, however short it is.
pub const STEPS_MIN: usize = 4_096;

/// Characters of one header field that are shown.
pub const SHOWN_FIELD_CHARS_MAX: usize = 10_000;
/// Header fields that are shown.
pub const SHOWN_FIELDS_MAX: usize = 500;
/// Bytes of text that are shown.
pub const SHOWN_TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of html that are shown, before images are put in.
pub const SHOWN_HTML_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Attachments that are listed.
pub const SHOWN_FILES_MAX: usize = 200;
/// Bytes by which images may make the html longer.
pub const IMAGE_BYTES_MAX: usize = 6 * 1024 * 1024;

/// A limit that a mail has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderLimit {
    /// [`DEPTH_MAX`]: deeper multiparts are one part each.
    Depth,
    /// [`PARTS_MAX`]: later parts are not told apart.
    Parts,
    /// [`FIELDS_OF_PART_MAX`]: later fields of that part are left out.
    FieldsOfPart,
    /// [`FIELDS_IN_ALL_MAX`]: later fields are left out.
    FieldsInAll,
    /// [`HEADER_BYTES_MAX`]: fields further into the header are left out.
    HeaderBytes,
    /// [`FIELD_BYTES_MAX`]: the rest of that field is left out.
    FieldBytes,
    /// [`BOUNDARY_BYTES_MAX`]: that multipart is one part.
    Boundary,
    /// [`DECODED_BYTES_MAX`]: the rest of the content is left out.
    DecodedBytes,
    /// [`STEPS_PER_BYTE_MAX`]: whatever follows belongs to the last part.
    Steps,
    /// [`SHOWN_FIELD_CHARS_MAX`]
    ShownFieldChars,
    /// [`SHOWN_FIELDS_MAX`]
    ShownFields,
    /// [`SHOWN_TEXT_BYTES_MAX`]
    ShownText,
    /// [`SHOWN_HTML_BYTES_MAX`]
    ShownHtml,
    /// [`SHOWN_FILES_MAX`]
    ShownFiles,
    /// [`IMAGE_BYTES_MAX`]
    Images,
}

impl ReaderLimit {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Depth,
        Self::Parts,
        Self::FieldsOfPart,
        Self::FieldsInAll,
        Self::HeaderBytes,
        Self::FieldBytes,
        Self::Boundary,
        Self::DecodedBytes,
        Self::Steps,
        Self::ShownFieldChars,
        Self::ShownFields,
        Self::ShownText,
        Self::ShownHtml,
        Self::ShownFiles,
        Self::Images,
    ];
}

/// What is left out, as it is told to people: "parts beyond 1,000".
impl fmt::Display for ReaderLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, limit, unit) = match self {
            Self::Depth => ("parts nested deeper than", DEPTH_MAX, " levels"),
            Self::Parts => ("parts beyond", PARTS_MAX, ""),
            Self::FieldsOfPart => ("header fields of one part beyond", FIELDS_OF_PART_MAX, ""),
            Self::FieldsInAll => ("header fields of all parts beyond", FIELDS_IN_ALL_MAX, ""),
            Self::HeaderBytes => ("the header of one part beyond", HEADER_BYTES_MAX, " bytes"),
            Self::FieldBytes => ("one header field beyond", FIELD_BYTES_MAX, " bytes"),
            Self::Boundary => ("the parts of a multipart with a boundary over", BOUNDARY_BYTES_MAX, " bytes"),
            Self::DecodedBytes => ("decoded content beyond", DECODED_BYTES_MAX, " bytes"),
            Self::Steps => ("parts that need more steps for each byte than", STEPS_PER_BYTE_MAX, ""),
            Self::ShownFieldChars => ("one header field beyond", SHOWN_FIELD_CHARS_MAX, " characters"),
            Self::ShownFields => ("header fields beyond", SHOWN_FIELDS_MAX, ""),
            Self::ShownText => ("text beyond", SHOWN_TEXT_BYTES_MAX, " bytes"),
            Self::ShownHtml => ("html beyond", SHOWN_HTML_BYTES_MAX, " bytes"),
            Self::ShownFiles => ("attachments beyond", SHOWN_FILES_MAX, ""),
            Self::Images => ("images that make the html longer by more than", IMAGE_BYTES_MAX, " bytes"),
        };
        write!(out, "{what} {}{unit}", Grouped(limit))
    }
}

/// A number with a comma between thousands.
struct Grouped(usize);

impl fmt::Display for Grouped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                out.write_str(",")?;
            }
            write!(out, "{digit}")?;
        }
        Ok(())
    }
}

/// The limits that a mail has passed, each once.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct PassedLimits {
    bits: u16,
}

impl PassedLimits {
    /// Notes one.
    pub fn add(&mut self, limit: ReaderLimit) {
        self.bits |= 1 << limit as u16;
    }

    /// Notes those of another reading of the same mail.
    pub fn extend(&mut self, other: Self) {
        self.bits |= other.bits;
    }

    /// Whether this one was passed.
    pub fn contains(self, limit: ReaderLimit) -> bool {
        self.bits & 1 << limit as u16 != 0
    }

    /// Whether none was: the mail was read whole.
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = ReaderLimit> {
        ReaderLimit::ALL.into_iter().filter(move |limit| self.contains(*limit))
    }
}

impl fmt::Debug for PassedLimits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.iter()).finish()
    }
}

/// The steps that are left for a mail.
#[derive(Debug)]
pub(super) struct StepBudget {
    left: usize,
    given: usize,
}

impl StepBudget {
    pub(super) fn for_bytes(bytes: usize) -> Self {
        let given = bytes.saturating_mul(STEPS_PER_BYTE_MAX).saturating_add(STEPS_MIN);
        Self { left: given, given }
    }

    /// Takes that many; `false` when there are not enough left.
    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> bool {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    pub(super) fn spent(&self) -> usize {
        self.given - self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_listed_once_and_says_what_is_left_out() {
        let mut passed = PassedLimits::default();
        assert!(passed.is_empty());
        for limit in ReaderLimit::ALL {
            assert!(!passed.contains(limit));
            passed.add(limit);
        }
        assert_eq!(passed.iter().collect::<Vec<_>>(), ReaderLimit::ALL);
        let told: std::collections::BTreeSet<String> = passed.iter().map(|limit| limit.to_string()).collect();
        assert_eq!(told.len(), ReaderLimit::ALL.len());
        assert_eq!(ReaderLimit::Parts.to_string(), "parts beyond 1,000");
        assert_eq!(ReaderLimit::Depth.to_string(), "parts nested deeper than 16 levels");
        assert_eq!(ReaderLimit::FieldBytes.to_string(), "one header field beyond 32,768 bytes");
    }
}
