//! The journal, the feed, and what is made of them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{
    AccountId, Incarnation, LaneId, MailStream, MessageEvent, MessageState, MessageUid, RecipientStatus,
    Subscriber, Tenant, TenantId, Time,
    id::{StreamId, SubscriberId},
    subscriber::event_name,
};

use super::{
    MemoryStore,
    notifications::{self, StoredNotification},
    stored_message::StoredMessage,
    streams::StreamTable,
    suppressions::StoredSuppressionChange,
    tables::MemoryTables,
};
use crate::{
    error::StoreError,
    journal::{
        AppendedEvent, EventJournal, JournalPage,
        history::{acknowledged_event, begun_event},
        suppression_changes,
    },
    port::ReportStore,
    record::{
        BegunCall, DeliveryPage, DueSubscriber, FeedEvent, FeedPosition, HourlyCounts, MessageOutcomes,
        NotificationKey, NotificationResult, NotificationState, NotificationView, OutcomeView, ReportRequest,
        ReportState, ResendPage, ResendRequest, SendingRate, StreamCounts, SubscriberProgress, ToNotify,
    },
    reporting::{count, count_stream, hour_of, is_told},
};

/// A page that was left.
pub(super) struct StoredPage {
    pub tenant: TenantId,
    pub page: JournalPage,
    pub position: Option<i64>,
}

/// The tables of reporting.
#[derive(Default)]
pub(super) struct ReportingTables {
    /// What the call under way will leave in the journal.
    noted: EventJournal,
    /// In the order of their commits.
    pub pages: Vec<StoredPage>,
    sequenced: i64,
    pub fanned_out: i64,
    accounts: BTreeMap<LaneId, AccountId>,
    streams: BTreeMap<LaneId, StreamId>,
    pub(super) subscribers: BTreeMap<(TenantId, SubscriberId), Subscriber>,
    pub notifications: BTreeMap<NotificationKey, StoredNotification>,
    pub statistics: BTreeMap<(TenantId, Time, AccountId), HourlyCounts>,
    pub stream_statistics: BTreeMap<(TenantId, StreamId, Time), StreamCounts>,
    pub suppression_changes: BTreeMap<MessageUid, StoredSuppressionChange>,
    /// The last hour, and all before it.
    pace: BTreeMap<(TenantId, Time), SendingRate>,
}

impl ReportingTables {
    /// Notes the events of a message behind those that are known.
    pub fn note(&mut self, stored: &StoredMessage, known: usize) {
        let (summary, lane) = (&stored.record.summary, stored.lane_id());
        for event in stored.record.events.iter().skip(known) {
            let happening = AppendedEvent {
                uid: summary.uid,
                seq: event.seq,
                at: event.at,
                kind: event.kind,
                to: summary.state,
            };
            self.accounts.entry(lane).or_insert_with(|| summary.lane.account.clone());
            if let Some(stream) = summary.lane.batch.as_ref().and_then(MailStream::of_batch) {
                self.streams.entry(lane).or_insert(stream);
            }
            self.noted.note(&summary.lane.tenant, lane, happening);
        }
    }

    /// Notes an event that belongs to no message.
    pub fn note_without_message(&mut self, tenant: &TenantId, uid: MessageUid, event: &MessageEvent) {
        let MessageEvent { seq, at, kind, .. } = *event;
        self.noted.note(
            tenant,
            suppression_changes::no_lane(),
            AppendedEvent { uid, seq, at, kind, to: MessageState::Sent },
        );
    }

    /// Leaves what was noted, as a transaction does before its commit; whether there was anything.
    pub fn leave_pages(&mut self) -> bool {
        let before = self.pages.len();
        let pages = std::mem::take(&mut self.noted).into_pages();
        self.pages.extend(pages.map(|(tenant, page)| StoredPage { tenant, page, position: None }));
        self.pages.len() > before
    }

    /// The notifications of a message, in order.
    fn told_of(&self, tenant: &TenantId, uid: MessageUid) -> Vec<NotificationView> {
        let all = self.notifications.values();
        let of_message = all.filter(|listed| listed.view.key.uid == uid && listed.view.key.tenant == *tenant);
        let mut views: Vec<NotificationView> = of_message.map(|listed| listed.view.clone()).collect();
        views.sort_by(|a, b| (a.key.seq, &a.key.subscriber).cmp(&(b.key.seq, &b.key.subscriber)));
        views
    }

