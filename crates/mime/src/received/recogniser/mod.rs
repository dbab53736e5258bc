//! Reports that are written as text, which half of all reports are: one recogniser per form.
//!
//! A recogniser looks at the words before the returned mail and either knows the form, and gives what it says
//! about each recipient, or gives none. They are tried in the order of [`RECOGNISERS`]. What is of no known form is read by
//! [`prose`], which weighs every address. Adding a form is a file with a `recognise` and a line in the table.
//!
//! A form is a feature of the mail like others: whether the whole is a report is for the [judgement](super::judgement).

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
use super::judgement::FeatureFamily;
use super::judgement::notice_words::{NoticeWords, notice_words};
use super::mail::ReportMail;
use super::partial_finding::PartialFinding;
use super::reason::Reason;
use super::report::{Kind, Original};
use super::sender::SenderTraits;
use super::weighing::ReportWeighing;

/// What a recogniser looks at.
pub(super) struct ReportText<'a> {
    pub(super) mail: &'a ReportMail<'a>,
    pub(super) sender: SenderTraits,
    /// The words before the returned mail.
    pub(super) report: &'a [u8],
    /// What stands below them, where the text itself gives the mail back.
    pub(super) below: Option<&'a [u8]>,
    /// What is known about the returned mail.
    pub(super) original: &'a Original,
    /// The words on one line, for phrases that a line break divides.
    flat: OnceCell<String>,
    notice: OnceCell<NoticeWords>,
}

/// How much of the words is searched for phrases.
const FLAT_OCTETS_MAX: usize = 16 * 1024;

impl<'a> ReportText<'a> {
    pub(super) fn new(
        mail: &'a ReportMail<'a>,
        sender: SenderTraits,
        (report, below): (&'a [u8], Option<&'a [u8]>),
        original: &'a Original,
    ) -> Self {
        Self { mail, sender, report, below, original, flat: OnceCell::new(), notice: OnceCell::new() }
    }

    /// The words on one line.
    pub(super) fn flat(&self) -> &str {
        self.flat.get_or_init(|| squeeze(self.report, FLAT_OCTETS_MAX))
    }

    /// What the phrases of the words say.
    pub(super) fn notice(&self) -> NoticeWords {
        *self.notice.get_or_init(|| notice_words(&self.flat().to_lowercase()))
    }

    /// Whether the header or the words speak of a mail that did not arrive.
    fn admits_failure(&self) -> bool {
        self.sender.subject.is_some() || self.notice().admission.is_some() || self.notice().delay.is_some()
    }

    /// Whether the words contain the phrase, in any case.
    fn says(&self, phrase: &[u8]) -> bool {
        contains(self.flat().as_bytes(), phrase)
    }

    /// Whether the words contain one of the phrases, in any case.
    fn says_any(&self, phrases: &[&[u8]]) -> bool {
        phrases.iter().any(|phrase| self.says(phrase))
    }
}

/// What a recogniser found.
pub(super) struct RecognisedReport {
    /// The name of the form.
    pub(super) name: &'static str,
    pub(super) findings: Vec<PartialFinding>,
    /// What the form says that the report is, where it says so apart from the recipients.
    pub(super) kind: Option<Kind>,
    /// The type of a complaint.
    pub(super) feedback_type: Option<String>,
    /// The id of the mail that the report is about.
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

/// Tries the recognisers, and says to the judgement what was found.
pub(super) fn recognise(text: &ReportText<'_>, weighing: &mut ReportWeighing) -> Option<RecognisedReport> {
    if let Some(form) = notification_service::recognise(text).or_else(|| recognise_form(text)) {
        weighing.judgement.add(FeatureFamily::Form, form.name, FORM_WEIGHT);
        return Some(form);
    }
    let reading = prose::read(text)?;
    let (name, weight) = reading.feature;
    weighing.judgement.add(FeatureFamily::Address, name, weight);
    weighing.candidates = reading.candidates;
    Some(RecognisedReport::new("prose", text, reading.findings))
}

/// The weight of a known form: with any machine as its sender it makes a report.
const FORM_WEIGHT: i32 = 100;

/// Tries the recognisers of words.
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
            // The mark of a mobile carrier's filter, whatever its words say.
            findings.iter_mut().for_each(|finding| finding.reason = Some(Reason::Filtered));
        }
        Self { name, findings, kind: None, feedback_type: None, message_id: None }
    }
}
