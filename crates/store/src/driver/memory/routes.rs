//! Routes.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use postway_domain::{MailRoute, TenantId, Time, id::RouteId};

use super::{MemoryStore, admin::done_if};
use crate::{error::StoreError, port::RouteStore, record::ChangeResult};

/// Tenants' routes.
#[derive(Default)]
pub(super) struct RouteRows(BTreeMap<(TenantId, RouteId), MailRoute>);

impl RouteRows {
    pub fn create(&mut self, route: MailRoute) -> ChangeResult {
        let place = (route.tenant.clone(), route.id.clone());
        let is_free = !self.0.contains_key(&place);
        self.0.entry(place).or_insert(route);
        done_if(is_free, ChangeResult::Exists)
    }

    pub fn update(&mut self, route: MailRoute, expected: i64) -> ChangeResult {
        match self.0.get_mut(&(route.tenant.clone(), route.id.clone())) {
            Some(stored) if stored.version == expected => {
                *stored = MailRoute { created_at: stored.created_at, ..route };
                ChangeResult::Done
            }
            Some(_) | None => ChangeResult::Stale,
        }
    }

    pub fn delete(&mut self, tenant: TenantId, id: RouteId) -> ChangeResult {
        done_if(self.0.remove(&(tenant, id)).is_some(), ChangeResult::Missing)
    }

    /// See [`crate::record::DirectoryChange::OrderRoutes`].
    pub fn order(&mut self, tenant: &TenantId, order: &[RouteId], now: Time) -> ChangeResult {
        let mut of_tenant: Vec<_> = self.0.values_mut().filter(|route| route.tenant == *tenant).collect();
        let stored: BTreeSet<_> = of_tenant.iter().map(|route| route.id.clone()).collect();
        let given: BTreeSet<_> = order.iter().cloned().collect();
        if given.len() != order.len() || given != stored {
            return ChangeResult::Stale;
        }
        let mut moved = false;
        for route in &mut of_tenant {
            let place = order.iter().position(|id| *id == route.id).unwrap_or_default() as i64 + 1;
            if route.position != place {
                (route.position, route.updated_at) = (place, now);
                route.version += 1;
                moved = true;
            }
        }
        done_if(moved, ChangeResult::Already)
    }

    pub fn forget_tenant(&mut self, tenant: &TenantId) {
        self.0.retain(|(of, _), _| of != tenant);
    }
}

#[async_trait]
impl RouteStore for MemoryStore {
    async fn routes(&self, tenant: &TenantId) -> Result<Vec<MailRoute>, StoreError> {
        let tables = self.tables()?;
        let of_tenant = tables.directory.routes.0.values().filter(|route| route.tenant == *tenant);
        let mut routes: Vec<MailRoute> = of_tenant.cloned().collect();
        routes.sort_by(|one, other| (one.position, &one.id).cmp(&(other.position, &other.id)));
        Ok(routes)
    }

    async fn route(&self, tenant: &TenantId, id: &RouteId) -> Result<Option<MailRoute>, StoreError> {
        Ok(self.tables()?.directory.routes.0.get(&(tenant.clone(), id.clone())).cloned())
    }
}
