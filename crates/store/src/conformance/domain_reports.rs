//! Reports about domains: each counts once, for one tenant, within its bounds, and is forgotten in time.

use postway_domain::{
    InboundState,
    domain_report::{
        DmarcDisposition, DmarcResult, DomainReport, DomainReportKind, DomainReportLine,
        ReportAuthentication, ReportDay, TlsSessionResult,
    },
};

use super::{
    Shared,
    findings::arrive,
    inbound::{mail, routed, settle},
    sample::{at, lease, other_tenant, tenant},
    stage::direct,
};
use crate::record::{
    ChangeResult, DirectoryChange, DomainReportDay, DomainReportQuestion, DomainReportSource,
    InboundMailResult, NewDomainReport,
};

const DAY_MS: i64 = 86_400_000;
/// The day that the samples are about.
const DAY: ReportDay = ReportDay(19_000);

fn dmarc(dkim: bool, spf: bool) -> i64 {
    DmarcResult { dkim, spf, disposition: DmarcDisposition::Quarantine }.code()
}

fn line(source: &str, result: i64, count: i64) -> DomainReportLine {
    DomainReportLine { source: source.to_owned(), result, count }
}

/// The n-th report about example.com, which the n-th mail brings.
pub(crate) fn report(n: u32) -> NewDomainReport {
    let report = DomainReport {
        kind: DomainReportKind::Dmarc,
        domain: "example.com".to_owned(),
        organisation: "Größe & Söhne".to_owned(),
        report_id: format!("report {n}"),
        began_at: DAY.begin(),
        ended_at: postway_domain::Time::from_millis(DAY.begin().as_millis() + DAY_MS - 1_000),
        policy: Some("reject".to_owned()),
        lines: vec![line("192.0.2.1", dmarc(true, true), 5), line("2001:db8::1", dmarc(false, false), 2)],
    };
    NewDomainReport {
        tenant: tenant(),
        report,
        sender: Some("receiver.example".to_owned()),
        authentication: ReportAuthentication::Passed,
        mail: mail(n).uid,
        at: at(i64::from(n)),
    }
}

fn question(kind: DomainReportKind, since: ReportDay) -> DomainReportQuestion {
    DomainReportQuestion { tenant: tenant(), domain: "example.com".to_owned(), kind, since, limit: 99 }
}

/// The question about everything of the samples.
#[cfg(test)]
pub(crate) fn every_day() -> DomainReportQuestion {
    question(DomainReportKind::Dmarc, ReportDay(0))
}

/// The n-th mail brings these.
pub(crate) async fn bring(store: &Shared, n: u32, reports: Vec<NewDomainReport>) {
    let one = arrive(store, n, at(i64::from(n))).await;
    let brought = InboundMailResult {
        domain_reports: reports,
        kind: Some("domain_report"),
        ..routed(&one, n.into(), InboundState::Routed, at(i64::from(n)))
    };
    assert!(settle(store, brought).await);
}

async fn totals(store: &Shared) -> Vec<(String, i64, i64)> {
    let sources = store.domain_report_sources(&question(DomainReportKind::Dmarc, DAY)).await.unwrap();
    sources.into_iter().map(|sum| (sum.source, sum.result, sum.total)).collect()
}

/// With every field, and whatever repeats it.
pub async fn a_domain_report_reads_back_whole_and_counts_once(store: &Shared) {
    let new = report(1);
    bring(store, 1, vec![new.clone()]).await;
    // The same from another mail, and twice in one.
    let again = |n| NewDomainReport { mail: mail(n).uid, at: at(i64::from(n)), ..report(1) };
    bring(store, 2, vec![again(2)]).await;
    bring(store, 3, vec![again(3), report(3), again(3)]).await;
    let views = store.domain_reports(&tenant(), "example.com", None, 9).await.unwrap();
    assert_eq!(views.iter().map(|view| view.inbound).collect::<Vec<_>>(), [mail(3).uid, mail(1).uid]);
    let view = &views[1];
    assert_eq!((view.digest, view.kind), (new.digest(), DomainReportKind::Dmarc));
    assert_eq!((&view.organisation, &view.report_id), (&new.report.organisation, &new.report.report_id));
    assert_eq!((&view.sender, view.authentication), (&new.sender, ReportAuthentication::Passed));
    assert_eq!((view.began_at, view.ended_at), (new.report.began_at, new.report.ended_at));
    assert_eq!((view.policy.as_deref(), view.total, view.failed), (Some("reject"), 7, 2));
    assert_eq!(view.received_at, at(1));
    let place = (views[0].received_at, views[0].digest);
    assert_eq!(store.domain_reports(&tenant(), "example.com", Some(place), 9).await.unwrap(), views[1..]);
    let expected =
        [("192.0.2.1".to_owned(), dmarc(true, true), 10), ("2001:db8::1".to_owned(), dmarc(false, false), 4)];
    assert_eq!(totals(store).await, expected);
    let reported = store.reported_domains(&tenant(), 9).await.unwrap();
    assert_eq!(
        (reported.len(), reported[0].domain.as_str(), reported[0].received_at),
        (1, "example.com", at(3))
    );
}

