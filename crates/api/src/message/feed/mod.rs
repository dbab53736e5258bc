//! `GET /v1/events`: the feed of a tenant's events, in order, for applications that cannot be called.
//!
//! A reader keeps the cursor of the last entry it has processed and asks for what follows; nothing is stored
//! about it here. It may wait for new entries (`wait`), or have them streamed (`stream.rs`). Entries go back
//! as far as the journal does; of a message that was removed only the uid and the event are known.

mod stream;
mod view;

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header, request::Parts},
    response::{IntoResponse, Response},
};
use futures::future::try_join_all;
use postway_domain::{MessageUid, TenantId};
use postway_store::{
    StoreError,
    record::{FeedPosition, MessageKey},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use self::view::{FeedAnswer, FeedEntry};
use crate::{
    auth::{LongRequest, Reader},
    http::{
        body,
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
    },
    state::{AppState, SharedState},
};

/// The longest a reader may wait.
const WAIT_S_MAX: u64 = 30;
/// How often the store is polled for a waiting reader.
const GLANCE: Duration = Duration::from_secs(1);
/// The most readers that wait at once, for all tenants.
const SEATS: usize = 1_024;
/// Messages looked up at once.
const ASKED_AT_ONCE: usize = 16;

/// A limit on waiting readers.
pub(crate) struct WaitingReaders(Arc<Semaphore>);

impl Default for WaitingReaders {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(SEATS)))
    }
}

impl WaitingReaders {
    /// Takes a slot for a reader, if one is free.
    pub(crate) fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_owned().ok()
    }
}

/// A feed position, as a cursor encodes it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FeedCursor(FeedPosition);

impl FeedCursor {
    fn write(self) -> String {
        pagination::write_cursor(&self)
    }
}

impl fmt::Display for FeedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.page, self.0.entry)
    }
}

impl FromStr for FeedCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (page, entry) = text.split_once('.').ok_or(())?;
        let (page, entry) = (page.parse().map_err(drop)?, entry.parse().map_err(drop)?);
        Ok(Self(FeedPosition { page, entry }))
    }
}

/// Read the feed
///
/// The events of your messages, in order. Keep the `cursor` of the last entry you have processed and pass it
/// as `after`. After a crash some entries come again, so compare `uid` and `sequence`. With `wait`, an empty
/// answer comes only after that many seconds. With `Accept: text/event-stream` the entries come as
/// server-sent events, whose `id` is the cursor.
#[utoipa::path(
    get,
    path = "/v1/events",
    operation_id = "readEvents",
    tag = "webhooks",
    params(
        ("after" = Option<String>, Query, description = "A cursor, or `now` for entries from now on; when absent, all stored entries"),
        ("cursor" = Option<String>, Query, description = "Another name for `after`; only one of them may be given"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("wait" = Option<u64>, Query, description = "How many seconds to wait for new entries, at most 30"),
        ("Last-Event-ID" = Option<String>, Header, description = "The same as `after`; takes precedence"),
    ),
    responses((
        status = 200,
        description = "The entries that follow; as a stream if you accept one",
        content((FeedAnswer = "application/json"), (String = "text/event-stream")),
    ))
)]
pub(crate) async fn events(
    State(app): State<SharedState>,
    Reader(caller): Reader,
    parts: Parts,
) -> Result<Response, ApiError> {
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let after = query.take_either("after", "cursor");
    let wait = query.parse("wait", |text| match text.parse() {
        Ok(wait @ 0..=WAIT_S_MAX) => Ok(Duration::from_secs(wait)),
        _ => Err(format!("must be a number of seconds, at most {WAIT_S_MAX}")),
    });
    let limit = PageRequest::take_limit(&mut query);
    query.finish()?;
    let last_seen = parts.headers.get("last-event-id").map(|value| String::from_utf8_lossy(value.as_bytes()));
    let after = match last_seen.as_deref().filter(|text| !text.is_empty()).or(after.as_deref()) {
        None => FeedPosition::default(),
        Some("now") => app.store.feed_end(&caller.tenant).await?,
        Some(cursor) => pagination::read_cursor::<FeedCursor>(cursor)?.0,
    };
    let slot = app.waiting_readers.take();
    let request = LongRequest::of(&parts);
    if wants_stream(&parts.headers) {
        let slot = slot.ok_or_else(|| ApiError::unavailable("too many readers wait already", "no slot"))?;
        return stream::streamed(app, caller.tenant, request, after, slot).await;
    }
    // If no slot is free, the answer comes at once.
    let wait = wait.filter(|_| slot.is_some()).unwrap_or_default();
    let found = wait_for_events(&app, &caller.tenant, after, limit, Instant::now() + wait).await?;
    if !wait.is_zero() {
        request.check_reader(&caller.tenant, &app).await?;
    }
    Ok(Json(FeedAnswer::new(found)).into_response())
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts =
        headers.get_all(header::ACCEPT).iter().flat_map(|value| value.as_bytes().split(|b| *b == b','));
    accepts.map(body::essence).any(|kind| kind.eq_ignore_ascii_case(b"text/event-stream"))
}

/// Some entries, and the reader's position after them.
struct FeedPage {
    entries: Vec<FeedEntry>,
    position: FeedPosition,
}

/// The entries after a position, as soon as there are any; empty at the deadline.
async fn wait_for_events(
    app: &AppState,
    tenant: &TenantId,
    mut after: FeedPosition,
    limit: u32,
    deadline: Instant,
) -> Result<FeedPage, StoreError> {
    loop {
        let page = app.store.feed(tenant, after, limit).await?;
        let was_full = page.len() == limit as usize;
        after = page.last().map_or(after, |last| last.position);
        let of_messages = page.iter().filter(|entry| entry.kind.is_of_message());
        let ids = ids(app, tenant, of_messages.map(|entry| entry.uid)).await?;
        let entries: Vec<FeedEntry> =
            page.into_iter().filter_map(|event| FeedEntry::new(event, &ids)).collect();
        if !entries.is_empty() {
            return Ok(FeedPage { entries, position: after });
        }
        let now = Instant::now();
        if !was_full {
            if now >= deadline {
                return Ok(FeedPage { entries, position: after });
            }
            tokio::time::sleep_until(deadline.min(now + GLANCE)).await;
        }
    }
}

/// The clients' ids of these messages; removed messages are not in it.
async fn ids(
    app: &AppState,
    tenant: &TenantId,
    uids: impl Iterator<Item = MessageUid>,
) -> Result<HashMap<MessageUid, String>, StoreError> {
    let uids: Vec<MessageUid> = BTreeSet::from_iter(uids).into_iter().collect();
    let mut ids = HashMap::with_capacity(uids.len());
    for some in uids.chunks(ASKED_AT_ONCE) {
        let found = some.iter().map(|uid| async {
            let record = app.store.message(tenant, &MessageKey::Uid(*uid)).await?;
            Ok::<_, StoreError>(record.map(|record| record.summary))
        });
        for message in try_join_all(found).await?.into_iter().flatten() {
            let id = message.client_id.as_ref().map_or_else(|| message.uid.to_string(), ToString::to_string);
            ids.insert(message.uid, id);
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_nothing_else_does() {
        let cursor = FeedCursor(FeedPosition { page: 70, entry: 3 });
        assert_eq!(pagination::read_cursor::<FeedCursor>(&cursor.write()).unwrap(), cursor);
        for bad in ["", "7.3", "now", &pagination::write_cursor(&"7"), &pagination::write_cursor(&"7.-1")] {
            assert!(pagination::read_cursor::<FeedCursor>(bad).is_err(), "{bad}");
        }
    }
}
