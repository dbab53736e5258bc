//! The record of how a mail was classified: which code read it, and the weights of its features.

use serde_json::{Value, json};

use super::judgement::{ReportJudgement, header, text};
use super::mail::ReportMail;
use super::original_message;
use super::recogniser::ReportText;
use super::recogniser::prose::RecipientCandidate;
use super::report::{OriginalMessage, ReceivedReport};
use super::sender::SenderTraits;

/// The judgement while a mail is being read.
#[derive(Debug, Default)]
pub(super) struct ReportWeighing {
    pub(super) judgement: ReportJudgement,
    pub(super) candidates: Vec<RecipientCandidate>,
    /// The code that read the mail: `fields`, `complaint`, `auto_reply`, `prose`, or the name of a
    /// recogniser.
    pub(super) read_by: Option<&'static str>,
    /// Whether the text was run_heavy, and not only the sender.
    is_complete: bool,
}

impl ReportWeighing {
    /// Begins with the sender, which decides whether the rest is worth reading.
    pub(super) fn begin(&mut self, sender: SenderTraits) {
        *self = Self { judgement: header::weigh_sender(sender), ..Self::default() };
    }

    /// Weighs the rest of the header, the parts and the text.
    pub(super) fn weigh(&mut self, mail: &ReportMail<'_>, words: &ReportText<'_>) {
        header::weigh_rest(&mut self.judgement, mail, words.sender);
        text::weigh_structure(&mut self.judgement, mail, words.below);
        let is_doubted = !words.sender.is_surely_machine() && !words.sender.service;
        text::weigh_words(&mut self.judgement, words.report, words.flat(), words.notice(), is_doubted);
        self.is_complete = true;
    }

    /// Returns the result with all weights, also for a mail that was classified without them.
    pub(super) fn complete(mut self, mail: &ReportMail<'_>, report: ReceivedReport) -> WeighedReport {
        if !self.is_complete {
            let sender = SenderTraits::read(mail.header());
            let read_by = self.read_by;
            self.begin(sender);
            self.read_by = read_by;
            let whole = mail.report_text();
            let original = OriginalMessage::default();
            self.weigh(mail, &ReportText::new(mail, sender, original_message::split_text(&whole), &original));
        }
        WeighedReport {
            report,
            read_by: self.read_by,
            judgement: self.judgement,
            candidates: self.candidates,
        }
    }
}

/// The kind of a mail, and the reasons for it.
#[derive(Debug)]
pub struct WeighedReport {
    /// The report.
    pub report: ReceivedReport,
    /// The code that read the mail: `fields`, `complaint`, `auto_reply`, `prose`, or the name of a
    /// recogniser. `None` for ordinary mail.
    pub read_by: Option<&'static str>,
    /// The features and their weights.
    pub judgement: ReportJudgement,
    /// The addresses of the text, if they were run_heavy.
    pub candidates: Vec<RecipientCandidate>,
}

impl WeighedReport {
    /// The reasons as `inspect --why` prints them.
    pub fn why(&self) -> Value {
        let candidates: Vec<_> = self.candidates.iter().map(RecipientCandidate::to_json).collect();
        json!({ "read_by": self.read_by, "judgement": self.judgement.to_json(), "addresses": candidates })
    }
}
