//! One call of an API over HTTP, as SES and all providers use it.
//!
//! A call has no final dot: writing the request body is the point of no return. So the body waits until there
//! is a connection and the gate has let the mail begin; until then only the head of the request is written,
//! which names no mail. A call that fails before there is a connection was certainly not sent
//! ([`UnansweredCall::NotWritten`]). A request that may have been written and got no answer is in doubt
//! ([`UnansweredCall::Unknown`]).
//!
//! Bounds: 64 KiB of an answer; one deadline for the connection and one for the complete call, which grows
//! with the size of the request. No redirects, no proxies but the account's own, no retries: a retry here
//! could send twice. Connections are reused (HTTP/1.1).

use std::{error::Error, io, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use postway_domain::{
    AccountSettings,
    failure::{FailureCategory, FailurePhase, FailureSeverity, SendFailure},
};
use postway_net::{
    AddressGuard, EgressPath, NetError,
    http::{CallError, ConnectionSettings, HttpConnections},
};
use reqwest::{
    Body, Method, RequestBuilder, Response, Url,
    header::{self, HeaderMap},
};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::WireGate;

/// The largest mail that any transport sends by a call, in bytes.
pub(super) const MAIL_BYTES_MAX: usize = 40 * 1024 * 1024;
/// The slowest acceptable upload rate: the deadline of a call grows by one second for each such number of
/// bytes.
const UPLOAD_BYTES_PER_S_MIN: usize = 256 * 1024;
/// An idle connection is closed after this long, before the service closes it while a request is on its way.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// How many idle connections are kept: as many as an account may have.
const IDLE_CONNECTIONS_MAX: usize = AccountSettings::CONNECTIONS_MAX as usize;
/// How much of an answer is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimeouts {
    /// Name lookup, TCP and TLS. At most half of `request`, so that a slow connection is never mistaken for a
    /// slow answer: the first is certainly not sent, the second is in doubt.
    pub connect: Duration,
    /// The complete call: connection, request and answer.
    pub request: Duration,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), request: Duration::from_secs(30) }
    }
}

impl CallTimeouts {
    fn connect(&self) -> Duration {
        self.connect.min(self.request / 2)
    }

    /// The time for a complete call whose request has `bytes` bytes; a large request takes longer to write.
    pub(super) fn request(&self, bytes: usize) -> Duration {
        self.request + Duration::from_secs((bytes / UPLOAD_BYTES_PER_S_MIN) as u64)
    }

    /// The longest time that one transaction can take, without the gate's own time. A lease must last longer.
    pub fn transaction_max(&self) -> Duration {
        // Base64 makes four bytes of three; the rest of the request is small.
        self.request(MAIL_BYTES_MAX / 3 * 4 + 64 * 1024)
    }
}

/// The failure of an account whose settings cannot be used for any mail.
pub(super) fn unusable_settings(message: impl AsRef<str>) -> SendFailure {
    SendFailure::new(
        "account_settings",
        FailureCategory::Configuration,
        FailurePhase::Connect,
        FailureSeverity::Account,
        message,
    )
}

/// A call that got no answer.
#[derive(Debug)]
pub(super) enum UnansweredCall {
    /// The gate did not let it begin: the service saw no more than the head of the request.
    Refused,
    /// There was no connection, so the service certainly saw nothing of the request.
    NotWritten(SendFailure),
    /// A part of the request may have been written.
    Unknown(SendFailure),
}

/// An answer, complete or not.
#[derive(Debug)]
pub(super) struct CallAnswer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// The HTTP client of one account. Clones share their connections.
#[derive(Clone)]
pub(super) struct ApiCaller {
    http: HttpConnections,
    base: Url,
    egress: EgressPath,
    timeouts: CallTimeouts,
    /// The failure code of a call that got no answer in time.
    timeout_code: &'static str,
}

/// Where an account calls, and how.
pub(super) struct CallTarget<'a> {
    pub base: Url,
    pub timeouts: CallTimeouts,
    pub timeout_code: &'static str,
    pub extra_roots_pem: Option<&'a str>,
    pub guard: &'a Arc<AddressGuard>,
    pub egress: &'a EgressPath,
}

impl ApiCaller {
    /// Makes a client; nothing is sent yet. Fails, as a fault of the account, if the settings cannot be used.
    pub fn new(target: CallTarget<'_>) -> Result<Self, SendFailure> {
        let CallTarget { base, timeouts, timeout_code, extra_roots_pem, guard, egress } = target;
        // A literal address does not pass the guarded resolver, so it is checked here.
        let name = base.host_str().unwrap_or_default();
        if let Ok(address) = name.trim_matches(['[', ']']).parse::<IpAddr>()
            && !guard.allows(address)
        {
            return Err(unusable_settings(NetError::Guarded { host: name.to_owned() }.to_string()));
        }
        let http = HttpConnections::new(ConnectionSettings {
            connect_timeout: timeouts.connect(),
            idle_max: IDLE_MAX,
            idle_per_host_max: IDLE_CONNECTIONS_MAX,
            extra_roots_pem: extra_roots_pem.map(str::to_owned),
            guard: guard.clone(),
            egress: egress.clone(),
        });
        let http =
            http.map_err(|error| unusable_settings(format!("cannot set up HTTPS: {}", root_cause(&error))))?;
        Ok(Self { http, base, egress: egress.clone(), timeouts, timeout_code })
    }

