//! The sockets: takes connections, as many as there may be, and gives each a session.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rand::Rng;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    OpenNetwork, Service, SmtpConfig,
    certificate::{Certificate, CertificateError},
    connection_limit::{Full, Seats},
    conversation::{Conversation, Rules},
    memory_budget::Budget,
    reply::Reply,
    session::{Session, part},
};
use crate::smtp::proxy::{ProxiedPeer, read_proxy_header};

/// How long to wait after the system could not give a connection, as when file handles have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long somebody who is turned away may take to hear it.
const TURN_AWAY_MAX: Duration = Duration::from_secs(5);
/// Those who are being turned away at once; beyond that they are only hung up on.
const TURNED_AWAY_MAX: usize = 256;

/// Why a listener cannot be.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// Sockets that are open and not served yet.
pub struct Listener {
    plain: Option<TcpListener>,
    tls: Option<TcpListener>,
    certificate: Option<Arc<Certificate>>,
    config: SmtpConfig,
}

impl Listener {
    /// Opens the sockets and reads the certificate.
    pub async fn bind(config: SmtpConfig) -> Result<Self, BindError> {
        let certificate = config.certificate.clone().map(Certificate::open).transpose()?.map(Arc::new);
        let (plain, tls) = (bind(config.listen).await?, bind(config.tls_listen).await?);
        Ok(Self { plain, tls, certificate, config })
    }

    /// Where it listens in plain text.
    pub fn address(&self) -> Option<SocketAddr> {
        self.plain.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Where it listens under TLS.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until told to stop; then lets what is under way finish, for as long as it may.
    pub async fn run(self, service: watch::Receiver<Option<Service>>, stop: CancellationToken) {
        let Self { plain, tls, certificate, config } = self;
        let hall = Arc::new(Hall {
            open_networks: config.open_networks.iter().cloned().map(Arc::new).collect(),
            introductions: TaskTracker::new(),
            seats: Seats::new(config.connections_max, config.connections_per_client_max),
            budget: Budget::new(config.in_flight_bytes_max),
            prefix: rand::rng().random(),
            count: AtomicU64::new(0),
            turned_away: TaskTracker::new(),
            sessions: TaskTracker::new(),
            cut: CancellationToken::new(),
            stop: stop.clone(),
            certificate: certificate.clone(),
            service,
            config,
        });
        let follow = async {
            if let Some(certificate) = certificate {
                certificate.follow(hall.config.patience.certificate, stop.clone()).await;
            }
        };
        tokio::join!(hall.take_all(plain, false), hall.take_all(tls, true), follow);
        hall.introductions.close();
        hall.introductions.wait().await;
        hall.sessions.close();
        if timeout(hall.config.patience.drain, hall.sessions.wait()).await.is_err() {
            tracing::warn!(sessions = hall.sessions.len(), "some SMTP sessions were cut off");
            hall.cut.cancel();
            // They still say why.
            if timeout(TURN_AWAY_MAX, hall.sessions.wait()).await.is_err() {
                tracing::warn!("some SMTP sessions did not end");
            }
        }
    }
}

async fn bind(address: Option<SocketAddr>) -> Result<Option<TcpListener>, BindError> {
    let Some(address) = address else { return Ok(None) };
    let bound = TcpListener::bind(address).await;
    bound.map(Some).map_err(|source| BindError::Address { address, source })
}

/// What all sessions share.
struct Hall {
    config: SmtpConfig,
    open_networks: Vec<Arc<OpenNetwork>>,
    /// Proxies that have not said yet who is behind them.
    introductions: TaskTracker,
    seats: Arc<Seats>,
    budget: Arc<Budget>,
    certificate: Option<Arc<Certificate>>,
    service: watch::Receiver<Option<Service>>,
    /// Of the sessions' names: another for each start.
    prefix: u32,
    count: AtomicU64,
    sessions: TaskTracker,
    turned_away: TaskTracker,
    stop: CancellationToken,
    cut: CancellationToken,
}

impl Hall {
    async fn take_all(self: &Arc<Self>, listener: Option<TcpListener>, secure: bool) {
        let Some(listener) = listener else { return };
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.take(stream, peer, secure),
                Err(error) => {
                    tracing::warn!(%error, "an SMTP connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn take(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr, secure: bool) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection was gone before it was used");
        }
        if !self.config.proxy_networks.iter().any(|network| network.contains(peer.ip())) {
            return self.seat(stream, ClientOrigin::direct(peer), secure);
        }
        if self.introductions.len() >= self.config.connections_max {
            return self.turn_away(stream, secure, "4.7.0", "there are too many connections");
        }
        let hall = self.clone();
        self.introductions.spawn(async move { hall.introduce(stream, peer, secure).await });
    }

