//! Reports about domains as JSON.

use std::collections::BTreeMap;

use postway_domain::{
    Time,
    domain_report::{
        DmarcDisposition, DmarcResult, DomainReportKind, ReportAuthentication, ReportDay, TlsSessionResult,
        is_failure,
    },
};
use postway_store::record::{DomainReportDay, DomainReportSource, DomainReportView};
use serde::Serialize;
use utoipa::ToSchema;

/// A report about a domain.
#[derive(Serialize, ToSchema)]
#[schema(as = DomainReport)]
pub(super) struct DomainReportJson {
    /// `dmarc` or `tls`.
    #[schema(example = "dmarc")]
    kind: &'static str,
    /// Who reports, as the report says.
    #[schema(example = "google.com")]
    organisation: String,
    /// The reporter's id of it.
    report_id: String,
    /// The domain in the `From` of the mail that brought it.
    #[schema(example = "google.com")]
    sender: Option<String>,
    /// Whether that mail is from there: `passed`, `failed`, whose figures do not count, or `unknown`, because
    /// no server that the mailbox trusts says so.
    #[schema(example = "passed")]
    authentication: &'static str,
    /// The beginning of the time that it is about.
    #[schema(value_type = String, format = DateTime)]
    began_at: Time,
    /// The end of that time.
    #[schema(value_type = String, format = DateTime)]
    ended_at: Time,
    /// The policy that the reporter found: `none`, `quarantine` or `reject`; of a TLS report `sts`, `tlsa` or
    /// `no-policy-found`.
    #[schema(example = "reject")]
    policy: Option<String>,
    /// How many messages, or sessions, it counts.
    total: i64,
    /// How many of them failed.
    failed: i64,
    /// The inbound mail that brought it.
    inbound: String,
    /// When it was read.
    #[schema(value_type = String, format = DateTime)]
    received_at: Time,
}

impl From<DomainReportView> for DomainReportJson {
    fn from(view: DomainReportView) -> Self {
        Self {
            kind: view.kind.as_str(),
            organisation: view.organisation,
            report_id: view.report_id,
            sender: view.sender,
            authentication: view.authentication.as_str(),
            began_at: view.began_at,
            ended_at: view.ended_at,
            policy: view.policy,
            total: view.total,
            failed: view.failed,
            inbound: view.inbound.to_string(),
            received_at: view.received_at,
        }
    }
}

