//! Reports of other servers about a tenant's domains.

use aws_lc_rs::digest::{Context, SHA256};
use postway_domain::{
    MessageUid, TenantId, Time,
    domain_report::{DomainReport, DomainReportKind, ReportAuthentication, ReportDay},
};

/// A report to store, with the mail that brought it. It is stored once, whatever mail repeats it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDomainReport {
    /// The tenant, which is that of the mailbox.
    pub tenant: TenantId,
    /// The report.
    pub report: DomainReport,
    /// The domain in the `From` of the mail.
    pub sender: Option<String>,
    /// Whether the mail is from there.
    pub authentication: ReportAuthentication,
    /// The mail.
    pub mail: MessageUid,
    /// The current time.
    pub at: Time,
}

impl NewDomainReport {
    /// The most reports about one domain that are stored in 24 hours; further ones are left out.
    pub const OF_DOMAIN_PER_DAY_MAX: u32 = 1_000;
    /// The most sums of one domain and day. What finds no room is added to the sum without a source.
    pub const LINES_OF_DAY_MAX: u32 = 10_000;
    /// How long reports and sums are kept.
    pub const KEPT_DAYS: u32 = 400;
    /// How old a report may be when it arrives.
    pub const LATE_DAYS_MAX: u32 = 31;

    /// What distinguishes it from other reports about its domain: its reporter and its id, and from whom it
    /// came, so that a stranger cannot take the place of a report that is still to come. A report that does
    /// not count takes no place of one that does.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = Context::new(&SHA256);
        digest.update(&[self.report.kind.code() as u8, u8::from(self.authentication.counts())]);
        let sender = self.sender.as_deref().unwrap_or_default();
        for text in [sender, &self.report.organisation, &self.report.report_id] {
            digest.update(&(text.len() as u64).to_be_bytes());
            digest.update(text.as_bytes());
        }
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.finish().as_ref());
        bytes
    }

    /// The day to which it is added: that of the middle of its time, because some reporters do not begin at
    /// midnight.
    pub fn day(&self) -> ReportDay {
        let (began, ended) = (self.report.began_at.as_millis(), self.report.ended_at.as_millis());
        ReportDay::of(Time::from_millis(began + (ended - began) / 2))
    }
}

/// A stored report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainReportView {
    /// Its digest, which is its place among those that arrived at the same time.
    pub digest: [u8; 32],
    /// The kind.
    pub kind: DomainReportKind,
    /// Who reports, as the report says.
    pub organisation: String,
    /// The reporter's id of it.
    pub report_id: String,
    /// The domain in the `From` of the mail that brought it.
    pub sender: Option<String>,
    /// Whether the mail is from there.
    pub authentication: ReportAuthentication,
    /// The beginning of its time.
    pub began_at: Time,
    /// The end of its time.
    pub ended_at: Time,
    /// The policy that the reporter found.
    pub policy: Option<String>,
    /// How many messages or sessions it counts.
    pub total: i64,
    /// How many of them failed.
    pub failed: i64,
    /// The mail that brought it.
    pub inbound: MessageUid,
    /// When it was stored.
    pub received_at: Time,
}

/// The place of a report in the list of a domain.
pub type DomainReportPlace = (Time, [u8; 32]);

/// A question about the sums of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainReportQuestion {
    /// The tenant.
    pub tenant: TenantId,
    /// The domain.
    pub domain: String,
    /// The kind of reports.
    pub kind: DomainReportKind,
    /// The first day.
    pub since: ReportDay,
    /// The most rows of the answer.
    pub limit: u32,
}

/// The sum of one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainReportDay {
    /// The day.
    pub day: ReportDay,
    /// Whether the reports were from whom they name.
    pub authentication: ReportAuthentication,
    /// The number of the result.
    pub result: i64,
    /// The sum.
    pub total: i64,
}

/// The sum of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainReportSource {
    /// The source; empty for what has none.
    pub source: String,
    /// The number of the result.
    pub result: i64,
    /// The sum.
    pub total: i64,
    /// The first day with it.
    pub first_day: ReportDay,
    /// The last day with it.
    pub last_day: ReportDay,
}

/// A domain about which there are reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedDomain {
    /// The domain.
    pub domain: String,
    /// When its latest report was stored.
    pub received_at: Time,
}