    /// Has a proxy say who is behind it.
    async fn introduce(self: Arc<Self>, mut stream: TcpStream, proxy: SocketAddr, secure: bool) {
        let header = tokio::select! {
            biased;
            () = self.stop.cancelled() => return,
            header = timeout(self.config.patience.proxy, read_proxy_header(&mut stream)) => header,
        };
        match header {
            Ok(Ok(ProxiedPeer::Client(client))) => {
                self.seat(stream, ClientOrigin { peer: client, kind: OriginKind::Proxied }, secure);
            }
            Ok(Ok(ProxiedPeer::Unnamed)) => {
                self.seat(stream, ClientOrigin { peer: proxy, kind: OriginKind::Unnamed }, secure);
            }
            Ok(Err(error)) => {
                tracing::info!(proxy = %proxy.ip(), %error, "an SMTP connection from smtp.proxy_networks was refused");
                self.turn_away(stream, secure, "4.7.0", "a PROXY header must come first");
            }
            Err(_) => {
                tracing::info!(proxy = %proxy.ip(), "a proxy of SMTP sent no PROXY header in time");
                self.turn_away(stream, secure, "4.4.2", "no PROXY header came in time");
            }
        }
    }

    /// Gives a connection its session, where there is room for one.
    fn seat(self: &Arc<Self>, stream: TcpStream, origin: ClientOrigin, secure: bool) {
        let peer = origin.peer;
        let seat = match self.seats.take(peer.ip()) {
            Ok(seat) => seat,
            Err(Full::ForAll) => {
                return self.turn_away(stream, secure, "4.7.0", "there are too many connections");
            }
            Err(Full::ForClient) => {
                return self.turn_away(
                    stream,
                    secure,
                    "4.7.0",
                    "there are too many connections from your address",
                );
            }
        };
        let Some(service) = self.service.borrow().clone() else {
            return self.turn_away(stream, secure, "4.3.2", "this server is starting");
        };
        let limits = service.door.limits();
        let (trusts_plain, open) = (self.trusts_plain(&origin), self.open_network(&origin));
        let needs_tls = !trusts_plain && open.is_none();
        let rules = Rules {
            name: self.config.name.clone(),
            message_bytes_max: limits.message_bytes_max,
            recipients_max: self.config.recipients_max.min(limits.recipients_max),
            offers_tls: self.certificate.is_some() && (needs_tls || !self.config.certificate_is_own),
            trusts_plain,
            open,
        };
        if rules.open.is_some() {
            // It needs no key, so that it has shown all that it will.
            seat.admit();
        }
        let conversation = Conversation::new(rules, self.budget.clone(), secure);
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let session = Session {
            name: self.config.name.clone(),
            id: format!("{:08x}{number:x}", self.prefix),
            peer,
            service,
            certificate: self.certificate.clone(),
            patience: self.config.patience.clone(),
            stop: self.stop.clone(),
            cut: self.cut.clone(),
            began: Instant::now(),
            seat,
        };
        self.sessions.spawn(async move {
            let outcome = session.serve(stream, conversation, secure).await.as_str();
            tracing::debug!(session = session.id, outcome, "an SMTP session ended");
            count(outcome);
        });
    }

    /// Whether a key may be shown without TLS. What comes through a proxy has been on a network, whatever its address.
    fn trusts_plain(&self, origin: &ClientOrigin) -> bool {
        let address = origin.peer.ip().to_canonical();
        match origin.kind {
            OriginKind::Direct if address.is_loopback() => true,
            OriginKind::Direct | OriginKind::Proxied => {
                self.config.plaintext_networks.iter().any(|network| network.contains(address))
            }
            OriginKind::Unnamed => false,
        }
    }

    /// The rule by which no key is needed.
    fn open_network(&self, origin: &ClientOrigin) -> Option<Arc<OpenNetwork>> {
        match origin.kind {
            OriginKind::Direct | OriginKind::Proxied => {
                self.open_networks.iter().find(|open| open.network.contains(origin.peer.ip())).cloned()
            }
            OriginKind::Unnamed => None,
        }
    }

    /// Says why there is no session. Under TLS nobody would understand it before a handshake, which is not worth making.
    fn turn_away(&self, mut stream: TcpStream, secure: bool, status: &'static str, why: &str) {
        count("refused");
        if secure || self.turned_away.len() >= TURNED_AWAY_MAX {
            return;
        }
        let mut line = Vec::new();
        Reply::saying(421, status, &format!("{} {why}: try again later", self.config.name)).write(&mut line);
        self.turned_away.spawn(async move {
            let say = async {
                if stream.write_all(&line).await.is_ok() {
                    part(&mut stream).await;
                }
            };
            // Who does not listen is not waited for.
            let _ = timeout(TURN_AWAY_MAX, say).await;
        });
    }
}

/// Where a connection comes from.
struct ClientOrigin {
    peer: SocketAddr,
    kind: OriginKind,
}

/// How its address is known.
enum OriginKind {
    /// It is the other end of the socket.
    Direct,
    /// A proxy says so.
    Proxied,
    /// It is a proxy's own, which does not say who is behind it: nothing is trusted for it.
    Unnamed,
}

impl ClientOrigin {
    fn direct(peer: SocketAddr) -> Self {
        Self { peer, kind: OriginKind::Direct }
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("postway_smtp_sessions_total", "outcome" => outcome).increment(1);
}
