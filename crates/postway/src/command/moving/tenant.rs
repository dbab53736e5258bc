//! Tenants, and suspensions of tenants and batches.

use postway_domain::{TenantId, id::BatchCode};
use postway_moving::{CarriedKind, CarriedRow, RowFault};
use reqwest::Method;
use serde_json::Value;

use super::carrier::{MovingClient, MovingMode, text};
use super::report::MovingReport;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;

impl MovingClient {
    /// Creates a tenant unless it exists. An existing one is not changed.
    pub(super) async fn carry_tenant(
        &mut self,
        row: &CarriedRow,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        let id = self.tenant_of(Some(text(&row.body, "id")));
        if let Err(error) = id.parse::<TenantId>() {
            report.wrong.push(RowFault::new(
                &row.place,
                "id",
                format!("{error}; name another with --tenant-of"),
            ));
            return Ok(());
        }
        if !self.tenant(&id).await?.is_null() {
            report.here(CarriedKind::Tenant);
            return Ok(());
        }
        let mut row = row.clone();
        row.body.insert("id".to_owned(), Value::String(id.clone()));
        match self.make(None, &["v1", "tenants"], &row).await? {
            Ok(made) => {
                report.carried(CarriedKind::Tenant, 1);
                match self.mode {
                    MovingMode::Rehearse => drop(self.planned_tenants.insert(id)),
                    MovingMode::Import => drop(self.tenants.insert(id, made)),
                }
            }
            Err(wrong) => report.wrong.extend(wrong),
        }
        Ok(())
    }

    /// Suspends a tenant before it has mail.
    pub(super) async fn hold_tenant(
        &mut self,
        row: &CarriedRow,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        let id = self.tenant_of(Some(text(&row.body, "id")));
        if !self.expect_tenant(&row.place, &id, report).await? {
            return Ok(());
        }
        if self.mode == MovingMode::Import {
            let path = ["v1", "tenants", &id, "suspend"];
            self.client.call(Method::POST, &path, &[], RequestBody::Empty).await?;
        }
        report.carried(CarriedKind::TenantSuspension, 1);
        Ok(())
    }

    /// Suspends a batch before it has mail.
    pub(super) async fn hold_batch(
        &mut self,
        row: &CarriedRow,
        tenant: &str,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        let code = text(&row.body, "code");
        if let Err(error) = code.parse::<BatchCode>() {
            report.wrong.push(RowFault::new(&row.place, "suspended_batches", format!("`{code}` {error}")));
            return Ok(());
        }
        if !self.expect_tenant(&row.place, tenant, report).await? {
            return Ok(());
        }
        if self.mode == MovingMode::Import {
            let path = ["v1", "batches", code, "suspend"];
            self.client.for_tenant(tenant).call(Method::POST, &path, &[], RequestBody::Empty).await?;
        }
        report.carried(CarriedKind::BatchSuspension, 1);
        Ok(())
    }
}
