//! Classifies received mail: a bounce, a delay, a success, a complaint, an automatic answer, or ordinary
//! mail.
//!
//! [`inspect`] reads the raw bytes and returns the kind of the mail, the recipients and the original mail
//! that it is about. It understands delivery reports (RFC 3464, RFC 6533), abuse reports (RFC 5965),
//! automatic answers (RFC 3834), and the many reports that are written as prose. It promises:
//!
//! - It never fails and never panics; a mail that it does not recognise is [`ReportKind::Ordinary`].
//! - A code that the mail does not contain is `None`.
//! - [`BounceType::Hard`] needs proof that the address itself is bad.
//! - Mail that people write is ordinary, even if it forwards, quotes or discusses a report.
//! - LF, CR LF and bare CR give the same report.
//! - Time is linear in the size; depth, parts, fields, recipients and texts are bounded.
//!
//! It does not decide whether the report is genuine, because anybody can write one. The code that correlates
//! reports with messages decides that.
//!
//! The steps: `mail` takes the parts from [`crate::reader`], `complaint` and `dsn` read the machine-readable
//! parts, `recogniser` reads the text if there are none, `judgement` weighs whether that text is a report at
//! all, `diagnosis` and `reason` derive codes and a reason from the text, and `original_message` reads the
//! returned header. `delivery` combines these.

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
mod notice_words;
mod original_message;
mod partial_finding;
mod reason;
mod recogniser;
mod report;
mod sender;
mod weighing;

pub use judgement::{FeatureFamily, ReportFeature, ReportJudgement, THRESHOLD};
pub use reason::ReportReason;
pub use recogniser::prose::RecipientCandidate;
pub use report::{
    BounceType, OriginalMessage, ReceivedReport, ReportFinding, ReportKind, ReportedAction, ReportedClass,
};
pub use weighing::WeighedReport;

use mail::{ReportMail, ReportPartKind};
use weighing::ReportWeighing;

/// How much of a mail is read: the report comes first, and the returned mail may be large.
pub const INSPECTED_OCTETS_MAX: usize = 8 * 1024 * 1024;

/// How much of a server's text is read where it comes alone.
const DIAGNOSED_CHARS_MAX: usize = 4_000;

/// Classifies a received mail.
pub fn inspect(raw: &[u8]) -> ReceivedReport {
    let raw = bytes::normalise(raw, INSPECTED_OCTETS_MAX);
    judge(&ReportMail::parse(&raw), &mut ReportWeighing::default())
}

/// Classifies a received mail, and returns the features with their weights.
pub fn inspect_weighed(raw: &[u8]) -> WeighedReport {
    let raw = bytes::normalise(raw, INSPECTED_OCTETS_MAX);
    let mail = ReportMail::parse(&raw);
    let mut weighing = ReportWeighing::default();
    let report = judge(&mail, &mut weighing);
    weighing.complete(&mail, report)
}

/// What a server's words say about a recipient, where they come in an event of a provider instead of a mail.
pub fn diagnose(address: &str, action: ReportedAction, status: Option<&str>, words: &str) -> ReportFinding {
    let words: String = words.chars().take(DIAGNOSED_CHARS_MAX).collect();
    let mut finding = partial_finding::PartialFinding::new(address.to_owned(), words.as_bytes());
    finding.action = Some(action);
    finding.status = status.and_then(|status| diagnosis::EnhancedStatus::leading(status.as_bytes()));
    finding.finish(b"")
}

fn judge(mail: &ReportMail<'_>, weighing: &mut ReportWeighing) -> ReceivedReport {
    if let Some(report) = complaint::recognise(mail) {
        weighing.read_by = Some("complaint");
        return report;
    }
    if mail.part(ReportPartKind::Disposition).is_some() && delivery::rejection(mail).is_none() {
        // A read receipt contains no information about delivery.
        return ReceivedReport::ordinary();
    }
    if let Some(report) = delivery::recognise(mail, weighing) {
        return report;
    }
    if let Some(report) = auto_reply::recognise(mail) {
        weighing.read_by = Some("auto_reply");
        return report;
    }
    ReceivedReport::ordinary()
}
