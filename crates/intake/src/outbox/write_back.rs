//! Updates of rows: what happened to their messages, from the tenant's feed.

use std::collections::HashMap;

use postway_domain::{EventKind, MessageStatus, MessageUid, TenantId};
use postway_store::{
    Store, StoreError,
    record::{FeedEvent, FeedPosition, MessageKey, MessageSummary},
};
use serde_json::Value;

use super::database::RowUpdate;

/// The error of a row whose mail was captured.
const CAPTURED: &str = "the sandbox captured it";
/// The number of feed entries that are read at once.
pub(super) const PAGE: u32 = 500;

/// The next part of a tenant's feed: the position after it, and one update for each message in it.
pub(super) struct FeedUpdates {
    pub next: FeedPosition,
    pub updates: Vec<RowUpdate>,
    /// Whether there is more to read at once.
    pub has_more: bool,
}

/// Reads the feed after a position; `None` if nothing has happened.
pub(super) async fn read_feed(
    store: &dyn Store,
    tenant: &TenantId,
    after: FeedPosition,
) -> Result<Option<FeedUpdates>, StoreError> {
    let page = store.feed(tenant, after, PAGE).await?;
    let Some(last) = page.last() else { return Ok(None) };
    let (next, has_more) = (last.position, page.len() == PAGE as usize);
    let mut updates = fold_page(&page);
    for event in page.iter().filter(|event| event.kind == EventKind::Resolved) {
        // Only the message itself knows how a doubt was resolved.
        if let Some(message) = store.message(tenant, &MessageKey::Uid(event.uid)).await? {
            merge(&mut updates, update_from_summary(&message.summary));
        }
    }
    Ok(Some(FeedUpdates { next, updates: updates.into_values().collect(), has_more }))
}

