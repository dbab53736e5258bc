//! Notifications, as a queue for each subscriber.

use std::collections::{BTreeMap, BTreeSet};

use postway_domain::{Incarnation, LeaseToken, Subscriber, Tenant, TenantId, Time};

use super::reporting::ReportingTables;
use crate::{
    journal::JournalEntry,
    record::{
        DueSubscriber, LeaseGrant, NotificationKey, NotificationResult, NotificationState, NotificationView,
        ReportRequest, ReportState, ResendPage, ResendRequest, ToNotify,
    },
    reporting::{REVIVED_MAX, add_head, next_due, next_state},
};

/// A notification, and who calls.
pub(super) struct StoredNotification {
    pub view: NotificationView,
    lease: Option<LeaseGrant>,
}

impl ReportingTables {
    fn is_next(&self, key: &NotificationKey) -> bool {
        let first = NotificationKey { seq: 0, ..key.clone() };
        self.notifications.range(first..key.clone()).all(|(_, lower)| lower.view.state.is_settled())
    }

    fn of<'a>(
        &'a self,
        who: &'a Subscriber,
    ) -> impl Iterator<Item = (&'a NotificationKey, &'a StoredNotification)> + 'a {
        self.notifications.iter().filter(|(key, _)| key.tenant == who.tenant && key.subscriber == who.id)
    }

    pub fn state(&self, now: Time, tenants: &BTreeMap<TenantId, Tenant>) -> ReportState {
        let mut state = ReportState::default();
        let is_served =
            |tenant: &TenantId| tenants.get(tenant).is_some_and(|tenant| tenant.deleted_at.is_none());
        for one in self.subscribers.values().filter(|one| one.active && is_served(&one.tenant)) {
            let due = |at: Time| at <= now;
            let is_due = self
                .of(one)
                .any(|(key, notification)| notification.view.due_at.is_some_and(due) && self.is_next(key));
            let later = self
                .of(one)
                .filter_map(|(_, notification)| notification.view.due_at)
                .filter(|at| !due(*at))
                .min();
            let who = DueSubscriber { tenant: one.tenant.clone(), subscriber: one.id.clone() };
            add_head(&mut state, who, one.quiet_until, is_due, later, now);
        }
        state
    }

    pub fn lease(&mut self, request: &ReportRequest) -> Vec<ToNotify> {
        let mut claimed = Vec::new();
        for (DueSubscriber { tenant, subscriber }, room) in &request.wants {
            let Some(who) = self.subscribers.get(&(tenant.clone(), subscriber.clone())) else { continue };
            if !who.active || who.quiet_until.is_some_and(|until| until > request.now) {
                continue;
            }
            let due = self.of(who).filter_map(|(key, notification)| Some((notification.view.due_at?, key)));
            let due = due.filter(|(due_at, key)| *due_at <= request.now && self.is_next(key));
            let due: BTreeSet<(Time, NotificationKey)> =
                due.map(|(due_at, key)| (due_at, key.clone())).collect();
            for (_, key) in due.into_iter().take(*room as usize) {
                let Some(notification) = self.notifications.get_mut(&key) else { continue };
                notification.lease = Some(request.lease);
                (notification.view.state, notification.view.due_at) = (NotificationState::Calling, None);
                let NotificationView { deferred, tries, created_at, .. } = notification.view;
                claimed.push(ToNotify { key, event: None, deferred, tries, created_at });
            }
        }
        claimed
    }

    /// Whether a notification is leased under this token.
    pub fn is_held(&self, key: &NotificationKey, token: LeaseToken) -> bool {
        let lease = self.notifications.get(key).and_then(|notification| notification.lease);
        lease.is_some_and(|lease| lease.token == token)
    }

    /// Writes what came of a call; `None` where the lease does not hold any more.
    pub fn settle(&mut self, notified: &NotificationResult) -> Option<()> {
        let notification = self.notifications.get_mut(&notified.key)?;
        notification.lease.filter(|lease| lease.token == notified.token)?;
        notification.lease = None;
        notification.view.state = next_state(notified);
        notification.view.due_at = next_due(notified);
        notification.view.settled_at = notified.state.is_settled().then_some(notified.at);
        if let Some(call) = &notified.call {
            notification.view.tries += 1;
            notification.view.last_call = Some(call.clone());
        }
        if let Some(due_at) = next_due(notified) {
            let behind = NotificationKey { seq: notified.key.seq + 1, ..notified.key.clone() };
            let last = NotificationKey { seq: i64::MAX, ..notified.key.clone() };
            for (_, follower) in self.notifications.range_mut(behind..=last) {
                follower.view.due_at = follower.view.due_at.map(|own| own.max(due_at));
            }
        }
        Some(())
    }

    pub fn reclaim(&mut self, alive: &[Incarnation], now: Time, limit: u32) -> u32 {
        let lost = |lease: &LeaseGrant| !alive.contains(&lease.incarnation) || lease.until <= now;
        let mut given_back = 0;
        let leased = self
            .notifications
            .values_mut()
            .filter(|notification| notification.lease.as_ref().is_some_and(lost));
        for notification in leased.take(limit as usize) {
            let again = notification.view.tries > 0;
            notification.lease = None;
            notification.view.due_at = Some(now);
            notification.view.state =
                if again { NotificationState::Waiting } else { NotificationState::Pending };
            given_back += 1;
        }
        given_back
    }

    pub fn again(&mut self, key: &NotificationKey, now: Time) -> bool {
        let settled =
            self.notifications.get_mut(key).filter(|notification| notification.view.state.is_settled());
        let Some(notification) = settled else { return false };
        (notification.view.state, notification.view.due_at) = (NotificationState::Pending, Some(now));
        (notification.view.tries, notification.view.settled_at) = (0, None);
        true
    }
}

