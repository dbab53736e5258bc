//! Header blocks of mails, of their parts, and of other text in the same format.
//!
//! Reading is lenient, because received mail has often been cut, indented or joined: a line that is not a
//! field is skipped. Fields beyond a limit are skipped, so that a mail of a million fields costs one pass and
//! no memory.

use std::borrow::Cow;

use memchr::{memchr2, memmem};

use super::limit::{
    FIELD_BYTES_MAX, FIELDS_IN_ALL_MAX, FIELDS_OF_PART_MAX, HEADER_BYTES_MAX, PassedLimits, ReaderLimit,
    StepBudget,
};

/// One field; the value may still be folded.
#[derive(Debug, Clone, Copy)]
pub struct HeaderField<'a> {
    /// The name as it is written.
    pub name: &'a [u8],
    /// The text after the colon.
    pub value: &'a [u8],
}

impl<'a> HeaderField<'a> {
    /// Reads a line as a field, if it is one. White space before the colon is obsolete, but accepted.
    pub fn from_line(line: &'a [u8]) -> Option<Self> {
        let name_end = line.iter().position(|&byte| byte == b':' || byte <= b' ' || byte == 0x7f)?;
        let blanks = line[name_end..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let colon = name_end + blanks;
        (name_end > 0 && line.get(colon) == Some(&b':'))
            .then(|| Self { name: &line[..name_end], value: &line[colon + 1..] })
    }
}

/// The fields of one header, in their order.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeaderFields<'f, 'a> {
    fields: &'f [HeaderField<'a>],
}

impl<'f, 'a> HeaderFields<'f, 'a> {
    pub(super) fn new(fields: &'f [HeaderField<'a>]) -> Self {
        Self { fields }
    }

    /// The value of the first field of that name, in any case, without white space around it.
    pub fn get(self, name: &[u8]) -> Option<&'a [u8]> {
        self.fields.iter().find(|field| is_named(field, name)).map(|field| field.value.trim_ascii())
    }

    /// The value of each field of that name.
    pub fn all<'n>(self, name: &'n [u8]) -> impl Iterator<Item = &'a [u8]> + use<'f, 'a, 'n> {
        let named = self.fields.iter().filter(move |field| is_named(field, name));
        named.map(|field| field.value.trim_ascii())
    }

    /// Whether there is a field of that name.
    pub fn has(self, name: &[u8]) -> bool {
        self.get(name).is_some()
    }

    /// All fields.
    pub fn iter(self) -> impl Iterator<Item = &'f HeaderField<'a>> {
        self.fields.iter()
    }

    /// The number of fields.
    pub fn len(self) -> usize {
        self.fields.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(self) -> bool {
        self.fields.is_empty()
    }
}

fn is_named(field: &HeaderField<'_>, name: &[u8]) -> bool {
    field.name.len() == name.len() && field.name.eq_ignore_ascii_case(name)
}

/// A header that is read without the parts behind it.
#[derive(Debug, Clone, Default)]
pub struct HeaderBlock<'a> {
    fields: Vec<HeaderField<'a>>,
    /// The text after the blank line.
    pub body: &'a [u8],
    /// The limits that the header has passed.
    pub passed: PassedLimits,
}

impl<'a> HeaderBlock<'a> {
    /// Reads the header that a text begins with; blank lines before it are skipped.
    pub fn read(text: &'a [u8]) -> Self {
        let mut fields = Vec::with_capacity(24);
        let mut steps = StepBudget::for_bytes(text.len());
        let scan = scan(text, 0, true, &mut fields, &mut steps, |_, _| false);
        Self { fields, body: &text[scan.body..], passed: scan.passed }
    }

    /// Its fields.
    pub fn fields(&self) -> HeaderFields<'_, 'a> {
        HeaderFields::new(&self.fields)
    }
}

/// The end of a header.
#[derive(Debug)]
pub(super) struct HeaderScan {
    /// The offset of the body: after the blank line, at the delimiter, or at the end of the text.
    pub(super) body: usize,
    pub(super) passed: PassedLimits,
}

/// Adds the fields of the header that begins at `start`. `is_delimiter` is called with the start of each line
/// that begins with two hyphens: a header without a blank line ends at a delimiter.
pub(super) fn scan<'a>(
    text: &'a [u8],
    start: usize,
    skip_blank_lines: bool,
    fields: &mut Vec<HeaderField<'a>>,
    steps: &mut StepBudget,
    mut is_delimiter: impl FnMut(usize, &mut StepBudget) -> bool,
) -> HeaderScan {
    let mut passed = PassedLimits::default();
    let first_field = fields.len();
    let mut may_skip = skip_blank_lines;
    // The offset of the last field's value, if the line before this one belongs to it.
    let mut open: Option<usize> = None;
    let mut at = start;
    while at < text.len() {
        let (end, next) = line_at(text, at);
        let line = &text[at..end];
        if line.is_empty() {
            if !may_skip {
                return HeaderScan { body: next, passed };
            }
            at = next;
            continue;
        }
        may_skip = false;
        if !steps.spend(1) {
            passed.add(ReaderLimit::Steps);
            return HeaderScan { body: at, passed };
        }
        if line.starts_with(b"--") && is_delimiter(at, steps) {
            return HeaderScan { body: at, passed };
        }
        if continues(line) {
            if let (Some(from), Some(field)) = (open, fields.last_mut()) {
                field.value = bounded(&text[from..end], &mut passed);
            }
        } else {
            open = None;
            if let Some(mut field) = HeaderField::from_line(line) {
                let full = if fields.len() - first_field >= FIELDS_OF_PART_MAX {
                    Some(ReaderLimit::FieldsOfPart)
                } else if fields.len() >= FIELDS_IN_ALL_MAX {
                    Some(ReaderLimit::FieldsInAll)
                } else if at - start > HEADER_BYTES_MAX {
                    Some(ReaderLimit::HeaderBytes)
                } else {
                    None
                };
                match full {
                    Some(limit) => passed.add(limit),
                    None => {
                        open = Some(end - field.value.len());
                        field.value = bounded(field.value, &mut passed);
                        fields.push(field);
                    }
                }
            }
        }
        at = next;
    }
    HeaderScan { body: text.len(), passed }
}

