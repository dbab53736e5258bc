//! What the reporting room asks about this process: whether it sequences for all, and who else is alive.

use std::sync::Arc;

use async_trait::async_trait;
use postway_domain::Incarnation;
use postway_notify::Node;
use postway_store::StoreError;

use crate::cluster::membership::Membership;

/// The duty of giving what happened its place and making notifications of it: one node at a time does it for all.
const DUTY: &str = "reports";

/// This process, as the reporting room sees it.
pub struct Reporter(pub Arc<Membership>);

#[async_trait]
impl Node for Reporter {
    fn alive(&self) -> Option<Vec<Incarnation>> {
        let roster = self.0.roster();
        roster.is_calm().then(|| roster.alive())
    }

    async fn is_on_duty(&self) -> Result<bool, StoreError> {
        self.0.holds(DUTY).await
    }
}
