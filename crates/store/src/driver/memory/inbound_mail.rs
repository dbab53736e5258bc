//! Mail that came in: registering, leasing, settling, forgetting.

use std::collections::{BTreeMap, BTreeSet};

use postway_domain::{
    EventKind, InboundState, Incarnation, MessageEvent, MessageUid, TenantId, Time, id::RuleId,
    inbound::SUSPECT_WAIT,
};

use super::{mailboxes::InboundTables, tables::MemoryTables};
use crate::{
    inbound::{NextMailState, RouteTurns, add_tags},
    record::{
        ChangeResult, FindingOrigin, InboundFilter, InboundMailResult, InboundRecord, InboundReplay,
        InboundView, LeaseGrant, MailToProcess, MailboxKey, MailboxPage, NewInbound, ProcessRequest,
        ProcessingState, RegistrationResult, StoredBody,
    },
    retention::{SLICE_MAX, is_addressed},
};

/// A mail, and what only the queue knows of it.
pub(super) struct StoredMail {
    pub view: InboundView,
    pub body: Option<StoredBody>,
    pub events: Vec<MessageEvent>,
    messages: BTreeSet<(MessageUid, RuleId)>,
    lease: Option<LeaseGrant>,
    lost_leases: i64,
}

impl StoredMail {
    fn new(page: &MailboxPage, mail: NewInbound) -> Self {
        let is_settled = mail.state.is_settled();
        let view = InboundView {
            uid: mail.uid,
            key: page.key.clone(),
            folder: mail.folder,
            uid_validity: page.to.uid_validity,
            imap_uid: mail.imap_uid,
            digest: mail.digest,
            size: mail.size,
            arrived_at: mail.arrived_at,
            dated_at: mail.dated_at,
            sender: mail.sender,
            recipients: mail.recipients,
            subject: mail.subject,
            message_id: mail.message_id,
            state: mail.state,
            due_at: (!is_settled).then_some(page.at),
            tries: 0,
            attempts: 0,
            error: mail.error,
            kind: None,
            result: None,
            tags: Vec::new(),
            follow_up: None,
            reminders: 0,
            resolved_at: None,
            created_at: page.at,
            settled_at: is_settled.then_some(page.at),
        };
        Self {
            view,
            body: mail.body,
            events: Vec::new(),
            messages: BTreeSet::new(),
            lease: None,
            lost_leases: 0,
        }
    }

    fn leased(&self, before: InboundState) -> Option<MailToProcess> {
        let view = &self.view;
        Some(MailToProcess {
            uid: view.uid,
            key: view.key.clone(),
            folder: view.folder.clone(),
            uid_validity: view.uid_validity,
            imap_uid: view.imap_uid,
            digest: view.digest?,
            body: self.body.clone()?,
            before,
            tries: view.tries,
            lost_leases: self.lost_leases,
            arrived_at: view.arrived_at,
            created_at: view.created_at,
            messages: self.messages.iter().map(|(uid, rule)| (rule.clone(), *uid)).collect(),
            follow_up: view.follow_up.clone(),
            reminders: view.reminders,
        })
    }

    /// Writes what came of it.
    fn settle(&mut self, routed: &InboundMailResult) {
        let view = &mut self.view;
        let next = NextMailState::after(routed, view.resolved_at.is_some());
        (view.state, view.due_at) = (next.state, next.due_at);
        (view.follow_up, view.settled_at) = (next.follow_up, next.settled_at);
        (view.tries, view.reminders) = (routed.tries, routed.reminders);
        view.attempts += i64::from(routed.was_tried);
        view.error.clone_from(&routed.error);
        view.kind = routed.kind.map(str::to_owned).or(view.kind.take());
        view.result = routed.result.clone().or(view.result.take());
        add_tags(&mut view.tags, &routed.tags);
        self.messages.extend(routed.messages.iter().map(|(rule, uid)| (*uid, rule.clone())));
        if let Some(data) = &routed.received {
            let seq = self.events.len() as i64 + 1;
            let (at, kind, data) = (routed.at, EventKind::Received, Some(data.clone()));
            self.events.push(MessageEvent { seq, at, kind, data });
        }
        (self.lease, self.lost_leases) = (None, routed.lost_leases);
    }
}

impl InboundTables {
    pub fn register(&mut self, mut page: MailboxPage) -> RegistrationResult {
        let mails = std::mem::take(&mut page.mails);
        let Some((_, state)) = self.mailboxes.get_mut(&page.key) else { return RegistrationResult::Stale };
        if state.cursor != page.seen {
            return RegistrationResult::Stale;
        }
        (state.cursor, state.uid_next) = (Some(page.to), Some(page.uid_next));
        let (mut new, mut known) = (0, 0);
        for mail in mails {
            let is_new = match mail.digest {
                Some(digest) => self.seen.insert((page.key.clone(), digest)),
                None => !self.mails.values().any(|other| {
                    let view = &other.view;
                    let place = (&view.folder, view.uid_validity, view.imap_uid);
                    view.key == page.key
                        && view.digest.is_none()
                        && place == (&mail.folder, page.to.uid_validity, mail.imap_uid)
                }),
            };
            if is_new {
                self.mails.insert(mail.uid, StoredMail::new(&page, mail));
            }
            *(if is_new { &mut new } else { &mut known }) += 1;
        }
        RegistrationResult::Done { new, known }
    }

