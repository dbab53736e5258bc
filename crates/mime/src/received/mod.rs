//! What a received mail is: a bounce, a delay, a success, a complaint, an automatic answer, or ordinary mail.
//!
//! [`inspect`] reads the raw bytes and says what they are, about which recipients, and which mail it is
//! about. It reads delivery reports (RFC 3464, RFC 6533), abuse reports (RFC 5965), automatic answers (RFC
//! 3834), and the many reports that are written as text. It promises:
//!
//! - It never fails and never panics; what it does not know is [`Kind::Ordinary`].
//! - A code that the mail does not contain is none.
//! - [`BounceType::Hard`] needs proof that the address itself is bad.
//! - Mail of people stays ordinary, also when it forwards, quotes or discusses a report.
//! - LF, CR LF and bare CR give the same report.
//! - Time is linear in the size; depth, parts, fields, recipients and texts are bounded.
//!
//! It does not say whether the report is genuine: anybody can write one. That is for whoever correlates it.
//!
//! The way of a mail: `mail` takes its parts from the crate's one reader, `complaint` and `dsn` read the parts for machines,
//! `recogniser` reads the text when there are none, `judgement` weighs whether that text is a report at all, `diagnosis` and
//! `reason` draw codes and a reason from the words, and `returned` reads the header that came back. `delivery` puts these together.

mod address;
mod auto_reply;
mod bytes;
mod complaint;
mod delivery;
mod diagnosis;
mod dsn;
mod header_field;
mod html_text;
mod judgement;
mod mail;
mod original_message;
mod partial_finding;
mod reason;
mod recogniser;
mod report;
mod sender;
mod weighing;

pub use judgement::{FeatureFamily, ReportFeature, ReportJudgement, THRESHOLD};
pub use reason::Reason;
pub use recogniser::prose::RecipientCandidate;
pub use report::{Action, BounceType, Class, Finding, Kind, Original, Report};
pub use weighing::WeighedReport;

use mail::{ReportMail, ReportPartKind};
use weighing::ReportWeighing;

/// How much of a mail is looked at: a report comes first, and what it gives back may be large.
pub const INSPECTED_OCTETS_MAX: usize = 8 * 1024 * 1024;

/// Says what a received mail is.
pub fn inspect(raw: &[u8]) -> Report {
    let raw = bytes::normalise(raw, INSPECTED_OCTETS_MAX);
    judge(&ReportMail::parse(&raw), &mut ReportWeighing::default())
}

/// Says what a received mail is, and by which features, each with its weight.
pub fn inspect_weighed(raw: &[u8]) -> WeighedReport {
    let raw = bytes::normalise(raw, INSPECTED_OCTETS_MAX);
    let mail = ReportMail::parse(&raw);
    let mut weighing = ReportWeighing::default();
    let report = judge(&mail, &mut weighing);
    weighing.complete(&mail, report)
}

fn judge(mail: &ReportMail<'_>, weighing: &mut ReportWeighing) -> Report {
    if let Some(report) = complaint::recognise(mail) {
        weighing.read_by = Some("complaint");
        return report;
    }
    if mail.part(ReportPartKind::Disposition).is_some() && delivery::rejection(mail).is_none() {
        // A receipt for having been read says nothing about delivery.
        return Report::ordinary();
    }
    if let Some(report) = delivery::recognise(mail, weighing) {
        return report;
    }
    if let Some(report) = auto_reply::recognise(mail) {
        weighing.read_by = Some("auto_reply");
        return report;
    }
    Report::ordinary()
}
