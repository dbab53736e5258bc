//! Streams, and suppressions that are narrower or wider than a tenant's list.

use postway_domain::{MessageUid, TenantId, Time, id::StreamId};

use super::directory::SuppressionReason;

/// Which suppression it is: whose, of which addresses, of which mail.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SuppressionScope {
    /// Whose mail is not sent; that of every tenant where none is named.
    pub tenant: Option<TenantId>,
    /// The address or the pattern, as [`postway_domain::suppression::SuppressionPattern`] keeps it.
    pub pattern: String,
    /// The stream whose mail is not sent; that of all, and of none, where none is named.
    pub stream: Option<StreamId>,
}

/// Addresses that get no mail of some kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedSuppression {
    /// Which.
    pub scope: SuppressionScope,
    /// Why.
    pub reason: SuppressionReason,
    /// More about it.
    pub note: Option<String>,
    /// Since when.
    pub created_at: Time,
    /// Until when; for ever when absent.
    pub expires_at: Option<Time>,
}

/// Which scoped suppressions are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeFilter {
    /// Those of this tenant; those of the whole installation where none is named.
    pub tenant: Option<TenantId>,
    /// Only those of this stream.
    pub stream: Option<StreamId>,
}

/// What a reader of a message decided about its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderDecision {
    /// Whose mail it was.
    pub tenant: TenantId,
    /// The message by which the reader left; its history gets the event, unless it is gone.
    pub message: MessageUid,
    /// The stream.
    pub stream: StreamId,
    /// The reader, in lower case.
    pub address: String,
    /// Whether the reader leaves the stream, or comes back to it.
    pub leaves: bool,
    /// By which way: `one_click`, `page` or `mail`.
    pub via: &'static str,
    /// When.
    pub at: Time,
}

impl ReaderDecision {
    /// The suppression that it makes or ends.
    pub(crate) fn scope(&self) -> SuppressionScope {
        SuppressionScope {
            tenant: Some(self.tenant.clone()),
            pattern: self.address.clone(),
            stream: Some(self.stream.clone()),
        }
    }

    /// The suppression of a reader who leaves.
    pub(crate) fn suppression(&self) -> ScopedSuppression {
        ScopedSuppression {
            scope: self.scope(),
            reason: SuppressionReason::Unsubscribe,
            note: None,
            created_at: self.at,
            expires_at: None,
        }
    }

    /// The particulars of the event.
    pub(crate) fn data(&self) -> String {
        let Self { address, stream, via, .. } = self;
        serde_json::json!({"recipient": address, "stream": stream.as_str(), "via": via}).to_string()
    }
}