    fn sequence(&mut self, limit: u32) -> u32 {
        let mut given = 0;
        for left in self.pages.iter_mut().filter(|left| left.position.is_none()).take(limit as usize) {
            self.sequenced += 1;
            left.position = Some(self.sequenced);
            given += 1;
        }
        given
    }

    fn fan_out(
        &mut self,
        now: Time,
        limit: u32,
        tenants: &BTreeMap<TenantId, Tenant>,
        streams: &StreamTable,
    ) -> u32 {
        let done = self.fanned_out;
        let next = self.pages.iter().filter(|left| left.position > Some(done));
        let mut fanned = 0;
        for StoredPage { tenant, page, position } in next.take(limit as usize) {
            let is_served = tenants.get(tenant).is_some_and(|tenant| tenant.deleted_at.is_none());
            let listens = |one: &&Subscriber| {
                one.tenant == *tenant && one.active && one.created_at <= page.at && is_served
            };
            for one in self.subscribers.values().filter(listens) {
                for entry in page.entries.iter().filter(|entry| is_told(one.kind, &one.events, entry)) {
                    notifications::add(&mut self.notifications, one, entry, now);
                }
            }
            for entry in &page.entries {
                if let Some(account) = self.accounts.get(&page.lanes[usize::from(entry.lane)]) {
                    let hour = (tenant.clone(), hour_of(page.at), account.clone());
                    count(self.statistics.entry(hour).or_default(), entry, page.at);
                }
                let stream = self.streams.get(&page.lanes[usize::from(entry.lane)]);
                if let Some(stream) = stream.filter(|stream| streams.has(tenant, stream)) {
                    let hour = (tenant.clone(), stream.clone(), hour_of(page.at));
                    count_stream(self.stream_statistics.entry(hour).or_default(), entry);
                }
            }
            let mut counts = HourlyCounts::default();
            page.entries.iter().for_each(|entry| count(&mut counts, entry, page.at));
            let HourlyCounts { accepted, sent, failed, .. } = counts;
            let begin = SendingRate::begin_of(page.at);
            let pace = self.pace.entry((tenant.clone(), begin)).or_insert(SendingRate::empty(begin));
            pace.add(SendingRate { at: begin, accepted, sent, failed });
            self.fanned_out = position.unwrap_or(self.fanned_out);
            fanned += 1;
        }
        self.statistics.retain(|_, counts| *counts != HourlyCounts::default());
        self.stream_statistics.retain(|_, counts| *counts != StreamCounts::default());
        fanned
    }

    pub fn pace_since(&self, tenant: &TenantId, since: Time) -> Vec<SendingRate> {
        let of_tenant = self.pace.range((tenant.clone(), since)..).take_while(|((of, _), _)| of == tenant);
        let happened = |pace: &&SendingRate| pace.accepted + pace.sent + pace.failed > 0;
        of_tenant.map(|(_, pace)| pace).filter(happened).copied().collect()
    }

    pub fn forget_message(&mut self, uid: MessageUid) {
        self.notifications.retain(|key, _| key.uid != uid);
    }

    pub fn forget_tenant(&mut self, tenant: &TenantId) {
        self.notifications.retain(|key, _| key.tenant != *tenant);
        self.subscribers.retain(|(of, _), _| of != tenant);
        self.statistics.retain(|(of, ..), _| of != tenant);
        self.stream_statistics.retain(|(of, ..), _| of != tenant);
        self.suppression_changes.retain(|_, change| change.tenant != *tenant);
        self.pace.retain(|(of, _), _| of != tenant);
        self.pages.retain(|left| left.tenant != *tenant);
    }
}

impl MemoryTables {
    fn event(&self, uid: MessageUid, seq: i64) -> Option<MessageEvent> {
        let of_message = self.messages.get(&uid).map(|stored| &stored.record.events);
        let of_change = || self.reports.suppression_changes.get(&uid).map(|change| &change.events);
        let events = of_message.or_else(|| self.inbound.events(uid)).or_else(of_change)?;
        events.iter().find(|event| event.seq == seq).cloned()
    }

