//! DMARC aggregate reports: the XML of RFC 7489 and of its successor, with or without a namespace.
//!
//! Elements that are not known are skipped. Text is read as UTF-8; octets that are not valid are replaced.

use std::net::IpAddr;

use postway_domain::{
    Time,
    domain_report::{DmarcDisposition, DmarcResult, DomainReport, DomainReportKind},
};
use quick_xml::{
    Reader,
    escape::resolve_xml_entity,
    events::{BytesRef, Event},
};

use super::{COUNT_MAX, DomainReportError, TEXT_BYTES_MAX, bounded_line, normal_domain, tally::ReportTally};

/// How deep elements nest; the format needs six.
const DEPTH_MAX: usize = 24;
/// The most elements of a report.
const ELEMENTS_MAX: usize = 2_000_000;
/// Where the root must begin, after declarations and comments.
const PROLOGUE_BYTES_MAX: usize = 4_096;

/// The elements that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DmarcElement {
    Root,
    Metadata,
    DateRange,
    Policy,
    Record,
    Row,
    Evaluated,
    Leaf(DmarcLeaf),
    Elsewhere,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DmarcLeaf {
    Organisation,
    ReportId,
    Begin,
    End,
    Domain,
    PolicyWord,
    SourceIp,
    Count,
    Disposition,
    Dkim,
    Spf,
}

fn child_element(parent: DmarcElement, name: &[u8]) -> DmarcElement {
    match (parent, name) {
        (DmarcElement::Root, b"report_metadata") => DmarcElement::Metadata,
        (DmarcElement::Root, b"policy_published") => DmarcElement::Policy,
        (DmarcElement::Root, b"record") => DmarcElement::Record,
        (DmarcElement::Metadata, b"org_name") => DmarcElement::Leaf(DmarcLeaf::Organisation),
        (DmarcElement::Metadata, b"report_id") => DmarcElement::Leaf(DmarcLeaf::ReportId),
        (DmarcElement::Metadata, b"date_range") => DmarcElement::DateRange,
        (DmarcElement::DateRange, b"begin") => DmarcElement::Leaf(DmarcLeaf::Begin),
        (DmarcElement::DateRange, b"end") => DmarcElement::Leaf(DmarcLeaf::End),
        (DmarcElement::Policy, b"domain") => DmarcElement::Leaf(DmarcLeaf::Domain),
        (DmarcElement::Policy, b"p") => DmarcElement::Leaf(DmarcLeaf::PolicyWord),
        (DmarcElement::Record, b"row") => DmarcElement::Row,
        (DmarcElement::Row, b"source_ip") => DmarcElement::Leaf(DmarcLeaf::SourceIp),
        (DmarcElement::Row, b"count") => DmarcElement::Leaf(DmarcLeaf::Count),
        (DmarcElement::Row, b"policy_evaluated") => DmarcElement::Evaluated,
        (DmarcElement::Evaluated, b"disposition") => DmarcElement::Leaf(DmarcLeaf::Disposition),
        (DmarcElement::Evaluated, b"dkim") => DmarcElement::Leaf(DmarcLeaf::Dkim),
        (DmarcElement::Evaluated, b"spf") => DmarcElement::Leaf(DmarcLeaf::Spf),
        _ => DmarcElement::Elsewhere,
    }
}

/// Whether XML is such a report, by the name of its root.
pub(super) fn looks_so(file: &[u8]) -> bool {
    let head = &file[..file.len().min(PROLOGUE_BYTES_MAX)];
    // The root may have a prefix for its namespace.
    let is_prefix = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b':';
    memchr::memmem::find_iter(head, b"feedback").any(|at| {
        let tag = head[..at].iter().rposition(|byte| !is_prefix(byte));
        tag.is_some_and(|tag| head[tag] == b'<')
    })
}

/// What was read so far.
#[derive(Default)]
struct DmarcData {
    organisation: Option<String>,
    report_id: Option<String>,
    begin: Option<i64>,
    end: Option<i64>,
    domain: Option<String>,
    policy: Option<String>,
    source: String,
    count: i64,
    result: DmarcResult,
    tally: ReportTally,
}

