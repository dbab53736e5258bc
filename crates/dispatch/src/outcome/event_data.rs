//! The data of the event that records an outcome.
//!
//! Every such event has the same first eight keys, `null` if there is no value, so that readers need not
//! check for their presence. One is written for every message that is sent, so it borrows its values and is
//! serialised once.

use postway_domain::{
    EventKind, SendFailure, Time,
    failure::{FailureCategory, FailurePhase},
};
use postway_store::record::{ClaimedRecipient, NewEvent};
use serde::Serialize;

use super::AttemptFacts;

/// The event data of an outcome.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OutcomeEventData<'a> {
    attempt: i64,
    duration_ms: i64,
    code: Option<&'a str>,
    category: Option<FailureCategory>,
    original_code: Option<&'a str>,
    will_retry: bool,
    next_attempt: Option<i64>,
    backoff_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_category: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<FailurePhase>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_message_id: Option<&'a str>,
    /// The position and the address of the recipient, if the event is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'a str>,
    /// The positions of recipients that are on the suppression list by now.
    #[serde(skip_serializing_if = "<[u32]>::is_empty")]
    suppressed: &'a [u32],
    /// The parts of the mail that were encoded for a relay that lacks an extension.
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    converted: &'static [&'static str],
    /// Whether the wishes about reports went with the mail, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    dsn: Option<&'static str>,
}

impl<'a> OutcomeEventData<'a> {
    /// The data of an attempt that is not followed by another.
    fn for_last_attempt(attempt: &AttemptFacts<'_>, failure: Option<&'a SendFailure>) -> Self {
        Self {
            attempt: attempt.job.attempt,
            duration_ms: attempt.duration_ms(),
            code: failure.map(|failure| &*failure.code),
            category: failure.map(|failure| failure.category),
            original_code: failure.and_then(|failure| failure.original_code.as_deref()),
            will_retry: false,
            next_attempt: None,
            backoff_ms: None,
            due_at: None,
            provider_category: failure.map(SendFailure::reference_category),
            phase: failure.map(|failure| failure.phase),
            message: failure.map(|failure| &*failure.message),
            provider_message_id: None,
            recipient: None,
            address: None,
            suppressed: &[],
            converted: &[],
            dsn: None,
        }
    }

    /// The data of an event about the message, which is due again at `due_at`, if at all.
    pub(super) fn for_message(
        attempt: &AttemptFacts<'a>,
        failure: Option<&'a SendFailure>,
        due_at: Option<Time>,
        provider_message_id: Option<&'a str>,
    ) -> Self {
        let waits = |due: Time| due.as_millis() - attempt.ended_at.as_millis();
        Self {
            will_retry: due_at.is_some(),
            next_attempt: due_at.map(|_| attempt.job.attempt + 1),
            backoff_ms: due_at.map(waits),
            due_at,
            provider_message_id,
            suppressed: &attempt.job.suppressed,
            converted: attempt.converted,
            dsn: attempt.dsn_offered.filter(|_| attempt.offered).map(|is_offered| match is_offered {
                true => "passed_on",
                false => "not_offered",
            }),
            ..Self::for_last_attempt(attempt, failure)
        }
    }

    /// The data of an event about a recipient that was refused permanently.
    pub(super) fn for_recipient(
        attempt: &AttemptFacts<'_>,
        recipient: &'a ClaimedRecipient,
        failure: &'a SendFailure,
    ) -> Self {
        Self {
            recipient: Some(recipient.position),
            address: Some(recipient.address.as_str()),
            // The recipient's own row has the reply already.
            phase: None,
            message: None,
            ..Self::for_last_attempt(attempt, Some(failure))
        }
    }

    /// The event with this data.
    pub(super) fn event(&self, kind: EventKind) -> NewEvent {
        let data = serde_json::to_string(self).expect("numbers, words and times are JSON");
        NewEvent { kind, data: Some(data) }
    }
}
