//! Trying the routes of a tenant on a message that need not exist, without accepting anything.

use postway_domain::{
    MessagePriority, NamedAddress, TenantId,
    id::BatchCode,
    route::{RouteCondition, RouteFacts},
};
use postway_store::StoreError;

use super::door::Door;
use crate::cache::route_table::PlannedRoute;

/// What routes compare of a message.
#[derive(Clone, Debug, Default)]
pub struct RouteProbe {
    /// The author.
    pub from: Option<NamedAddress>,
    /// All recipients.
    pub to: Vec<NamedAddress>,
    /// The tags.
    pub tags: Vec<String>,
    /// The batch, which begins with the stream.
    pub batch: Option<BatchCode>,
    /// The priority.
    pub priority: MessagePriority,
}

/// What the routes say of a message.
#[derive(Clone, Debug, Default)]
pub struct RouteTrial {
    /// The route that decides; `None` if none matches.
    pub route: Option<String>,
    /// The accounts among which it chooses, or else the tenant's default account alone.
    pub accounts: Vec<TriedTarget>,
    /// Every active route up to the one that decides, in order.
    pub steps: Vec<TriedRoute>,
}

/// An account that a route may choose.
#[derive(Clone, Debug)]
pub struct TriedTarget {
    /// The account.
    pub account: String,
    /// Its weight.
    pub weight: u32,
    /// Why it cannot send now: `suspended`, `circuit` or `limit`.
    pub held_by: Option<&'static str>,
}

/// One route, compared.
#[derive(Clone, Debug)]
pub struct TriedRoute {
    /// The route.
    pub id: String,
    /// Its conditions, and whether each holds.
    pub conditions: Vec<(RouteCondition, bool)>,
    /// Its accounts that are gone.
    pub missing: Vec<String>,
    /// Whether it is passed over because all its accounts are gone.
    pub is_passed_over: bool,
}

impl Door {
    /// Tries the routes of a tenant.
    pub async fn try_routes(&self, tenant: &TenantId, probe: &RouteProbe) -> Result<RouteTrial, StoreError> {
        let profile = self.lookup.settings.profile(tenant).await?;
        let facts = RouteFacts {
            sender_domain: probe.from.as_ref().map(|from| from.address().domain()),
            recipient_domains: probe.to.iter().map(|to| to.address().domain()).collect(),
            tags: &probe.tags,
            batch: probe.batch.as_ref(),
            priority: probe.priority,
        };
        let mut trial = RouteTrial::default();
        for planned in profile.routes.iter() {
            let matches = planned.route.content.conditions.match_all(&facts);
            trial.steps.push(tried(planned, &facts, matches));
            if matches && !planned.targets.is_empty() {
                trial.route = Some(planned.route.id.to_string());
                trial.accounts = planned
                    .targets
                    .iter()
                    .map(|target| TriedTarget {
                        account: target.account.id.to_string(),
                        weight: target.weight,
                        held_by: target.held_by,
                    })
                    .collect();
                return Ok(trial);
            }
        }
        let default = self.lookup.settings.account(tenant, None).await?;
        let target =
            default.map(|account| TriedTarget { account: account.id.to_string(), weight: 1, held_by: None });
        trial.accounts = target.into_iter().collect();
        Ok(trial)
    }
}

fn tried(planned: &PlannedRoute, facts: &RouteFacts<'_>, matches: bool) -> TriedRoute {
    let conditions = &planned.route.content.conditions;
    let holds = |condition| Some((condition, conditions.holds(condition, facts)?));
    TriedRoute {
        id: planned.route.id.to_string(),
        conditions: RouteCondition::ALL.into_iter().filter_map(holds).collect(),
        missing: planned.missing.iter().map(ToString::to_string).collect(),
        is_passed_over: matches && planned.targets.is_empty(),
    }
}