/// Reads a report.
pub(super) fn read(file: &[u8]) -> Result<DomainReport, DomainReportError> {
    let document = String::from_utf8_lossy(file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file));
    let mut reader = Reader::from_str(&document);
    reader.config_mut().expand_empty_elements = true;
    let mut data = DmarcData::default();
    let mut open: Vec<DmarcElement> = Vec::new();
    let (mut elements, mut seen_root) = (0_usize, false);
    let mut text = String::new();
    loop {
        let event = reader.read_event().map_err(|_| DomainReportError::Xml("it is not XML"))?;
        match event {
            Event::Start(element) => {
                elements += 1;
                if open.len() == DEPTH_MAX || elements > ELEMENTS_MAX {
                    return Err(DomainReportError::Xml("it has too many elements"));
                }
                let name = element.local_name();
                let kind = match open.last() {
                    Some(parent) => child_element(*parent, name.as_ref()),
                    None if !seen_root && name.as_ref() == b"feedback" => DmarcElement::Root,
                    None => return Err(DomainReportError::Xml("its root is not `feedback`")),
                };
                if kind == DmarcElement::Record {
                    data.begin_record();
                }
                seen_root = true;
                text.clear();
                open.push(kind);
            }
            Event::End(_) => {
                match open.pop() {
                    Some(DmarcElement::Leaf(leaf)) => data.take_text(leaf, text.trim()),
                    Some(DmarcElement::Record) => data.end_record(),
                    _ => {}
                }
                text.clear();
            }
            Event::Text(piece) => append(&mut text, &String::from_utf8_lossy(&piece)),
            Event::CData(piece) => append(&mut text, &String::from_utf8_lossy(&piece)),
            Event::GeneralRef(reference) => append(&mut text, &resolve(&reference)?),
            Event::DocType(_) => return Err(DomainReportError::Xml("it has a document type")),
            Event::Eof if open.is_empty() && seen_root => break,
            Event::Eof => return Err(DomainReportError::Xml("it ends too early")),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    data.into_report()
}

impl DmarcData {
    fn begin_record(&mut self) {
        self.source.clear();
        (self.count, self.result) = (0, DmarcResult::default());
    }

    fn end_record(&mut self) {
        self.tally.add(std::mem::take(&mut self.source), self.result.code(), self.count);
    }

    fn take_text(&mut self, leaf: DmarcLeaf, text: &str) {
        let is_pass = || text.eq_ignore_ascii_case("pass");
        match leaf {
            DmarcLeaf::Organisation => self.organisation = Some(bounded_line(text)),
            DmarcLeaf::ReportId => self.report_id = Some(bounded_line(text)),
            DmarcLeaf::Begin => self.begin = seconds(text),
            DmarcLeaf::End => self.end = seconds(text),
            DmarcLeaf::Domain => self.domain = normal_domain(text),
            DmarcLeaf::PolicyWord => self.policy = Some(bounded_line(&text.to_ascii_lowercase())),
            // What is no address is counted without one.
            DmarcLeaf::SourceIp => {
                self.source =
                    text.parse::<IpAddr>().map(|ip| ip.to_canonical().to_string()).unwrap_or_default();
            }
            DmarcLeaf::Count => self.count = text.parse::<i64>().map_or(0, |count| count.clamp(0, COUNT_MAX)),
            DmarcLeaf::Disposition => {
                let mut known = DmarcDisposition::ALL.into_iter();
                let found = known.find(|one| text.eq_ignore_ascii_case(one.as_str()));
                // The successor of RFC 7489 says `pass` where nothing was done.
                self.result.disposition = found.unwrap_or_default();
            }
            DmarcLeaf::Dkim => self.result.dkim = is_pass(),
            DmarcLeaf::Spf => self.result.spf = is_pass(),
        }
    }

    fn into_report(self) -> Result<DomainReport, DomainReportError> {
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let begin = self.begin.ok_or(DomainReportError::Lacks("beginning"))?;
        let end = self.end.ok_or(DomainReportError::Lacks("end"))?;
        Ok(DomainReport {
            kind: DomainReportKind::Dmarc,
            domain: self.domain.ok_or(DomainReportError::Lacks("domain"))?,
            organisation: filled(self.organisation).ok_or(DomainReportError::Lacks("organisation"))?,
            report_id: filled(self.report_id).ok_or(DomainReportError::Lacks("id"))?,
            began_at: Time::from_millis(begin),
            ended_at: Time::from_millis(end.max(begin)),
            policy: filled(self.policy),
            lines: self.tally.into_lines(),
        })
    }
}

/// Seconds since 1970, as milliseconds.
fn seconds(text: &str) -> Option<i64> {
    let seconds: i64 = text.parse().ok()?;
    // Every database can store what is below the year 10000.
    (0..253_402_300_800).contains(&seconds).then(|| seconds * 1_000)
}

fn resolve(reference: &BytesRef<'_>) -> Result<String, DomainReportError> {
    let unknown = DomainReportError::Xml("it has an entity that XML does not predefine");
    match reference.resolve_char_ref() {
        Ok(Some(character)) => Ok(character.to_string()),
        Ok(None) => {
            let name = String::from_utf8_lossy(reference);
            resolve_xml_entity(&name).map(str::to_owned).ok_or(unknown)
        }
        Err(_) => Err(unknown),
    }
}

/// Appends up to the limit of an element's text, and room for what is trimmed.
fn append(text: &mut String, piece: &str) {
    let piece = if text.is_empty() { piece.trim_start() } else { piece };
    let room = (2 * TEXT_BYTES_MAX).saturating_sub(text.len());
    text.push_str(&piece[..piece.floor_char_boundary(room)]);
}
