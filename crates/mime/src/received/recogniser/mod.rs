//! Reads reports that are written as text, about half of all reports: one recogniser per format.
//!
//! A recogniser reads the text before the returned mail. If it knows the format, it returns a finding for
//! each recipient, else `None`. They are tried in the order of [`RECOGNISERS`]. Text of no known format is
//! read by [`prose`], which weighs every address. To add a format, add a file with a `recognise` function and
//! a line in the table.
//!
//! A known format is one feature among others: the [judgement](super::judgement) decides whether the mail is
//! a report.

mod bracketed;
mod exchange;
mod exim;
mod gmail;
mod labelled;
mod listed;
mod mailing_list;
mod notification_service;
pub(super) mod prose;
mod sendmail;

use std::cell::OnceCell;

use super::bytes::{contains, squeeze};
use super::header_field::field_contains;
use super::judgement::{FeatureFamily, ReportJudgement};
use super::mail::ReportMail;
use super::notice_words::{NoticeWords, notice_words};
use super::partial_finding::PartialFinding;
use super::reason::ReportReason;
use super::report::{OriginalMessage, ReportKind};
use super::sender::SenderTraits;
use prose::RecipientCandidate;

/// The input of a recogniser.
pub(super) struct ReportText<'a> {
    pub(super) mail: &'a ReportMail<'a>,
    pub(super) sender: SenderTraits,
    /// The text before the returned mail.
    pub(super) report: &'a [u8],
    /// The returned mail below it, if it is in the same text.
    pub(super) below: Option<&'a [u8]>,
    /// What is known about the original mail.
    pub(super) original: &'a OriginalMessage,
    /// The text on one line, for phrases that a line break divides.
    flat: OnceCell<String>,
    notice: OnceCell<NoticeWords>,
}

/// How much of the text is searched for phrases.
const FLAT_OCTETS_MAX: usize = 16 * 1024;

impl<'a> ReportText<'a> {
    pub(super) fn new(
        mail: &'a ReportMail<'a>,
        sender: SenderTraits,
        (report, below): (&'a [u8], Option<&'a [u8]>),
        original: &'a OriginalMessage,
    ) -> Self {
        Self { mail, sender, report, below, original, flat: OnceCell::new(), notice: OnceCell::new() }
    }

    /// The text on one line.
    pub(super) fn flat(&self) -> &str {
        self.flat.get_or_init(|| squeeze(self.report, FLAT_OCTETS_MAX))
    }

    /// The phrases of the text.
    pub(super) fn notice(&self) -> NoticeWords {
        *self.notice.get_or_init(|| notice_words(&self.flat().to_lowercase()))
    }

    /// Whether the header or the text mentions undelivered mail.
    fn admits_failure(&self) -> bool {
        self.sender.subject.is_some() || self.notice().admission.is_some() || self.notice().delay.is_some()
    }

    /// Whether the text contains the phrase, in any case.
    fn says(&self, phrase: &[u8]) -> bool {
        contains(self.flat().as_bytes(), phrase)
    }

    /// Whether the text contains one of the phrases, in any case.
    fn says_any(&self, phrases: &[&[u8]]) -> bool {
        phrases.iter().any(|phrase| self.says(phrase))
    }
}

/// The result of a recogniser.
pub(super) struct RecognisedReport {
    /// The name of the recogniser.
    pub(super) name: &'static str,
    pub(super) findings: Vec<PartialFinding>,
    /// The kind of the report, if the format states it apart from the recipients.
    pub(super) kind: Option<ReportKind>,
    /// The type of a complaint.
    pub(super) feedback_type: Option<String>,
    /// The Message-ID of the original mail.
    pub(super) message_id: Option<String>,
}

type Recogniser = fn(&ReportText<'_>) -> Option<Vec<PartialFinding>>;

/// The recognisers in the order in which they are tried: the strictest first.
const RECOGNISERS: &[(&str, Recogniser)] = &[
    ("gmail", gmail::recognise),
    ("exim", exim::recognise),
    ("sendmail", sendmail::recognise),
    ("exchange", exchange::recognise),
    ("listed", listed::recognise),
    ("bracketed", bracketed::recognise),
    ("labelled", labelled::recognise),
    ("mailing_list", mailing_list::recognise),
];

/// Tries the recognisers, and adds the result to the judgement. The run_heavy addresses are stored in
/// `candidates`.
pub(super) fn recognise(
    text: &ReportText<'_>,
    judgement: &mut ReportJudgement,
    candidates: &mut Vec<RecipientCandidate>,
) -> Option<RecognisedReport> {
    if let Some(form) = notification_service::recognise(text).or_else(|| recognise_form(text)) {
        judgement.add(FeatureFamily::Form, form.name, FORM_WEIGHT);
        return Some(form);
    }
    let reading = prose::read(text)?;
    let (name, weight) = reading.feature;
    judgement.add(FeatureFamily::Address, name, weight);
    *candidates = reading.candidates;
    Some(RecognisedReport::new("prose", text, reading.findings))
}

/// The weight of a known format: together with any machine as sender it makes a report.
const FORM_WEIGHT: i32 = 100;

/// Tries the recognisers of text formats.
pub(super) fn recognise_form(text: &ReportText<'_>) -> Option<RecognisedReport> {
    RECOGNISERS.iter().find_map(|(name, recogniser)| {
        let mut findings = recogniser(text)?;
        findings.retain(|finding| !finding.address.is_empty());
        (!findings.is_empty()).then(|| RecognisedReport::new(name, text, findings))
    })
}

impl RecognisedReport {
    fn new(name: &'static str, text: &ReportText<'_>, mut findings: Vec<PartialFinding>) -> Self {
        findings.truncate(super::dsn::RECIPIENTS_MAX);
        if field_contains(text.mail.header(), b"x-spasign", b"ng") {
            // The mark of a mobile carrier's filter, which outweighs its text.
            findings.iter_mut().for_each(|finding| finding.reason = Some(ReportReason::Filtered));
        }
        Self { name, findings, kind: None, feedback_type: None, message_id: None }
    }
}
