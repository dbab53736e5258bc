//! Forgetting.

use async_trait::async_trait;
use postway_domain::{EmailAddress, Lane, MessageUid, TenantId, Time, id::StreamId};

use super::{MemoryStore, stored_message::StoredMessage, tables::MemoryTables};
use crate::{
    error::StoreError,
    port::RetentionStore,
    record::{
        ErasureCounts, ExpungeRequest, ExpungeSlice, LaneUpkeep, MessageTombstone, NotificationState,
        OldestMail, StatisticsRow, StreamStatisticsRow,
    },
    retention::{
        ERASED_ADDRESS, FanOutBacklog, KEY_LASTS, MessageDeliveryState, SLICE_MAX, TRACE_LASTS,
        share_of_slice, without,
    },
};

impl MemoryTables {
    /// The state of a message's notifications.
    pub(super) fn delivery_state(&self, uid: MessageUid) -> MessageDeliveryState {
        let mut delivery = MessageDeliveryState::default();
        let of_message = self.reports.notifications.values().map(|one| &one.view);
        for view in of_message.filter(|view| view.key.uid == uid) {
            delivery.is_open |= !view.state.is_settled();
            delivery.is_dead |= view.state == NotificationState::Dead;
            delivery.settled_at = delivery.settled_at.max(view.settled_at);
        }
        delivery
    }

    /// What happened to a tenant's messages and was not made into notifications yet.
    pub(super) fn backlog(&self, tenant: &TenantId) -> FanOutBacklog {
        let mut backlog = FanOutBacklog::default();
        for left in self.reports.pages.iter().filter(|left| left.tenant == *tenant) {
            if left.position.is_none_or(|position| position > self.reports.fanned_out) {
                backlog.add(&left.page);
            }
        }
        backlog
    }

    fn trim_journal(&mut self, before: Time, limit: u32) -> u32 {
        let fanned_out = self.reports.fanned_out;
        let pages = &mut self.reports.pages;
        let is_old = |left: &super::reporting::StoredPage| {
            left.position.is_some_and(|position| position <= fanned_out) && left.page.at < before
        };
        let old = pages.iter().take(limit.min(SLICE_MAX) as usize).take_while(|left| is_old(left)).count();
        pages.drain(..old);
        old as u32
    }

    fn forget_traces(&mut self, now: Time, limit: u32) -> u32 {
        let limit = limit.min(SLICE_MAX) as usize;
        let ended = self.tombstones.values().filter(|trace| trace.expires_at <= now);
        let mut ended: Vec<_> = ended.map(|trace| (trace.expires_at, trace.uid)).collect();
        ended.sort();
        ended.truncate(limit);
        ended.iter().for_each(|(_, uid)| drop(self.tombstones.remove(uid)));
        (self.forget_keys(now, limit) + ended.len()) as u32
    }

    fn expunge_some(&mut self, requests: &[ExpungeRequest], limit: u32) -> ExpungeSlice {
        let (mut slice, limit) = (ExpungeSlice::default(), limit.min(SLICE_MAX));
        for (index, request) in requests.iter().enumerate() {
            let room = (limit - slice.removed) as usize;
            if room == 0 {
                slice.unseen.extend(requests[index..].iter().map(|request| request.tenant.clone()));
                break;
            }
            let share = share_of_slice(room, requests.len() - index);
            let removed = self.expunge(request, share);
            slice.removed += removed;
            if removed as usize == share {
                slice.unfinished.push(request.tenant.clone());
            }
        }
        slice
    }

    fn oldest_mail(&self, tenant: &TenantId) -> OldestMail {
        let messages = self.messages.values().map(|stored| &stored.record.summary);
        let of_tenant = messages.filter(|summary| summary.lane.tenant == *tenant);
        let message = of_tenant.map(|summary| summary.created_at).min();
        let mails = self.inbound.mails.values().map(|mail| &mail.view);
        let inbound = mails.filter(|view| view.key.tenant == *tenant).map(|view| view.created_at).min();
        let provider_event = self.hooks.oldest_event(tenant);
        OldestMail { tenant: tenant.clone(), message, inbound, provider_event }
    }

    fn expunge(&mut self, expunge: &ExpungeRequest, share: usize) -> u32 {
        let backlog = self.backlog(&expunge.tenant);
        let may_go = |stored: &&StoredMessage| {
            let summary = &stored.record.summary;
            summary.lane.tenant == expunge.tenant
                && !backlog.holds(summary.uid)
                && expunge.takes(summary.state.status(), summary.updated_at, self.delivery_state(summary.uid))
        };
        let going = self.messages.values().filter(may_go).map(StoredMessage::uid);
        let going: Vec<MessageUid> = going.take(share).collect();
        for uid in &going {
            self.bury(*uid, Some(&expunge.recipient_key), expunge.now);
        }
        going.len() as u32
    }

