//! One connection of a client: HTTP/1.1, or HTTP/2 if the client chose it in its TLS handshake.
//!
//! Each request carries where it came from. A connection ends by itself, when the server stops, when another
//! one needs its slot, and, over HTTP/2, when it has been idle for long or a client leaves an answer lying.
//! HTTP/2 lets one connection carry many requests and hold back many answers, so their number, the size of
//! their heads and what is received ahead of being read have bounds of their own.

use std::{
    convert::Infallible,
    net::IpAddr,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use axum::{Router, body::Body};
use futures::FutureExt;
use hyper::{
    HeaderMap, Request, Response, Version,
    body::Incoming,
    header::{HOST, HeaderValue},
    rt::Executor,
    server::conn::{http1, http2},
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use postway_api::RequestOrigin;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    HEAD_BYTES_MAX, HttpBounds,
    answer_body::TrackedResponseBody,
    connection_limit::{ConnectionSlot, RequestInProgress},
    forwarded,
    head_deadline::HeadDeadline,
    refusal::answer_to_request,
    request_slots::RequestSlots,
    write_timeout::{LEAST, WriteTimeout},
};

/// How long a connection may stay idle between requests: longer than the proxies in front keep theirs, as a
/// rule.
const IDLE_MAX: Duration = Duration::from_secs(75);
/// How often a connection that is to end is checked while its last request is in progress.
const ENDING_LOOK: Duration = Duration::from_secs(1);
/// How often an HTTP/2 connection is checked.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long a client may leave a piece of an answer (HTTP/2).
const UNTAKEN_MAX: Duration = Duration::from_secs(30);
/// The most requests at once on an HTTP/2 connection. The requests of all connections have a bound, too.
const STREAMS_MAX: u32 = 64;
/// How much of a body, and of all bodies of an HTTP/2 connection, is received before it is read.
const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 512 * 1024;
/// How often an HTTP/2 client is asked whether it is still there, and how long it may take to answer.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_MAX: Duration = Duration::from_secs(20);

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionPeer {
    /// The client, or the proxy that stands for many.
    pub address: IpAddr,
    /// Whether the address is a proxy's that did not name its client.
    pub is_unnamed: bool,
    /// Whether the client used TLS, with us or with a proxy that said so.
    pub is_https: bool,
    /// Whether HTTP/2 was chosen.
    pub is_http2: bool,
}

/// What all connections share.
pub struct ConnectionShare {
    pub bounds: Arc<HttpBounds>,
    pub router: watch::Receiver<Router>,
    /// The slots of requests over HTTP/2.
    pub requests: Arc<RequestSlots>,
    pub stop: CancellationToken,
    /// The tasks of connections, and of requests over HTTP/2.
    pub tasks: TaskTracker,
}

/// Runs the requests of HTTP/2 connections as tasks that are waited for.
#[derive(Clone)]
struct RequestTasks(TaskTracker);

impl<F> Executor<F> for RequestTasks
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, request: F) {
        self.0.spawn(request);
    }
}