/// Making due before its time, and once more.
impl ReportingTables {
    fn of_subscriber<'a>(
        &'a mut self,
        who: &'a DueSubscriber,
    ) -> impl Iterator<Item = &'a mut NotificationView> + 'a {
        let is_theirs = |key: &NotificationKey| key.tenant == who.tenant && key.subscriber == who.subscriber;
        let views = self.notifications.values_mut().map(|notification| &mut notification.view);
        views.filter(move |view| is_theirs(&view.key))
    }

    pub fn hasten(&mut self, who: &DueSubscriber, now: Time, limit: u32) -> u32 {
        let is_waiting = |view: &NotificationView| {
            let is_called_since = view.last_call.as_ref().is_some_and(|call| call.at > now);
            view.due_at.is_some_and(|due_at| due_at > now) && !is_called_since
        };
        let mut waiting: Vec<_> = self.of_subscriber(who).filter(|view| is_waiting(view)).collect();
        waiting.sort_by_key(|view| (view.due_at, view.key.uid, view.key.seq));
        waiting.truncate(limit.min(REVIVED_MAX) as usize);
        waiting.iter_mut().for_each(|view| view.due_at = Some(now));
        waiting.len() as u32
    }

    pub fn resend(&mut self, request: &ResendRequest) -> ResendPage {
        let limit = request.limit.clamp(1, REVIVED_MAX);
        let is_wanted = |view: &&mut NotificationView| {
            let is_made_then = (request.since..request.until).contains(&view.created_at);
            let is_over = view.state == NotificationState::Dead
                || (view.state == NotificationState::Acknowledged && !request.only_dead);
            is_made_then && is_over && request.after < Some((view.key.uid, view.key.seq))
        };
        let mut found = Vec::new();
        for view in self.of_subscriber(&request.who).filter(is_wanted).take(limit as usize) {
            (view.state, view.due_at) = (NotificationState::Pending, Some(request.now));
            (view.tries, view.settled_at) = (0, None);
            found.push((view.key.uid, view.key.seq));
        }
        ResendPage { resent: found.len() as u32, next: request.page_end(&found, limit, None) }
    }
}

/// Makes a notification, due when what it follows is.
pub(super) fn add(
    notifications: &mut BTreeMap<NotificationKey, StoredNotification>,
    subscriber: &Subscriber,
    entry: &JournalEntry,
    now: Time,
) {
    let key = NotificationKey {
        tenant: subscriber.tenant.clone(),
        subscriber: subscriber.id.clone(),
        uid: entry.uid,
        seq: entry.seq.into(),
    };
    let first = NotificationKey { seq: 0, ..key.clone() };
    let lower = notifications.range(first..key.clone()).filter_map(|(_, lower)| lower.view.due_at);
    let due_at = lower.max().unwrap_or(now).max(now);
    let view = NotificationView {
        key: key.clone(),
        kind: entry.kind,
        deferred: entry.is_deferred(),
        state: NotificationState::Pending,
        tries: 0,
        due_at: Some(due_at),
        created_at: now,
        settled_at: None,
        last_call: None,
    };
    notifications.entry(key).or_insert(StoredNotification { view, lease: None });
}