    /// The base address of all calls.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// The host and port calls go to, for the records of attempts.
    pub fn remote(&self) -> String {
        let Self { base, .. } = self;
        format!("{}:{}", base.host_str().unwrap_or_default(), base.port_or_known_default().unwrap_or(443))
    }

    /// The host and port calls go to, and the path that they take there, for people.
    pub fn route(&self) -> String {
        format!("{}{}", self.remote(), self.egress)
    }

    /// A request whose body will have `bytes` bytes.
    pub fn request(&self, method: Method, url: Url, bytes: usize) -> RequestBuilder {
        self.http.request(method, url).timeout(self.timeouts.request(bytes))
    }

    /// Sends one request and reads the answer, whatever its status. A body waits for a connection and then
    /// for its gate.
    pub async fn send(
        &self,
        request: RequestBuilder,
        body: Option<(Bytes, &mut dyn WireGate)>,
    ) -> Result<CallAnswer, UnansweredCall> {
        let bytes = body.as_ref().map_or(0, |(body, _)| body.len());
        let deadline = Instant::now() + self.timeouts.request(bytes);
        let response = match body {
            Some((body, gate)) => {
                let request = request.header(header::CONTENT_LENGTH, body.len());
                send_gated(&self.http, request, body, gate).await?
            }
            None => self.http.send(request).await,
        };
        let mut response = response.map_err(|error| classify_unanswered(&error, self.timeout_code))?;
        let mut body = Vec::new();
        // An answer that breaks off or does not end is used as far as it was read.
        while let Ok(Ok(Some(chunk))) = timeout_at(deadline, response.chunk()).await {
            let room = ANSWER_BYTES_MAX - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == ANSWER_BYTES_MAX {
                break;
            }
        }
        Ok(CallAnswer { status: response.status().as_u16(), headers: response.headers().clone(), body })
    }
}

/// Sends a request whose body waits until there is a connection and the gate has let it begin.
async fn send_gated(
    http: &HttpConnections,
    request: RequestBuilder,
    body: Bytes,
    gate: &mut dyn WireGate,
) -> Result<Result<Response, CallError>, UnansweredCall> {
    let (ask, mut asked) = oneshot::channel();
    let (leave, given) = oneshot::channel();
    // The client asks for the body when it has a connection to write it to.
    let body = futures::stream::once(async move {
        let is_asked = ask.send(()).is_ok();
        match given.await {
            Ok(()) if is_asked => Ok(body),
            Ok(()) | Err(_) => Err(io::Error::other("the gate did not let it go")),
        }
    });
    let mut response = std::pin::pin!(http.send(request.body(Body::wrap_stream(body))));
    tokio::select! {
        biased;
        Ok(()) = &mut asked => {}
        response = &mut response => return Ok(response),
    }
    if gate.begin_after_wait().await.is_err() {
        return Err(UnansweredCall::Refused);
    }
    // The receiver is gone only if the request has failed, and then the response says so.
    let _ = leave.send(());
    Ok(response.await)
}

/// Classifies a call that got no answer.
fn classify_unanswered(error: &CallError, timeout_code: &'static str) -> UnansweredCall {
    let cause = root_cause(error);
    let network = |phase| {
        SendFailure::new("NETWORK_ERROR", FailureCategory::Network, phase, FailureSeverity::Transient, &cause)
    };
    if error.is_builder() {
        // The key has characters that a header cannot carry.
        return UnansweredCall::NotWritten(unusable_settings(format!("the request cannot be made: {cause}")));
    }
    if error.is_connect() {
        let mut failure = network(FailurePhase::Connect);
        let refusal = error.net_error();
        if let Some(error) = refusal {
            failure.message = error.to_string();
        }
        if is_certificate(error) || matches!(refusal, Some(NetError::Certificate { .. })) {
            failure.code = "tls_certificate".into();
            failure.category = FailureCategory::Tls;
            failure.phase = FailurePhase::Tls;
            failure.severity = FailureSeverity::Account;
        } else if let Some(error) = refusal
            && (error.is_setup() || error.kind() == io::ErrorKind::PermissionDenied)
        {
            return UnansweredCall::NotWritten(unusable_settings(error.to_string()));
        }
        return UnansweredCall::NotWritten(failure);
    }
    if error.is_timeout() {
        let message = "no complete answer before the deadline of the call";
        return UnansweredCall::Unknown(SendFailure::new(
            timeout_code,
            FailureCategory::Timeout,
            FailurePhase::Request,
            FailureSeverity::Transient,
            message,
        ));
    }
    UnansweredCall::Unknown(network(FailurePhase::Request))
}

/// The innermost error; the outer ones repeat the address.
fn root_cause(error: &CallError) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// True if the certificate of the service does not verify.
fn is_certificate(error: &(dyn Error + 'static)) -> bool {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return matches!(tls, rustls::Error::InvalidCertificate(_));
    }
    // An I/O error does not name its inner error as a source.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => is_certificate(inner),
        None => error.source().is_some_and(is_certificate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_mail_gets_the_time_to_be_written() {
        let timeouts = CallTimeouts::default();
        assert_eq!(timeouts.request(100_000), Duration::from_secs(30));
        assert_eq!(timeouts.request(10 * 1024 * 1024), Duration::from_secs(70));
        assert!(timeouts.transaction_max() < Duration::from_secs(300));
    }
}