/// The sums of days and of sources, with and without other kinds and days.
pub async fn sums_of_domain_reports_are_by_day_kind_and_source(store: &Shared) {
    let mut tls = report(2);
    tls.report.kind = DomainReportKind::Tls;
    tls.report.lines = vec![line("", TlsSessionResult::Success.code(), 40), line("mx.example.com", 3, 1)];
    let mut earlier = report(3);
    earlier.report.began_at = DAY.before(1).begin();
    earlier.report.ended_at = earlier.report.began_at;
    let unknown = NewDomainReport { authentication: ReportAuthentication::Unknown, ..report(4) };
    bring(store, 1, vec![report(1), tls, earlier, unknown]).await;
    let day = |day, authentication, result, total| DomainReportDay { day, authentication, result, total };
    let (passed, unknown) = (ReportAuthentication::Passed, ReportAuthentication::Unknown);
    let days = store.domain_report_days(&question(DomainReportKind::Dmarc, DAY.before(9))).await.unwrap();
    let (good, bad) = (dmarc(true, true), dmarc(false, false));
    let expected = [
        day(DAY, unknown, bad, 2),
        day(DAY, unknown, good, 5),
        day(DAY, passed, bad, 2),
        day(DAY, passed, good, 5),
        day(DAY.before(1), passed, bad, 2),
        day(DAY.before(1), passed, good, 5),
    ];
    let mut sorted = expected.clone();
    sorted.sort_by_key(|one| (std::cmp::Reverse(one.day), one.authentication, one.result));
    assert_eq!(days, sorted);
    let sources =
        store.domain_report_sources(&question(DomainReportKind::Dmarc, DAY.before(9))).await.unwrap();
    let source = |source: &str, result, total, first_day| DomainReportSource {
        source: source.to_owned(),
        result,
        total,
        first_day,
        last_day: DAY,
    };
    let both = [source("192.0.2.1", good, 15, DAY.before(1)), source("2001:db8::1", bad, 6, DAY.before(1))];
    assert_eq!(sources, both);
    let first = DomainReportQuestion { limit: 1, ..question(DomainReportKind::Dmarc, DAY.before(9)) };
    assert_eq!(store.domain_report_sources(&first).await.unwrap(), both[..1]);
    assert_eq!(store.domain_report_days(&first).await.unwrap(), sorted[..1]);
    let tls = store.domain_report_sources(&question(DomainReportKind::Tls, DAY)).await.unwrap();
    assert_eq!(tls, [source("", 0, 40, DAY), source("mx.example.com", 3, 1, DAY)]);
}

/// Nobody else sees it or fills its sums, and what failed its checks is listed and not counted.
pub async fn a_domain_report_is_its_tenants_and_a_forged_one_does_not_count(store: &Shared) {
    let theirs = NewDomainReport { tenant: other_tenant(), ..report(1) };
    let forged = NewDomainReport { authentication: ReportAuthentication::Failed, ..report(1) };
    bring(store, 1, vec![theirs]).await;
    bring(store, 2, vec![forged]).await;
    assert_eq!(totals(store).await, []);
    assert_eq!(store.domain_reports(&tenant(), "example.com", None, 9).await.unwrap().len(), 1);
    // The true one, with the same names, comes later.
    bring(store, 3, vec![NewDomainReport { at: at(3), ..report(1) }]).await;
    assert_eq!(totals(store).await.len(), 2);
    assert_eq!(store.domain_reports(&tenant(), "example.com", None, 9).await.unwrap().len(), 2);
    assert_eq!(store.domain_reports(&other_tenant(), "example.com", None, 9).await.unwrap().len(), 1);
    assert_eq!(store.domain_reports(&tenant(), "other.example", None, 9).await.unwrap(), []);
}

