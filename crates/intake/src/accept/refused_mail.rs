//! Records of refused mail: messages that are `invalid` from the start, for those who audit them.
//!
//! A record is a row with two events and no body: recipients, subject, external id and the first fault. The
//! mail itself is not stored, because it was never checked. Each tenant has a number of records that refills
//! with time, so that a faulty client, or a stolen key, cannot fill the disk; refusals beyond it are only
//! counted and logged.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use postway_domain::{
    EmailAddress, EventKind, Lane, MessagePriority, MessageState, MessageUid, RecipientKind, TenantId, Time,
    message::{OnDoubt, TransitionInput, transition},
};
use postway_store::{
    StoreError,
    record::{MessageContent, NewEvent, NewMessage, NewRecipient, StoredBody},
};
use tokio::time::Instant;

use super::{context::RequestContext, door::Door};
use crate::refusal::FieldFault;

/// The most records that one tenant may add at once.
const RECORDS_MAX: u32 = 1_000;
/// How often the tenant may add another record after that.
const RECORD_EVERY: Duration = Duration::from_secs(10);
/// The most recipients in a record.
const RECIPIENTS_MAX: usize = 50;
/// The longest text in a record, in characters.
const TEXT_CHARS_MAX: usize = 255;

/// What is recorded of a refused mail.
#[derive(Clone, Debug)]
pub struct RefusedMail {
    /// The recipients, as far as they are valid addresses.
    pub recipients: Vec<(RecipientKind, EmailAddress)>,
    /// The subject, as given.
    pub subject: String,
    /// The sender's own reference.
    pub external_id: Option<String>,
    /// The first fault.
    pub fault: FieldFault,
}

/// The number of records that each tenant may still add.
#[derive(Default)]
pub(crate) struct RefusedShares(Mutex<HashMap<TenantId, (u32, Instant)>>);

impl RefusedShares {
    /// Counts one record of a tenant; `false` if it may add none now.
    fn take(&self, tenant: &TenantId, now: Instant) -> bool {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, since) = shares.entry(tenant.clone()).or_insert((RECORDS_MAX, now));
        let regained = now.duration_since(*since).as_secs() / RECORD_EVERY.as_secs();
        if regained > 0 {
            *left = left.saturating_add(u32::try_from(regained).unwrap_or(u32::MAX)).min(RECORDS_MAX);
            *since = now;
        }
        let is_left = *left > 0;
        *left = left.saturating_sub(1);
        is_left
    }
}

impl Door {
    /// Records a refused mail, unless its tenant may add no more records now, or has no account that would
    /// have sent the mail.
    pub async fn record_refused(
        &self,
        ctx: &RequestContext,
        mail: RefusedMail,
    ) -> Result<Option<MessageUid>, StoreError> {
        let Ok(account) = self.lookup.settings.account(&ctx.tenant, None).await? else { return Ok(None) };
        if ctx.dry_run || !self.refused.take(&ctx.tenant, Instant::now()) {
            return Ok(None);
        }
        let lane = Lane {
            tenant: ctx.tenant.clone(),
            account: account.id.clone(),
            priority: MessagePriority::Normal,
            batch: None,
            destination: None,
        };
        let message = record(lane, &ctx.request_id, self.builder.mail_domain(), mail, self.clock.now());
        let uid = message.uid;
        self.writer.store_all(ctx, vec![message]).await.map_err(|refusal| {
            match refusal.into_store_error() {
                Ok(error) => error,
                Err(refusal) => StoreError::Unexpected(refusal.to_string()),
            }
        })?;
        Ok(Some(uid))
    }
}

fn record(lane: Lane, request_id: &str, mail_domain: &str, mail: RefusedMail, now: Time) -> NewMessage {
    let uid = MessageUid::new(now, &mut rand::rng());
    let (state, effects) =
        transition(MessageState::Accepted, TransitionInput::Refuse).expect("the table lets a check fail");
    let (event_data, error) = mail.fault.event_and_error();
    let accepted = serde_json::json!({ "request_id": request_id }).to_string();
    let recipients = mail.recipients.into_iter().take(RECIPIENTS_MAX);
    NewMessage {
        uid,
        lane,
        client_id: None,
        idempotency: None,
        fingerprint: [0; 32],
        batch_key: None,
        state,
        due_at: None,
        created_at: now,
        expires_at: None,
        on_doubt: OnDoubt::Hold,
        recipients: recipients.map(|(kind, address)| NewRecipient { address, kind }).collect(),
        content: MessageContent {
            sender: String::new(),
            message_id: format!("{uid}@{mail_domain}"),
            subject: clipped(&mail.subject),
            request_id: Some(request_id.to_owned()),
            external_id: mail.external_id.as_deref().map(clipped).filter(|id| !id.is_empty()),
            tags: Vec::new(),
            metadata: None,
            eight_bit: false,
            smtputf8: false,
            raw: StoredBody::Inline(Bytes::new()),
            payload: None,
            sensitive: false,
            dsn: None,
        },
        events: vec![
            NewEvent { kind: EventKind::Accepted, data: Some(accepted) },
            NewEvent { kind: effects.event.unwrap_or(EventKind::Invalid), data: Some(event_data) },
        ],
        error: Some(error),
        collapse_key: None,
        recipient: None,
        settled: None,
        trace: None,
    }
}

/// An unchecked text, made fit for a column.
fn clipped(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_a_share_that_fills_up_again() {
        let (shares, start) = (RefusedShares::default(), Instant::now());
        let (one, other) = ("one".parse().unwrap(), "other".parse().unwrap());
        assert!((0..RECORDS_MAX).all(|_| shares.take(&one, start)));
        assert!(!shares.take(&one, start) && shares.take(&other, start), "each has its own");
        assert!(shares.take(&one, start + RECORD_EVERY) && !shares.take(&one, start + RECORD_EVERY));
        assert!((0..RECORDS_MAX).all(|_| shares.take(&one, start + RECORD_EVERY * 5_000)));
        assert!(!shares.take(&one, start + RECORD_EVERY * 5_000), "never more than at first");
    }

    #[test]
    fn a_record_has_no_body_and_says_what_was_wrong() {
        let lane = Lane {
            tenant: "acme".parse().unwrap(),
            account: "relay".parse().unwrap(),
            priority: MessagePriority::Normal,
            batch: None,
            destination: None,
        };
        let mail = RefusedMail {
            recipients: vec![(RecipientKind::To, "ada@example.net".parse().unwrap()); 60],
            subject: format!("a\r\nb{}", "x".repeat(999)),
            external_id: Some(String::new()),
            fault: FieldFault::new("to", "is no address"),
        };
        let stored = record(lane, "req-1", "mail.example", mail, Time::from_millis(7));
        assert_eq!(
            (stored.state, stored.due_at, stored.recipients.len()),
            (MessageState::Invalid, None, RECIPIENTS_MAX)
        );
        assert!(stored.content.raw.is_empty() && stored.content.payload.is_none());
        assert!(stored.content.subject.starts_with("a  b") && stored.content.subject.len() == TEXT_CHARS_MAX);
        assert_eq!(stored.content.external_id, None);
        let kinds: Vec<_> = stored.events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::Accepted, EventKind::Invalid]);
        assert!(stored.error.unwrap().contains("to: is no address"));
    }
}
