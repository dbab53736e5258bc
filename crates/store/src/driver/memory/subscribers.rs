//! Subscribers.

use postway_domain::{Subscriber, Tenant, TenantId, Time, id::SubscriberId};

use super::{admin::done_if, reporting::ReportingTables};
use crate::{record::ChangeResult, reporting::client_of};

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

    /// Makes, changes or deletes a tenant's own subscriber.
    pub fn keep_client(&mut self, tenant: &Tenant) {
        let Some(client) = client_of(tenant) else {
            let own = self
                .subscribers
                .keys()
                .find(|(of, id)| *of == tenant.id && id.as_str() == Subscriber::CLIENT);
            if let Some((of, id)) = own.cloned() {
                self.delete(&of, &id);
            }
            return;
        };
        let place = (client.tenant.clone(), client.id.clone());
        match self.subscribers.get_mut(&place) {
            Some(own) => {
                (own.kind, own.active, own.version) = (client.kind, true, own.version + 1);
                (own.disabled_reason, own.updated_at) = (None, client.updated_at);
            }
            None => {
                self.subscribers.insert(place, client);
            }
        }
    }
}
