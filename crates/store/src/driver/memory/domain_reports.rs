//! Reports about domains.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{TenantId, Time, domain_report::ReportDay};

use super::MemoryStore;
use crate::{
    error::StoreError,
    inbound::domain_reports::{a_day_before, kept_since, lines_that_fit},
    port::DomainReportStore,
    record::{
        DomainReportDay, DomainReportPlace, DomainReportQuestion, DomainReportSource, DomainReportView,
        NewDomainReport, ReportedDomain,
    },
};

/// A tenant and its domain.
type OwnedDomain = (TenantId, String);
/// The day, the kind, the authentication, the source and the result of a sum.
type SumPlace = (ReportDay, i64, i64, String, i64);

/// The reports and their sums.
#[derive(Default)]
pub(super) struct DomainReportTables {
    reports: BTreeMap<OwnedDomain, BTreeMap<[u8; 32], DomainReportView>>,
    sums: BTreeMap<OwnedDomain, BTreeMap<SumPlace, i64>>,
}

impl DomainReportTables {
    pub fn write(&mut self, new: &NewDomainReport) {
        let NewDomainReport { report, .. } = new;
        let domain = (new.tenant.clone(), report.domain.clone());
        let (known, digest) = (self.reports.entry(domain.clone()).or_default(), new.digest());
        let lately = known.values().filter(|view| view.received_at > a_day_before(new.at)).count();
        if lately >= NewDomainReport::OF_DOMAIN_PER_DAY_MAX as usize || known.contains_key(&digest) {
            return;
        }
        let view = DomainReportView {
            digest,
            kind: report.kind,
            organisation: report.organisation.clone(),
            report_id: report.report_id.clone(),
            sender: new.sender.clone(),
            authentication: new.authentication,
            began_at: report.began_at,
            ended_at: report.ended_at,
            policy: report.policy.clone(),
            total: report.total(),
            failed: report.failed(),
            inbound: new.mail,
            received_at: new.at,
        };
        known.insert(digest, view);
        if !new.authentication.counts() {
            return;
        }
        let (sums, day) = (self.sums.entry(domain).or_default(), new.day());
        let of_day = sums.keys().filter(|(of, ..)| *of == day).count() as i64;
        for line in lines_that_fit(&report.lines, of_day) {
            let place = (day, report.kind.code(), new.authentication.code(), line.source, line.result);
            *sums.entry(place).or_default() += line.count;
        }
    }

    pub fn forget(&mut self, now: Time) {
        let (day, since) = kept_since(now);
        self.reports.values_mut().for_each(|of| of.retain(|_, view| view.received_at >= since));
        self.reports.retain(|_, of| !of.is_empty());
        self.sums.values_mut().for_each(|of| of.retain(|(of, ..), _| *of >= day));
    }

    pub fn forget_tenant(&mut self, tenant: &TenantId) {
        self.reports.retain(|(of, _), _| of != tenant);
        self.sums.retain(|(of, _), _| of != tenant);
    }

    fn asked(&self, question: &DomainReportQuestion) -> impl Iterator<Item = (&SumPlace, i64)> {
        let of_domain = self.sums.get(&(question.tenant.clone(), question.domain.clone()));
        let (kind, since) = (question.kind.code(), question.since);
        let sums = of_domain.into_iter().flatten().map(|(place, total)| (place, *total));
        sums.filter(move |((day, of, ..), _)| *of == kind && *day >= since)
    }
}

#[async_trait]
impl DomainReportStore for MemoryStore {
    async fn reported_domains(
        &self,
        tenant: &TenantId,
        limit: u32,
    ) -> Result<Vec<ReportedDomain>, StoreError> {
        let tables = self.tables()?;
        let of_tenant = tables.domain_reports.reports.iter().filter(|((of, _), _)| of == tenant);
        let domains = of_tenant.filter_map(|((_, domain), views)| {
            let received_at = views.values().map(|view| view.received_at).max()?;
            Some(ReportedDomain { domain: domain.clone(), received_at })
        });
        Ok(domains.take(limit as usize).collect())
    }

    async fn domain_reports(
        &self,
        tenant: &TenantId,
        domain: &str,
        before: Option<DomainReportPlace>,
        limit: u32,
    ) -> Result<Vec<DomainReportView>, StoreError> {
        let tables = self.tables()?;
        let of_domain = tables.domain_reports.reports.get(&(tenant.clone(), domain.to_owned()));
        let place = |view: &DomainReportView| (view.received_at, view.digest);
        let listed = of_domain.into_iter().flat_map(BTreeMap::values);
        let listed = listed.filter(|view| before.is_none_or(|before| place(view) < before));
        let mut listed: Vec<DomainReportView> = listed.cloned().collect();
        listed.sort_by_key(|view| std::cmp::Reverse(place(view)));
        listed.truncate(limit as usize);
        Ok(listed)
    }

    async fn domain_report_days(
        &self,
        question: &DomainReportQuestion,
    ) -> Result<Vec<DomainReportDay>, StoreError> {
        let tables = self.tables()?;
        let mut sums: BTreeMap<_, i64> = BTreeMap::new();
        for ((day, _, authentication, _, result), total) in tables.domain_reports.asked(question) {
            *sums.entry((std::cmp::Reverse(*day), *authentication, *result)).or_default() += total;
        }
        let day =
            |((day, authentication, result), total): ((std::cmp::Reverse<ReportDay>, i64, i64), i64)| {
                use postway_domain::domain_report::ReportAuthentication;
                let authentication = ReportAuthentication::from_code(authentication)?;
                Some(DomainReportDay { day: day.0, authentication, result, total })
            };
        Ok(sums.into_iter().take(question.limit as usize).filter_map(day).collect())
    }

    async fn domain_report_sources(
        &self,
        question: &DomainReportQuestion,
    ) -> Result<Vec<DomainReportSource>, StoreError> {
        let tables = self.tables()?;
        let mut sums: BTreeMap<(String, i64), DomainReportSource> = BTreeMap::new();
        for ((day, _, _, source, result), total) in tables.domain_reports.asked(question) {
            let sum = sums.entry((source.clone(), *result)).or_insert(DomainReportSource {
                source: source.clone(),
                result: *result,
                total: 0,
                first_day: *day,
                last_day: *day,
            });
            sum.total += total;
            (sum.first_day, sum.last_day) = (sum.first_day.min(*day), sum.last_day.max(*day));
        }
        let mut sums: Vec<DomainReportSource> = sums.into_values().collect();
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.total));
        sums.truncate(question.limit as usize);
        Ok(sums)
    }
}