/// Updates with the current state of messages; one that was removed is `gone`.
pub(super) async fn current_updates(
    store: &dyn Store,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<RowUpdate>, StoreError> {
    let mut updates = Vec::with_capacity(uids.len());
    for uid in uids {
        updates.push(match store.message(tenant, &MessageKey::Uid(*uid)).await? {
            Some(message) => update_from_summary(&message.summary),
            // Only ended messages are removed; nothing else is known about this one.
            None => RowUpdate { uid: uid.to_string(), status: Some("gone"), ..RowUpdate::default() },
        });
    }
    Ok(updates)
}

fn fold_page(page: &[FeedEvent]) -> HashMap<String, RowUpdate> {
    let mut updates = HashMap::new();
    for event in page {
        if let Some(update) = update_from_event(event) {
            merge(&mut updates, update);
        }
    }
    updates
}

/// Merges a later update into the earlier one; what it does not set stays.
fn merge(updates: &mut HashMap<String, RowUpdate>, later: RowUpdate) {
    match updates.get_mut(&later.uid) {
        None => drop(updates.insert(later.uid.clone(), later)),
        Some(earlier) => {
            if later.status.is_some() {
                earlier.status = later.status;
                earlier.error = later.error;
            }
            earlier.outcome = later.outcome.or(earlier.outcome);
            earlier.sent_ms = later.sent_ms.or(earlier.sent_ms);
        }
    }
}

/// The update that an event means for its row, if any.
fn update_from_event(event: &FeedEvent) -> Option<RowUpdate> {
    let mut updates = RowUpdate { uid: event.uid.to_string(), ..RowUpdate::default() };
    match event.kind {
        EventKind::Sent => {
            updates.status = Some("sent");
            updates.sent_ms = event.event.as_ref().map(|event| event.at.as_millis());
        }
        EventKind::Invalid
        | EventKind::Failed
        | EventKind::InDoubt
        | EventKind::Cancelled
        | EventKind::Expired
        | EventKind::Suppressed => {
            updates.status = Some(event.kind.as_str());
            updates.error = reason(event);
        }
        EventKind::Captured => {
            updates.status = Some(event.kind.as_str());
            updates.error = Some(CAPTURED.to_owned());
        }
        EventKind::Scheduled => {
            updates.status = Some("scheduled");
            updates.error = event.deferred.then(|| reason(event)).flatten();
        }
        EventKind::Replayed => updates.status = Some("accepted"),
        EventKind::Delivered
        | EventKind::Delayed
        | EventKind::Bounced
        | EventKind::Complained
        | EventKind::AutoReplied
        | EventKind::PecAccepted
        | EventKind::PecTakenOver
        | EventKind::PecDelivered
        | EventKind::PecFailed
        | EventKind::PecTimeout => updates.outcome = Some(event.kind.as_str()),
        // A row does not show these events.
        EventKind::Accepted
        | EventKind::Validating
        | EventKind::Validated
        | EventKind::Ready
        | EventKind::Sending
        | EventKind::RecipientFailed
        | EventKind::Resent
        | EventKind::Notifying
        | EventKind::Notified
        | EventKind::Received
        | EventKind::Unsubscribed
        | EventKind::Resubscribed
        | EventKind::SuppressionCreated
        | EventKind::SuppressionDeleted
        | EventKind::Opened
        | EventKind::Clicked
        | EventKind::Replied => return None,
        // A report without proof changes no row.
        EventKind::UnprovenReport => return None,
        // The message is read instead.
        EventKind::Resolved => return None,
    }
    Some(updates)
}

/// The reason in a few words, without addresses and replies.
fn reason(event: &FeedEvent) -> Option<String> {
    let data: Value = serde_json::from_str(event.event.as_ref()?.data.as_deref()?).ok()?;
    let words: Vec<&str> =
        ["code", "category", "reason"].iter().filter_map(|name| data.get(name)?.as_str()).collect();
    (!words.is_empty()).then(|| words.join(": "))
}

/// The update with the current state of a message.
fn update_from_summary(message: &MessageSummary) -> RowUpdate {
    let status = match message.state.status() {
        MessageStatus::Accepted
        | MessageStatus::Validating
        | MessageStatus::Ready
        | MessageStatus::Sending => "accepted",
        ended => ended.as_str(),
    };
    let error = message.error.as_deref().and_then(|error| serde_json::from_str::<Value>(error).ok());
    let error = error.and_then(|error| Some(error.get("code")?.as_str()?.to_owned()));
    let error = if status == MessageStatus::Captured.as_str() { Some(CAPTURED.to_owned()) } else { error };
    RowUpdate {
        uid: message.uid.to_string(),
        status: Some(status),
        error: error.filter(|_| status != "sent"),
        outcome: None,
        sent_ms: message.sent_at.map(|at| at.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::{MessageEvent, Time};

    use super::*;

    fn event(uid: u8, kind: EventKind, data: &str) -> FeedEvent {
        let event = MessageEvent { seq: 1, at: Time::from_millis(7_000), kind, data: Some(data.to_owned()) };
        FeedEvent {
            position: FeedPosition::default(),
            uid: MessageUid::from_bytes([uid; 16]),
            kind,
            deferred: false,
            event: Some(event),
        }
    }

    #[test]
    fn the_last_word_on_a_message_is_told_and_outcomes_stay_beside_it() {
        let page = [
            event(1, EventKind::Ready, "{}"),
            event(1, EventKind::Scheduled, "{}"),
            event(1, EventKind::Sent, "{}"),
            event(1, EventKind::Bounced, "{}"),
            event(2, EventKind::Failed, r#"{"code": "smtp_550", "category": "recipient", "reply": "x@y"}"#),
            event(5, EventKind::Sending, "{}"),
            event(5, EventKind::Captured, "{}"),
            event(3, EventKind::Sending, "{}"),
            event(4, EventKind::UnprovenReport, r#"{"says": "bounced", "proof": "recipient_only"}"#),
        ];
        let updates = fold_page(&page);
        let of = |uid: u8| updates.get(&MessageUid::from_bytes([uid; 16]).to_string());
        let first = of(1).unwrap();
        assert_eq!(
            (first.status, first.outcome, first.sent_ms),
            (Some("sent"), Some("bounced"), Some(7_000))
        );
        assert_eq!(of(2).unwrap().error.as_deref(), Some("smtp_550: recipient"));
        let captured = of(5).unwrap();
        assert_eq!(
            (captured.status, captured.error.as_deref(), captured.sent_ms),
            (Some("captured"), Some(CAPTURED), None)
        );
        assert_eq!(of(3), None);
        assert_eq!(of(4), None, "a report without proof changes no row");
    }
}
