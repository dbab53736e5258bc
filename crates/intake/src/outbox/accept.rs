//! Handing rows to the door, many at a time, and what that makes of each.
//!
//! A message's id is made of its row, so one that was accepted before is found again. A refusal is therefore no proof
//! that nothing was accepted: the row may have been changed since, or its template be gone. So whatever is refused is first
//! looked for.

use bytes::Bytes;
use postway_domain::{ClientId, MessageUid, TenantId};
use postway_store::record::MessageKey;
use serde::{Deserialize, de::IgnoredAny};

use super::error::OutboxError;
use crate::{
    accept::{context::RequestContext, door::Door},
    refusal::Refusal,
};

/// How much of a refusal is written to its row.
const ERROR_CHARS_MAX: usize = 500;

/// A message to be accepted: its id and its JSON, or why there is none.
pub(super) struct Offer {
    pub client_id: String,
    pub message: Result<Bytes, String>,
}

impl Offer {
    /// Whether it says by which account it goes. What cannot be read is for the door to refuse.
    pub(super) fn names_account(&self) -> bool {
        #[derive(Deserialize)]
        struct AccountField {
            account: Option<IgnoredAny>,
        }
        let Ok(message) = &self.message else { return true };
        serde_json::from_slice(message).map_or(true, |AccountField { account }| account.is_some())
    }
}

/// What became of an offer: its message, or why there is none.
pub(super) type Answer = Result<AcceptedOffer, String>;

/// The message of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AcceptedOffer {
    pub uid: MessageUid,
    /// Whether it was accepted earlier with another content than what is offered now.
    pub differs: bool,
}

/// Has the door accept these; one answer each, in order. Fails as a whole where the store does not answer: then some may
/// be accepted, and will be found so.
pub(super) async fn accept(
    door: &Door,
    tenant: &TenantId,
    source: &str,
    offers: &[Offer],
) -> Result<Vec<Answer>, OutboxError> {
    let ctx = RequestContext {
        tenant: tenant.clone(),
        request_id: format!("outbox-{source}"),
        idempotency_key: None,
        dry_run: false,
        must_leave: true,
        any_subject: false,
        spoken_times: false,
        on_doubt: None,
        restrictions: None,
    };
    let mut answers = Vec::with_capacity(offers.len());
    let mut waiting = parts(offers, door.limits().batch_messages_max, door.limits().request_bytes_max);
    waiting.reverse();
    while let Some(part) = waiting.pop() {
        let messages: Vec<Bytes> = part.iter().filter_map(|offer| offer.message.clone().ok()).collect();
        let mut results = match messages.is_empty() {
            true => Vec::new(),
            false => match door.accept_each(&ctx, messages).await {
                Ok(batch) => batch.results,
                // Their templates make more of them than one call may bring: half of them may do.
                Err(Refusal::TooLarge { .. }) if part.len() > 1 => {
                    let (first, second) = part.split_at(part.len() / 2);
                    waiting.extend([second, first]);
                    continue;
                }
                Err(refusal) => match refusal.into_store_error() {
                    Ok(error) => return Err(error.into()),
                    // Only a single message is as large as that, and it alone is refused.
                    Err(refusal) => vec![Err(crate::RejectedItem { id: None, refusal })],
                },
            },
        }
        .into_iter();
        for offer in part {
            let answer = match &offer.message {
                Err(fault) => Err(fault.clone()),
                Ok(_) => match results.next() {
                    Some(Ok(receipt)) => Ok(AcceptedOffer { uid: receipt.uid, differs: false }),
                    // The account was changed just now: nothing of it is settled, and it waits from the next round on.
                    Some(Err(rejected)) if rejected.refusal.would_capture() => {
                        return Err(OutboxError::WouldCapture);
                    }
                    Some(Err(rejected)) => match rejected.refusal.into_store_error() {
                        Ok(error) => return Err(error.into()),
                        Err(refusal) => Err(clipped(&refusal.to_string())),
                    },
                    None => return Err(OutboxError::Unexpected("the door gave no answer".to_owned())),
                },
            };
            answers.push(match answer {
                Ok(accepted) => Ok(accepted),
                Err(fault) => found(door, tenant, &offer.client_id).await?.ok_or(fault),
            });
        }
    }
    Ok(answers)
}

/// The message of this id, if there is one.
async fn found(
    door: &Door,
    tenant: &TenantId,
    client_id: &str,
) -> Result<Option<AcceptedOffer>, OutboxError> {
    let Ok(id) = client_id.parse::<ClientId>() else { return Ok(None) };
    let message = door.store.message(tenant, &MessageKey::Client(id)).await?;
    Ok(message.map(|message| AcceptedOffer { uid: message.summary.uid, differs: true }))
}

/// Runs of offers that fit into one request each.
fn parts(offers: &[Offer], messages_max: usize, bytes_max: usize) -> Vec<&[Offer]> {
    let size = |offer: &Offer| offer.message.as_ref().map_or(0, |message| message.len());
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
            Offer { client_id: "x".to_owned(), message: Ok(text.to_owned().into()) }.names_account()
        };
        assert!(names(r#"{"to": ["a"], "account": "sandbox"}"#) && names(r#"{"account": 7}"#));
        assert!(!names(r#"{"to": ["a"], "headers": {"account": "x"}}"#) && !names(r#"{"account": null}"#));
        assert!(names("[1"), "the door says what is wrong with it");
        assert!(Offer { client_id: "x".to_owned(), message: Err("no JSON".to_owned()) }.names_account());
    }

    #[test]
    fn requests_are_bounded_in_messages_and_bytes() {
        let offer = |bytes: usize| Offer { client_id: "x".to_owned(), message: Ok("m".repeat(bytes).into()) };
        let offers: Vec<Offer> = [10, 10, 10, 500, 10].map(offer).into();
        let sizes = |messages_max, bytes_max| -> Vec<usize> {
            parts(&offers, messages_max, bytes_max).into_iter().map(<[Offer]>::len).collect()
        };
        assert_eq!(sizes(2, 10_000), [2, 2, 1]);
        assert_eq!(sizes(100, 200), [3, 1, 1]);
        assert_eq!(sizes(100, 10_000), [5]);
        assert!(parts(&[], 1, 1).is_empty());
    }
}
