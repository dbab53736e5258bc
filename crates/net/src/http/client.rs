//! The client: one connection pool, and the deadlines of one exchange.

use std::{
    fmt,
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{
    Method, RequestBuilder, Response,
    header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{
    connections::{CallError, ConnectionSettings, HttpConnections},
    error::HttpError,
    target::{check_target, host},
};
use crate::{AddressGuard, EgressPath};

/// How long an idle connection is kept.
const IDLE_CONNECTION_MAX: Duration = Duration::from_secs(30);
/// How many idle connections are kept for each host.
const IDLE_CONNECTIONS_PER_HOST_MAX: usize = 16;

/// Headers that control framing and routing of a request; only the client sets them.
const OWN_HEADERS: [&str; 6] =
    ["accept-encoding", "connection", "content-length", "host", "te", "transfer-encoding"];

/// Settings of the connections.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// How long resolving, connecting and the TLS handshake may take together: 10 s.
    pub connect_timeout: Duration,
    /// Certificates, in PEM, that are trusted besides the platform's.
    pub extra_roots_pem: Option<String>,
    /// The path of the connections.
    pub egress: EgressPath,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            extra_roots_pem: None,
            egress: EgressPath::default(),
        }
    }
}

/// The authentication of a request.
#[derive(Clone, Debug, Default)]
pub enum HttpAuth {
    /// No authentication.
    #[default]
    None,
    /// A bearer token.
    Bearer(SecretString),
    /// Basic authentication.
    Basic {
        /// The name.
        username: String,
        /// The password.
        password: SecretString,
    },
}

impl HttpAuth {
    /// Authentication by this bearer token.
    pub fn bearer(token: impl Into<String>) -> Self {
        Self::Bearer(SecretString::from(token.into()))
    }

    /// Basic authentication by this name and password.
    pub fn basic(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self::Basic { username: username.into(), password: SecretString::from(password.into()) }
    }

    pub(super) fn apply(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::None => request,
            Self::Bearer(token) => request.bearer_auth(token.expose_secret()),
            Self::Basic { username, password } => {
                request.basic_auth(username, Some(password.expose_secret()))
            }
        }
    }
}

/// An HTTP client that connects only to addresses that the guard allows. Clones share the connection pool.
#[derive(Clone)]
pub struct HttpClient {
    inner: Arc<HttpClientInner>,
}

struct HttpClientInner {
    guard: Arc<AddressGuard>,
    settings: HttpSettings,
    connections: OnceLock<HttpConnections>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// A client with this guard. The platform's roots are read at the first request, so a machine without any
    /// can run everything that needs none.
    pub fn new(guard: Arc<AddressGuard>, settings: HttpSettings) -> Self {
        Self { inner: Arc::new(HttpClientInner { guard, settings, connections: OnceLock::new() }) }
    }

    fn connections(&self) -> Result<&HttpConnections, HttpError> {
        let HttpClientInner { guard, settings, connections } = &*self.inner;
        if let Some(connections) = connections.get() {
            return Ok(connections);
        }
        let made = HttpConnections::new(ConnectionSettings {
            connect_timeout: settings.connect_timeout,
            idle_max: IDLE_CONNECTION_MAX,
            idle_per_host_max: IDLE_CONNECTIONS_PER_HOST_MAX,
            extra_roots_pem: settings.extra_roots_pem.clone(),
            guard: guard.clone(),
            egress: settings.egress.clone(),
        });
        let made = made.map_err(|error| HttpError::Setup { reason: error.to_string() })?;
        Ok(connections.get_or_init(|| made))
    }

    /// Builds a request after checking its URL.
    pub(super) fn request(
        &self,
        method: Method,
        url: &Url,
        headers: &[(String, String)],
    ) -> Result<RequestBuilder, HttpError> {
        check_target(url, &self.inner.guard)?;
        let request = self.connections()?.request(method, url.clone());
        Ok(request.headers(header_map(headers)?).header(ACCEPT_ENCODING, "identity"))
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn exchange(
        &self,
        url: &Url,
        request: RequestBuilder,
        deadlines: &ExchangeDeadlines,
    ) -> Result<Response, HttpError> {
        let connections = self.connections()?;
        let answer = deadlines.wait(url, "answer", connections.send(request)).await?;
        answer.map_err(|error| self.call_error(url, &error))
    }

    /// Converts an error of a call.
    pub(super) fn call_error(&self, url: &Url, error: &CallError) -> HttpError {
        HttpError::from_call(&host(url), self.inner.settings.connect_timeout, error)
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, HttpError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let refused = |what| HttpError::Request { reason: format!("the header {name:?} {what}") };
        let key = HeaderName::try_from(name).map_err(|_| refused("has a name that HTTP does not allow"))?;
        if OWN_HEADERS.contains(&key.as_str()) {
            return Err(refused("is set by postway: leave it out"));
        }
        let value =
            HeaderValue::try_from(value).map_err(|_| refused("has a value that HTTP does not allow"))?;
        map.append(key, value);
    }
    Ok(map)
}

/// The deadlines of one exchange: its total duration, and the longest silence.
pub(super) struct ExchangeDeadlines {
    total: Duration,
    until: Instant,
    idle: Duration,
}

impl ExchangeDeadlines {
    pub(super) fn new(total: Duration, idle: Duration) -> Self {
        Self { total, until: Instant::now() + total, idle }
    }

    /// Waits for a future until the next deadline.
    pub(super) async fn wait<T>(
        &self,
        url: &Url,
        what: &'static str,
        happening: impl Future<Output = T>,
    ) -> Result<T, HttpError> {
        let silent_until = Instant::now() + self.idle;
        let until = self.until.min(silent_until);
        timeout_at(until, happening).await.map_err(|_| HttpError::Timeout {
            host: host(url),
            what,
            within: if until == self.until { self.total } else { self.idle },
        })
    }
}
