//! Accounts, and which of them is the default account of a tenant.

use postway_domain::AccountId;
use postway_moving::{CarriedKind, CarriedRow};
use reqwest::Method;
use serde_json::{Value, json};

use super::carrier::{MovingClient, MovingMode, text};
use super::report::MovingReport;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;

impl MovingClient {
    /// Creates an account unless it exists. An existing one is not changed.
    pub(super) async fn carry_account(
        &mut self,
        row: &CarriedRow,
        tenant: &str,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        if !self.expect_tenant(&row.place, tenant, report).await? {
            return Ok(());
        }
        let id = text(&row.body, "id").to_owned();
        let is_planned = self.planned_tenants.contains(tenant);
        let is_here = !is_planned
            && id.parse::<AccountId>().is_ok()
            && self.find(Some(tenant), &["v1", "accounts", &id]).await?.is_some();
        if is_here {
            report.here(CarriedKind::Account);
        } else {
            let trial = self.trial_tenant(tenant).to_owned();
            match self.make(Some(&trial), &["v1", "accounts"], row).await? {
                Ok(_) => report.carried(CarriedKind::Account, 1),
                Err(wrong) => {
                    report.wrong.extend(wrong);
                    return Ok(());
                }
            }
        }
        let is_there = is_here || self.mode == MovingMode::Import;
        self.accounts.entry(tenant.to_owned()).or_default().insert(id, is_there);
        Ok(())
    }

    /// Whether mail that names no account can leave: through the tenant's default account, or through the
    /// only account that it moves with.
    pub(super) async fn leaves_by_default(
        &mut self,
        tenant: &str,
        report: &mut MovingReport,
    ) -> Result<bool, CommandFailure> {
        if let Some(known) = self.real.get(tenant) {
            return Ok(*known);
        }
        let shown = self.tenant(tenant).await?;
        let default = shown["default_account"].as_str().unwrap_or("sandbox").to_owned();
        let is_sandbox = match shown.is_null() {
            true => true,
            false => {
                let account = self.find(Some(tenant), &["v1", "accounts", &default]).await?;
                account.is_none_or(|account| account["kind"] == "sandbox")
            }
        };
        let moved: Vec<String> =
            self.accounts.get(tenant).into_iter().flat_map(|all| all.keys().cloned()).collect();
        let leaves = match (&moved[..], is_sandbox) {
            (_, false) => true,
            ([only], true) => {
                self.set_default(tenant, only, report).await?;
                true
            }
            // A test tenant wants its mail captured.
            _ => shown["test"] == true,
        };
        if !leaves && moved.len() > 1 {
            report.note(format!(
                "tenant {tenant}: has {} accounts and none is its default; choose with `postway tenants update {tenant} --default-account ID`",
                moved.len()
            ));
        }
        self.real.insert(tenant.to_owned(), leaves);
        Ok(leaves)
    }

    async fn set_default(
        &mut self,
        tenant: &str,
        account: &str,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        if self.mode == MovingMode::Import {
            let body = json!({"default_account": account});
            let path = ["v1", "tenants", tenant];
            let shown = self.client.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await?;
            self.tenants.insert(tenant.to_owned(), shown);
        }
        let word = if self.mode == MovingMode::Import { "is now" } else { "becomes" };
        report.note(format!("tenant {tenant}: its default account {word} {account}; it was the sandbox"));
        Ok(())
    }

    /// Settles the default account of every tenant that moved with accounts, whether its mail needs one or
    /// not.
    pub(super) async fn settle_defaults(&mut self, report: &mut MovingReport) -> Result<(), CommandFailure> {
        let tenants: Vec<String> = self.accounts.keys().cloned().collect();
        for tenant in tenants {
            self.leaves_by_default(&tenant, report).await?;
        }
        Ok(())
    }

    /// Whether an account that a message names is still to be made.
    pub(super) fn is_planned_account(&self, tenant: &str, account: Option<&Value>) -> bool {
        let account = account.and_then(Value::as_str).unwrap_or_default();
        self.accounts.get(tenant).and_then(|all| all.get(account)) == Some(&false)
    }
}
