//! Hands rows to the door, many at a time, and returns an answer for each.
//!
//! The id of a message is derived from its row, so a message that was accepted before is found again. A
//! refusal does not prove that nothing was accepted: the row may have changed since, or its template may be
//! gone. So before a row is refused, the door searches for its message.

use bytes::Bytes;
use postway_domain::{ClientId, MessageUid, TenantId};
use postway_store::record::MessageKey;
use serde::{Deserialize, de::IgnoredAny};

use super::error::OutboxError;
use crate::{
    accept::{
        context::{RequestContext, RequestTrace},
        door::Door,
    },
    refusal::Refusal,
};

/// The longest error that is written to a row, in characters.
const ERROR_CHARS_MAX: usize = 500;

/// A message to accept: its id and its JSON, or why it cannot be made.
pub(super) struct MessageOffer {
    pub client_id: String,
    pub message: Result<Bytes, String>,
}

impl MessageOffer {
    /// Whether the message names its account. A message that cannot be read counts as naming one; the door
    /// refuses it.
    pub(super) fn names_account(&self) -> bool {
        #[derive(Deserialize)]
        struct AccountField {
            account: Option<IgnoredAny>,
        }
        let Ok(message) = &self.message else { return true };
        serde_json::from_slice(message).map_or(true, |AccountField { account }| account.is_some())
    }
}

/// The answer to an offer: its message, or the reason that it has no message.
pub(super) type OfferAnswer = Result<AcceptedOffer, UnacceptedOffer>;

/// Why there is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UnacceptedOffer {
    /// It cannot be made or accepted, with the reason.
    Invalid(String),
    /// The sandbox would capture it: it waits for an account that sends, or for a route to one.
    Waits(String),
}

/// The message of an accepted offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AcceptedOffer {
    pub uid: MessageUid,
    /// Whether the message was accepted earlier with a different content.
    pub differs: bool,
}

/// Accepts the offers; one answer each, in order. Fails entirely if the store does not answer: some may be
/// accepted then, and will be found.
pub(super) async fn accept(
    door: &Door,
    tenant: &TenantId,
    source: &str,
    offers: &[MessageOffer],
) -> Result<Vec<OfferAnswer>, OutboxError> {
    let ctx = RequestContext {
        tenant: tenant.clone(),
        request_id: format!("outbox-{source}"),
        idempotency_key: None,
        dry_run: false,
        refuses_capture: true,
        any_subject: false,
        spoken_times: false,
        on_doubt: None,
        restrictions: None,
        trace: RequestTrace::Undecided,
    };
    let mut answers = Vec::with_capacity(offers.len());
    let mut waiting =
        split_requests(offers, door.limits().batch_messages_max, door.limits().request_bytes_max);
    waiting.reverse();
    while let Some(part) = waiting.pop() {
        let messages: Vec<Bytes> = part.iter().filter_map(|offer| offer.message.clone().ok()).collect();
        let mut results = match messages.is_empty() {
            true => Vec::new(),
            false => match door.accept_each(&ctx, messages).await {
                Ok(batch) => batch.results,
                // Templates make the messages too large for one call: half of them may fit.
                Err(Refusal::TooLarge { .. }) if part.len() > 1 => {
                    let (first, second) = part.split_at(part.len() / 2);
                    waiting.extend([second, first]);
                    continue;
                }
                Err(refusal) => match refusal.into_store_error() {
                    Ok(error) => return Err(error.into()),
                    // Only a single message can be this large, and it alone is refused.
                    Err(refusal) => vec![Err(crate::RejectedItem { id: None, refusal })],
                },
            },
        }
        .into_iter();
        for offer in part {
            let answer = match &offer.message {
                Err(fault) => Err(UnacceptedOffer::Invalid(fault.clone())),
                Ok(_) => match results.next() {
                    Some(Ok(receipt)) => Ok(AcceptedOffer { uid: receipt.uid, differs: false }),
                    Some(Err(rejected)) => match rejected.refusal.capture_fault() {
                        Some(why) => Err(UnacceptedOffer::Waits(why.to_owned())),
                        None => match rejected.refusal.into_store_error() {
                            Ok(error) => return Err(error.into()),
                            Err(refusal) => Err(UnacceptedOffer::Invalid(clipped(&refusal.to_string()))),
                        },
                    },
                    None => return Err(OutboxError::Unexpected("the door gave no answer".to_owned())),
                },
            };
            answers.push(match answer {
                Ok(accepted) => Ok(accepted),
                Err(fault) => find_accepted(door, tenant, &offer.client_id).await?.ok_or(fault),
            });
        }
    }
    Ok(answers)
}

/// Finds the message with this id.
async fn find_accepted(
    door: &Door,
    tenant: &TenantId,
    client_id: &str,
) -> Result<Option<AcceptedOffer>, OutboxError> {
    let Ok(id) = client_id.parse::<ClientId>() else { return Ok(None) };
    let message = door.store.message(tenant, &MessageKey::Client(id)).await?;
    Ok(message.map(|message| AcceptedOffer { uid: message.summary.uid, differs: true }))
}

/// Splits the offers into runs that fit into one request each.
fn split_requests(offers: &[MessageOffer], messages_max: usize, bytes_max: usize) -> Vec<&[MessageOffer]> {
    let size = |offer: &MessageOffer| offer.message.as_ref().map_or(0, |message| message.len());
    let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (index, offer) in offers.iter().enumerate() {
        let is_full = index - start == messages_max || bytes + size(offer) > bytes_max;
        if is_full && index > start {
            parts.push(&offers[start..index]);
            (start, bytes) = (index, 0);
        }
        bytes += size(offer);
    }
    if start < offers.len() {
        parts.push(&offers[start..]);
    }
    parts
}

fn clipped(text: &str) -> String {
    text.chars().take(ERROR_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_names_its_account_or_cannot_be_read() {
        let names = |text: &str| {
            MessageOffer { client_id: "x".to_owned(), message: Ok(text.to_owned().into()) }.names_account()
        };
        assert!(names(r#"{"to": ["a"], "account": "sandbox"}"#) && names(r#"{"account": 7}"#));
        assert!(!names(r#"{"to": ["a"], "headers": {"account": "x"}}"#) && !names(r#"{"account": null}"#));
        assert!(names("[1"), "the door says what is wrong with it");
        assert!(
            MessageOffer { client_id: "x".to_owned(), message: Err("no JSON".to_owned()) }.names_account()
        );
    }

    #[test]
    fn requests_are_bounded_in_messages_and_bytes() {
        let offer =
            |bytes: usize| MessageOffer { client_id: "x".to_owned(), message: Ok("m".repeat(bytes).into()) };
        let offers: Vec<MessageOffer> = [10, 10, 10, 500, 10].map(offer).into();
        let sizes = |messages_max, bytes_max| -> Vec<usize> {
            split_requests(&offers, messages_max, bytes_max).into_iter().map(<[MessageOffer]>::len).collect()
        };
        assert_eq!(sizes(2, 10_000), [2, 2, 1]);
        assert_eq!(sizes(100, 200), [3, 1, 1]);
        assert_eq!(sizes(100, 10_000), [5]);
        assert!(split_requests(&[], 1, 1).is_empty());
    }
}
