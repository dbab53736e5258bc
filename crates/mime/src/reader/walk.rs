//! Finds the parts of a mail in one pass.
//!
//! Only lines that begin with two hyphens can be delimiters. Each is compared with the open boundaries, of
//! which there are at most [`DEPTH_MAX`]; no byte is read twice, and nothing is searched for that may not
//! exist. The outermost boundary wins, so a part cannot extend beyond its multipart. If no boundary is open,
//! the rest of the mail is not read.

use std::{borrow::Cow, ops::Range};

use memchr::memmem;

use super::{
    header::{self, HeaderField, HeaderFields, line_at},
    label::ContentLabel,
    limit::{BOUNDARY_BYTES_MAX, DEPTH_MAX, PARTS_MAX, PassedLimits, ReaderLimit, StepBudget},
};

/// The position of a part in the mail.
#[derive(Debug, Clone)]
pub(super) struct PartRecord {
    pub(super) parent: Option<usize>,
    pub(super) depth: usize,
    /// The range of its fields among those of the mail.
    pub(super) fields: Range<usize>,
    /// Its header and its body.
    pub(super) entity: Range<usize>,
    pub(super) body: Range<usize>,
    pub(super) has_children: bool,
}

/// A multipart whose delimiters are being searched for.
struct OpenBoundary<'a> {
    boundary: Cow<'a, [u8]>,
    part: usize,
}

/// A delimiter line.
struct BoundaryDelimiter {
    /// The index of its boundary among the open ones.
    level: usize,
    is_last: bool,
    /// The start of the next line.
    next: usize,
}

/// The state of the pass; see the module.
pub(super) struct PartWalk<'a> {
    raw: &'a [u8],
    pub(super) parts: Vec<PartRecord>,
    pub(super) fields: Vec<HeaderField<'a>>,
    pub(super) passed: PassedLimits,
    pub(super) steps: StepBudget,
    open: Vec<OpenBoundary<'a>>,
    /// The parts whose end is unknown yet, from the outermost to the current one.
    unfinished: Vec<usize>,
}

impl<'a> PartWalk<'a> {
    pub(super) fn new(raw: &'a [u8]) -> Self {
        let (parts, fields) = (Vec::with_capacity(4), Vec::with_capacity(32));
        let steps = StepBudget::for_bytes(raw.len());
        let (open, unfinished) = (Vec::new(), Vec::with_capacity(4));
        Self { raw, parts, fields, passed: PassedLimits::default(), steps, open, unfinished }
    }