    pub fn reclaim(&mut self, alive: &[Incarnation], now: Time, limit: u32) -> u32 {
        let lost = |lease: &LeaseGrant| !alive.contains(&lease.incarnation) || lease.until <= now;
        let leased = self.mails.values_mut().filter(|mail| mail.lease.as_ref().is_some_and(lost));
        let mut given_back = 0;
        for mail in leased.take(limit as usize) {
            let was_settled = mail.view.settled_at.is_some();
            mail.view.state = if was_settled { InboundState::Routed } else { InboundState::Waiting };
            let is_late = mail.lease.take().is_some_and(|lease| alive.contains(&lease.incarnation));
            if is_late {
                (mail.view.due_at, mail.view.tries) = (Some(now), mail.view.tries + 1);
                mail.view.attempts += 1;
            } else {
                (mail.view.due_at, mail.lost_leases) = (Some(now.plus(SUSPECT_WAIT)), mail.lost_leases + 1);
            }
            given_back += 1;
        }
        given_back
    }

    pub fn list(
        &self,
        tenant: &TenantId,
        filter: &InboundFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Vec<InboundView> {
        let views = self.mails.values().rev().map(|mail| &mail.view);
        let older = views.filter(|view| before.is_none_or(|before| view.uid < before));
        let matches = |view: &&InboundView| {
            view.key.tenant == *tenant
                && filter.mailbox.as_ref().is_none_or(|mailbox| view.key.mailbox == *mailbox)
                && filter.state.is_none_or(|state| view.state == state)
                && filter.kind.as_ref().is_none_or(|kind| view.kind.as_ref() == Some(kind))
        };
        older.filter(matches).take(limit as usize).cloned().collect()
    }

    pub fn of_tenant(&self, tenant: &TenantId, uid: MessageUid) -> Option<&StoredMail> {
        self.mails.get(&uid).filter(|mail| mail.view.key.tenant == *tenant)
    }

    pub fn replay(&mut self, tenant: &TenantId, uid: MessageUid, now: Time) -> ChangeResult {
        let found = self.mails.get_mut(&uid).filter(|mail| mail.view.key.tenant == *tenant);
        let Some(mail) = found else { return ChangeResult::Missing };
        if !mail.view.state.can_be_replayed() || mail.body.is_none() {
            return ChangeResult::InUse;
        }
        let view = &mut mail.view;
        (view.state, view.due_at, view.tries) = (InboundState::Received, Some(now), 0);
        (view.error, view.follow_up, view.reminders) = (None, None, 0);
        (view.resolved_at, view.settled_at) = (None, None);
        mail.lost_leases = 0;
        ChangeResult::Done
    }

    pub fn replay_all(&mut self, replay: &InboundReplay) -> u32 {
        let found = self.list(&replay.tenant, &replay.filter, replay.end(), u32::MAX);
        let found = found.into_iter().filter(|view| replay.takes(view)).map(|view| view.uid);
        let found = found.filter(|uid| *uid >= replay.first());
        let mut replayed = 0;
        for uid in found.collect::<Vec<_>>() {
            if replayed == replay.limit {
                break;
            }
            replayed += u32::from(self.replay(&replay.tenant, uid, replay.at) == ChangeResult::Done);
        }
        replayed
    }

    pub fn resolve(&mut self, tenant: &TenantId, uid: MessageUid, now: Time) -> ChangeResult {
        let found = self.mails.get_mut(&uid).filter(|mail| mail.view.key.tenant == *tenant);
        let Some(mail) = found else { return ChangeResult::Missing };
        let view = &mut mail.view;
        if view.resolved_at.is_some() {
            return ChangeResult::Already;
        }
        (view.resolved_at, view.follow_up) = (Some(now), None);
        view.due_at = view.due_at.filter(|_| view.state != InboundState::Routed);
        ChangeResult::Done
    }
}

impl MemoryTables {
    /// Whether mail of this mailbox may be claimed.
    pub(super) fn is_served(&self, key: &MailboxKey) -> bool {
        let tenant = self.directory.tenants.get(&key.tenant);
        tenant.is_some_and(|tenant| tenant.deleted_at.is_none())
    }

    pub fn route_state(&self, now: Time) -> ProcessingState {
        let mut state = ProcessingState::default();
        let served = self.inbound.mails.values().filter(|mail| self.is_served(&mail.view.key));
        for due_at in served.filter_map(|mail| mail.view.due_at) {
            if due_at <= now {
                state.due += 1;
            } else {
                state.next_due_at = Some(state.next_due_at.map_or(due_at, |next| next.min(due_at)));
            }
        }
        state
    }

