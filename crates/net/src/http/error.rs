//! Errors of an HTTP exchange, and whether a retry may help.

use std::{error::Error, io, time::Duration};

use thiserror::Error;

use super::connections::CallError;
use crate::NetError;

/// An exchange without a usable response. Errors name host and port, but not path and query, which may
/// contain secrets.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The URL may not be requested.
    #[error("the URL {reason}")]
    Url {
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The host is a private address, or its name resolves only to private addresses.
    #[error(
        "{host} is a private address, or its name leads to one: if it is to be reached, add its network to \
         allow_private_targets (POSTWAY_ALLOW_PRIVATE_TARGETS), and restart"
    )]
    Guarded {
        /// The host.
        host: String,
    },
    /// The name could not be resolved.
    #[error("cannot resolve {host}: {reason}; check the host name and the resolver")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// No address of the host took the connection.
    #[error("cannot connect to {host}: {reason}")]
    Connect {
        /// The host.
        host: String,
        /// The error of the last address tried.
        reason: String,
    },
    /// The certificate does not verify: the set-up must change.
    #[error("the certificate of {host} does not verify: {reason}")]
    Certificate {
        /// The host.
        host: String,
        /// What the verifier said.
        reason: String,
    },
    /// A deadline passed first.
    #[error("no {what} from {host} within {}", seconds(.within))]
    Timeout {
        /// The host.
        host: String,
        /// What the client was waiting for.
        what: &'static str,
        /// The time limit.
        within: Duration,
    },
    /// The connection or the answer broke off.
    #[error("the answer of {host} broke off: {reason}")]
    Broken {
        /// The host.
        host: String,
        /// What the connection said.
        reason: String,
    },
    /// The status is not a success.
    #[error("{host} answered with status {status}")]
    Status {
        /// The host.
        host: String,
        /// The status.
        status: u16,
        /// How long the host asked to wait.
        retry_after: Option<Duration>,
    },
    /// The response is too long.
    #[error("the answer of {host} is larger than {bytes_max} bytes")]
    TooLarge {
        /// The host.
        host: String,
        /// The limit.
        bytes_max: u64,
    },
    /// The response is compressed although the client did not accept that.
    #[error("the answer of {host} has the content encoding {encoding:?}: it must be sent as it is")]
    Encoded {
        /// The host.
        host: String,
        /// The encoding.
        encoding: String,
    },
    /// There were too many redirects.
    #[error("{host} redirects once more after {max} redirects")]
    Redirects {
        /// The host that sent the last one.
        host: String,
        /// How many were followed.
        max: u8,
    },
    /// A POST was redirected, which is not followed.
    #[error("{host} redirects a POST (status {status}): give the URL it leads to")]
    PostRedirect {
        /// The host.
        host: String,
        /// The status.
        status: u16,
    },
    /// The sink stopped reading the body.
    #[error("the answer of {host} was not read to its end")]
    Stopped {
        /// The host.
        host: String,
    },
    /// The request is invalid.
    #[error("the request cannot be made: {reason}")]
    Request {
        /// What is wrong with it.
        reason: String,
    },
    /// The HTTP client cannot be set up on this machine.
    #[error("cannot set up HTTPS: {reason}; check that the system's CA certificates are installed")]
    Setup {
        /// What is missing.
        reason: String,
    },
}

impl HttpError {
    /// True if the same request may succeed later, because the network, the host or this machine is at fault.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::Timeout { .. }
            | Self::Broken { .. }
            | Self::Setup { .. } => true,
            Self::Status { status, .. } => is_transient_status(*status),
            Self::Url { .. }
            | Self::Guarded { .. }
            | Self::Certificate { .. }
            | Self::TooLarge { .. }
            | Self::Encoded { .. }
            | Self::Redirects { .. }
            | Self::PostRedirect { .. }
            | Self::Stopped { .. }
            | Self::Request { .. } => false,
        }
    }

    /// How long the host asked to wait, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Converts an error of a call to this host.
    pub(super) fn from_call(host: &str, connect_timeout: Duration, error: &CallError) -> Self {
        let (host, reason) = (host.to_owned(), root(error).to_string());
        if error.is_builder() {
            return Self::Request { reason };
        }
        match error.net_error() {
            Some(NetError::Guarded { host: refused }) => {
                // It is the host itself, or the proxy on the way to it.
                let is_target = host == *refused || host.starts_with(&format!("{refused}:"));
                return Self::Guarded { host: if is_target { host } else { refused.clone() } };
            }
            Some(NetError::Resolve { source, .. }) => {
                return Self::Resolve { host, reason: source.to_string() };
            }
            Some(NetError::Certificate { reason, .. }) => {
                return Self::Certificate { host, reason: reason.clone() };
            }
            Some(
                other @ (NetError::Source { .. } | NetError::SourceFamily { .. } | NetError::Timeout { .. }),
            ) => {
                return Self::Connect { host, reason: other.to_string() };
            }
            Some(NetError::TlsSetup(_) | NetError::Connect { .. } | NetError::Handshake { .. }) | None => {}
        }
        if let Some(rustls::Error::InvalidCertificate(reason)) = find::<rustls::Error>(error) {
            return Self::Certificate { host, reason: reason.to_string() };
        }
        match (error.is_connect(), error.is_timeout()) {
            (true, true) => Self::Timeout { host, what: "connection", within: connect_timeout },
            (true, false) => Self::Connect { host, reason },
            (false, _) => Self::Broken { host, reason },
        }
    }
}

/// True for statuses that suggest a retry: timeouts, rate limits, and server errors.
pub(super) fn is_transient_status(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

fn seconds(duration: &Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// The cause of an error. The inner error of an I/O error is not among its sources.
fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// The innermost cause; the outer ones repeat the URL.
fn root<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    std::iter::successors(Some(error), |error| cause(*error)).last().unwrap_or(error)
}

/// The first cause of this type.
pub(super) fn find<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    std::iter::successors(Some(error), |error| cause(*error)).find_map(|error| error.downcast_ref())
}
