//! Recipients and mailboxes: one call each.

use postway_moving::{CarriedKind, CarriedRow};

use super::carrier::{MovingClient, text};
use super::report::MovingReport;
use crate::cli::failure::CommandFailure;

impl MovingClient {
    /// Creates a recipient unless one with its external id exists.
    pub(super) async fn carry_recipient(
        &mut self,
        row: &CarriedRow,
        tenant: &str,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        let known = format!("external:{}", text(&row.body, "external_id"));
        self.carry_one(row, tenant, "recipients", &known, report).await
    }

    /// Creates a mailbox unless it exists.
    pub(super) async fn carry_mailbox(
        &mut self,
        row: &CarriedRow,
        tenant: &str,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        let id = text(&row.body, "id");
        let uid = row.body.get("start").and_then(|start| start["after_uid"].as_u64());
        let place = uid.map_or_else(|| "with the newest mail".to_owned(), |uid| format!("behind UID {uid}"));
        report.note(format!(
            "mailbox {id}: goes on {place} once you have written its rules and said `postway mailboxes activate {id}`"
        ));
        self.carry_one(row, tenant, "mailboxes", id, report).await
    }

    async fn carry_one(
        &mut self,
        row: &CarriedRow,
        tenant: &str,
        collection: &str,
        known: &str,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        if !self.expect_tenant(&row.place, tenant, report).await? {
            return Ok(());
        }
        let kind: CarriedKind = row.kind;
        let found = self.find(Some(tenant), &["v1", collection, known]).await?;
        if found.is_some_and(|found| found["deleted_at"].is_null()) {
            report.here(kind);
            return Ok(());
        }
        match self.make(Some(tenant), &["v1", collection], row).await? {
            Ok(_) => report.carried(kind, 1),
            Err(wrong) => report.wrong.extend(wrong),
        }
        Ok(())
    }
}
