//! Whether a text is a report: features in families, each with a weight, and a sum that must reach [`THRESHOLD`].
//!
//! Half of all reports are written for people only, in forms that nobody lists. What they share are features: who sent them, what
//! their subject and their words say, that they give a mail back, that they quote an SMTP session, that they name an address. None
//! of them is proof, and people who forward or discuss reports have many of them. So each feature has a weight, written in
//! [`header`] and [`text`], and:
//!
//! - Of a family only the weightiest feature counts: ten ways of saying the same are no ten reasons.
//! - Somebody must have sent the mail who is not a person ([`ReportJudgement::is_from_machine`]). That shows in its sender or envelope, or by
//!   that it gives a mail back to who sent that. A sender that only may be a machine, such as `no-reply@`, is believed only when the
//!   mail gives another one back.
//! - What speaks for a conversation weighs against a report.
//!
//! A report that has a part for machines, or is of a known form, is weighed the same way; those features weigh most. `inspect --why`
//! lists all of it.

pub(super) mod header;
pub(super) mod notice_words;
pub(super) mod text;

use serde_json::{Value, json};

/// The sum of weights from which a mail is a report.
pub const THRESHOLD: i32 = 120;

/// The weight from which a sender or an envelope shows by itself that no person sent the mail.
const MACHINE_WEIGHT: i32 = 35;

/// A group of features that say the same thing in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeatureFamily {
    /// Who sent it, by the name in `From` and by fields that only reports have.
    Sender,
    /// The sender on its envelope, and whom it gives a mail back to.
    Envelope,
    /// What the header says about being automatic.
    Automation,
    /// What its subject says.
    Subject,
    /// Its parts, and whether it gives a mail back.
    Structure,
    /// Whether it is of a form that a recogniser knows.
    Form,
    /// Words that admit a failure.
    Admission,
    /// Codes and reasons.
    Diagnosis,
    /// Lines of an SMTP session.
    Transcript,
    /// How the address of the recipient stands in it.
    Address,
    /// Signs of people who write to each other.
    Conversation,
}

impl FeatureFamily {
    /// All of them.
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

    /// The name as `inspect` prints it.
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
    /// The phrase of our tables that was found, where it is one.
    pub phrase: Option<&'static str>,
    /// How much it speaks for a report, or against one.
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

    /// All features, also those that do not count because a weightier one of their family does.
    pub fn features(&self) -> &[ReportFeature] {
        &self.features
    }

    /// The weight of a family: that of its weightiest feature, whether it speaks for a report or against one.
    pub fn weight(&self, family: FeatureFamily) -> i32 {
        let of_family = self.features.iter().filter(|feature| feature.family == family);
        of_family.map(|feature| feature.weight).max_by_key(|weight| weight.abs()).unwrap_or_default()
    }

    /// The sum of the weights of the families.
    pub fn total(&self) -> i32 {
        FeatureFamily::ALL.into_iter().map(|family| self.weight(family)).sum()
    }

    /// Whether a machine may have sent it at all; what a person sent is not read any further.
    pub(super) fn may_be_from_machine(&self) -> bool {
        [FeatureFamily::Sender, FeatureFamily::Envelope].iter().any(|family| self.weight(*family) > 0)
    }

    /// Whether a machine sent it: by its sender or envelope, or by a sender that may be one and a mail that is given back.
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

    /// The features as `inspect --why` prints them, the weightiest first.
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
