//! The limits of the reader, and the record of those that a mail passed.
//!
//! Every limit bounds the work or memory that a stranger's mail can cause. Passing one is not an error: the
//! content up to the limit is kept, the rest of the mail stays part of its bytes, and the limit is recorded
//! so that code that shows, stores or forwards the mail can report what was left out.

use std::fmt;

/// The maximum depth of multiparts. Ordinary mail has three or four.
pub const DEPTH_MAX: usize = 16;
/// The maximum number of parts.
pub const PARTS_MAX: usize = 1_000;
/// The maximum number of header fields of one part.
pub const FIELDS_OF_PART_MAX: usize = 1_000;
/// The maximum number of header fields of all parts.
pub const FIELDS_IN_ALL_MAX: usize = 10_000;
/// The longest header of one part; fields beyond it are dropped.
pub const HEADER_BYTES_MAX: usize = 256 * 1024;
/// The longest value of one field.
pub const FIELD_BYTES_MAX: usize = 32 * 1024;
/// The longest boundary (RFC 2046 allows 70).
pub const BOUNDARY_BYTES_MAX: usize = 256;
/// The maximum of decoded content of one mail, all parts together.
pub const DECODED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The maximum number of steps per byte of the mail. A header line, a line that may be a delimiter, and each
/// comparison of such a line with an open boundary is a step. Ordinary mail needs less than one step per
/// twenty bytes.
pub const STEPS_PER_BYTE_MAX: usize = 2;
/// The number of steps that every mail has, however short it is.
pub const STEPS_MIN: usize = 4_096;

/// The longest value of a header field that is shown, in characters.
pub const SHOWN_FIELD_CHARS_MAX: usize = 10_000;
/// The maximum number of header fields that are shown.
pub const SHOWN_FIELDS_MAX: usize = 500;
/// The maximum of text that is shown, in bytes.
pub const SHOWN_TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The maximum of html that is shown, in bytes, before images are inserted.
pub const SHOWN_HTML_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The maximum number of attachments that are listed.
pub const SHOWN_FILES_MAX: usize = 200;
/// The maximum of bytes that inserted images may add to the html.
pub const IMAGE_BYTES_MAX: usize = 6 * 1024 * 1024;

/// A limit that a mail has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderLimit {
    /// [`DEPTH_MAX`]: deeper multiparts are not opened.
    Depth,
    /// [`PARTS_MAX`]: later parts are not separated.
    Parts,
    /// [`FIELDS_OF_PART_MAX`]: later fields of that part are left out.
    FieldsOfPart,
    /// [`FIELDS_IN_ALL_MAX`]: later fields are left out.
    FieldsInAll,
    /// [`HEADER_BYTES_MAX`]: fields further into the header are left out.
    HeaderBytes,
    /// [`FIELD_BYTES_MAX`]: the rest of that field is left out.
    FieldBytes,
    /// [`BOUNDARY_BYTES_MAX`]: that multipart is not opened.
    Boundary,
    /// [`DECODED_BYTES_MAX`]: the rest of the content is left out.
    DecodedBytes,
    /// [`STEPS_PER_BYTE_MAX`]: the rest of the mail belongs to the last part.
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
    /// All limits.
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

/// The content that is left out, as users see it: "parts beyond 1,000".
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
        write!(out, "{what} {}{unit}", GroupedNumber(limit))
    }
}

/// A number with commas between thousands.
struct GroupedNumber(usize);

impl fmt::Display for GroupedNumber {
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
    /// Adds a limit.
    pub fn add(&mut self, limit: ReaderLimit) {
        self.bits |= 1 << limit as u16;
    }

    /// Adds the limits of another reading of the same mail.
    pub fn extend(&mut self, other: Self) {
        self.bits |= other.bits;
    }

    /// Whether this one was passed.
    pub fn contains(self, limit: ReaderLimit) -> bool {
        self.bits & 1 << limit as u16 != 0
    }

    /// Whether none was passed, so that the whole mail was read.
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// The limits that were passed.
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
    granted: usize,
}

impl StepBudget {
    pub(super) fn for_bytes(bytes: usize) -> Self {
        let granted = bytes.saturating_mul(STEPS_PER_BYTE_MAX).saturating_add(STEPS_MIN);
        Self { left: granted, granted }
    }

    /// Takes `steps` steps; `false` if fewer are left.
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
        self.granted - self.left
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
        let reported: std::collections::BTreeSet<String> =
            passed.iter().map(|limit| limit.to_string()).collect();
        assert_eq!(reported.len(), ReaderLimit::ALL.len());
        assert_eq!(ReaderLimit::Parts.to_string(), "parts beyond 1,000");
        assert_eq!(ReaderLimit::Depth.to_string(), "parts nested deeper than 16 levels");
        assert_eq!(ReaderLimit::FieldBytes.to_string(), "one header field beyond 32,768 bytes");
    }
}
