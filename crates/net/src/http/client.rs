//! The client: one connection pool, and the deadlines of one exchange.

use std::{
    fmt,
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{
    Certificate, Client, Method, RequestBuilder, Response,
    header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue},
    redirect, retry,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{
    error::HttpError,
    resolver::GuardedResolver,
    target::{check_target, host},
};
use crate::AddressGuard;

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
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(10), extra_roots_pem: None }
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
    client: OnceLock<Client>,
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
        Self { inner: Arc::new(HttpClientInner { guard, settings, client: OnceLock::new() }) }
    }

    fn client(&self) -> Result<&Client, HttpError> {
        let HttpClientInner { guard, settings, client } = &*self.inner;
        if let Some(client) = client.get() {
            return Ok(client);
        }
        let setup = |error: reqwest::Error| HttpError::Setup { reason: error.to_string() };
        let mut builder = Client::builder()
            .user_agent(concat!("postway/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(settings.connect_timeout)
            .pool_idle_timeout(IDLE_CONNECTION_MAX)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST_MAX)
            .dns_resolver(Arc::new(GuardedResolver(guard.clone())))
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .http1_only()
            .referer(false);
        if let Some(pem) = &settings.extra_roots_pem {
            builder = builder.tls_certs_merge(Certificate::from_pem_bundle(pem.as_bytes()).map_err(setup)?);
        }
        let built = builder.build().map_err(setup)?;
        Ok(client.get_or_init(|| built))
    }

    /// Builds a request after checking its URL.
    pub(super) fn request(
        &self,
        method: Method,
        url: &Url,
        headers: &[(String, String)],
    ) -> Result<RequestBuilder, HttpError> {
        check_target(url, &self.inner.guard)?;
        let request = self.client()?.request(method, url.clone());
        Ok(request.headers(header_map(headers)?).header(ACCEPT_ENCODING, "identity"))
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn exchange(
        &self,
        url: &Url,
        request: RequestBuilder,
        deadlines: &ExchangeDeadlines,
    ) -> Result<Response, HttpError> {
        deadlines.wait(url, "answer", request.send()).await?.map_err(|error| self.client_error(url, &error))
    }

    /// Converts an error of the HTTP library.
    pub(super) fn client_error(&self, url: &Url, error: &reqwest::Error) -> HttpError {
        HttpError::from_client(&host(url), self.inner.settings.connect_timeout, error)
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
