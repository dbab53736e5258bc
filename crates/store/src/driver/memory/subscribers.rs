//! Subscribers.

use postway_domain::{Subscriber, Tenant, TenantId, Time, id::SubscriberId};

use super::{admin::done_if, reporting::ReportingTables};
use crate::{
    record::ChangeResult,
    reporting::{OWN, own_of},
};

impl ReportingTables {
    pub fn create(&mut self, subscriber: Subscriber) -> ChangeResult {
        let place = (subscriber.tenant.clone(), subscriber.id.clone());
        let free = !self.subscribers.contains_key(&place);
        self.subscribers.entry(place).or_insert(subscriber);
        done_if(free, ChangeResult::Exists)
    }

    pub fn update(&mut self, subscriber: Subscriber, expected: i64) -> ChangeResult {
        match self.subscribers.get_mut(&(subscriber.tenant.clone(), subscriber.id.clone())) {
            Some(stored) if stored.version == expected => {
                *stored = Subscriber { created_at: stored.created_at, ..subscriber };
                ChangeResult::Done
            }
            Some(_) | None => ChangeResult::Stale,
        }
    }

    pub fn delete(&mut self, tenant: &TenantId, id: &SubscriberId) -> ChangeResult {
        let removed = self.subscribers.remove(&(tenant.clone(), id.clone())).is_some();
        if removed {
            self.notifications.retain(|key, _| key.tenant != *tenant || key.subscriber != *id);
        }
        done_if(removed, ChangeResult::Missing)
    }

    pub fn quiet(&mut self, tenant: &TenantId, id: &SubscriberId, until: Time) -> ChangeResult {
        let found = self.subscribers.get_mut(&(tenant.clone(), id.clone()));
        let there = found.is_some();
        found.into_iter().for_each(|one| one.quiet_until = Some(until));
        done_if(there, ChangeResult::Missing)
    }

    /// Makes, changes or deletes a tenant's own subscribers.
    pub fn keep_own(&mut self, tenant: &Tenant) {
        let own = own_of(tenant);
        let is_gone = |id: &SubscriberId| OWN.contains(&id.as_str()) && own.iter().all(|one| one.id != *id);
        let gone = self.subscribers.keys().filter(|(of, id)| *of == tenant.id && is_gone(id));
        for (of, id) in gone.cloned().collect::<Vec<_>>() {
            self.delete(&of, &id);
        }
        for one in own {
            let place = (one.tenant.clone(), one.id.clone());
            match self.subscribers.get_mut(&place) {
                Some(known) => {
                    (known.kind, known.active, known.version) = (one.kind, true, known.version + 1);
                    (known.disabled_reason, known.updated_at) = (None, one.updated_at);
                }
                None => {
                    self.subscribers.insert(place, one);
                }
            }
        }
    }
}