/// Nothing of it, where the lease is lost.
pub async fn a_late_domain_report_is_not_written(store: &Shared) {
    let one = arrive(store, 1, at(6)).await;
    let late = InboundMailResult {
        domain_reports: vec![report(1)],
        ..routed(&one, 99, InboundState::Routed, at(7))
    };
    assert!(!settle(store, late.clone()).await);
    assert_eq!(totals(store).await, []);
    assert!(settle(store, InboundMailResult { token: lease(1, at(7)).token, ..late }).await);
    assert_eq!(totals(store).await.len(), 2);
}

/// A flood of sources ends as one sum, and a flood of reports at its bound.
pub async fn a_flood_of_domain_reports_stays_within_its_bounds(store: &Shared) {
    let most = NewDomainReport::LINES_OF_DAY_MAX;
    let flood = |n: u32, from: u32, count: u32| {
        let mut new = report(n);
        let lines = (from..from + count).map(|n| line(&format!("10.{}.{}.1", n / 256, n % 256), 0, 1));
        new.report.lines = lines.collect();
        new
    };
    for (n, from, count) in [(1, 0, most - 10), (2, most, 11), (3, 0, 5)] {
        bring(store, n, vec![flood(n, from, count)]).await;
    }
    let all = DomainReportQuestion { limit: most + 9, ..question(DomainReportKind::Dmarc, DAY) };
    let sources = store.domain_report_sources(&all).await.unwrap();
    assert_eq!(sources.len() as u32, most - 9);
    assert_eq!((sources[0].source.as_str(), sources[0].total), ("", 11));
    assert_eq!(sources[5].total, 2, "a source that has its sum already finds room");
    let few = |n: u32| {
        let mut new = report(n);
        new.report.domain = "busy.example".to_owned();
        new.report.lines.truncate(1);
        new
    };
    let most = NewDomainReport::OF_DOMAIN_PER_DAY_MAX;
    bring(store, 4, (1..most + 20).map(|n| NewDomainReport { at: at(2), ..few(n) }).collect()).await;
    let listed = store.domain_reports(&tenant(), "busy.example", None, most + 99).await.unwrap();
    assert_eq!(listed.len() as u32, most);
    let later = NewDomainReport { at: at(DAY_MS + 3), ..few(most + 50) };
    bring(store, 5, vec![later]).await;
    let listed = store.domain_reports(&tenant(), "busy.example", None, most + 99).await.unwrap();
    assert_eq!(listed.len() as u32, most + 1);
}

/// Reports by when they came, sums by their day, and all of it when the tenant goes.
pub async fn domain_reports_are_forgotten_in_time_and_with_their_tenant(store: &Shared) {
    let received = postway_domain::Time::from_millis(DAY.begin().as_millis() + DAY_MS);
    bring(store, 1, vec![NewDomainReport { at: received, ..report(1) }]).await;
    let after = |days: i64| postway_domain::Time::from_millis(DAY.begin().as_millis() + days * DAY_MS);
    let kept = i64::from(NewDomainReport::KEPT_DAYS);
    for (days, sums, reports) in [(kept, 2, 1), (kept + 1, 0, 1), (kept + 2, 0, 0)] {
        direct(store, DirectoryChange::Forget(after(days))).await;
        assert_eq!(totals(store).await.len(), sums, "{days}");
        assert_eq!(store.domain_reports(&tenant(), "example.com", None, 9).await.unwrap().len(), reports);
    }
    bring(store, 2, vec![report(2)]).await;
    assert_eq!(direct(store, DirectoryChange::DeleteTenant(tenant(), at(50))).await, ChangeResult::Done);
    while direct(store, DirectoryChange::PurgeTenant(tenant(), 100)).await == ChangeResult::Done {}
    assert_eq!(totals(store).await, []);
    assert_eq!(store.reported_domains(&tenant(), 9).await.unwrap(), []);
}
