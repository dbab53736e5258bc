//! The HTTP listener: accepts connections, within bounds, and hands their requests to the API.
//!
//! Each request carries the address of its connection's other end, for keys that are bound to networks. Headers that
//! name another address are not believed: behind a proxy it is the proxy's.
//!
//! Bounds what a client can hold without asking for anything: the number of connections, the time until a request's head is
//! there, and how slowly an answer may be taken. The bodies have bounds of their own, in the API.

mod patience;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, extract::ConnectInfo};
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::patience::{LEAST, Patient};

/// Connections at once; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 4_096;
/// How long a connection may take to send a request's head, or stay idle between requests.
const HEAD_MAX: Duration = Duration::from_secs(75);
/// How long to wait after the system could not give a connection, as when file handles have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until told to stop, then lets the requests under way finish.
///
/// The router may be replaced while serving: each request goes to the one that stands then.
pub async fn serve(listener: TcpListener, router: watch::Receiver<Router>, stop: CancellationToken) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = TaskTracker::new();
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
    while let Some((stream, peer, slot)) = next(&listener, &slots, &stop).await {
        let router = router.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            let current = router.borrow().clone();
            TowerToHyperService::new(current).call(request)
        });
        let connection =
            graceful.watch(http.serve_connection(TokioIo::new(Patient::new(stream, LEAST)), service));
        connections.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "an HTTP connection ended early");
            }
            drop(slot);
        });
    }
    drop(listener);
    graceful.shutdown().await;
    connections.close();
    connections.wait().await;
}

type Slot = tokio::sync::OwnedSemaphorePermit;

/// The next connection, once there is room for it; `None` when it is time to stop.
async fn next(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    stop: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, Slot)> {
    let accept = async {
        let slot = slots.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a connection was gone before it was used");
                    }
                    return Some((stream, peer, slot));
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
        accepted = accept => accepted,
    }
}