    /// Walks to the end of the mail, or to a limit.
    pub(super) fn run(mut self) -> Self {
        let mut at = self.begin_part(None, 0);
        let hyphens = memmem::Finder::new(b"--");
        while !self.open.is_empty() {
            let Some(found) = hyphens.find(&self.raw[at..]) else { break };
            let line = at + found;
            at = line + 2;
            if !self.steps.spend(1) {
                self.passed.add(ReaderLimit::Steps);
                break;
            }
            if line > 0 && !matches!(self.raw[line - 1], b'\n' | b'\r') {
                continue;
            }
            if let Some(delimiter) = find_delimiter(self.raw, line, &self.open, &mut self.steps) {
                match self.part_at(line, &delimiter) {
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
        self.end_parts(0, self.raw.len());
        self
    }

    /// Ends the parts before a delimiter and begins the part after it. Returns where to continue; `None` at a
    /// limit.
    fn part_at(&mut self, line: usize, delimiter: &BoundaryDelimiter) -> Option<usize> {
        let multipart = self.open[delimiter.level].part;
        let place = self.unfinished.iter().position(|part| *part == multipart)?;
        self.end_parts(place + 1, content_end(self.raw, line));
        self.open.truncate(delimiter.level + 1);
        if delimiter.is_last {
            self.open.pop();
            return Some(delimiter.next);
        }
        if delimiter.next >= self.raw.len() {
            return None;
        }
        if self.parts.len() >= PARTS_MAX {
            self.passed.add(ReaderLimit::Parts);
            return None;
        }
        self.parts[multipart].has_children = true;
        Some(self.begin_part(Some(multipart), delimiter.next))
    }

    /// Begins the part at `start` and returns the offset of its body.
    fn begin_part(&mut self, parent: Option<usize>, start: usize) -> usize {
        let first_field = self.fields.len();
        let (raw, open) = (self.raw, &self.open);
        let is_delimiter =
            |line: usize, steps: &mut StepBudget| find_delimiter(raw, line, open, steps).is_some();
        let is_root = parent.is_none();
        let scan = header::scan(raw, start, is_root, &mut self.fields, &mut self.steps, is_delimiter);
        self.passed.extend(scan.passed);
        let index = self.parts.len();
        let depth = parent.map_or(0, |parent| self.parts[parent].depth + 1);
        let fields = first_field..self.fields.len();
        let header = HeaderFields::new(&self.fields[fields.clone()]);
        if let Some(boundary) = self.boundary_of(header.get(b"content-type"), depth) {
            self.open.push(OpenBoundary { boundary, part: index });
        }
        let (entity, body) = (start..raw.len(), scan.body..raw.len());
        self.parts.push(PartRecord { parent, depth, fields, entity, body, has_children: false });
        self.unfinished.push(index);
        scan.body
    }

    /// The boundary of a part, if it is a multipart of an allowed depth.
    fn boundary_of(&mut self, content_type: Option<&'a [u8]>, depth: usize) -> Option<Cow<'a, [u8]>> {
        let label = ContentLabel::new(content_type?)?;
        if !label.media_type().is_kind("multipart") {
            return None;
        }
        let in_pieces = || label.text("boundary").map(|text| Cow::Owned(text.into_bytes()));
        let boundary = label.parameter("boundary").or_else(in_pieces).filter(|found| !found.is_empty())?;
        if depth >= DEPTH_MAX {
            self.passed.add(ReaderLimit::Depth);
            return None;
        }
        if boundary.len() > BOUNDARY_BYTES_MAX {
            self.passed.add(ReaderLimit::Boundary);
            return None;
        }
        Some(boundary)
    }

    /// Sets the end of all unfinished parts from index `place` on.
    fn end_parts(&mut self, place: usize, end: usize) {
        for part in self.unfinished.drain(place..) {
            let record = &mut self.parts[part];
            // An empty part would begin after its end: the last line ending belongs to the delimiter.
            record.entity = record.entity.start.min(end)..end;
            record.body = record.body.start.min(end)..end;
            let says_nothing = record.fields.is_empty() && record.body.is_empty();
            if says_nothing && !self.raw[record.entity.clone()].trim_ascii().is_empty() {
                // If the blank line before the text is missing, the part has text and no header.
                record.body = record.entity.clone();
            }
        }
    }
}

/// Reads the line at `line`, which begins with two hyphens, as a delimiter.
fn find_delimiter(
    raw: &[u8],
    line: usize,
    open: &[OpenBoundary<'_>],
    steps: &mut StepBudget,
) -> Option<BoundaryDelimiter> {
    let text = &raw[line + 2..];
    for (level, known) in open.iter().enumerate() {
        if !steps.spend(1) {
            return None;
        }
        let Some(rest) = text.strip_prefix(known.boundary.as_ref()) else { continue };
        let (is_last, tail) = match rest.strip_prefix(b"--") {
            Some(tail) => (true, tail),
            None => (false, rest),
        };
        let blanks = tail.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let from = raw.len() - tail.len() + blanks;
        let next = match raw.get(from) {
            None => from,
            Some(b'\n' | b'\r') => line_at(raw, from).1,
            Some(_) => continue,
        };
        return Some(BoundaryDelimiter { level, is_last, next });
    }
    None
}

/// The end of the content before a delimiter: the line ending before the delimiter belongs to it (RFC 2046,
/// 5.1.1).
fn content_end(raw: &[u8], line: usize) -> usize {
    match &raw[..line] {
        [.., b'\r', b'\n'] => line - 2,
        [.., b'\n' | b'\r'] => line - 1,
        _ => line,
    }
}
