//! The HTTP listener: accepts connections, within bounds, and hands their requests to the API.
//!
//! Each request carries where it came from, for keys that are bound to networks and for wrong keys, which are
//! counted by address. Headers that name another address are believed from trusted proxies alone.
//!
//! It bounds what a client can occupy without showing a key: the number of its connections and of all, the
//! size of a request's head and the time until it is there, and how slowly an answer may be taken. When all
//! connections are taken, one that is idle is closed for a new one. The bodies have bounds of their own, in
//! the API.

mod connection_limit;
mod forwarded;
mod head_deadline;
mod refusal;
#[cfg(test)]
mod tests;
mod write_timeout;

use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body};
use futures::FutureExt;
use hyper::{
    Request, Response,
    body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use postway_domain::{client::ClientAddress, key::IpNetwork};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    connection_limit::{ConnectionSlot, ConnectionSlots, RequestInProgress},
    head_deadline::HeadDeadline,
    refusal::ConnectionRefusals,
    write_timeout::{LEAST, WriteTimeout},
};

/// The largest head of a request; beyond it the answer is 431. A connection buffers at most twice as much:
/// what was read, and what the next read brings. The number of its fields has the bound of the library, 100.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// How long the head of a request may take to arrive.
const HEAD_MAX: Duration = Duration::from_secs(15);
/// How long a connection may stay idle between requests: longer than the proxies in front keep theirs, as a
/// rule.
const IDLE_MAX: Duration = Duration::from_secs(75);
/// How long to wait after the system could not give a connection, as when file handles have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often a connection that is to end is checked while its last request is in progress.
const ENDING_LOOK: Duration = Duration::from_secs(1);

/// How many connections clients may have, and which proxies may name their clients.
#[derive(Clone, Debug)]
pub struct HttpBounds {
    /// Connections at once.
    pub connections_max: usize,
    /// Connections of one client: an IPv4 address, or a /64 of IPv6.
    pub connections_per_client_max: usize,
    /// Proxies, which are not counted as one client, and whose headers about their clients are trusted.
    pub trusted_proxies: Vec<IpNetwork>,
    /// How long the head of a request may take to arrive.
    pub head_max: Duration,
}

impl HttpBounds {
    /// Bounds with the default time for a head.
    pub fn new(
        connections_max: usize,
        connections_per_client_max: usize,
        trusted_proxies: Vec<IpNetwork>,
    ) -> Self {
        Self { connections_max, connections_per_client_max, trusted_proxies, head_max: HEAD_MAX }
    }

    /// The client that connections from `peer` count for; `None` if many clients share the address.
    fn client(&self, peer: IpAddr) -> Option<ClientAddress> {
        let is_shared =
            peer.to_canonical().is_loopback() || forwarded::is_trusted(peer, &self.trusted_proxies);
        (!is_shared).then(|| ClientAddress::of(peer))
    }
}

/// Serves until `stop` is cancelled, then lets the requests in progress finish.
///
/// The router may be replaced while serving: each request goes to the current one.
pub async fn serve(
    listener: TcpListener,
    bounds: HttpBounds,
    router: watch::Receiver<Router>,
    stop: CancellationToken,
) {
    let client = |peer| bounds.client(peer);
    serve_as(listener, &bounds, client, router, stop).await;
}

/// Serves with another way to tell clients apart, for tests.
async fn serve_as(
    listener: TcpListener,
    bounds: &HttpBounds,
    client: impl Fn(IpAddr) -> Option<ClientAddress>,
    router: watch::Receiver<Router>,
    stop: CancellationToken,
) {
    let slots = ConnectionSlots::new(bounds.connections_max, bounds.connections_per_client_max);
    let (connections, refusals) = (TaskTracker::new(), ConnectionRefusals::default());
    let trusted: Arc<[IpNetwork]> = bounds.trusted_proxies.clone().into();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(IDLE_MAX);
    http.max_buf_size(HEAD_BYTES_MAX).max_header_size(HEAD_BYTES_MAX);
    while let Some((stream, peer)) = next(&listener, &stop).await {
        let slot = match slots.take(client(peer.ip())) {
            Ok(slot) => slot,
            Err(refusal) => {
                refusals.refuse(stream, refusal);
                continue;
            }
        };
        let (router, trusted, occupancy) = (router.clone(), trusted.clone(), slot.occupancy.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            let in_progress = RequestInProgress::begin(&occupancy);
            let origin = forwarded::origin(peer.ip(), request.headers(), &trusted);
            request.extensions_mut().insert(origin);
            let current = router.borrow().clone();
            let answer = TowerToHyperService::new(current).call(request);
            async move {
                let answer: Response<Body> = answer.await?;
                Ok::<_, Infallible>(
                    answer.map(|body| TrackedResponseBody { body, _in_progress: in_progress }),
                )
            }
        });
        let stream = HeadDeadline::new(stream, slot.occupancy.clone(), bounds.head_max);
        let connection = http.serve_connection(TokioIo::new(WriteTimeout::new(stream, LEAST)), service);
        let stop = stop.clone();
        connections.spawn(async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                biased;
                ended = connection.as_mut() => Some(ended),
                () = until_unwanted(&slot, &stop) => None,
            };
            let ended = match ended {
                Some(ended) => ended,
                None => {
                    connection.as_mut().graceful_shutdown();
                    finish(connection, &slot).await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "an HTTP connection ended early");
            }
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// Pends until a connection is to end: because the server stops, or for another one.
async fn until_unwanted(slot: &ConnectionSlot, stop: &CancellationToken) {
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = slot.occupancy.wanted() => {
            metrics::counter!("postway_http_connections_cut_total", "reason" => "idle").increment(1);
        }
    }
}

/// Lets a request in progress be answered. One that has not arrived is not waited for.
async fn finish<C>(mut connection: Pin<&mut C>, slot: &ConnectionSlot) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    // An idle connection ends at once, and a head that has arrived becomes a request.
    if let Some(ended) = connection.as_mut().now_or_never() {
        return ended;
    }
    while !slot.occupancy.is_idle() {
        if let Ok(ended) = timeout(ENDING_LOOK, connection.as_mut()).await {
            return ended;
        }
    }
    Ok(())
}

/// The next connection; `None` when it is time to stop.
async fn next(listener: &TcpListener, stop: &CancellationToken) -> Option<(TcpStream, SocketAddr)> {
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a connection was gone before it was used");
                    }
                    return (stream, peer);
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        accepted = accept => Some(accepted),
    }
}

/// The body of an answer: its request is in progress until it is written.
struct TrackedResponseBody {
    body: Body,
    _in_progress: RequestInProgress,
}

impl HttpBody for TrackedResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