/// Whether the line continues the field before it. Some programs forget to indent the second line of a
/// Content-Type.
fn continues(line: &[u8]) -> bool {
    matches!(line[0], b' ' | b'\t')
        || line.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"boundary="))
}

fn bounded<'a>(value: &'a [u8], passed: &mut PassedLimits) -> &'a [u8] {
    match value.get(..FIELD_BYTES_MAX) {
        Some(start) if value.len() > FIELD_BYTES_MAX => {
            passed.add(ReaderLimit::FieldBytes);
            start
        }
        _ => value,
    }
}

/// The end of the line that begins at `at`, and the start of the next one: after CR LF, LF or a bare CR.
#[inline]
pub(super) fn line_at(text: &[u8], at: usize) -> (usize, usize) {
    match memchr2(b'\n', b'\r', &text[at..]) {
        None => (text.len(), text.len()),
        Some(length) => {
            let end = at + length;
            let is_pair = text[end] == b'\r' && text.get(end + 1) == Some(&b'\n');
            (end, end + if is_pair { 2 } else { 1 })
        }
    }
}

/// A value without its folds, each of which becomes one space.
pub fn unfold(value: &[u8]) -> Cow<'_, [u8]> {
    if memchr2(b'\n', b'\r', value).is_none() {
        return Cow::Borrowed(value.trim_ascii());
    }
    let mut out = Vec::with_capacity(value.len());
    let mut at = 0;
    while at < value.len() {
        let (end, next) = line_at(value, at);
        let line = value[at..end].trim_ascii();
        if !out.is_empty() && !line.is_empty() {
            out.push(b' ');
        }
        out.extend_from_slice(line);
        at = next;
    }
    Cow::Owned(out)
}

/// A value as text, without folds and with its encoded words (RFC 2047) decoded.
pub fn unstructured(value: &[u8]) -> String {
    let value = unfold(value);
    match memmem::find(&value, b"=?") {
        Some(_) => super::word::decode(&value),
        None => String::from_utf8_lossy(&value).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_fields_are_read_whole_and_the_body_follows() {
        for ending in ["\n", "\r\n", "\r"] {
            let raw =
                "\nSubject: one\n two\n\tthree\nTo : x@example.org\nnonsense\n\nbody".replace('\n', ending);
            let block = HeaderBlock::read(raw.as_bytes());
            let head = block.fields();
            assert_eq!(unfold(head.get(b"subject").unwrap()).as_ref(), b"one two three");
            assert_eq!(head.get(b"TO"), Some(&b"x@example.org"[..]));
            assert_eq!((head.len(), block.body), (2, &b"body"[..]));
        }
    }

    #[test]
    fn a_content_type_whose_second_line_is_not_indented_is_one_field() {
        let block = HeaderBlock::read(b"Content-Type: multipart/mixed;\nboundary=b\n\n");
        assert_eq!(block.fields().len(), 1);
        assert!(block.fields().get(b"content-type").unwrap().ends_with(b"boundary=b"));
    }

    #[test]
    fn a_million_fields_are_read_past() {
        let mut text = b"a:\n".repeat(1_000_000);
        text.extend_from_slice(b"\nbody");
        let block = HeaderBlock::read(&text);
        assert_eq!((block.fields().len(), block.body), (FIELDS_OF_PART_MAX, &b"body"[..]));
        assert!(block.passed.contains(ReaderLimit::FieldsOfPart));
    }

    #[test]
    fn a_long_field_and_a_long_header_are_cut() {
        let long = format!("A: {}\nB: c\n\n", "x".repeat(FIELD_BYTES_MAX));
        let block = HeaderBlock::read(long.as_bytes());
        assert_eq!(block.fields().get(b"a").unwrap().len(), FIELD_BYTES_MAX - 1);
        assert_eq!(block.fields().get(b"b"), Some(&b"c"[..]));
        assert!(block.passed.contains(ReaderLimit::FieldBytes));
        let folded = format!("A: x\n{}B: c\n\n", " y\n".repeat(HEADER_BYTES_MAX / 2));
        let block = HeaderBlock::read(folded.as_bytes());
        assert_eq!(block.fields().get(b"b"), None);
        assert!(block.passed.contains(ReaderLimit::HeaderBytes));
    }
}
