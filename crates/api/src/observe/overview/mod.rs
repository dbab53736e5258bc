//! `GET /v1/overview`: the state of a tenant's mail on one page. As JSON once, or as server-sent events.
//!
//! Every read of the store is bounded, so it costs the same with a thousand messages and with a million. The
//! last hour is as counted by the sequencer that fans out the journal: a moment late.

mod gather;
mod holders;

use std::{convert::Infallible, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{header, request::Parts},
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
};
use futures::stream;
use tokio::time::{Instant, sleep};

use self::gather::TenantOverview;
use crate::{
    auth::{LongRequest, Reader},
    http::{body, error::ApiError},
    state::SharedState,
};

/// How often a stream sends a new overview.
const EVERY: Duration = Duration::from_secs(2);
/// How long one stream lasts; readers reconnect by themselves.
const STREAM_MAX: Duration = Duration::from_secs(600);

/// Show the overview
///
/// Rates, the queue, times in queue, failures, and what is blocked. With `Accept: text/event-stream` a new
/// overview comes every two seconds.
#[utoipa::path(
    get,
    path = "/v1/overview",
    operation_id = "getOverview",
    tag = "operations",
    responses((status = 200, description = "The overview; as a stream if you accept one", body = TenantOverview))
)]
pub(crate) async fn overview(
    State(app): State<SharedState>,
    Reader(caller): Reader,
    parts: Parts,
) -> Result<Response, ApiError> {
    let first = gather::overview(&app, &caller).await?;
    let wants_stream = parts
        .headers
        .get_all(header::ACCEPT)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .any(|kind| body::essence(kind).eq_ignore_ascii_case(b"text/event-stream"));
    if !wants_stream {
        return Ok(Json(first).into_response());
    }
    let slot = app
        .waiting_readers
        .take()
        .ok_or_else(|| ApiError::unavailable("too many readers wait already", "no slot"))?;
    let ends_at = Instant::now() + STREAM_MAX;
    let reading = (Some(first), app, caller, LongRequest::of(&parts), slot);
    let events = stream::unfold(reading, move |(ready, app, caller, request, slot)| async move {
        let overview = match ready {
            Some(overview) => overview,
            None if Instant::now() >= ends_at => return None,
            None => {
                sleep(EVERY).await;
                // If the reader may read no more, or the store does not answer, the stream ends; the reader
                // reconnects and gets the error.
                request.check_reader(&caller.tenant, &app).await.ok()?;
                gather::overview(&app, &caller).await.ok()?
            }
        };
        let event = Event::default().json_data(&overview).ok()?;
        Some((Ok::<_, Infallible>(event), (None, app, caller, request, slot)))
    });
    Ok(Sse::new(events).into_response())
}