    pub fn claim_inbound(&mut self, request: &ProcessRequest) -> Vec<MailToProcess> {
        let mut due: BTreeMap<&MailboxKey, BTreeSet<(Time, MessageUid)>> = BTreeMap::new();
        for StoredMail { view, .. } in self.inbound.mails.values() {
            if let Some(due_at) = view.due_at.filter(|at| *at <= request.now && self.is_served(&view.key)) {
                due.entry(&view.key).or_default().insert((due_at, view.uid));
            }
        }
        let head = |(key, queue): (&&MailboxKey, &BTreeSet<(Time, MessageUid)>)| {
            queue.first().map(|(due_at, _)| (*due_at, (*key).clone()))
        };
        let mut turns = RouteTurns::new(due.iter().filter_map(head).collect(), request);
        let mut uids: Vec<MessageUid> = Vec::new();
        while let Some((key, room)) = turns.next() {
            let before = uids.len();
            if let Some(queue) = due.get_mut(&key) {
                let some = std::iter::from_fn(|| queue.pop_first()).take(room as usize);
                uids.extend(some.map(|(_, uid)| uid));
            }
            turns.took(key, room, (uids.len() - before) as u32);
        }
        let mut claimed = Vec::with_capacity(uids.len());
        for uid in uids {
            let Some(mail) = self.inbound.mails.get_mut(&uid) else { continue };
            let before = std::mem::replace(&mut mail.view.state, InboundState::Routing);
            (mail.view.due_at, mail.lease) = (None, Some(request.lease));
            claimed.extend(mail.leased(before));
        }
        claimed
    }

    /// Writes what came of a mail; `false` where the lease is lost.
    pub fn settle_inbound(&mut self, routed: &InboundMailResult) -> bool {
        let leased = self.inbound.mails.get_mut(&routed.uid);
        let ours = leased.filter(|mail| mail.lease.is_some_and(|lease| lease.token == routed.token));
        let Some(mail) = ours else { return false };
        let known = mail.events.len();
        mail.settle(routed);
        let reported: Vec<MessageEvent> = mail.events[known..].to_vec();
        let tenant = mail.view.key.tenant.clone();
        for event in reported {
            self.reports.note_without_message(&tenant, routed.uid, &event);
        }
        self.find(routed.uid, FindingOrigin::Mail, routed.at, &routed.findings);
        routed.domain_reports.iter().for_each(|new| self.domain_reports.write(new));
        true
    }

    pub fn inbound_record(&self, tenant: &TenantId, uid: MessageUid) -> Option<InboundRecord> {
        let mail = self.inbound.of_tenant(tenant, uid)?;
        let status = |uid| self.messages.get(uid).map(|stored| stored.record.summary.state.status());
        let sent = mail.messages.iter().map(|(uid, rule)| (rule.clone(), *uid, status(uid)));
        Some(InboundRecord { mail: mail.view.clone(), messages: sent.collect(), events: mail.events.clone() })
    }

    pub fn remove_mail(&mut self, uid: MessageUid) {
        self.inbound.mails.remove(&uid);
        self.reports.forget_message(uid);
    }

    /// Whether it is settled, without open notifications or reminders.
    fn is_over(&self, mail: &StoredMail) -> bool {
        mail.view.state.is_settled()
            && mail.view.due_at.is_none()
            && !self.delivery_state(mail.view.uid).is_open
            && !self.backlog(&mail.view.key.tenant).holds(mail.view.uid)
    }

    pub fn expunge_inbound(
        &mut self,
        tenant: &TenantId,
        before: Time,
        unreported_before: Time,
        limit: u32,
    ) -> u32 {
        let of_tenant = self.inbound.mails.values().filter(|mail| mail.view.key.tenant == *tenant);
        let died_lately = |mail: &StoredMail| {
            let reported = self.delivery_state(mail.view.uid);
            reported.is_dead && reported.settled_at >= Some(unreported_before)
        };
        let old = of_tenant
            .filter(|mail| mail.view.created_at < before && self.is_over(mail) && !died_lately(mail));
        let going: Vec<MessageUid> =
            old.map(|mail| mail.view.uid).take(limit.min(SLICE_MAX) as usize).collect();
        going.iter().for_each(|uid| self.remove_mail(*uid));
        going.len() as u32
    }

    /// Mail that an address wrote, or that was to it: some that may go, and how many others there are.
    pub fn mails_named(&self, tenant: &TenantId, address: &str, limit: usize) -> (Vec<MessageUid>, i64) {
        let (mut over, mut waiting) = (Vec::new(), 0);
        for mail in self.inbound.mails.values().filter(|mail| mail.view.key.tenant == *tenant) {
            let names = [&mail.view.sender, &mail.view.recipients];
            if !names.into_iter().flatten().any(|names| is_addressed(names, address)) {
                continue;
            }
            if !self.is_over(mail) {
                waiting += 1;
            } else if over.len() < limit {
                over.push(mail.view.uid);
            }
        }
        (over, waiting)
    }
}