/// Serves a connection to its end.
pub async fn serve<S>(stream: S, peer: ConnectionPeer, slot: ConnectionSlot, share: Arc<ConnectionShare>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let requests = {
        let (share, occupancy, client) = (share.clone(), slot.occupancy.clone(), slot.client());
        service_fn(move |mut request: Request<Incoming>| {
            let mut in_progress = RequestInProgress::begin(&occupancy);
            // An HTTP/1.1 connection has one request at a time, and a slot for it.
            let slot = peer.is_http2.then(|| share.requests.take(client)).transpose();
            let answer = slot.map(|slot| {
                if let Some(slot) = slot {
                    in_progress.hold(slot);
                }
                name_host(&mut request);
                let origin = origin(&peer, request.headers(), &share.bounds);
                request.extensions_mut().insert(origin);
                let current = share.router.borrow().clone();
                TowerToHyperService::new(current).call(request)
            });
            async move {
                let answer: Response<Body> = match answer {
                    Ok(answer) => answer.await?,
                    Err(refusal) => answer_to_request(refusal),
                };
                Ok::<_, Infallible>(
                    answer.map(|body| TrackedResponseBody::new(body, peer.is_http2, in_progress)),
                )
            }
        })
    };
    let head_max = share.bounds.head_max;
    let ended = match peer.is_http2 {
        false => {
            let stream = HeadDeadline::new(stream, slot.occupancy.clone(), head_max);
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(IDLE_MAX);
            http.max_buf_size(HEAD_BYTES_MAX).max_header_size(HEAD_BYTES_MAX);
            let connection = http.serve_connection(TokioIo::new(WriteTimeout::new(stream, LEAST)), requests);
            drive(pin!(connection), http1::Connection::graceful_shutdown, &peer, &slot, &share).await
        }
        true => {
            let stream = HeadDeadline::of_first(stream, slot.occupancy.clone(), head_max);
            let mut http = http2::Builder::new(RequestTasks(share.tasks.clone()));
            http.timer(TokioTimer::new()).keep_alive_interval(PING_EVERY).keep_alive_timeout(PING_MAX);
            http.max_concurrent_streams(STREAMS_MAX).max_header_list_size(HEAD_BYTES_MAX as u32);
            http.initial_stream_window_size(STREAM_WINDOW_BYTES);
            http.initial_connection_window_size(CONNECTION_WINDOW_BYTES);
            let connection = http.serve_connection(TokioIo::new(WriteTimeout::new(stream, LEAST)), requests);
            drive(pin!(connection), http2::Connection::graceful_shutdown, &peer, &slot, &share).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection ended early");
    }
}

/// Over HTTP/2 the host is part of the request's address; the API reads it from the header.
fn name_host(request: &mut Request<Incoming>) {
    if request.version() != Version::HTTP_2 || request.headers().contains_key(HOST) {
        return;
    }
    let host = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
}

/// Where a request on this connection came from.
fn origin(peer: &ConnectionPeer, headers: &HeaderMap, bounds: &HttpBounds) -> RequestOrigin {
    let direct = RequestOrigin::direct(peer.address);
    let connection =
        RequestOrigin { is_shared: direct.is_shared || peer.is_unnamed, is_https: peer.is_https, ..direct };
    forwarded::origin(connection, headers, &bounds.trusted_proxies, bounds.forwarded_header)
}

/// Drives a connection to its end, or ends it when it is unwanted.
async fn drive<C>(
    mut connection: Pin<&mut C>,
    shut_down: impl Fn(Pin<&mut C>),
    peer: &ConnectionPeer,
    slot: &ConnectionSlot,
    share: &ConnectionShare,
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    let why = tokio::select! {
        biased;
        ended = connection.as_mut() => return ended,
        why = until_unwanted(peer, slot, &share.stop) => why,
    };
    if let Some(reason) = why.metric() {
        metrics::counter!("postway_http_connections_cut_total", "reason" => reason).increment(1);
    }
    if why == Unwanted::Stalled {
        return Ok(());
    }
    shut_down(connection.as_mut());
    finish(connection, peer, slot).await
}

/// Why a connection is to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unwanted {
    /// The server stops.
    Stopping,
    /// Another connection needs the slot.
    Displaced,
    /// Nothing has happened on it for long.
    Idle,
    /// The client leaves an answer lying.
    Stalled,
}

impl Unwanted {
    fn metric(self) -> Option<&'static str> {
        match self {
            Self::Displaced => Some("idle"),
            Self::Stalled => Some("stalled"),
            Self::Stopping | Self::Idle => None,
        }
    }
}

async fn until_unwanted(peer: &ConnectionPeer, slot: &ConnectionSlot, stop: &CancellationToken) -> Unwanted {
    let looking = async {
        // HTTP/1.1 has these deadlines in its stream.
        if !peer.is_http2 {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = Instant::now();
            if slot.occupancy.is_stalled(now, UNTAKEN_MAX) {
                return Unwanted::Stalled;
            }
            if slot.occupancy.idle_for(now) >= IDLE_MAX {
                return Unwanted::Idle;
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => Unwanted::Stopping,
        () = slot.occupancy.wanted() => Unwanted::Displaced,
        why = looking => why,
    }
}

/// Lets requests in progress be answered. One that has not arrived is not waited for.
async fn finish<C>(
    mut connection: Pin<&mut C>,
    peer: &ConnectionPeer,
    slot: &ConnectionSlot,
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    // An idle connection ends at once, and a head that has arrived becomes a request.
    if let Some(ended) = connection.as_mut().now_or_never() {
        return ended;
    }
    // Over HTTP/2 the two ends agree on the last request first.
    let mut is_waited_for = peer.is_http2;
    while is_waited_for || !slot.occupancy.is_idle() {
        is_waited_for = false;
        if let Ok(ended) = timeout(ENDING_LOOK, connection.as_mut()).await {
            return ended;
        }
        if slot.occupancy.is_stalled(Instant::now(), UNTAKEN_MAX) {
            return Ok(());
        }
    }
    Ok(())
}
