//! The feed as server-sent events.
//!
//! Each entry is one event; its id is the cursor, so a browser that reconnects goes on where it was. A comment every
//! fifteen seconds keeps the connection from looking dead. A stream ends after some minutes, also with a key that was
//! revoked meanwhile; readers come back by themselves, and their keys are asked for anew.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::stream;
use postway_domain::TenantId;
use postway_store::record::FeedPosition;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{awaited, view::Entry};
use crate::{http::error::ApiError, state::Shared};

/// Entries read at once.
const PAGE: u32 = 100;
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long one stream lasts.
const STREAM_MAX: Duration = Duration::from_secs(600);

/// One reader's stream.
struct FeedReading {
    app: Shared,
    tenant: TenantId,
    after: FeedPosition,
    /// Read and not yet sent.
    ahead: VecDeque<Entry>,
    ends_at: Instant,
    _seat: OwnedSemaphorePermit,
}

/// The answer. A store that is away now is an error of its own and no empty stream.
pub(super) async fn streamed(
    app: Shared,
    tenant: TenantId,
    after: FeedPosition,
    seat: OwnedSemaphorePermit,
) -> Result<Response, ApiError> {
    let now = Instant::now();
    let found = awaited(&app, &tenant, after, PAGE, now).await?;
    let reading = FeedReading {
        app,
        tenant,
        after: found.position,
        ahead: found.entries.into(),
        ends_at: now + STREAM_MAX,
        _seat: seat,
    };
    let events = stream::unfold(reading, |mut reading| async {
        let event = reading.next().await?;
        Some((Ok::<_, Infallible>(event), reading))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
}

impl FeedReading {
    /// The next event; none at the end of the stream's time, or where the store went away.
    async fn next(&mut self) -> Option<Event> {
        if self.ahead.is_empty() {
            match awaited(&self.app, &self.tenant, self.after, PAGE, self.ends_at).await {
                Ok(found) => {
                    self.after = found.position;
                    self.ahead = found.entries.into();
                }
                Err(error) => tracing::warn!(%error, "a stream of events was cut off"),
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
