//! Slots for messages whose files are being fetched, by the preparer and by dry runs.
//!
//! A dry run fetches as the preparer does, so both use the same slots. Dry runs may occupy only some of them,
//! so that messages that are to be sent are always prepared.

use std::{sync::Arc, time::Duration};

use postway_domain::TenantId;

use crate::{
    budget::{FairBudget, FairShare},
    refusal::Refusal,
};

/// The most messages whose files are fetched at once, in total and for one tenant.
const AT_ONCE_MAX: usize = 64;
const PER_TENANT_MAX: usize = 8;
/// The most dry runs among them, in total and for one tenant.
const DRY_RUNS_MAX: usize = 16;
const DRY_RUNS_PER_TENANT_MAX: usize = 4;
/// The longest that a dry run waits for a slot, and for memory.
pub(crate) const DRY_RUN_WAIT_S_MAX: Duration = Duration::from_secs(2);

/// The slots.
pub(crate) struct FetchSlots {
    /// All slots.
    pub(crate) all: Arc<FairBudget>,
    dry_runs: Arc<FairBudget>,
}

impl Default for FetchSlots {
    fn default() -> Self {
        Self {
            all: FairBudget::new(AT_ONCE_MAX, PER_TENANT_MAX),
            dry_runs: FairBudget::new(DRY_RUNS_MAX, DRY_RUNS_PER_TENANT_MAX),
        }
    }
}

impl FetchSlots {
    /// Takes the slots for a dry run that fetches files.
    pub(crate) async fn for_dry_run(&self, tenant: &TenantId) -> Result<[FairShare; 2], Refusal> {
        let busy = || Refusal::busy("too many dry runs fetch files at once");
        let own = self.dry_runs.wait(tenant, 1, DRY_RUN_WAIT_S_MAX).await.ok_or_else(busy)?;
        let path = self.all.wait(tenant, 1, DRY_RUN_WAIT_S_MAX).await.ok_or_else(busy)?;
        Ok([own, path])
    }
}
