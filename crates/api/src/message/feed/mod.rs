//! `GET /v1/events`: what happened to a tenant's messages, in order, for applications that cannot be called.
//!
//! A reader keeps the cursor of the last entry it has dealt with and asks for what comes after; nothing is kept of it
//! here. It may wait for news (`wait`), or have them streamed (`stream.rs`). Entries go back as far as the journal does; of
//! a message that was removed meanwhile only its uid and what happened are known.

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
    http::{HeaderMap, Uri, header},
    response::{IntoResponse, Response},
};
use futures::future::try_join_all;
use postway_domain::{EventKind, MessageUid, TenantId};
use postway_store::{
    StoreError,
    record::{FeedPosition, MessageKey},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use self::view::{Entry, Feed};
use crate::{
    auth::Reader,
    http::{
        body,
        error::ApiError,
        pagination::{self, Paging},
        query::Parameters,
    },
    state::{App, Shared},
};

/// The longest a reader may wait.
const WAIT_S_MAX: u64 = 30;
/// How often the store is asked for whom waits.
const GLANCE: Duration = Duration::from_secs(1);
/// Readers that wait at once, for all tenants.
const SEATS: usize = 1_024;
/// Messages asked for at once.
const ASKED_AT_ONCE: usize = 16;

/// Room for readers that wait.
pub(crate) struct Seats(Arc<Semaphore>);

impl Default for Seats {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(SEATS)))
    }
}

impl Seats {
    /// One, if one is free.
    pub(crate) fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_owned().ok()
    }
}

/// A place in the feed, as cursors hold it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cursor(FeedPosition);

impl Cursor {
    fn write(self) -> String {
        pagination::write_cursor(&self)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.page, self.0.entry)
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (page, entry) = text.split_once('.').ok_or(())?;
        let (page, entry) = (page.parse().map_err(drop)?, entry.parse().map_err(drop)?);
        Ok(Self(FeedPosition { page, entry }))
    }
}

/// Read the feed
///
/// What happened to your messages, in order. Keep the `cursor` of what you have dealt with and give it as `after`; after a
/// crash you get the rest again, so compare `uid` and `sequence`. With `wait`, an answer without news comes only after so
/// many seconds. With `Accept: text/event-stream` the entries come as server-sent events, whose `id` is the cursor.
#[utoipa::path(
    get,
    path = "/v1/events",
    operation_id = "readEvents",
    tag = "webhooks",
    params(
        ("after" = Option<String>, Query, description = "A cursor, or `now` for what comes from now on; when absent, all that is kept"),
        ("cursor" = Option<String>, Query, description = "Another name for `after`; only one of them may be given"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("wait" = Option<u64>, Query, description = "How many seconds to wait for news, at most 30"),
        ("Last-Event-ID" = Option<String>, Header, description = "The same as `after`, and stronger"),
    ),
    responses((
        status = 200,
        description = "What came next; as a stream if you accept one",
        content((Feed = "application/json"), (String = "text/event-stream")),
    ))
)]
pub(crate) async fn events(
    State(app): State<Shared>,
    Reader(caller): Reader,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let after = query.take_either("after", "cursor");
    let wait = query.parse("wait", |text| match text.parse() {
        Ok(wait @ 0..=WAIT_S_MAX) => Ok(Duration::from_secs(wait)),
        _ => Err(format!("must be a number of seconds, at most {WAIT_S_MAX}")),
    });
    let limit = Paging::take_limit(&mut query);
    query.finish()?;
    let last_seen = headers.get("last-event-id").map(|value| String::from_utf8_lossy(value.as_bytes()));
    let after = match last_seen.as_deref().filter(|text| !text.is_empty()).or(after.as_deref()) {
        None => FeedPosition::default(),
        Some("now") => app.store.feed_end(&caller.tenant).await?,
        Some(cursor) => pagination::read_cursor::<Cursor>(cursor)?.0,
    };
    let seat = app.seats.take();
    if wants_stream(&headers) {
        let seat = seat.ok_or_else(|| ApiError::unavailable("too many readers wait already", "no seat"))?;
        return stream::streamed(app, caller.tenant, after, seat).await;
    }
    // Where there is no room to wait, the answer comes at once.
    let wait = wait.filter(|_| seat.is_some()).unwrap_or_default();
    let found = awaited(&app, &caller.tenant, after, limit, Instant::now() + wait).await?;
    Ok(Json(Feed::new(found)).into_response())
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts =
        headers.get_all(header::ACCEPT).iter().flat_map(|value| value.as_bytes().split(|b| *b == b','));
    accepts.map(body::essence).any(|kind| kind.eq_ignore_ascii_case(b"text/event-stream"))
}

/// Some entries, and where the reader is then.
struct Found {
    entries: Vec<Entry>,
    position: FeedPosition,
}

/// What comes after a place, as soon as there is something; empty at the deadline.
async fn awaited(
    app: &App,
    tenant: &TenantId,
    mut after: FeedPosition,
    limit: u32,
    deadline: Instant,
) -> Result<Found, StoreError> {
    loop {
        let page = app.store.feed(tenant, after, limit).await?;
        let was_full = page.len() == limit as usize;
        after = page.last().map_or(after, |last| last.position);
        let of_messages = page.iter().filter(|entry| entry.kind != EventKind::Received);
        let ids = ids(app, tenant, of_messages.map(|entry| entry.uid)).await?;
        let entries: Vec<Entry> = page.into_iter().filter_map(|event| Entry::new(event, &ids)).collect();
        if !entries.is_empty() {
            return Ok(Found { entries, position: after });
        }
        let now = Instant::now();
        if !was_full {
            if now >= deadline {
                return Ok(Found { entries, position: after });
            }
            tokio::time::sleep_until(deadline.min(now + GLANCE)).await;
        }
    }
}

/// What clients call these messages; those that are gone are not in it.
async fn ids(
    app: &App,
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
        let cursor = Cursor(FeedPosition { page: 70, entry: 3 });
        assert_eq!(pagination::read_cursor::<Cursor>(&cursor.write()).unwrap(), cursor);
        for bad in ["", "7.3", "now", &pagination::write_cursor(&"7"), &pagination::write_cursor(&"7.-1")] {
            assert!(pagination::read_cursor::<Cursor>(bad).is_err(), "{bad}");
        }
    }
}
