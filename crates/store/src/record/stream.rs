//! Streams, and suppressions with a narrower or wider scope than a tenant's list.

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
