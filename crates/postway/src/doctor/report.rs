//! The findings about a domain, as text and as JSON.

use std::fmt;

use serde::Serialize;

/// How much of a record is shown.
const FOUND_CHARS_MAX: usize = 600;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DomainCheckState {
    /// Correct.
    Ok,
    /// It works, and could be better.
    Warn,
    /// It is not there, and need not be.
    Absent,
    /// DNS did not answer, so nothing can be said.
    Unknown,
    /// It is not there.
    Missing,
    /// It is there, and does harm or nothing.
    Wrong,
}

impl DomainCheckState {
    /// Whether mail is trusted with it.
    pub fn is_sound(self) -> bool {
        matches!(self, Self::Ok | Self::Warn | Self::Absent)
    }

    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
            Self::Missing => "missing",
            Self::Wrong => "wrong",
        }
    }
}

/// The outcome of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DomainFinding {
    /// What was checked: `spf`, `spf lookups`, `dkim SELECTOR`, `dmarc`, `mx`, `mta-sts`, `tls-rpt`.
    pub check: String,
    /// The result of a check.
    pub state: DomainCheckState,
    /// What DNS has.
    pub found: Option<String>,
    /// What to do, or what to know.
    pub advice: Option<String>,
    /// The record to publish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<DnsRecord>,
}

/// A record to publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DnsRecord {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its value, as a form of a DNS provider takes it.
    pub value: String,
}

impl DomainFinding {
    pub(super) fn new(check: impl Into<String>, state: DomainCheckState) -> Self {
        Self { check: check.into(), state, found: None, advice: None, record: None }
    }

    /// The finding with what DNS has. Strangers write there: control characters do not reach a terminal.
    pub(super) fn found(mut self, text: &str) -> Self {
        let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        let mut shown: String = text.chars().take(FOUND_CHARS_MAX).map(printable).collect();
        if text.chars().nth(FOUND_CHARS_MAX).is_some() {
            shown.push('…');
        }
        self.found = Some(shown);
        self
    }

    /// The finding with the TXT record to publish.
    pub(super) fn publish(mut self, name: &str, value: &str) -> Self {
        self.record = Some(DnsRecord { name: name.to_owned(), kind: "TXT", value: value.to_owned() });
        self
    }

    pub(super) fn advice(mut self, text: impl Into<String>) -> Self {
        self.advice = Some(text.into());
        self
    }
}

/// All findings about a domain. Its text is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorReport {
    /// The domain, in lower case.
    pub domain: String,
    /// What was found, in the order of the checks.
    pub findings: Vec<DomainFinding>,
}

impl DoctorReport {
    /// Whether nothing is missing or wrong, nor unknown.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.state.is_sound())
    }
}

impl fmt::Display for DoctorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.domain)?;
        let width = self.findings.iter().map(|finding| finding.check.chars().count()).max().unwrap_or(0);
        for finding in &self.findings {
            let found = finding.found.as_deref().unwrap_or("");
            let line = format!("  {:<8} {:<width$}  {found}", finding.state.as_str(), finding.check);
            writeln!(f, "{}", line.trim_end())?;
            for line in finding.advice.as_deref().unwrap_or("").lines() {
                writeln!(f, "  {:<8} {line}", "")?;
            }
        }
        Ok(())
    }
}