    fn feed(&self, tenant: &TenantId, after: FeedPosition, limit: u32) -> Vec<FeedEvent> {
        let placed = self.reports.pages.iter().filter(|left| left.tenant == *tenant);
        let placed = placed.filter_map(|left| Some((left.position?, &left.page)));
        let entries = placed.flat_map(|(page, left)| {
            (0..).zip(&left.entries).map(move |(entry, one)| (FeedPosition { page, entry }, one))
        });
        let listed = entries.filter(|(position, _)| *position > after).map(|(position, one)| FeedEvent {
            position,
            uid: one.uid,
            kind: one.kind,
            deferred: one.is_deferred(),
            event: self.event(one.uid, one.seq.into()),
        });
        listed.take(limit as usize).collect()
    }

    fn settle_notification(&mut self, notified: &NotificationResult) -> bool {
        if self.reports.settle(notified).is_none() {
            return false;
        }
        if let Some((at, event)) = acknowledged_event(notified) {
            self.edit(notified.key.uid, |stored| stored.happen(event.kind, event.data, at));
        }
        true
    }

    fn begin_call(&mut self, begun: &BegunCall) -> bool {
        let holds = self.reports.is_held(&begun.key, begun.token);
        if holds {
            let (at, event) = begun_event(begun);
            self.edit(begun.key.uid, |stored| stored.happen(event.kind, event.data, at));
        }
        holds
    }
}

#[async_trait]
impl ReportStore for MemoryStore {
    async fn sequence(&self, limit: u32) -> Result<u32, StoreError> {
        let given = self.tables()?.reports.sequence(limit);
        self.commit(given > 0);
        self.tell(given > 0);
        Ok(given)
    }

    async fn fan_out(&self, now: Time, limit: u32) -> Result<u32, StoreError> {
        let mut tables = self.tables()?;
        let MemoryTables { reports, directory, .. } = &mut *tables;
        let fanned = reports.fan_out(now, limit, &directory.tenants, &directory.streams);
        self.commit(fanned > 0);
        self.tell(fanned > 0);
        Ok(fanned)
    }

    async fn feed(
        &self,
        tenant: &TenantId,
        after: FeedPosition,
        limit: u32,
    ) -> Result<Vec<FeedEvent>, StoreError> {
        Ok(self.tables()?.feed(tenant, after, limit))
    }

    async fn feed_end(&self, _tenant: &TenantId) -> Result<FeedPosition, StoreError> {
        Ok(FeedPosition { page: self.tables()?.reports.sequenced, entry: u32::MAX })
    }

    async fn report_woken(&self) {
        self.hand_over.reports_woken().await;
    }

    async fn report_state(&self, now: Time) -> Result<ReportState, StoreError> {
        let tables = self.tables()?;
        Ok(tables.reports.state(now, &tables.directory.tenants))
    }

    async fn claim_notifications(&self, request: ReportRequest) -> Result<Vec<ToNotify>, StoreError> {
        let mut tables = self.tables()?;
        let mut claimed = tables.reports.lease(&request);
        for one in &mut claimed {
            one.event = tables.event(one.key.uid, one.key.seq);
        }
        self.commit(!claimed.is_empty());
        Ok(claimed)
    }

    async fn begin_calls(&self, begun: Vec<BegunCall>) -> Result<Vec<bool>, StoreError> {
        let mut tables = self.tables()?;
        let held: Vec<bool> = begun.iter().map(|one| tables.begin_call(one)).collect();
        self.commit(held.contains(&true));
        Ok(held)
    }

    async fn settle_notifications(&self, notified: Vec<NotificationResult>) -> Result<Vec<bool>, StoreError> {
        let mut tables = self.tables()?;
        let held: Vec<bool> = notified.iter().map(|one| tables.settle_notification(one)).collect();
        self.commit(held.contains(&true));
        self.tell(held.contains(&true));
        Ok(held)
    }

