//! The sockets: accepts connections within the limit, and starts a session for each.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use postway_net::listen::{CertificateError, ProxiedPeer, ServerCertificate, read_proxy_header};
use rand::Rng;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    SmtpConfig, SmtpPurpose,
    client_rules::{ClientOrigin, ClientPrivileges, ClientRules, OriginKind},
    connection_limit::{ConnectionLimit, LimitReached},
    conversation::{SessionRules, SmtpConversation},
    memory_budget::MailMemoryBudget,
    reply::SubmissionReply,
    session::{SmtpSession, close_after_reply},
};

/// The pause after the system could not accept a connection, for example without file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a refused client has to read the reply.
const TURN_AWAY_MAX: Duration = Duration::from_secs(5);
/// The most clients that are refused with a reply at once; beyond that, connections are just closed.
const TURNED_AWAY_MAX: usize = 256;

/// Why a listener could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SmtpBindError {
    /// The address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// The open sockets, before they are served.
pub struct SmtpListener {
    plain: Option<TcpListener>,
    tls: Option<TcpListener>,
    tls_acceptor: Option<TlsAcceptor>,
    config: SmtpConfig,
}

impl SmtpListener {
    /// Opens the sockets.
    pub async fn bind(config: SmtpConfig) -> Result<Self, SmtpBindError> {
        let asks = !config.client_certificates.is_empty();
        let acceptor = |certificate: &Arc<ServerCertificate>| match asks {
            true => certificate.acceptor_that_asks(&[]),
            false => certificate.acceptor(&[]),
        };
        let tls_acceptor = config.certificate.as_ref().map(acceptor).transpose()?;
        let (plain, tls) = (bind(config.listen).await?, bind(config.tls_listen).await?);
        Ok(Self { plain, tls, tls_acceptor, config })
    }

    /// The address for plain text.
    pub fn address(&self) -> Option<SocketAddr> {
        self.plain.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// The address for TLS.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until it is stopped; then lets running sessions finish within the drain time.
    pub async fn run<S>(self, service: watch::Receiver<Option<S>>, stop: CancellationToken)
    where
        S: Clone + Into<SmtpPurpose> + Send + Sync + 'static,
    {
        let Self { plain, tls, tls_acceptor, config } = self;
        let state = Arc::new(ListenerState {
            clients: Arc::new(ClientRules::new(&config)),
            proxy_handshakes: TaskTracker::new(),
            connections: ConnectionLimit::new(config.connections_max, config.connections_per_client_max),
            budget: MailMemoryBudget::new(config.in_flight_bytes_max),
            prefix: rand::rng().random(),
            count: AtomicU64::new(0),
            turned_away: TaskTracker::new(),
            sessions: TaskTracker::new(),
            cut: CancellationToken::new(),
            stop: stop.clone(),
            tls_acceptor,
            purpose: Box::new(move || service.borrow().clone().map(Into::into)),
            config,
        });
        tokio::join!(state.accept_all(plain, false), state.accept_all(tls, true));
        state.proxy_handshakes.close();
        state.proxy_handshakes.wait().await;
        state.sessions.close();
        if timeout(state.config.timeouts.drain, state.sessions.wait()).await.is_err() {
            tracing::warn!(sessions = state.sessions.len(), "some SMTP sessions were cut off");
            state.cut.cancel();
            // The sessions still send a reply.
            if timeout(TURN_AWAY_MAX, state.sessions.wait()).await.is_err() {
                tracing::warn!("some SMTP sessions did not end");
            }
        }
    }
}

async fn bind(address: Option<SocketAddr>) -> Result<Option<TcpListener>, SmtpBindError> {
    let Some(address) = address else { return Ok(None) };
    let bound = TcpListener::bind(address).await;
    bound.map(Some).map_err(|source| SmtpBindError::Address { address, source })
}

/// The state that all sessions share.
struct ListenerState {
    config: SmtpConfig,
    clients: Arc<ClientRules>,
    /// Connections from proxies that have not sent their header yet.
    proxy_handshakes: TaskTracker,
    connections: Arc<ConnectionLimit>,
    budget: Arc<MailMemoryBudget>,
    tls_acceptor: Option<TlsAcceptor>,
    /// What sessions are for; `None` until there is a store.
    purpose: Box<dyn Fn() -> Option<SmtpPurpose> + Send + Sync>,
    /// The prefix of session ids, different for each start.
    prefix: u32,
    count: AtomicU64,
    sessions: TaskTracker,
    turned_away: TaskTracker,
    stop: CancellationToken,
    cut: CancellationToken,
}

impl ListenerState {
    async fn accept_all(self: &Arc<Self>, listener: Option<TcpListener>, secure: bool) {
        let Some(listener) = listener else { return };
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.handle(stream, peer, secure),
                Err(error) => {
                    tracing::warn!(%error, "an SMTP connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn handle(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr, secure: bool) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection was gone before it was used");
        }
        if !self.config.proxy_networks.iter().any(|network| network.contains(peer.ip())) {
            return self.start_session(stream, ClientOrigin::direct(peer), secure);
        }
        if self.proxy_handshakes.len() >= self.config.connections_max {
            return self.turn_away(stream, secure, "4.7.0", "there are too many connections");
        }
        let state = self.clone();
        self.proxy_handshakes.spawn(async move { state.read_proxy(stream, peer, secure).await });
    }

