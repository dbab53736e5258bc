//! Reading, confined to a tenant.

use std::ops::Bound;

use postway_domain::{MessageUid, Status, TenantId, Time};

use super::{message::Stored, tables::Tables};
use crate::record::{
    Body, DedupKind, Filter, MessageBrief, MessageKey, MessageRecord, MessageSummary, Stats,
};

impl Tables {
    fn of_tenant(&self, tenant: &TenantId, uid: MessageUid) -> Option<&Stored> {
        self.messages.get(&uid).filter(|stored| stored.record.summary.lane.tenant == *tenant)
    }

    /// See [`crate::Read::message`].
    pub fn message(&self, tenant: &TenantId, key: &MessageKey) -> Option<MessageRecord> {
        let uid = match key {
            MessageKey::Uid(uid) => *uid,
            MessageKey::Client(id) => self.key(tenant, DedupKind::ClientId, id.as_str())?.uid,
        };
        self.of_tenant(tenant, uid).map(Stored::read)
    }

    /// See [`crate::Read::messages`].
    pub fn messages(
        &self,
        tenant: &TenantId,
        filter: &Filter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Vec<MessageSummary> {
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        let newest_first = self.messages.range((Bound::Unbounded, end)).rev().map(|(_, stored)| stored);
        newest_first
            .filter(|stored| stored.record.summary.lane.tenant == *tenant && matches(filter, &stored.record))
            .map(Stored::summary)
            .take(limit as usize)
            .collect()
    }

    /// See [`crate::Read::briefs`].
    pub fn briefs(&self, tenant: &TenantId, uids: &[MessageUid]) -> Vec<MessageBrief> {
        let records = uids.iter().filter_map(|uid| self.of_tenant(tenant, *uid)).map(Stored::read);
        records
            .map(MessageBrief::from)
            .filter(|brief| brief.recipients.len() <= MessageBrief::RECIPIENTS_MAX)
            .collect()
    }

    /// See [`crate::Read::raw`].
    pub fn raw(&self, tenant: &TenantId, uid: MessageUid) -> Option<Body> {
        self.of_tenant(tenant, uid)?.raw.clone()
    }

    /// See [`crate::Read::payload`].
    pub fn payload(&self, tenant: &TenantId, uid: MessageUid) -> Option<Body> {
        self.of_tenant(tenant, uid)?.payload.clone()
    }

    /// See [`crate::Read::latest`].
    pub fn latest(&self, tenant: &TenantId, state: Option<Status>, since: Time, limit: u32) -> Vec<Time> {
        let summaries = self.messages.values().map(|stored| &stored.record.summary);
        let mut times: Vec<Time> = summaries
            .filter(|summary| summary.lane.tenant == *tenant)
            .filter(|summary| state.is_none_or(|state| summary.state.status() == state))
            .map(|summary| if state.is_some() { summary.updated_at } else { summary.created_at })
            .filter(|at| *at >= since)
            .collect();
        times.sort_by_key(|at| std::cmp::Reverse(*at));
        times.truncate(limit as usize);
        times
    }

    /// See [`crate::Read::stats`].
    pub fn stats(&self, tenant: Option<&TenantId>, now: Time) -> Stats {
        let mut stats = Stats::default();
        let summaries = self.messages.values().map(|stored| &stored.record.summary);
        for summary in summaries.filter(|summary| tenant.is_none_or(|tenant| summary.lane.tenant == *tenant))
        {
            *stats.by_status.entry(summary.state.status()).or_default() += 1;
            let due_at = summary.due_at.filter(|due_at| *due_at <= now);
            stats.oldest_due_at = [stats.oldest_due_at, due_at].into_iter().flatten().min();
        }
        stats
    }
}

/// Whether a condition, where given, holds.
fn holds<T>(wanted: &Option<T>, test: impl FnOnce(&T) -> bool) -> bool {
    wanted.as_ref().is_none_or(test)
}

fn matches(filter: &Filter, record: &MessageRecord) -> bool {
    let summary = &record.summary;
    let has_recipient = |wanted: &String| {
        let wanted = wanted.to_lowercase();
        record.recipients.iter().any(|recipient| recipient.address.to_lowercase() == wanted)
    };
    let has_provider_id = |wanted: &String| {
        record.attempts.iter().any(|attempt| attempt.provider_message_id.as_ref() == Some(wanted))
    };
    holds(&filter.status, |status| summary.state.status() == *status)
        && holds(&filter.account, |account| summary.lane.account == *account)
        && holds(&filter.batch, |batch| {
            summary.lane.batch.as_ref().is_some_and(|code| code.as_str() == batch)
        })
        && holds(&filter.recipient, has_recipient)
        && holds(&filter.tag, |tag| summary.tags.contains(tag))
        && holds(&filter.request_id, |id| summary.request_id.as_ref() == Some(id))
        && holds(&filter.provider_message_id, has_provider_id)
        && holds(&filter.since, |since| summary.created_at >= *since)
        && holds(&filter.until, |until| summary.created_at < *until)
        && (!filter.exhausted || summary.exhausted)
}
