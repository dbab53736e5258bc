//! A pool of HTTP connections, and the path that they take out of this machine.
//!
//! On the direct path, the HTTP library opens the connections, at addresses from the guarded resolver. On any
//! other path they are opened by [`connect_through`], as those to relays and mailboxes are, so a proxy is
//! asked for every connection with CONNECT, for `http` as for `https`, and TLS is between us and the target.
//! Requests, bodies and answers are the same on every path.

use std::{error::Error, sync::Arc, time::Duration};

use hyper_util::{
    client::legacy::{
        self, Client as RoutedClient,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use reqwest::{
    Body, Certificate, Client, IntoUrl, Method, RequestBuilder, Response,
    header::{ACCEPT, HeaderValue, USER_AGENT},
    redirect, retry,
};
use tokio::time::{Instant, timeout};
use tower::util::BoxCloneSyncService;

use super::resolver::GuardedResolver;
use crate::{AddressGuard, CertificateCheck, EgressPath, NetError, NetStream, TlsClient, connect_through};

const OWN_AGENT: &str = concat!("postway/", env!("CARGO_PKG_VERSION"));

/// What a pool of connections is made of.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// How long resolving, connecting, a proxy's handshake and that of TLS may take together.
    pub connect_timeout: Duration,
    /// How long an idle connection is kept.
    pub idle_max: Duration,
    /// How many idle connections are kept for each host.
    pub idle_per_host_max: usize,
    /// Certificates, in PEM, that are trusted besides the platform's.
    pub extra_roots_pem: Option<String>,
    /// The addresses that may be connected to. One that is written in a URL does not pass here: the caller
    /// checks it.
    pub guard: Arc<AddressGuard>,
    /// The path of the connections.
    pub egress: EgressPath,
}

/// A pool of connections. Clones share it.
#[derive(Clone)]
pub struct HttpConnections {
    /// Builds all requests, and sends those that take the direct path.
    client: Client,
    routed: Option<RoutedClient<RouteConnector, Body>>,
}

type BoxError = Box<dyn Error + Send + Sync>;
type RouteConnector = BoxCloneSyncService<http::Uri, TokioIo<NetStream>, BoxError>;

impl HttpConnections {
    /// A pool without connections; nothing is sent yet. Fails if the extra roots are no certificates, or the
    /// platform has none.
    pub fn new(settings: ConnectionSettings) -> Result<Self, CallError> {
        let mut builder = Client::builder()
            .user_agent(OWN_AGENT)
            .connect_timeout(settings.connect_timeout)
            .pool_idle_timeout(settings.idle_max)
            .pool_max_idle_per_host(settings.idle_per_host_max)
            .dns_resolver(Arc::new(GuardedResolver(settings.guard.clone())))
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .http1_only()
            .referer(false);
        if let Some(pem) = &settings.extra_roots_pem {
            builder = builder.tls_certs_merge(Certificate::from_pem_bundle(pem.as_bytes())?);
        }
        let client = builder.build()?;
        let routed = (!settings.egress.is_direct()).then(|| routed_client(settings));
        Ok(Self { client, routed })
    }

    /// Begins a request.
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        self.client.request(method, url)
    }

    /// Sends a request and waits for the head of the answer. A timeout of the request covers the head; on
    /// paths that are not direct, the caller bounds the wait for the rest.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, CallError> {
        let Some(routed) = &self.routed else { return Ok(request.send().await?) };
        let mut request = request.build()?;
        let limit = request.timeout().copied();
        let headers = request.headers_mut();
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(OWN_AGENT));
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        let request: http::Request<Body> = request.try_into()?;
        let answer = routed.request(request);
        let answer = match limit {
            Some(limit) => timeout(limit, answer).await.map_err(|_| CallError::TimedOut)?,
            None => answer.await,
        };
        Ok(Response::from(answer.map_err(CallError::Routed)?.map(Body::wrap)))
    }
}

fn routed_client(settings: ConnectionSettings) -> RoutedClient<RouteConnector, Body> {
    let (idle_max, idle_per_host_max) = (settings.idle_max, settings.idle_per_host_max);
    let shared = Arc::new((settings, TlsClient::new()));
    let connector = tower::service_fn(move |uri: http::Uri| {
        let shared = shared.clone();
        async move {
            let (settings, tls) = &*shared;
            open(settings, tls, &uri).await.map(TokioIo::new).map_err(BoxError::from)
        }
    });
    RoutedClient::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(idle_max)
        .pool_max_idle_per_host(idle_per_host_max)
        .build(BoxCloneSyncService::new(connector))
}

/// Opens one connection to the host of this address, under TLS if it asks for that.
async fn open(
    settings: &ConnectionSettings,
    tls: &TlsClient,
    uri: &http::Uri,
) -> Result<NetStream, NetError> {
    let ConnectionSettings { egress, guard, extra_roots_pem, .. } = settings;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_tls = uri.scheme() == Some(&http::uri::Scheme::HTTPS);
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let deadline = Instant::now() + settings.connect_timeout;
    let tcp = connect_through(egress, host, port, deadline, guard).await?;
    if !is_tls {
        return Ok(NetStream::Plain(tcp));
    }
    let check = match extra_roots_pem {
        Some(pem) => CertificateCheck::WithRoots(pem.as_bytes()),
        None => CertificateCheck::Platform,
    };
    tls.handshake(tcp, host, check, deadline).await
}

impl Connection for NetStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// A request without an answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// On the direct path, or before anything was sent.
    #[error(transparent)]
    Direct(#[from] reqwest::Error),
    /// On another path.
    #[error(transparent)]
    Routed(legacy::Error),
    /// No answer came within the timeout of the request, on another path.
    #[error("no answer in time")]
    TimedOut,
}

impl CallError {
    /// True if the request cannot be made, as it is or by this client.
    pub fn is_builder(&self) -> bool {
        matches!(self, Self::Direct(error) if error.is_builder())
    }

    /// True if there was no connection, so that nothing of the request was written.
    pub fn is_connect(&self) -> bool {
        match self {
            Self::Direct(error) => error.is_connect(),
            Self::Routed(error) => error.is_connect(),
            Self::TimedOut => false,
        }
    }

    /// True if a deadline passed.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Direct(error) => error.is_timeout(),
            Self::Routed(_) => matches!(self.net_error(), Some(NetError::Timeout { .. })),
            Self::TimedOut => true,
        }
    }

    /// Why there was no connection, if our own code found out.
    pub fn net_error(&self) -> Option<&NetError> {
        super::error::find(self)
    }
}