/// Reports about a domain.
#[derive(Serialize, ToSchema)]
#[schema(as = DomainReportList)]
pub(crate) struct DomainReportList {
    /// The latest first.
    pub(super) data: Vec<DomainReportJson>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

/// What the reports about a domain sum up to.
#[derive(Serialize, ToSchema)]
#[schema(as = DomainReportSummary)]
pub(crate) struct DomainReportSummary {
    /// The domain.
    #[schema(example = "example.com")]
    pub(super) domain: String,
    /// The first day of the sums.
    #[schema(value_type = String, format = Date, example = "2026-11-01")]
    pub(super) since: String,
    /// Mail in the domain's name, as DMARC reports count it.
    pub(super) dmarc: DmarcSummary,
    /// Sessions with the domain's servers, as TLS reports count them.
    pub(super) tls: TlsSummary,
}

/// What DMARC reports count.
#[derive(Serialize, ToSchema)]
pub(super) struct DmarcSummary {
    /// Messages.
    total: i64,
    /// Those that passed: DKIM or SPF, in the author's domain.
    passed: i64,
    /// Those that failed.
    failed: i64,
    /// Those with a valid signature of the author's domain.
    dkim_passed: i64,
    /// Those whose sender SPF allowed, in the author's domain.
    spf_passed: i64,
    /// Those that receivers put aside.
    quarantined: i64,
    /// Those that receivers refused.
    rejected: i64,
    /// Those counted by reports of which nobody knows from whom they came.
    unproven: i64,
    /// The latest first.
    days: Vec<DomainReportDayView>,
    /// Who sent them: first the sources of which no message passed, then the others, each by size.
    sources: Vec<DmarcSource>,
    /// Whether there are more sources than are listed; the largest are.
    has_more_sources: bool,
}

/// The messages, or sessions, of one day.
#[derive(Serialize, ToSchema)]
#[schema(as = DomainReportDay)]
pub(super) struct DomainReportDayView {
    /// The day, in UTC.
    #[schema(value_type = String, format = Date, example = "2026-11-18")]
    day: String,
    /// How many passed.
    passed: i64,
    /// How many failed.
    failed: i64,
}

/// An address that sent mail in the domain's name.
#[derive(Serialize, ToSchema)]
pub(super) struct DmarcSource {
    /// The address; null for those that are summed up.
    #[schema(example = "192.0.2.17")]
    address: Option<String>,
    /// Whether any of its messages passed. If none did, it is not one of your senders, or not set up.
    is_known: bool,
    /// Messages.
    total: i64,
    /// Those that passed.
    passed: i64,
    /// Those with a valid signature of the author's domain.
    dkim_passed: i64,
    /// Those whose sender SPF allowed, in the author's domain.
    spf_passed: i64,
    /// Those that receivers put aside or refused.
    held_back: i64,
    /// The first day with it.
    #[schema(value_type = String, format = Date, example = "2026-11-02")]
    first_day: String,
    /// The last day with it.
    #[schema(value_type = String, format = Date, example = "2026-11-18")]
    last_day: String,
}

/// What TLS reports count.
#[derive(Serialize, ToSchema)]
pub(super) struct TlsSummary {
    /// Sessions.
    total: i64,
    /// Those that failed.
    failed: i64,
    /// The latest first.
    days: Vec<DomainReportDayView>,
    /// Why they failed, the most frequent first.
    failures: Vec<TlsFailure>,
}

/// Sessions that failed in one way.
#[derive(Serialize, ToSchema)]
pub(super) struct TlsFailure {
    /// The result, in the word of RFC 8460; `other` if it has none.
    #[serde(rename = "type")]
    #[schema(example = "certificate-expired")]
    kind: &'static str,
    /// The server of the domain.
    #[schema(example = "mx1.example.com")]
    server: Option<String>,
    /// Sessions.
    total: i64,
    /// The first day with it.
    #[schema(value_type = String, format = Date, example = "2026-11-02")]
    first_day: String,
    /// The last day with it.
    #[schema(value_type = String, format = Date, example = "2026-11-18")]
    last_day: String,
}

/// A day as `2026-11-18`.
pub(super) fn day_text(day: ReportDay) -> String {
    day.begin().to_string().chars().take(10).collect()
}

fn summed_days(kind: DomainReportKind, days: &[DomainReportDay]) -> Vec<DomainReportDayView> {
    let mut summed: BTreeMap<ReportDay, (i64, i64)> = BTreeMap::new();
    for one in days {
        let (passed, failed) = summed.entry(one.day).or_default();
        *if is_failure(kind, one.result) { failed } else { passed } += one.total;
    }
    let view = |(day, (passed, failed))| DomainReportDayView { day: day_text(day), passed, failed };
    summed.into_iter().rev().map(view).collect()
}

impl DmarcSummary {
    /// `most` is how many sums were asked for.
    pub(super) fn new(days: &[DomainReportDay], sums: &[DomainReportSource], most: usize) -> Self {
        let of = |takes: &dyn Fn(DmarcResult) -> bool| -> i64 {
            let taken = days.iter().filter(|one| DmarcResult::from_code(one.result).is_some_and(takes));
            taken.map(|one| one.total).sum()
        };
        let total = days.iter().map(|one| one.total).sum();
        let passed = of(&|result| result.passed());
        let unproven = days.iter().filter(|one| one.authentication != ReportAuthentication::Passed);
        Self {
            total,
            passed,
            failed: total - passed,
            dkim_passed: of(&|result| result.dkim),
            spf_passed: of(&|result| result.spf),
            quarantined: of(&|result| result.disposition == DmarcDisposition::Quarantine),
            rejected: of(&|result| result.disposition == DmarcDisposition::Reject),
            unproven: unproven.map(|one| one.total).sum(),
            days: summed_days(DomainReportKind::Dmarc, days),
            sources: dmarc_sources(sums),
            has_more_sources: sums.len() >= most,
        }
    }
}

fn dmarc_sources(sums: &[DomainReportSource]) -> Vec<DmarcSource> {
    let mut sources: BTreeMap<&str, (DmarcSource, ReportDay, ReportDay)> = BTreeMap::new();
    for sum in sums {
        let result = DmarcResult::from_code(sum.result).unwrap_or_default();
        let empty = DmarcSource {
            address: Some(sum.source.clone()).filter(|source| !source.is_empty()),
            is_known: false,
            total: 0,
            passed: 0,
            dkim_passed: 0,
            spf_passed: 0,
            held_back: 0,
            first_day: String::new(),
            last_day: String::new(),
        };
        let (source, first, last) =
            sources.entry(&sum.source).or_insert((empty, sum.first_day, sum.last_day));
        let added = |counts: bool| if counts { sum.total } else { 0 };
        source.total += sum.total;
        source.passed += added(result.passed());
        source.dkim_passed += added(result.dkim);
        source.spf_passed += added(result.spf);
        source.held_back += added(result.disposition != DmarcDisposition::None);
        source.is_known |= result.passed();
        (*first, *last) = ((*first).min(sum.first_day), (*last).max(sum.last_day));
    }
    let mut sources: Vec<DmarcSource> = sources
        .into_values()
        .map(|(source, first, last)| DmarcSource {
            first_day: day_text(first),
            last_day: day_text(last),
            ..source
        })
        .collect();
    sources.sort_by_key(|source| (source.is_known, std::cmp::Reverse(source.total)));
    sources
}

impl TlsSummary {
    pub(super) fn new(days: &[DomainReportDay], sums: Vec<DomainReportSource>) -> Self {
        let failed = days.iter().filter(|one| is_failure(DomainReportKind::Tls, one.result));
        let failure = |sum: DomainReportSource| TlsFailure {
            kind: TlsSessionResult::from_code(sum.result).unwrap_or(TlsSessionResult::Other).as_str(),
            server: Some(sum.source).filter(|source| !source.is_empty()),
            total: sum.total,
            first_day: day_text(sum.first_day),
            last_day: day_text(sum.last_day),
        };
        Self {
            total: days.iter().map(|one| one.total).sum(),
            failed: failed.map(|one| one.total).sum(),
            days: summed_days(DomainReportKind::Tls, days),
            failures: sums
                .into_iter()
                .filter(|sum| is_failure(DomainReportKind::Tls, sum.result))
                .map(failure)
                .collect(),
        }
    }
}
