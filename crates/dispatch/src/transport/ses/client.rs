//! The HTTP client of one account, and one call.

use std::{error::Error, fmt, io, net::IpAddr, sync::Arc, time::Duration};

use postway_domain::{
    Clock,
    failure::{Category, Failure, Phase, Severity},
};
use postway_net::{Guard, NetError};
use reqwest::{
    Body, Certificate, Method, RequestBuilder, Response, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header, redirect, retry,
};

use tokio::sync::oneshot;

use super::{
    SesSettings,
    answer::Answer,
    credentials::AccessKey,
    settings::unusable,
    sign::{Signed, sha256_hex},
};
use crate::transport::WireGate;

/// An idle connection is closed after this long: before the service closes it, which could meet a request on its way.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// How much of an answer is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
const JSON: &str = "application/json";

/// A client of SES for one account. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct SesClient {
    inner: Arc<Inner>,
}

struct Inner {
    http: reqwest::Client,
    base: Url,
    host: String,
    settings: SesSettings,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for SesClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SesClient").field("base", &self.inner.base.as_str()).finish_non_exhaustive()
    }
}

/// The body of a request, with its hash, so that signing it takes no time.
pub(super) struct Payload {
    pub json: String,
    pub sha256: String,
}

impl Payload {
    pub fn new(json: String) -> Self {
        Self { sha256: sha256_hex(json.as_bytes()), json }
    }
}

/// A call that got no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The gate did not let it begin: the service saw no more than the head of the request.
    Refused,
    /// No connection came to be: the service certainly saw nothing of it.
    NotWritten(Failure),
    /// A part of the request may have been written.
    Unknown(Failure),
}

impl SesClient {
    /// Makes a client; nothing is sent yet. Fails, as the account's fault, where the settings cannot be used. The
    /// clock dates the signatures.
    pub fn new(settings: SesSettings, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        let base = settings.base()?;
        let name = base.host_str().unwrap_or_default();
        let host = base.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("postway/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(settings.timeouts.connect())
            .pool_idle_timeout(IDLE_MAX)
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .http1_only()
            .referer(false);
        if let Some(pem) = &settings.extra_roots_pem {
            let roots = Certificate::from_pem_bundle(pem.as_bytes())
                .map_err(|error| unusable(format!("the extra roots are not PEM certificates: {error}")))?;
            builder = builder.tls_certs_merge(roots);
        }
        // An address needs no resolver, so it is checked here.
        if let Ok(address) = name.trim_matches(['[', ']']).parse::<IpAddr>()
            && !settings.guard.allows(address)
        {
            return Err(unusable(NetError::Guarded { host: name.to_owned() }.to_string()));
        }
        builder = builder.dns_resolver(Arc::new(GuardedResolver(settings.guard.clone())));
        let http =
            builder.build().map_err(|error| unusable(format!("cannot set up HTTPS: {}", root(&error))))?;
        let inner = Inner { http, base, host, settings, clock };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The host and port calls go to, for the records of attempts.
    pub fn remote(&self) -> String {
        let Inner { base, .. } = &*self.inner;
        format!("{}:{}", base.host_str().unwrap_or_default(), base.port_or_known_default().unwrap_or(443))
    }

    pub(super) fn settings(&self) -> &SesSettings {
        &self.inner.settings
    }

    /// Signs and sends one request and reads the answer, whatever it is. A body waits for its gate once a connection stands.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<(Payload, &mut dyn WireGate)>,
        key: &AccessKey,
    ) -> Result<Answer, Unanswered> {
        let Inner { http, base, host, settings, clock } = &*self.inner;
        let empty = sha256_hex(b"");
        let signed = Signed {
            method: method.as_str(),
            host,
            path,
            content_type: body.as_ref().map(|_| JSON),
            payload_sha256: body.as_ref().map_or(&empty, |(payload, _)| &payload.sha256),
        };
        let proof = signed.headers(&settings.region, key, clock.now());
        let mut url = base.clone();
        url.set_path(path);
        let bytes = body.as_ref().map_or(0, |(payload, _)| payload.json.len());
        let mut request = http.request(method, url).timeout(settings.timeouts.request(bytes));
        for (name, value) in proof {
            request = request.header(name, value);
        }
        let response = match body {
            Some((payload, gate)) => {
                let request =
                    request.header(header::CONTENT_TYPE, JSON).header(header::CONTENT_LENGTH, bytes);
                send_gated(request, payload.json, gate).await?
            }
            None => request.send().await,
        };
        let mut response = response.map_err(|error| unanswered(&error))?;
        let mut body = Vec::new();
        // A body that breaks off or never ends is read as far as it goes; what it lacks, it does not say.
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = ANSWER_BYTES_MAX - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == ANSWER_BYTES_MAX {
                break;
            }
        }
        Ok(Answer::new(response.status().as_u16(), response.headers(), &body))
    }
}