    /// Reads the header of a proxy, then starts the session of the client behind it.
    async fn read_proxy(self: Arc<Self>, mut stream: TcpStream, proxy: SocketAddr, secure: bool) {
        let header = tokio::select! {
            biased;
            () = self.stop.cancelled() => return,
            header = timeout(self.config.timeouts.proxy, read_proxy_header(&mut stream)) => header,
        };
        match header.map(|read| read.map(|header| header.peer)) {
            Ok(Ok(ProxiedPeer::Client(client))) => {
                self.start_session(stream, ClientOrigin { peer: client, kind: OriginKind::Proxied }, secure);
            }
            Ok(Ok(ProxiedPeer::Unnamed)) => {
                self.start_session(stream, ClientOrigin { peer: proxy, kind: OriginKind::Unnamed }, secure);
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

    /// Starts a session for a connection, within the limit.
    fn start_session(self: &Arc<Self>, stream: TcpStream, origin: ClientOrigin, secure: bool) {
        let peer = origin.peer;
        let slot = match self.connections.take(peer.ip()) {
            Ok(slot) => slot,
            Err(LimitReached::ForAll) => {
                return self.turn_away(stream, secure, "4.7.0", "there are too many connections");
            }
            Err(LimitReached::ForClient) => {
                return self.turn_away(
                    stream,
                    secure,
                    "4.7.0",
                    "there are too many connections from your address",
                );
            }
        };
        let Some(purpose) = (self.purpose)() else {
            return self.turn_away(stream, secure, "4.3.2", "this server is starting");
        };
        let rules = self.session_rules(&purpose, &origin);
        if rules.privileges.keyless.is_some() {
            // The client needs no key, so it counts as admitted.
            slot.admit();
        }
        let conversation = SmtpConversation::new(rules, self.budget.clone(), secure);
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let session = SmtpSession {
            name: self.config.name.clone(),
            id: format!("{:08x}{number:x}", self.prefix),
            peer,
            clients: self.clients.clone(),
            purpose,
            greeting_delay: self.config.greeting_delay,
            tls_acceptor: self.tls_acceptor.clone(),
            timeouts: self.config.timeouts.clone(),
            stop: self.stop.clone(),
            cut: self.cut.clone(),
            began: Instant::now(),
            slot,
        };
        self.sessions.spawn(async move {
            let outcome = session.serve(stream, conversation, secure).await.as_str();
            tracing::debug!(session = session.id, outcome, "an SMTP session ended");
            count(outcome);
        });
    }

    fn session_rules(&self, purpose: &SmtpPurpose, origin: &ClientOrigin) -> SessionRules {
        let name = self.config.name.clone();
        let service = match purpose {
            SmtpPurpose::Submission(service) => service,
            // Other servers take any certificate, and need none.
            SmtpPurpose::Reception(desk) => {
                return SessionRules {
                    name,
                    message_bytes_max: desk.mail_bytes_max(),
                    recipients_max: self.config.recipients_max,
                    offers_tls: self.tls_acceptor.is_some(),
                    takes_xclient: false,
                    privileges: ClientPrivileges::default(),
                    is_reception: true,
                };
            }
        };
        let limits = service.door.limits();
        let privileges = self.clients.privileges(origin);
        let needs_tls = !privileges.trusts_plain && privileges.keyless.is_none();
        SessionRules {
            name,
            message_bytes_max: limits.message_bytes_max,
            recipients_max: self.config.recipients_max.min(limits.recipients_max),
            offers_tls: self.tls_acceptor.is_some() && (needs_tls || !self.config.certificate_is_own),
            takes_xclient: self.clients.takes_xclient(origin.peer.ip()),
            privileges,
            is_reception: false,
        }
    }

    /// Refuses a connection with a reply. Under TLS there is no reply, because it would need a handshake
    /// first.
    fn turn_away(&self, mut stream: TcpStream, secure: bool, status: &'static str, why: &str) {
        count("refused");
        if secure || self.turned_away.len() >= TURNED_AWAY_MAX {
            return;
        }
        let mut line = Vec::new();
        SubmissionReply::with_text(421, status, &format!("{} {why}: try again later", self.config.name))
            .write(&mut line);
        self.turned_away.spawn(async move {
            let say = async {
                if stream.write_all(&line).await.is_ok() {
                    close_after_reply(&mut stream).await;
                }
            };
            // A client that does not read is not waited for.
            let _ = timeout(TURN_AWAY_MAX, say).await;
        });
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("postway_smtp_sessions_total", "outcome" => outcome).increment(1);
}
