//! The feed as server-sent events.
//!
//! Each entry is one event whose id is the cursor, so a browser that reconnects continues where it was. A
//! comment every fifteen seconds keeps the connection from looking dead. Who reads is checked again every two
//! seconds, so that a stream ends with the key or session that opened it. It ends after some minutes in any case;
//! readers reconnect by themselves.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::stream;
use postway_domain::TenantId;
use postway_store::record::FeedPosition;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{view::FeedEntry, wait_for_events};
use crate::{auth::LongRequest, http::error::ApiError, state::SharedState};

/// Entries read at once.
const PAGE: u32 = 100;
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the reader is checked again.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// How long one stream lasts.
const STREAM_MAX: Duration = Duration::from_secs(600);

/// The stream of one reader.
struct FeedStream {
    app: SharedState,
    tenant: TenantId,
    request: LongRequest,
    after: FeedPosition,
    /// Entries that were read and not sent yet.
    ahead: VecDeque<FeedEntry>,
    ends_at: Instant,
    _slot: OwnedSemaphorePermit,
}

/// Begins the stream. If the store does not answer now, this is an error and not an empty stream.
pub(super) async fn streamed(
    app: SharedState,
    tenant: TenantId,
    request: LongRequest,
    after: FeedPosition,
    slot: OwnedSemaphorePermit,
) -> Result<Response, ApiError> {
    let now = Instant::now();
    let found = wait_for_events(&app, &tenant, after, PAGE, now).await?;
    let reading = FeedStream {
        app,
        tenant,
        request,
        after: found.position,
        ahead: found.entries.into(),
        ends_at: now + STREAM_MAX,
        _slot: slot,
    };
    let events = stream::unfold(reading, |mut reading| async {
        let event = reading.next().await?;
        Some((Ok::<_, Infallible>(event), reading))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
}

impl FeedStream {
    /// The next event; `None` when the stream's time is over, its reader may read no more, or the store does
    /// not answer.
    async fn next(&mut self) -> Option<Event> {
        while self.ahead.is_empty() {
            let now = Instant::now();
            if now >= self.ends_at || self.request.check_reader(&self.tenant, &self.app).await.is_err() {
                return None;
            }
            let until = self.ends_at.min(now + CHECK_EVERY);
            match wait_for_events(&self.app, &self.tenant, self.after, PAGE, until).await {
                Ok(found) => {
                    self.after = found.position;
                    self.ahead = found.entries.into();
                }
                Err(error) => {
                    tracing::warn!(%error, "a stream of events was cut off");
                    return None;
                }
            }
        }
        let entry = self.ahead.pop_front()?;
        match Event::default().id(&entry.cursor).json_data(&entry) {
            Ok(event) => Some(event),
            Err(error) => {
                tracing::error!(%error, "an event does not serialize");
                None
            }
        }
    }
}
