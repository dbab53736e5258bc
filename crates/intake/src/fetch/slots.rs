//! How many messages may have their files fetched at once, by the preparer and by dry runs.
//!
//! A dry run fetches like the preparer does, so both draw on the same places. Dry runs may have only some of them: however
//! many are asked for, messages that are to be sent are prepared.

use std::{sync::Arc, time::Duration};

use postway_domain::TenantId;

use crate::{
    budget::{FairBudget, FairShare},
    refusal::Refusal,
};

/// Messages whose files are fetched at once, and those of one tenant.
const AT_ONCE_MAX: usize = 64;
const PER_TENANT_MAX: usize = 8;
/// Dry runs among them, and those of one tenant.
const DRY_RUNS_MAX: usize = 16;
const DRY_RUNS_PER_TENANT_MAX: usize = 4;
/// The longest that a dry run waits for a place, and for memory for what it fetches.
pub(crate) const DRY_RUN_WAIT_S_MAX: Duration = Duration::from_secs(2);

/// The places.
pub(crate) struct FetchPlaces {
    /// All of them.
    pub(crate) all: Arc<FairBudget>,
    dry_runs: Arc<FairBudget>,
}

impl Default for FetchPlaces {
    fn default() -> Self {
        Self {
            all: FairBudget::new(AT_ONCE_MAX, PER_TENANT_MAX),
            dry_runs: FairBudget::new(DRY_RUNS_MAX, DRY_RUNS_PER_TENANT_MAX),
        }
    }
}

impl FetchPlaces {
    /// A place for a dry run that fetches files.
    pub(crate) async fn for_dry_run(&self, tenant: &TenantId) -> Result<[FairShare; 2], Refusal> {
        let busy = || Refusal::busy("too many dry runs fetch files at once");
        let own = self.dry_runs.wait(tenant, 1, DRY_RUN_WAIT_S_MAX).await.ok_or_else(busy)?;
        let place = self.all.wait(tenant, 1, DRY_RUN_WAIT_S_MAX).await.ok_or_else(busy)?;
        Ok([own, place])
    }
}
