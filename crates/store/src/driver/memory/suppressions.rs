//! Changes of suppression lists, and their events.

use postway_domain::{EmailAddress, MessageEvent, MessageUid, TenantId, Time};

use super::{admin::done_if, tables::MemoryTables};
use crate::{
    journal::suppression_changes::CHANGES_LAST_MS,
    record::{
        ChangeResult, ScopedSuppression, SuppressionListChange, SuppressionOrigin, SuppressionRecord,
        SuppressionScope,
    },
};

/// The event of a change, and the address or pattern that it names.
pub(super) struct StoredSuppressionChange {
    pub tenant: TenantId,
    pub pattern: String,
    pub events: Vec<MessageEvent>,
}

impl MemoryTables {
    fn note_changes(&mut self, changes: Vec<SuppressionListChange>) {
        for change in changes {
            let (uid, tenant, event) = (change.uid(), change.tenant.clone(), change.event());
            if self.reports.suppression_changes.contains_key(&uid) {
                continue;
            }
            let event = MessageEvent { seq: 1, at: change.at, kind: event.kind, data: event.data };
            self.reports.note_without_message(&tenant, uid, &event);
            let (pattern, events) = (change.pattern, vec![event]);
            let stored = StoredSuppressionChange { tenant, pattern, events };
            self.reports.suppression_changes.insert(uid, stored);
        }
    }

    /// Adds suppressions. One that a report asks for does not replace one that lasts longer.
    pub(super) fn suppress(
        &mut self,
        list: Vec<SuppressionRecord>,
        origin: SuppressionOrigin,
        replaces: bool,
    ) {
        let mut begun = Vec::new();
        for one in list {
            let place = (one.tenant.clone(), one.address.clone());
            let earlier = self.directory.suppressions.get(&place);
            if !earlier.is_some_and(|earlier| earlier.holds_at(one.created_at)) {
                begun.push(SuppressionListChange::begin(&one, origin));
            }
            if replaces || earlier.is_none_or(|earlier| earlier.yields_to(&one)) {
                self.directory.suppressions.insert(place, one);
            }
        }
        self.note_changes(begun);
    }

    pub(super) fn unsuppress(&mut self, tenant: &TenantId, addresses: &[String], at: Time) -> ChangeResult {
        let (mut removed, mut ended) = (0, Vec::new());
        for address in addresses.iter().flat_map(|address| EmailAddress::spellings_of(address)) {
            if let Some(one) = self.directory.suppressions.remove(&(tenant.clone(), address)) {
                removed += 1;
                if one.holds_at(at) {
                    ended.push(SuppressionListChange::end(&one, SuppressionOrigin::Operator, at));
                }
            }
        }
        self.note_changes(ended);
        done_if(removed > 0, ChangeResult::Missing)
    }

    pub(super) fn suppress_scoped(&mut self, list: Vec<ScopedSuppression>) -> ChangeResult {
        let mut begun = Vec::new();
        for one in list {
            let earlier = self.directory.scoped.0.insert(one.scope.clone(), one.clone());
            if !earlier.is_some_and(|earlier| earlier.holds_at(one.created_at)) {
                begun.extend(SuppressionListChange::begin_scoped(&one, SuppressionOrigin::Operator));
            }
        }
        self.note_changes(begun);
        ChangeResult::Done
    }

    pub(super) fn unsuppress_scoped(&mut self, scopes: &[SuppressionScope], at: Time) -> ChangeResult {
        let (mut removed, mut ended) = (0, Vec::new());
        for scope in scopes {
            if let Some(one) = self.directory.scoped.0.remove(scope) {
                removed += 1;
                let held = Some(one).filter(|one| one.holds_at(at));
                let origin = SuppressionOrigin::Operator;
                ended.extend(held.and_then(|one| SuppressionListChange::end_scoped(&one, origin, at)));
            }
        }
        self.note_changes(ended);
        done_if(removed > 0, ChangeResult::Missing)
    }

    /// Notes what a reader decided.
    pub(super) fn note_decision(&mut self, suppression: &ScopedSuppression, leaves: bool, at: Time) {
        let change = match leaves {
            true => SuppressionListChange::begin_scoped(suppression, SuppressionOrigin::Reader),
            false => SuppressionListChange::end_scoped(suppression, SuppressionOrigin::Reader, at),
        };
        self.note_changes(change.into_iter().collect());
    }

    /// Removes suppressions whose time is over, and old events.
    pub(super) fn forget_suppressions(&mut self, now: Time) {
        let mut ended = Vec::new();
        let ends = |expires_at: Option<Time>| expires_at.filter(|at| *at <= now);
        for one in self.directory.suppressions.values() {
            let at = ends(one.expires_at);
            ended.extend(at.map(|at| SuppressionListChange::end(one, SuppressionOrigin::Expiry, at)));
        }
        for one in self.directory.scoped.0.values() {
            let at = ends(one.expires_at);
            let origin = SuppressionOrigin::Expiry;
            ended.extend(at.and_then(|at| SuppressionListChange::end_scoped(one, origin, at)));
        }
        self.directory.suppressions.retain(|_, one| one.holds_at(now));
        self.directory.scoped.forget(now);
        self.note_changes(ended);
        let before = Time::from_millis(now.as_millis() - CHANGES_LAST_MS);
        self.forget_changes(|change| change.events.iter().all(|event| event.at < before));
    }

    /// Removes the events of changes that name this address.
    pub(super) fn erase_changes(&mut self, tenant: &TenantId, address: &str) {
        let spellings = EmailAddress::spellings_of(&address.to_ascii_lowercase()).collect::<Vec<_>>();
        self.forget_changes(|change| change.tenant == *tenant && spellings.contains(&change.pattern));
    }

    fn forget_changes(&mut self, goes: impl Fn(&StoredSuppressionChange) -> bool) {
        let all = self.reports.suppression_changes.iter();
        let gone: Vec<MessageUid> = all.filter(|(_, change)| goes(change)).map(|(uid, _)| *uid).collect();
        for uid in gone {
            self.reports.suppression_changes.remove(&uid);
            self.reports.forget_message(uid);
        }
    }
}