    async fn reclaim_notifications(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<u32, StoreError> {
        let given_back = self.tables()?.reports.reclaim(alive, now, limit);
        self.commit(given_back > 0);
        self.tell(given_back > 0);
        Ok(given_back)
    }

    async fn subscriber(
        &self,
        tenant: &TenantId,
        id: &SubscriberId,
    ) -> Result<Option<Subscriber>, StoreError> {
        Ok(self.tables()?.reports.subscribers.get(&(tenant.clone(), id.clone())).cloned())
    }

    async fn subscribers(&self, tenant: Option<&TenantId>) -> Result<Vec<Subscriber>, StoreError> {
        let tables = self.tables()?;
        let all = tables.reports.subscribers.values();
        Ok(all.filter(|one| tenant.is_none_or(|tenant| one.tenant == *tenant)).cloned().collect())
    }

    async fn notifications(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Vec<NotificationView>, StoreError> {
        Ok(self.tables()?.reports.told_of(tenant, uid))
    }

    async fn fates(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<MessageOutcomes>, StoreError> {
        let tables = self.tables()?;
        let (mut outcomes, mut listed) = (Vec::new(), Vec::new());
        for (uid, stored) in tables.of_tenant(tenant, uids) {
            outcomes.extend(OutcomeView::gather(&stored.record.recipients).into_iter().map(|one| (uid, one)));
        }
        for &uid in uids {
            let views = tables.reports.told_of(tenant, uid);
            listed.extend(SubscriberProgress::gather(&views).into_iter().map(|one| (uid, one)));
        }
        Ok(MessageOutcomes::gather(outcomes, listed))
    }

    async fn refused_recipients(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<(MessageUid, i64)>, StoreError> {
        let tables = self.tables()?;
        let refused = |(uid, stored): (MessageUid, &StoredMessage)| {
            let failed = stored.record.recipients.iter().filter(|one| one.status == RecipientStatus::Failed);
            Some((uid, failed.count() as i64)).filter(|(_, count)| *count > 0)
        };
        Ok(tables.of_tenant(tenant, uids).filter_map(refused).collect())
    }

    async fn news(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<(MessageUid, MessageEvent)>, StoreError> {
        let tables = self.tables()?;
        let latest = |(uid, stored): (MessageUid, &StoredMessage)| {
            let mut events = stored.record.events.iter().rev();
            let event = events.find(|event| event_name(event.kind, false).is_some())?;
            Some((uid, MessageEvent { data: None, ..event.clone() }))
        };
        Ok(tables.of_tenant(tenant, uids).filter_map(latest).collect())
    }

    async fn deliveries(
        &self,
        tenant: &TenantId,
        subscriber: &SubscriberId,
        state: Option<NotificationState>,
        before: Option<(MessageUid, i64)>,
        limit: u32,
    ) -> Result<DeliveryPage, StoreError> {
        let tables = self.tables()?;
        let all = tables.reports.notifications.values().rev().map(|listed| &listed.view);
        let of_it = all.filter(|view| view.key.tenant == *tenant && view.key.subscriber == *subscriber);
        let older = of_it.filter(|view| before.is_none_or(|before| (view.key.uid, view.key.seq) < before));
        let wanted = older.filter(|view| state.is_none_or(|state| view.state == state));
        Ok(DeliveryPage::from_found(wanted.take(limit as usize + 1).cloned().collect(), limit, None))
    }

    async fn notify_again(&self, key: &NotificationKey, now: Time) -> Result<bool, StoreError> {
        let done = self.tables()?.reports.again(key, now);
        self.commit(done);
        self.tell(done);
        Ok(done)
    }

    async fn hasten_notifications(
        &self,
        who: &DueSubscriber,
        now: Time,
        limit: u32,
    ) -> Result<u32, StoreError> {
        let hastened = self.tables()?.reports.hasten(who, now, limit);
        self.commit(hastened > 0);
        self.tell(hastened > 0);
        Ok(hastened)
    }

    async fn resend_notifications(&self, request: ResendRequest) -> Result<ResendPage, StoreError> {
        let page = self.tables()?.reports.resend(&request);
        self.commit(page.resent > 0);
        self.tell(page.resent > 0);
        Ok(page)
    }
}
