//! `GET /v1/overview`: how a tenant's mail is doing, on one page. As JSON once, or as server-sent events that go on.
//!
//! Everything is read from the store with bounds of its own, so it costs the same with a thousand messages and with a million. What
//! happened in the last hour is as counted by whoever fans out the journal: a moment late.

mod gather;
mod holders;

use std::{convert::Infallible, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header},
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
};
use futures::stream;
use tokio::time::{Instant, sleep};

use self::gather::Overview;
use crate::{
    auth::Reader,
    http::{body, error::ApiError},
    state::Shared,
};

/// How often a stream tells anew.
const EVERY: Duration = Duration::from_secs(2);
/// How long one stream lasts; readers come back by themselves, and their keys are asked for anew.
const STREAM_MAX: Duration = Duration::from_secs(600);

/// Show how the mail is doing
///
/// Rates, the queue, times in queue, failures, and what is stuck. With `Accept: text/event-stream` it comes anew every two
/// seconds.
#[utoipa::path(
    get,
    path = "/v1/overview",
    operation_id = "getOverview",
    tag = "operations",
    responses((status = 200, description = "The overview; as a stream if you accept one", body = Overview))
)]
pub(crate) async fn overview(
    State(app): State<Shared>,
    Reader(caller): Reader,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let first = gather::overview(&app, &caller).await?;
    let wants_stream = headers
        .get_all(header::ACCEPT)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .any(|kind| body::essence(kind).eq_ignore_ascii_case(b"text/event-stream"));
    if !wants_stream {
        return Ok(Json(first).into_response());
    }
    let seat =
        app.seats.take().ok_or_else(|| ApiError::unavailable("too many readers wait already", "no seat"))?;
    let ends_at = Instant::now() + STREAM_MAX;
    let events =
        stream::unfold((Some(first), app, caller, seat), move |(ready, app, caller, seat)| async move {
            let overview = match ready {
                Some(overview) => overview,
                None if Instant::now() >= ends_at => return None,
                None => {
                    sleep(EVERY).await;
                    // A store that is away ends the stream; the reader comes back and is told why.
                    gather::overview(&app, &caller).await.ok()?
                }
            };
            let event = Event::default().json_data(&overview).ok()?;
            Some((Ok::<_, Infallible>(event), (None, app, caller, seat)))
        });
    Ok(Sse::new(events).into_response())
}
