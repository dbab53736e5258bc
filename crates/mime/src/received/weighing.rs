//! What is written down while a mail is read: by whom it was read, and what weighed how much.

use serde_json::{Value, json};

use super::judgement::{ReportJudgement, header, text};
use super::mail::ReportMail;
use super::original_message;
use super::recogniser::ReportText;
use super::recogniser::prose::RecipientCandidate;
use super::report::{Original, Report};
use super::sender::SenderTraits;

/// The judgement in the making.
#[derive(Debug, Default)]
pub(super) struct ReportWeighing {
    pub(super) judgement: ReportJudgement,
    pub(super) candidates: Vec<RecipientCandidate>,
    /// What read the mail: `fields`, `complaint`, `auto_reply`, `prose`, or the name of a form.
    pub(super) read_by: Option<&'static str>,
    /// Whether the words were weighed, and not only who sent the mail.
    is_complete: bool,
}

impl ReportWeighing {
    /// Begins with who sent the mail, which decides whether the rest is worth reading.
    pub(super) fn begin(&mut self, sender: SenderTraits) {
        *self = Self { judgement: header::weigh_sender(sender), ..Self::default() };
    }

    /// Weighs the rest of the header, the parts and the words.
    pub(super) fn weigh(&mut self, mail: &ReportMail<'_>, words: &ReportText<'_>) {
        header::weigh_rest(&mut self.judgement, mail, words.sender);
        text::weigh_structure(&mut self.judgement, mail, words.below);
        let is_doubted = !words.sender.is_surely_machine() && !words.sender.service;
        text::weigh_words(&mut self.judgement, words.report, words.flat(), words.notice(), is_doubted);
        self.is_complete = true;
    }

    /// What was read and why, with the weights of a mail that was read without them.
    pub(super) fn complete(mut self, mail: &ReportMail<'_>, report: Report) -> WeighedReport {
        if !self.is_complete {
            let sender = SenderTraits::read(mail.header());
            let read_by = self.read_by;
            self.begin(sender);
            self.read_by = read_by;
            let whole = mail.report_text();
            let original = Original::default();
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

/// What a mail is, and why it was taken for that.
#[derive(Debug)]
pub struct WeighedReport {
    /// What it is.
    pub report: Report,
    /// What read the mail: `fields`, `complaint`, `auto_reply`, `prose`, or the name of a form. None for ordinary mail.
    pub read_by: Option<&'static str>,
    /// What weighed how much.
    pub judgement: ReportJudgement,
    /// The addresses of the text, where they were weighed.
    pub candidates: Vec<RecipientCandidate>,
}

impl WeighedReport {
    /// The reasons as `inspect --why` prints them.
    pub fn why(&self) -> Value {
        let candidates: Vec<_> = self.candidates.iter().map(RecipientCandidate::to_json).collect();
        json!({ "read_by": self.read_by, "judgement": self.judgement.to_json(), "addresses": candidates })
    }
}
