//! [`DomainReportStore`] over SQL.

use async_trait::async_trait;
use postway_domain::TenantId;

use super::SqlStore;
use crate::{
    error::StoreError,
    inbound::domain_reports,
    port::DomainReportStore,
    record::{
        DomainReportDay, DomainReportPlace, DomainReportQuestion, DomainReportSource, DomainReportView,
        ReportedDomain,
    },
};

#[async_trait]
impl<T: SqlStore> DomainReportStore for T {
    async fn reported_domains(
        &self,
        tenant: &TenantId,
        limit: u32,
    ) -> Result<Vec<ReportedDomain>, StoreError> {
        domain_reports::domains(&mut *self.reader().await?, tenant, limit).await
    }

    async fn domain_reports(
        &self,
        tenant: &TenantId,
        domain: &str,
        before: Option<DomainReportPlace>,
        limit: u32,
    ) -> Result<Vec<DomainReportView>, StoreError> {
        domain_reports::list(&mut *self.reader().await?, tenant, domain, before, limit).await
    }

    async fn domain_report_days(
        &self,
        question: &DomainReportQuestion,
    ) -> Result<Vec<DomainReportDay>, StoreError> {
        domain_reports::days(&mut *self.reader().await?, question).await
    }

    async fn domain_report_sources(
        &self,
        question: &DomainReportQuestion,
    ) -> Result<Vec<DomainReportSource>, StoreError> {
        domain_reports::sources(&mut *self.reader().await?, question).await
    }
}