    /// Removes a message and leaves its trace, with digests of its recipients where there is a key for them.
    fn bury(&mut self, uid: MessageUid, key: Option<&[u8; 32]>, now: Time) {
        let Some(stored) = self.messages.get(&uid) else { return };
        let (summary, recipients) = (&stored.record.summary, &stored.record.recipients);
        let digests = key.map(|key| {
            let digest = |address: &str| MessageTombstone::digest(key, &summary.lane.tenant, address);
            recipients.iter().map(|one| digest(&one.address)).collect()
        });
        let trace = MessageTombstone {
            tenant: summary.lane.tenant.clone(),
            uid,
            status: summary.state.status(),
            recipients: digests.unwrap_or_default(),
            expires_at: now.plus(TRACE_LASTS),
        };
        self.tombstones.insert(uid, trace);
        self.retire(uid, now.plus(KEY_LASTS));
    }

    fn erase(&mut self, tenant: &TenantId, address: &str, now: Time, limit: u32) -> ErasureCounts {
        let backlog = self.backlog(tenant);
        let mut erased = ErasureCounts::default();
        let (mut alone, mut among) = (Vec::new(), Vec::new());
        for stored in self.messages.values() {
            let summary = &stored.record.summary;
            let to_it = stored.record.recipients.iter().filter(|one| is_it(&one.address, address)).count();
            if summary.lane.tenant != *tenant || to_it == 0 {
                continue;
            }
            let is_over = self.delivery_state(summary.uid).is_over(summary.state.status());
            if !is_over || backlog.holds(summary.uid) {
                erased.waiting += 1;
            } else if alone.len() + among.len() < limit.min(SLICE_MAX) as usize {
                let is_alone = to_it == stored.record.recipients.len();
                if is_alone { &mut alone } else { &mut among }.push(summary.uid);
            }
        }
        self.erase_changes(tenant, address);
        for uid in &alone {
            self.bury(*uid, None, now);
        }
        for uid in &among {
            self.edit(*uid, |stored| stored.redact(address));
            self.catalogue.links.retain(|(of, _), _| of != uid);
            self.inbound.receipts.retain(|(of, _), _| of != uid);
            let delivery = self.reports.notifications.values_mut().filter(|one| one.view.key.uid == *uid);
            for call in delivery.filter_map(|one| one.view.last_call.as_mut()) {
                (call.request, call.answer) = (String::new(), String::new());
            }
        }
        (erased.removed, erased.redacted) = (alone.len() as i64, among.len() as i64);
        let room = limit.min(SLICE_MAX) as usize - alone.len() - among.len();
        let (named, waiting) = self.mails_named(tenant, address, room);
        named.iter().for_each(|uid| self.remove_mail(*uid));
        (erased.removed, erased.waiting) = (erased.removed + named.len() as i64, erased.waiting + waiting);
        erased
    }

    fn statistics(&self, tenant: &TenantId, since: Time, until: Time) -> Vec<StatisticsRow> {
        let hours = self.reports.statistics.iter();
        let wanted = hours.filter(|((of, hour, _), _)| of == tenant && (since..until).contains(hour));
        let rows = wanted.map(|((_, hour, account), counts)| StatisticsRow {
            hour: *hour,
            tenant: tenant.clone(),
            account: account.clone(),
            counts: *counts,
        });
        rows.collect()
    }
}

impl StoredMessage {
    /// Takes an address and the bodies out of it.
    fn redact(&mut self, address: &str) {
        let record = &mut self.record;
        let placeholder: Result<EmailAddress, _> = ERASED_ADDRESS.parse();
        for (recipient, address_to) in record.recipients.iter_mut().zip(&mut self.addresses) {
            if is_it(&recipient.address, address) {
                (recipient.address, recipient.reply) = (ERASED_ADDRESS.to_owned(), None);
                recipient.bounce = None;
                placeholder.iter().for_each(|placeholder| address_to.clone_from(placeholder));
            }
        }
        for bounce in record.recipients.iter_mut().filter_map(|one| one.bounce.as_mut()) {
            *bounce = without(bounce, address).unwrap_or_else(|| bounce.clone());
        }
        let replies = record.recipients.iter_mut().filter_map(|one| one.reply.as_mut());
        let replies = replies.chain(record.attempts.iter_mut().filter_map(|one| one.reply.as_mut()));
        let texts = replies.map(|reply| &mut reply.text);
        let texts = texts.chain(record.events.iter_mut().filter_map(|event| event.data.as_mut()));
        let texts = texts.chain(self.dialogue.as_mut().map(|dialogue| &mut dialogue.content));
        for text in texts.chain(record.summary.error.as_mut()) {
            if let Some(redacted) = without(text, address) {
                *text = redacted;
            }
        }
        record.recipient = None;
        record.summary.subject.clear();
        record.summary.metadata = None;
        record.summary.version += 1;
        record.summary.trace = None;
        (self.raw, self.payload, self.waiting, self.dsn) = (None, None, None, None);
    }
}

