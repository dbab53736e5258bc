//! Finds DMARC aggregate reports (RFC 7489, 7.2) and TLS reports (RFC 8460) in a mail.
//!
//! Reporters label these files in many ways, so a file is known by its first bytes: gzip, zip, XML or JSON.
//! Anybody can write such a mail. The number of files, the size of what is unpacked, the depth and number of
//! elements, and every text have a maximum; document types and entities of XML are refused. A report with
//! more sources than are kept is summed up, so its totals are right whatever its length.

mod dmarc;
mod tally;
mod tls;
mod unpack;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use postway_domain::{address::domain_to_ascii, domain_report::DomainReport};

use crate::reader::{DecodeBudget, MailPart, ReadMail};

/// The most parts of a mail that are looked at.
pub const PARTS_MAX: usize = 20;
/// The most reports that one mail brings: those of a TLS report about several domains count each.
pub const REPORTS_MAX: usize = 20;
/// The largest report, unpacked; all of a mail share it.
pub const UNPACKED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most pairs of source and result that are kept of a report; the rest is summed up.
pub const LINES_MAX: usize = 2_000;
/// The longest name or id that is kept, in bytes.
pub const TEXT_BYTES_MAX: usize = 255;
/// The largest count that is believed.
pub const COUNT_MAX: i64 = 1_000_000_000_000;

/// Why what looks like a report was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DomainReportError {
    /// It is too large.
    #[error("the report has more than {UNPACKED_BYTES_MAX} bytes when it is unpacked")]
    TooLarge,
    /// It cannot be unpacked.
    #[error("the report cannot be unpacked: {0}")]
    Packed(&'static str),
    /// It is not XML, or has what reports do not have.
    #[error("the DMARC report is malformed: {0}")]
    Xml(&'static str),
    /// It is not the JSON of the standard.
    #[error("the TLS report is malformed: {0}")]
    Json(&'static str),
    /// Something is missing without which it cannot be counted.
    #[error("the report does not say its {0}")]
    Lacks(&'static str),
}

/// What a mail brings.
#[derive(Debug, Default)]
pub struct FoundReports {
    /// The reports.
    pub reports: Vec<DomainReport>,
    /// The first fault of what looks like a report.
    pub fault: Option<DomainReportError>,
}

/// What the first bytes of a file say it is.
enum FileForm {
    Gzip,
    Zip,
    Xml,
    Json,
    Other,
}

fn form_of(bytes: &[u8]) -> FileForm {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return FileForm::Gzip;
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return FileForm::Zip;
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    match text.first() {
        Some(b'<') => FileForm::Xml,
        Some(b'{') => FileForm::Json,
        _ => FileForm::Other,
    }
}

/// Finds the reports in a mail.
pub fn find(raw: &[u8]) -> FoundReports {
    let mail = ReadMail::read(raw);
    let mut found = FoundReports::default();
    let (mut budget, mut room) = (DecodeBudget::of(UNPACKED_BYTES_MAX), UNPACKED_BYTES_MAX);
    for part in mail.parts().filter(|part| !part.has_children()).take(PARTS_MAX) {
        match read_part(&part, &mut budget, &mut room) {
            Ok(reports) => found.reports.extend(reports),
            Err(fault) => found.fault = found.fault.or(Some(fault)),
        }
    }
    found.reports.truncate(REPORTS_MAX);
    found
}

fn read_part(
    part: &MailPart<'_, '_>,
    budget: &mut DecodeBudget,
    room: &mut usize,
) -> Result<Vec<DomainReport>, DomainReportError> {
    let content = part.content(budget);
    let (file, was_packed) = match form_of(&content) {
        FileForm::Gzip => (Cow::Owned(unpack::gzip(&content, room)?), true),
        FileForm::Zip => match unpack::zip(&content, room)? {
            Some(file) => (Cow::Owned(file), true),
            None => return Ok(Vec::new()),
        },
        FileForm::Xml | FileForm::Json => (content, false),
        FileForm::Other => return Ok(Vec::new()),
    };
    // What a person wrote, or any other file, may begin in the same way; only a report may be faulty.
    match form_of(&file) {
        FileForm::Xml if dmarc::looks_so(&file) => dmarc::read(&file).map(|report| vec![report]),
        FileForm::Json if tls::looks_so(&file) => tls::read(&file),
        FileForm::Xml | FileForm::Json | FileForm::Other => Ok(Vec::new()),
        FileForm::Gzip | FileForm::Zip if was_packed => Err(DomainReportError::Packed("it is packed twice")),
        FileForm::Gzip | FileForm::Zip => Ok(Vec::new()),
    }
}

/// A domain in the form in which it is compared; `None` if it cannot be one.
fn normal_domain(name: &str) -> Option<String> {
    let name = name.trim().trim_end_matches('.').to_lowercase();
    let name = domain_to_ascii(&name).unwrap_or(name);
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    ((1..=253).contains(&name.len()) && name.bytes().all(good)).then_some(name)
}

/// Text of one line within the bound.
fn bounded_line(text: &str) -> String {
    let text = text.trim();
    text[..text.floor_char_boundary(TEXT_BYTES_MAX)].replace(char::is_control, " ")
}
