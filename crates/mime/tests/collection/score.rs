//! Compares the results with the labels.

use std::{collections::BTreeSet, fs, hint::black_box};

use postway_mime::received::{
    ReceivedReport, ReportFinding, ReportKind, ReportedAction, ReportedClass, inspect, inspect_weighed,
};

use crate::labels::{Fact, Half, LabelledMail, Truth};

/// A count of successes, and the total.
#[derive(Debug, Default, Clone, Copy)]
struct LabelShare {
    right: usize,
    all: usize,
}

impl LabelShare {
    fn count(&mut self, right: bool) -> bool {
        self.right += usize::from(right);
        self.all += 1;
        right
    }

    fn percent(self) -> f64 {
        if self.all == 0 { 100.0 } else { 100.0 * self.right as f64 / self.all as f64 }
    }

    fn text(self) -> String {
        match self.all {
            0 => "–".to_owned(),
            all => format!("{:.1} ({}/{all})", self.percent(), self.right),
        }
    }
}

/// The minimum scores of a collection in percent: recognised, recipients, status, reply, class, for the half
/// that rules are written for and for the other half.
type Floors = (&'static str, [f64; 5], [f64; 5]);

/// A little below the scores of 2026-11-18. A collection that is not listed is only measured.
const FLOORS: &[Floors] = &[
    ("own", [100.0; 5], [100.0; 5]),
    ("bounces", [99.0, 99.0, 99.0, 99.0, 98.5], [99.0, 98.5, 99.0, 98.5, 98.0]),
    ("bounces-2", [98.0, 96.0, 0.0, 0.0, 98.0], [93.0, 87.0, 0.0, 0.0, 85.0]),
];

/// The scores of a collection.
#[derive(Debug, Default)]
pub struct Score {
    recognised: LabelShare,
    recipients: LabelShare,
    status: LabelShare,
    reply: LabelShare,
    class: LabelShare,
    /// Ordinary mail that was classified as ordinary.
    ordinary: LabelShare,
    cpu_ticks: u64,
    mails: usize,
    /// Results that differ from the labels.
    pub faults: Vec<String>,
}

/// How often each mail is read to measure the time; one reading is too short for the clock.
const ROUNDS: usize = 20;

impl Score {
    pub const HEADING: &str = "| collection | half | recognised | recipients | status | reply | class | ordinary | mails per CPU-second |\n\
        |---|---|---|---|---|---|---|---|---|";

    /// Reads a mail and counts the correct values.
    pub fn add(&mut self, mail: &LabelledMail) {
        let report = inspect(&mail.raw);
        if !cfg!(debug_assertions) {
            let began = cpu_ticks();
            (0..ROUNDS).for_each(|_| drop(black_box(inspect(black_box(&mail.raw)))));
            self.cpu_ticks += cpu_ticks() - began;
        }
        self.mails += 1;
        let mut fault = |what: &str, expected: String| {
            self.faults.push(format!("{}: {what}: {expected}, read {}", mail.file, brief(&report)));
        };
        match mail.truth {
            Truth::Ordinary => {
                if !self.ordinary.count(matches!(report.kind, ReportKind::Ordinary | ReportKind::AutoReply)) {
                    fault("ordinary", String::new());
                }
            }
            Truth::Other(kind) => {
                if !self.recognised.count(report.kind.as_str() == kind) {
                    fault("kind", kind.to_owned());
                }
            }
            Truth::Report => {
                let is_recognised = matches!(report.kind, ReportKind::Bounce | ReportKind::Delay);
                if !self.recognised.count(is_recognised) {
                    let why = inspect_weighed(&mail.raw).why().to_string();
                    fault("kind", format!("a report, by {why}"));
                }
                if !self.recipients.count(same_recipients(&mail.facts, &report)) {
                    let expected: Vec<_> = mail.facts.iter().map(|fact| fact.address.as_str()).collect();
                    fault("recipients", expected.join(", "));
                }
                for fact in &mail.facts {
                    let found = report.recipients.iter().find(|finding| is_about(fact, finding));
                    if let Some(status) = &fact.status
                        && !self.status.count(found.and_then(|found| found.status.as_ref()) == Some(status))
                    {
                        fault("status", status.clone());
                    }
                    if let Some(reply) = fact.reply
                        && !self.reply.count(found.and_then(|found| found.smtp_code) == Some(reply))
                    {
                        fault("reply", reply.to_string());
                    }
                    if let Some(class) = &fact.class {
                        let read = found.and_then(|found| found.class).map(ReportedClass::as_str);
                        if !self.class.count(read == Some(class)) {
                            fault("class", class.clone());
                        }
                    }
                    if let Some(gave_up) = fact.gave_up {
                        let read = found.map(|found| found.action != Some(ReportedAction::Delayed));
                        if !self.class.count(read == Some(gave_up)) {
                            fault("gave up", gave_up.to_string());
                        }
                    }
                }
            }
            Truth::Unknown => {}
        }
    }

    /// The row of the table.
    pub fn line(&self, name: &str, half: Half) -> String {
        let rate = match self.cpu_ticks {
            0 => "–".to_owned(),
            ticks => format!("{:.0}", (self.mails * ROUNDS) as f64 / (ticks as f64 / TICKS_PER_SECOND)),
        };
        let half = match half {
            Half::Tuned => "tuned",
            Half::Unseen => "unseen",
        };
        let shares = [self.recognised, self.recipients, self.status, self.reply, self.class, self.ordinary]
            .map(LabelShare::text);
        format!("| {name} | {half} | {} | {rate} |", shares.join(" | "))
    }

    /// The scores below the minimum of the collection.
    pub fn below_floor(&self, name: &str, half: Half) -> Vec<String> {
        let mut below = Vec::new();
        if self.ordinary.right < self.ordinary.all {
            below.push(format!("{name}: ordinary mail was taken for a report"));
        }
        let Some((_, tuned, unseen)) = FLOORS.iter().find(|(known, ..)| *known == name) else { return below };
        let floors = if half == Half::Tuned { tuned } else { unseen };
        let names = ["recognised", "recipients", "status", "reply", "class"];
        let shares = [self.recognised, self.recipients, self.status, self.reply, self.class];
        for ((what, share), floor) in names.into_iter().zip(shares).zip(floors) {
            if share.percent() < *floor {
                below.push(format!("{name}, {half:?}: {what} {:.1} of {floor}", share.percent()));
            }
        }
        below
    }
}

/// Whether a report names exactly the labelled recipients.
fn same_recipients(facts: &[Fact], report: &ReceivedReport) -> bool {
    // Some labels name a recipient twice, with two reasons.
    let known: BTreeSet<_> = facts.iter().map(|fact| &fact.address).collect();
    let failed: Vec<_> = report.recipients.iter().filter(|finding| !is_delivered(finding)).collect();
    failed.len() == known.len()
        && facts.iter().all(|fact| failed.iter().any(|finding| is_about(fact, finding)))
}

fn is_delivered(finding: &ReportFinding) -> bool {
    matches!(
        finding.action,
        Some(ReportedAction::Delivered | ReportedAction::Relayed | ReportedAction::Expanded)
    )
}

fn is_about(fact: &Fact, finding: &ReportFinding) -> bool {
    let names = |address: &str| {
        address.eq_ignore_ascii_case(&fact.address)
            || fact.alias.as_ref().is_some_and(|alias| address.eq_ignore_ascii_case(alias))
    };
    names(&finding.address) || finding.original_address.as_deref().is_some_and(names)
}

fn brief(report: &ReceivedReport) -> String {
    let recipients: Vec<_> = report
        .recipients
        .iter()
        .map(|finding| {
            format!(
                "{} {} {} {} {}",
                finding.address,
                finding.action.map_or("-", ReportedAction::as_str),
                finding.status.as_deref().unwrap_or("-"),
                finding.smtp_code.map_or("-".to_owned(), |code| code.to_string()),
                finding.reason.as_str()
            )
        })
        .collect();
    format!(
        "{} by {} [{}]",
        report.kind.as_str(),
        report.reporter.as_deref().unwrap_or("-"),
        recipients.join("; ")
    )
}

const TICKS_PER_SECOND: f64 = 1e9;

/// The CPU time of this thread so far, in nanoseconds.
fn cpu_ticks() -> u64 {
    fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}