/// Sends a request whose body waits until a connection stands and the gate has let it go.
async fn send_gated(
    request: RequestBuilder,
    json: String,
    gate: &mut dyn WireGate,
) -> Result<reqwest::Result<Response>, Unanswered> {
    let (ask, mut asked) = oneshot::channel();
    let (leave, given) = oneshot::channel();
    // The client asks for the body when it has a connection to write it to.
    let body = futures::stream::once(async move {
        let is_asked = ask.send(()).is_ok();
        match given.await {
            Ok(()) if is_asked => Ok(json),
            Ok(()) | Err(_) => Err(io::Error::other("the gate did not let it go")),
        }
    });
    let mut response = std::pin::pin!(request.body(Body::wrap_stream(body)).send());
    tokio::select! {
        biased;
        Ok(()) = &mut asked => {}
        response = &mut response => return Ok(response),
    }
    if gate.begin_after_wait().await.is_err() {
        return Err(Unanswered::Refused);
    }
    // Whoever would hear it is gone only where the request has failed, which its answer says.
    let _ = leave.send(());
    Ok(response.await)
}

/// Resolves names to those of their addresses that a guard lets through.
struct GuardedResolver(Arc<Guard>);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<_> = addresses.filter(|address| guard.allows(address.ip())).collect();
            match allowed.is_empty() {
                true => Err(NetError::Guarded { host: name.as_str().to_owned() }.into()),
                false => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// What a call without an answer means.
fn unanswered(error: &reqwest::Error) -> Unanswered {
    let cause = root(error);
    let network =
        |phase| Failure::new("NETWORK_ERROR", Category::Network, phase, Severity::Transient, &cause);
    if error.is_builder() {
        // A key with characters that no header can carry.
        return Unanswered::NotWritten(unusable(format!("the request cannot be made: {cause}")));
    }
    if error.is_connect() {
        let mut failure = network(Phase::Connect);
        if is_certificate(error) {
            failure.code = "tls_certificate".into();
            failure.category = Category::Tls;
            failure.phase = Phase::Tls;
            failure.severity = Severity::Account;
        } else if is_guarded(error) {
            return Unanswered::NotWritten(unusable(cause));
        }
        return Unanswered::NotWritten(failure);
    }
    if error.is_timeout() {
        let message = "no complete answer before the deadline of the call";
        return Unanswered::Unknown(Failure::new(
            "SES_TIMEOUT",
            Category::Timeout,
            Phase::Request,
            Severity::Transient,
            message,
        ));
    }
    Unanswered::Unknown(network(Phase::Request))
}

/// The innermost reason; the outer ones repeat the address.
fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// True when the name has no address that may be connected to.
fn is_guarded(error: &(dyn Error + 'static)) -> bool {
    let is_so = matches!(error.downcast_ref::<NetError>(), Some(NetError::Guarded { .. }));
    is_so || error.source().is_some_and(is_guarded)
}

/// True when the service showed a certificate that does not verify.
fn is_certificate(error: &(dyn Error + 'static)) -> bool {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return matches!(tls, rustls::Error::InvalidCertificate(_));
    }
    // What an I/O error was made of is not among its sources.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => is_certificate(inner),
        None => error.source().is_some_and(is_certificate),
    }
}
