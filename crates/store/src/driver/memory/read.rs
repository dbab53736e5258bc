//! Reading, confined to a tenant.

use std::ops::Bound;

use postway_domain::{EmailAddress, Lane, MessageStatus, MessageUid, TenantId, Time};

use super::{stored_message::StoredMessage, tables::MemoryTables};
use crate::record::{
    AccountKey, AttemptDialogue, DedupKind, MessageBrief, MessageFilter, MessageKey, MessagePage,
    MessageRecord, MessageSummary, QueueStats, StoredBody, external_label, foreign_id_label,
};

impl MemoryTables {
    fn one_of(&self, tenant: &TenantId, uid: MessageUid) -> Option<&StoredMessage> {
        self.messages.get(&uid).filter(|stored| stored.record.summary.lane.tenant == *tenant)
    }

    /// Those of these messages that are the tenant's.
    pub fn of_tenant(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> impl Iterator<Item = (MessageUid, &StoredMessage)> {
        uids.iter().filter_map(move |uid| Some((*uid, self.one_of(tenant, *uid)?)))
    }

    /// See [`crate::Read::message`].
    pub fn message(&self, tenant: &TenantId, key: &MessageKey) -> Option<MessageRecord> {
        let uid = match key {
            MessageKey::Uid(uid) => *uid,
            MessageKey::Client(id) => self.key(tenant, DedupKind::ClientId, id.as_str())?.uid,
        };
        self.one_of(tenant, uid).map(StoredMessage::read)
    }

    /// See [`crate::Read::search`].
    pub fn search(
        &self,
        tenant: &TenantId,
        filter: &MessageFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> MessagePage {
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        let newest_first = self.messages.range((Bound::Unbounded, end)).rev().map(|(_, stored)| stored);
        let mut messages: Vec<MessageSummary> = newest_first
            .filter(|stored| stored.record.summary.lane.tenant == *tenant && matches(filter, &stored.record))
            .map(StoredMessage::summary)
            .take(limit as usize + 1)
            .collect();
        let has_more = messages.len() > limit as usize;
        messages.truncate(limit as usize);
        MessagePage { next: messages.last().filter(|_| has_more).map(|last| last.uid), messages }
    }

    /// See [`crate::Read::briefs`].
    pub fn briefs(&self, tenant: &TenantId, uids: &[MessageUid]) -> Vec<MessageBrief> {
        let records = self.of_tenant(tenant, uids).map(|(_, stored)| stored.read());
        records
            .map(MessageBrief::from)
            .filter(|brief| brief.recipients.len() <= MessageBrief::RECIPIENTS_MAX)
            .collect()
    }

    /// See [`crate::Read::raw`].
    pub fn raw(&self, tenant: &TenantId, uid: MessageUid) -> Option<StoredBody> {
        self.one_of(tenant, uid)?.raw.clone()
    }

    /// See [`crate::Read::payload`].
    pub fn payload(&self, tenant: &TenantId, uid: MessageUid) -> Option<StoredBody> {
        self.one_of(tenant, uid)?.payload.clone()
    }

    pub fn dialogue(&self, tenant: &TenantId, uid: MessageUid) -> Option<AttemptDialogue> {
        self.one_of(tenant, uid)?.dialogue.clone()
    }

    /// See [`crate::Read::stats`].
    pub fn stats(&self, tenant: Option<&TenantId>, now: Time) -> QueueStats {
        let mut stats = QueueStats::default();
        let suspended = self.directory.gates();
        let is_held = |lane: &Lane| {
            let account = std::slice::from_ref(&lane.account);
            let key = AccountKey { tenant: lane.tenant.clone(), account: lane.account.clone() };
            let is_gone = !self.directory.accounts.contains_key(&key);
            is_gone || !suspended.pass(lane) || !self.account_gates(&lane.tenant, account, now).is_empty()
        };
        let tenants = &self.directory.tenants;
        let is_there = |id: &TenantId| tenants.get(id).is_some_and(|tenant| tenant.deleted_at.is_none());
        let summaries = self.messages.values().map(|stored| &stored.record.summary);
        for summary in summaries.filter(|summary| tenant.is_none_or(|tenant| summary.lane.tenant == *tenant))
        {
            let status = summary.state.status();
            *stats.by_status.entry(status).or_default() += 1;
            stats.doubts_held += i64::from(status == MessageStatus::InDoubt && summary.due_at.is_none());
            let due_at = summary.due_at.filter(|due_at| *due_at <= now && is_there(&summary.lane.tenant));
            match due_at.is_some() && is_held(&summary.lane) {
                true => stats.note_held(due_at),
                false => stats.note_due(due_at),
            }
        }
        stats
    }
}

/// Whether a condition, where given, holds.
fn holds<T>(wanted: &Option<T>, test: impl FnOnce(&T) -> bool) -> bool {
    wanted.as_ref().is_none_or(test)
}

fn matches(filter: &MessageFilter, record: &MessageRecord) -> bool {
    let summary = &record.summary;
    let has_recipient = |wanted: &String| {
        record.recipients.iter().any(|recipient| EmailAddress::is_same(&recipient.address, wanted))
    };
    let has_provider_id = |wanted: &String| {
        record.attempts.iter().any(|attempt| attempt.provider_message_id.as_ref() == Some(wanted))
    };
    let has_label = |tag: &String| {
        summary.external_id.as_deref().is_some_and(|external_id| external_label(external_id) == *tag)
            || foreign_id_label(summary.uid, &summary.message_id).is_some_and(|label| label == *tag)
    };
    holds(&filter.status, |status| summary.state.status() == *status)
        && holds(&filter.account, |account| summary.lane.account == *account)
        && holds(&filter.batch, |batch| {
            summary.lane.batch.as_ref().is_some_and(|code| code.as_str() == batch)
        })
        && holds(&filter.recipient, has_recipient)
        && holds(&filter.tag, |tag| summary.tags.contains(tag) || has_label(tag))
        && holds(&filter.request_id, |id| summary.request_id.as_ref() == Some(id))
        && holds(&filter.provider_message_id, has_provider_id)
        && holds(&filter.subject, |wanted| {
            !summary.sensitive && summary.subject.to_lowercase().contains(&wanted.to_lowercase())
        })
        && holds(&filter.domain, |wanted| {
            let ending = format!("@{}", wanted.to_lowercase());
            record.recipients.iter().any(|recipient| recipient.address.to_lowercase().ends_with(&ending))
        })
        && holds(&filter.text, |wanted| {
            let wanted = wanted.to_lowercase();
            let is_in = |text: &str| text.to_lowercase().contains(&wanted);
            (!summary.sensitive && is_in(&summary.subject))
                || (filter.domain.is_none()
                    && record.recipients.iter().any(|recipient| is_in(&recipient.address)))
        })
        && holds(&filter.metadata, |field| field.is_in(summary.metadata.as_deref()))
        && holds(&filter.error_code, |wanted| has_code(summary.error.as_deref(), wanted))
        && holds(&filter.since, |since| summary.created_at >= *since)
        && holds(&filter.until, |until| summary.created_at < *until)
        && (!filter.exhausted || summary.exhausted)
        && holds(&filter.outcome, |wanted| {
            record.recipients.iter().any(|recipient| recipient.outcome == Some(*wanted))
        })
        && (!filter.waits || summary.waits())
        && (!filter.unresolved || summary.due_at.is_none())
        && holds(&filter.behind, |holders| {
            holders.hold(summary.lane.account.as_str(), summary.lane.batch.as_ref().map(|code| code.as_str()))
        })
}

fn has_code(error: Option<&str>, wanted: &str) -> bool {
    let error = error.and_then(|error| serde_json::from_str::<serde_json::Value>(error).ok());
    error.is_some_and(|error| error["code"].as_str() == Some(wanted))
}
