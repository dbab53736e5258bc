//! Decides whether a text is a report: features in families have weights, and their sum must reach
//! [`THRESHOLD`].
//!
//! Half of all reports are written for people only, in countless formats. They share features: their sender,
//! the wording of subject and text, a returned mail, a quoted SMTP session, the address of a recipient. No
//! feature is proof, and mails that forward or discuss reports have many of them. So each feature has a
//! weight, defined in [`header`] and [`text`], and these rules apply:
//!
//! - Of a family only the feature with the largest weight counts, because ten wordings of the same fact are
//!   not ten reasons.
//! - A machine must have sent the mail ([`ReportJudgement::is_from_machine`]): its sender or envelope shows
//!   it, or it returns a mail to the sender of that mail. A sender that only may be a machine, such as
//!   `no-reply@`, counts only if the mail returns another one.
//! - Signs of a conversation weigh against a report.
//!
//! A report with a machine-readable part, or in a known format, is run_heavy in the same way; those features
//! weigh most. `inspect --why` lists all features.

pub(super) mod header;
pub(super) mod text;

use serde_json::{Value, json};

/// The minimum sum of weights of a report.
pub const THRESHOLD: i32 = 120;

/// The minimum weight of a sender or an envelope that shows by itself that a machine sent the mail.
const MACHINE_WEIGHT: i32 = 35;

/// A group of features that express the same fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeatureFamily {
    /// The sender, by the name in `From` and by fields that only reports have.
    Sender,
    /// The envelope sender, and the recipient of the returned mail.
    Envelope,
    /// Header fields that declare the mail as automatic.
    Automation,
    /// The wording of its subject.
    Subject,
    /// Its parts, and whether it returns a mail.
    Structure,
    /// Whether a recogniser knows its format.
    Form,
    /// Words that admit a failure.
    Admission,
    /// Codes and reasons.
    Diagnosis,
    /// Lines of an SMTP session.
    Transcript,
    /// How the text names the recipient's address.
    Address,
    /// Signs of a conversation between people.
    Conversation,
}

impl FeatureFamily {
    /// All families.
    pub const ALL: [Self; 11] = [
        Self::Sender,
        Self::Envelope,
        Self::Automation,
        Self::Subject,
        Self::Structure,
        Self::Form,
        Self::Admission,
        Self::Diagnosis,
        Self::Transcript,
        Self::Address,
        Self::Conversation,
    ];

    /// The name that `inspect` prints.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Envelope => "envelope",
            Self::Automation => "automation",
            Self::Subject => "subject",
            Self::Structure => "structure",
            Self::Form => "form",
            Self::Admission => "admission",
            Self::Diagnosis => "diagnosis",
            Self::Transcript => "transcript",
            Self::Address => "address",
            Self::Conversation => "conversation",
        }
    }
}

/// A feature that a mail has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportFeature {
    /// The family that it belongs to.
    pub family: FeatureFamily,
    /// Its name, in snake case.
    pub name: &'static str,
    /// The phrase that was found, if the feature is a phrase of a table.
    pub phrase: Option<&'static str>,
    /// Its weight: positive for a report, negative against one.
    pub weight: i32,
}

/// The features of a mail.
#[derive(Debug, Clone, Default)]
pub struct ReportJudgement {
    features: Vec<ReportFeature>,
}

impl ReportJudgement {
    /// Adds a feature.
    pub(super) fn add(&mut self, family: FeatureFamily, name: &'static str, weight: i32) {
        self.features.push(ReportFeature { family, name, phrase: None, weight });
    }

    /// Adds a feature that a phrase of a table shows.
    pub(super) fn add_phrase(
        &mut self,
        family: FeatureFamily,
        name: &'static str,
        phrase: &'static str,
        weight: i32,
    ) {
        self.features.push(ReportFeature { family, name, phrase: Some(phrase), weight });
    }

    /// All features, including those that do not count because another of their family weighs more.
    pub fn features(&self) -> &[ReportFeature] {
        &self.features
    }

    /// The weight of a family: that of its feature with the largest absolute weight.
    pub fn weight(&self, family: FeatureFamily) -> i32 {
        let of_family = self.features.iter().filter(|feature| feature.family == family);
        of_family.map(|feature| feature.weight).max_by_key(|weight| weight.abs()).unwrap_or_default()
    }

    /// The sum of the weights of the families.
    pub fn total(&self) -> i32 {
        FeatureFamily::ALL.into_iter().map(|family| self.weight(family)).sum()
    }

    /// Whether a machine may have sent it. If not, the mail is not read any further.
    pub(super) fn may_be_from_machine(&self) -> bool {
        [FeatureFamily::Sender, FeatureFamily::Envelope].iter().any(|family| self.weight(*family) > 0)
    }

    /// Whether a machine sent it: by its sender or envelope, or by a possible machine as sender together with
    /// a returned mail.
    pub fn is_from_machine(&self) -> bool {
        let shows = |family| self.weight(family) >= MACHINE_WEIGHT;
        shows(FeatureFamily::Sender)
            || shows(FeatureFamily::Envelope)
            || (self.may_be_from_machine() && self.weight(FeatureFamily::Structure) > 0)
    }

    /// Whether the mail is a report.
    pub fn is_report(&self) -> bool {
        self.is_from_machine() && self.total() >= THRESHOLD
    }

    /// The features as `inspect --why` prints them, the largest weight first.
    pub fn to_json(&self) -> Value {
        let mut sorted = self.features.clone();
        sorted.sort_by_key(|feature| (-feature.weight.abs(), feature.family));
        let features: Vec<_> = sorted.iter().map(|feature| self.feature_json(feature)).collect();
        json!({
            "total": self.total(),
            "threshold": THRESHOLD,
            "from_machine": self.is_from_machine(),
            "features": features,
        })
    }

    fn feature_json(&self, feature: &ReportFeature) -> Value {
        json!({
            "family": feature.family.as_str(),
            "feature": feature.name,
            "phrase": feature.phrase,
            "weight": feature.weight,
            "counts": feature.weight == self.weight(feature.family),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_family_only_the_weightiest_feature_counts() {
        let mut judgement = ReportJudgement::default();
        judgement.add(FeatureFamily::Admission, "a", 30);
        judgement.add(FeatureFamily::Admission, "b", 20);
        judgement.add(FeatureFamily::Conversation, "c", -80);
        judgement.add(FeatureFamily::Conversation, "d", -15);
        assert_eq!(judgement.weight(FeatureFamily::Admission), 30);
        assert_eq!(judgement.total(), -50);
    }

    #[test]
    fn a_sender_that_may_be_a_machine_needs_a_mail_that_is_given_back() {
        let mut judgement = ReportJudgement::default();
        judgement.add(FeatureFamily::Sender, "no_reply", 10);
        judgement.add(FeatureFamily::Form, "form", 200);
        assert!(!judgement.is_report());
        judgement.add(FeatureFamily::Structure, "returned_mail", 25);
        assert!(judgement.is_report());
    }

    #[test]
    fn no_weight_makes_a_report_of_what_a_person_sent() {
        let mut judgement = ReportJudgement::default();
        judgement.add(FeatureFamily::Structure, "returned_mail", 25);
        judgement.add(FeatureFamily::Form, "form", 1_000);
        assert!(!judgement.is_report());
    }
}
