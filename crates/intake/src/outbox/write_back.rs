//! What became of messages, as their rows show it.

use std::collections::HashMap;

use postway_domain::{EventKind, MessageUid, Status, TenantId};
use postway_store::{
    Store, StoreError,
    record::{FeedEvent, FeedPosition, MessageKey, MessageSummary},
};
use serde_json::Value;

use super::database::News;

/// What a row says whose mail never left.
const CAPTURED: &str = "the sandbox captured it";
/// Entries of the feed that are read at once.
pub(super) const PAGE: u32 = 500;

/// What came next in a tenant's feed: the place behind it, and the news in it, one entry for each message.
pub(super) struct Told {
    pub next: FeedPosition,
    pub news: Vec<News>,
    /// Whether there is more at once.
    pub has_more: bool,
}

/// Reads on from a place; nothing where nothing has happened.
pub(super) async fn read(
    store: &dyn Store,
    tenant: &TenantId,
    after: FeedPosition,
) -> Result<Option<Told>, StoreError> {
    let page = store.feed(tenant, after, PAGE).await?;
    let Some(last) = page.last() else { return Ok(None) };
    let (next, has_more) = (last.position, page.len() == PAGE as usize);
    let mut news = fold(&page);
    for one in page.iter().filter(|one| one.kind == EventKind::Resolved) {
        // Which way a doubt was resolved only the message knows.
        if let Some(message) = store.message(tenant, &MessageKey::Uid(one.uid)).await? {
            merge(&mut news, standing(&message.summary));
        }
    }
    Ok(Some(Told { next, news: news.into_values().collect(), has_more }))
}

/// How messages stand now; those that are gone are left out.
pub(super) async fn look(
    store: &dyn Store,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<News>, StoreError> {
    let mut news = Vec::with_capacity(uids.len());
    for uid in uids {
        news.push(match store.message(tenant, &MessageKey::Uid(*uid)).await? {
            Some(message) => standing(&message.summary),
            // Only what has ended is removed; that it is gone is all that can be said.
            None => News { uid: uid.to_string(), status: Some("gone"), ..News::default() },
        });
    }
    Ok(news)
}

fn fold(page: &[FeedEvent]) -> HashMap<String, News> {
    let mut news = HashMap::new();
    for one in page {
        if let Some(happened) = happened(one) {
            merge(&mut news, happened);
        }
    }
    news
}

/// The later has the word; what it does not speak of stays.
fn merge(news: &mut HashMap<String, News>, later: News) {
    match news.get_mut(&later.uid) {
        None => drop(news.insert(later.uid.clone(), later)),
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

/// What an event says to the row of its message, if it says anything.
fn happened(one: &FeedEvent) -> Option<News> {
    let mut news = News { uid: one.uid.to_string(), ..News::default() };
    match one.kind {
        EventKind::Sent => {
            news.status = Some("sent");
            news.sent_ms = one.event.as_ref().map(|event| event.at.as_millis());
        }
        EventKind::Invalid
        | EventKind::Failed
        | EventKind::InDoubt
        | EventKind::Cancelled
        | EventKind::Expired
        | EventKind::Suppressed => {
            news.status = Some(one.kind.as_str());
            news.error = reason(one);
        }
        EventKind::Captured => {
            news.status = Some(one.kind.as_str());
            news.error = Some(CAPTURED.to_owned());
        }
        EventKind::Scheduled => {
            news.status = Some("scheduled");
            news.error = one.deferred.then(|| reason(one)).flatten();
        }
        EventKind::Replayed => news.status = Some("accepted"),
        EventKind::Delivered
        | EventKind::Delayed
        | EventKind::Bounced
        | EventKind::Complained
        | EventKind::AutoReplied
        | EventKind::PecAccepted
        | EventKind::PecTakenOver
        | EventKind::PecDelivered
        | EventKind::PecFailed
        | EventKind::PecTimeout => news.outcome = Some(one.kind.as_str()),
        // What a row need not know.
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
        | EventKind::Replied => return None,
        // What is not proven.
        EventKind::UnprovenReport => return None,
        // Which way, the message is asked.
        EventKind::Resolved => return None,
    }
    Some(news)
}

/// Why, in a few words: addresses and replies stay where they are.
fn reason(one: &FeedEvent) -> Option<String> {
    let data: Value = serde_json::from_str(one.event.as_ref()?.data.as_deref()?).ok()?;
    let words: Vec<&str> =
        ["code", "category", "reason"].iter().filter_map(|name| data.get(name)?.as_str()).collect();
    (!words.is_empty()).then(|| words.join(": "))
}

/// How a message stands, as its row says it.
fn standing(message: &MessageSummary) -> News {
    let status = match message.state.status() {
        Status::Accepted | Status::Validating | Status::Ready | Status::Sending => "accepted",
        ended => ended.as_str(),
    };
    let error = message.error.as_deref().and_then(|error| serde_json::from_str::<Value>(error).ok());
    let error = error.and_then(|error| Some(error.get("code")?.as_str()?.to_owned()));
    let error = if status == Status::Captured.as_str() { Some(CAPTURED.to_owned()) } else { error };
    News {
        uid: message.uid.to_string(),
        status: Some(status),
        error: error.filter(|_| status != "sent"),
        outcome: None,
        sent_ms: message.sent_at.map(|at| at.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::{Event, Time};

    use super::*;

    fn event(uid: u8, kind: EventKind, data: &str) -> FeedEvent {
        let event = Event { seq: 1, at: Time::from_millis(7_000), kind, data: Some(data.to_owned()) };
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
        let news = fold(&page);
        let of = |uid: u8| news.get(&MessageUid::from_bytes([uid; 16]).to_string());
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
