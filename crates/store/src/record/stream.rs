//! Streams, and suppressions with a narrower or wider scope than a tenant's list.

use std::collections::BTreeMap;

use postway_domain::{MessageUid, TenantId, Time, id::StreamId};

use super::directory::SuppressionReason;

/// The scope of a suppression: tenant, addresses and stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SuppressionScope {
    /// The tenant whose mail is not sent; every tenant if `None`.
    pub tenant: Option<TenantId>,
    /// The address or the pattern, as [`postway_domain::suppression::SuppressionPattern`] writes it.
    pub pattern: String,
    /// The stream whose mail is not sent; all mail, with and without a stream, if `None`.
    pub stream: Option<StreamId>,
}

/// A suppression with a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedSuppression {
    /// Its scope.
    pub scope: SuppressionScope,
    /// The reason.
    pub reason: SuppressionReason,
    /// A note.
    pub note: Option<String>,
    /// When it began.
    pub created_at: Time,
    /// When it ends; `None` if it never does.
    pub expires_at: Option<Time>,
}

impl ScopedSuppression {
    /// Whether it holds at this time.
    pub(crate) fn holds_at(&self, at: Time) -> bool {
        self.expires_at.is_none_or(|ends| ends > at)
    }
}

/// The counters of a stream's mail in one hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Messages accepted.
    pub accepted: i64,
    /// Messages sent.
    pub sent: i64,
    /// Messages failed.
    pub failed: i64,
    /// Messages not sent because of the suppression lists.
    pub suppressed: i64,
    /// Reports of delivery.
    pub delivered: i64,
    /// Bounces.
    pub bounced: i64,
    /// Complaints.
    pub complained: i64,
    /// Readers who left.
    pub unsubscribed: i64,
    /// Readers who came back.
    pub resubscribed: i64,
}

/// The counters of one stream in one hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStatisticsRow {
    /// When the hour began.
    pub hour: Time,
    /// The tenant.
    pub tenant: TenantId,
    /// The stream.
    pub stream: StreamId,
    /// The counters.
    pub counts: StreamCounts,
}

impl StreamCounts {
    /// Adds the counters of another hour.
    pub fn add(&mut self, other: &Self) {
        let Self {
            accepted,
            sent,
            failed,
            suppressed,
            delivered,
            bounced,
            complained,
            unsubscribed,
            resubscribed,
        } = *other;
        self.accepted += accepted;
        self.sent += sent;
        self.failed += failed;
        self.suppressed += suppressed;
        self.delivered += delivered;
        self.bounced += bounced;
        self.complained += complained;
        self.unsubscribed += unsubscribed;
        self.resubscribed += resubscribed;
    }
}

impl StreamStatisticsRow {
    /// Sums the hours of each stream, and keeps those that sent most.
    pub(crate) fn busiest(rows: Vec<Self>, since: Time, limit: u32) -> Vec<Self> {
        let mut sums: BTreeMap<(TenantId, StreamId), StreamCounts> = BTreeMap::new();
        for row in rows {
            sums.entry((row.tenant, row.stream)).or_default().add(&row.counts);
        }
        let summed = |((tenant, stream), counts)| Self { hour: since, tenant, stream, counts };
        let mut busiest: Vec<Self> = sums.into_iter().map(summed).collect();
        busiest.sort_by_key(|row| std::cmp::Reverse(row.counts.sent));
        busiest.truncate(limit as usize);
        busiest
    }
}

/// A filter for scoped suppressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeFilter {
    /// Only those of this tenant; those of the whole installation if `None`.
    pub tenant: Option<TenantId>,
    /// Only those of this stream.
    pub stream: Option<StreamId>,
}

/// A reader's decision about the stream of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderDecision {
    /// The tenant that sent the message.
    pub tenant: TenantId,
    /// The message through which the reader decided; its history gets the event, unless the message has been
    /// removed.
    pub message: MessageUid,
    /// The stream.
    pub stream: StreamId,
    /// The reader, in lower case.
    pub address: String,
    /// Whether the reader leaves the stream; otherwise the reader comes back to it.
    pub leaves: bool,
    /// How the reader decided: `one_click`, `page` or `mail`.
    pub via: &'static str,
    /// When it happened.
    pub at: Time,
}

impl ReaderDecision {
    /// The scope of the suppression that it adds or removes.
    pub(crate) fn scope(&self) -> SuppressionScope {
        SuppressionScope {
            tenant: Some(self.tenant.clone()),
            pattern: self.address.clone(),
            stream: Some(self.stream.clone()),
        }
    }

    /// The suppression of a reader who leaves the stream.
    pub(crate) fn suppression(&self) -> ScopedSuppression {
        ScopedSuppression {
            scope: self.scope(),
            reason: SuppressionReason::Unsubscribe,
            note: None,
            created_at: self.at,
            expires_at: None,
        }
    }

    /// The event data.
    pub(crate) fn data(&self) -> String {
        let Self { address, stream, via, .. } = self;
        serde_json::json!({"recipient": address, "stream": stream.as_str(), "via": via}).to_string()
    }
}
