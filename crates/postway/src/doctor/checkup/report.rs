//! The findings of a checkup, as text and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::cli::output::printable;
use crate::doctor;

/// How much text of another system is shown.
const FOUND_CHARS_MAX: usize = 300;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckupState {
    /// Correct.
    Ok,
    /// It works, but needs attention.
    Warning,
    /// It does not work, or will not for long.
    Problem,
    /// It could not be checked.
    Skipped,
}

impl CheckupState {
    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
            Self::Skipped => "skipped",
        }
    }

    /// The colour of the word, as an ANSI code.
    fn ansi(self) -> &'static str {
        match self {
            Self::Ok => "32",
            Self::Warning => "33",
            Self::Problem => "1;31",
            Self::Skipped => "90",
        }
    }
}

impl From<doctor::DomainCheckState> for CheckupState {
    fn from(state: doctor::DomainCheckState) -> Self {
        match state {
            doctor::DomainCheckState::Ok | doctor::DomainCheckState::Absent => Self::Ok,
            doctor::DomainCheckState::Warn | doctor::DomainCheckState::Unknown => Self::Warning,
            doctor::DomainCheckState::Missing | doctor::DomainCheckState::Wrong => Self::Problem,
        }
    }
}

/// The outcome of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckupFinding {
    /// What was checked.
    pub check: String,
    /// The result of a check.
    pub state: CheckupState,
    /// What was found.
    pub found: Option<String>,
    /// What to do.
    pub advice: Option<String>,
}

impl CheckupFinding {
    pub(super) fn new(check: impl Into<String>, state: CheckupState) -> Self {
        Self { check: check.into(), state, found: None, advice: None }
    }

    /// The finding with what was found, on one line, without control characters.
    pub(super) fn found(mut self, text: impl AsRef<str>) -> Self {
        let text = printable(text.as_ref()).split_whitespace().collect::<Vec<_>>().join(" ");
        let mut shown: String = text.chars().take(FOUND_CHARS_MAX).collect();
        if text.chars().nth(FOUND_CHARS_MAX).is_some() {
            shown.push('…');
        }
        self.found = Some(shown);
        self
    }

    pub(super) fn advice(mut self, text: impl Into<String>) -> Self {
        self.advice = Some(text.into());
        self
    }
}

impl From<doctor::DomainFinding> for CheckupFinding {
    fn from(finding: doctor::DomainFinding) -> Self {
        let doctor::DomainFinding { check, state, found, advice, .. } = finding;
        // A missing record can only be named.
        let found =
            found.or_else(|| (state != doctor::DomainCheckState::Ok).then(|| state.as_str().to_owned()));
        Self { check, state: state.into(), found, advice }
    }
}

/// A group of findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckupArea {
    /// Its name.
    pub area: &'static str,
    /// What was found, in the order of the checks.
    pub findings: Vec<CheckupFinding>,
}

impl CheckupArea {
    pub(super) fn new(area: &'static str, findings: Vec<CheckupFinding>) -> Self {
        Self { area, findings }
    }
}

/// All findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorCheckup {
    /// The areas in the order of their importance: those that others depend on first.
    pub areas: Vec<CheckupArea>,
}

impl DoctorCheckup {
    /// How many findings have this state.
    pub fn count(&self, state: CheckupState) -> usize {
        let findings = self.areas.iter().flat_map(|area| &area.findings);
        findings.filter(|finding| finding.state == state).count()
    }

    /// The text for people.
    pub fn text(&self, colour: bool) -> String {
        let findings = || self.areas.iter().flat_map(|area| &area.findings);
        let width = findings().map(|finding| finding.check.chars().count()).max().unwrap_or(0).min(32);
        let mut text = String::new();
        for area in &self.areas {
            line(&mut text, area.area);
            for finding in &area.findings {
                let word = match colour {
                    true => format!("\u{1b}[{}m{:<8}\u{1b}[0m", finding.state.ansi(), finding.state.as_str()),
                    false => format!("{:<8}", finding.state.as_str()),
                };
                let found = finding.found.as_deref().unwrap_or("");
                line(&mut text, &format!("  {word} {:<width$}  {found}", finding.check));
                for advice in finding.advice.as_deref().unwrap_or("").lines() {
                    line(&mut text, &format!("  {:<8} → {advice}", ""));
                }
            }
        }
        let counts = [CheckupState::Ok, CheckupState::Warning, CheckupState::Problem, CheckupState::Skipped]
            .map(|state| (self.count(state), state))
            .map(|(count, state)| match (state, count) {
                (CheckupState::Warning | CheckupState::Problem, 0 | 2..) => {
                    format!("{count} {}s", state.as_str())
                }
                _ => format!("{count} {}", state.as_str()),
            });
        line(&mut text, "");
        line(&mut text, &format!("{} checks: {}", findings().count(), counts.join(", ")));
        text
    }
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    writeln!(text, "{}", line.trim_end()).ok();
}