/// Whether two addresses are one, in whatever case.
fn is_it(address: &str, wanted: &str) -> bool {
    EmailAddress::is_same(address, wanted)
}

#[async_trait]
impl RetentionStore for MemoryStore {
    async fn trim_journal(&self, before: Time, limit: u32) -> Result<u32, StoreError> {
        let trimmed = self.tables()?.trim_journal(before, limit);
        self.commit(trimmed > 0);
        Ok(trimmed)
    }

    async fn move_messages(&self, moves: Vec<(MessageUid, Lane)>) -> Result<u32, StoreError> {
        let mut tables = self.tables()?;
        let mut moved = 0;
        for (uid, lane) in moves {
            let waits = |stored: &mut StoredMessage| stored.move_to(lane);
            moved += u32::from(tables.edit(uid, waits).unwrap_or(false));
        }
        Ok(moved)
    }

    async fn move_misplaced(&self) -> Result<LaneUpkeep, StoreError> {
        // Lanes are made of what waits in them.
        Ok(LaneUpkeep { done: 0, is_last: true })
    }

    async fn retire_lanes(&self, _now: Time) -> Result<LaneUpkeep, StoreError> {
        Ok(LaneUpkeep { done: 0, is_last: true })
    }

    async fn tend_text_blocks(&self, _now: Time) -> Result<LaneUpkeep, StoreError> {
        // Messages are in memory already.
        Ok(LaneUpkeep { done: 0, is_last: true })
    }

    async fn trim_audit(&self, before: Time, limit: u32) -> Result<u32, StoreError> {
        let trimmed = self.tables()?.directory.audit.trim(before, limit);
        self.commit(trimmed > 0);
        Ok(trimmed)
    }

    async fn tombstone(&self, uid: MessageUid) -> Result<Option<MessageTombstone>, StoreError> {
        Ok(self.tables()?.tombstones.get(&uid).cloned())
    }

    async fn forget_traces(&self, now: Time, limit: u32) -> Result<u32, StoreError> {
        let forgotten = self.tables()?.forget_traces(now, limit);
        self.commit(forgotten > 0);
        Ok(forgotten)
    }

    async fn oldest_mail(&self, tenants: &[TenantId]) -> Result<Vec<OldestMail>, StoreError> {
        let tables = self.tables()?;
        Ok(tenants.iter().map(|tenant| tables.oldest_mail(tenant)).collect())
    }

    async fn expunge_some(
        &self,
        requests: Vec<ExpungeRequest>,
        limit: u32,
    ) -> Result<ExpungeSlice, StoreError> {
        let slice = self.tables()?.expunge_some(&requests, limit);
        self.commit(slice.removed > 0);
        Ok(slice)
    }

    async fn erase(
        &self,
        tenant: &TenantId,
        address: &str,
        now: Time,
        limit: u32,
    ) -> Result<ErasureCounts, StoreError> {
        let erased = self.tables()?.erase(tenant, address, now, limit);
        self.commit(erased.removed + erased.redacted > 0);
        Ok(erased)
    }

    async fn statistics(
        &self,
        tenant: &TenantId,
        since: Time,
        until: Time,
    ) -> Result<Vec<StatisticsRow>, StoreError> {
        Ok(self.tables()?.statistics(tenant, since, until))
    }

    async fn stream_statistics(
        &self,
        tenant: &TenantId,
        stream: &StreamId,
        since: Time,
        until: Time,
    ) -> Result<Vec<StreamStatisticsRow>, StoreError> {
        let tables = self.tables()?;
        let hours = tables.reports.stream_statistics.iter();
        let wanted = hours.filter(|((of, named, hour), _)| {
            of == tenant && named == stream && (since..until).contains(hour)
        });
        let rows = wanted.map(|((_, _, hour), counts)| StreamStatisticsRow {
            hour: *hour,
            tenant: tenant.clone(),
            stream: stream.clone(),
            counts: *counts,
        });
        Ok(rows.collect())
    }

    async fn busiest_streams(&self, since: Time, limit: u32) -> Result<Vec<StreamStatisticsRow>, StoreError> {
        let tables = self.tables()?;
        let hours = tables.reports.stream_statistics.iter();
        let rows = hours.filter(|((.., hour), _)| *hour >= since).map(|((tenant, stream, hour), counts)| {
            StreamStatisticsRow {
                hour: *hour,
                tenant: tenant.clone(),
                stream: stream.clone(),
                counts: *counts,
            }
        });
        Ok(StreamStatisticsRow::busiest(rows.collect(), since, limit))
    }
}
