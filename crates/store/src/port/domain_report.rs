//! Reports about domains, as readers see them. They are written with the mail that brings them
//! ([`super::InboundStore::settle_inbound`]).

use async_trait::async_trait;
use postway_domain::TenantId;

use crate::{
    error::StoreError,
    record::{
        DomainReportDay, DomainReportPlace, DomainReportQuestion, DomainReportSource, DomainReportView,
        ReportedDomain,
    },
};

/// Reports of other servers about a tenant's domains.
#[async_trait]
pub trait DomainReportStore: Send + Sync {
    /// The domains about which there are reports, by name.
    async fn reported_domains(
        &self,
        tenant: &TenantId,
        limit: u32,
    ) -> Result<Vec<ReportedDomain>, StoreError>;

    /// The reports about a domain, the latest first, before `before`.
    async fn domain_reports(
        &self,
        tenant: &TenantId,
        domain: &str,
        before: Option<DomainReportPlace>,
        limit: u32,
    ) -> Result<Vec<DomainReportView>, StoreError>;

    /// The sums of each day, the latest first.
    async fn domain_report_days(
        &self,
        question: &DomainReportQuestion,
    ) -> Result<Vec<DomainReportDay>, StoreError>;

    /// The sums of each source and result, the largest first.
    async fn domain_report_sources(
        &self,
        question: &DomainReportQuestion,
    ) -> Result<Vec<DomainReportSource>, StoreError>;
}
