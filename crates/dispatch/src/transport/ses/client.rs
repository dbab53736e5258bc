//! The client of one account, and one signed call.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use postway_domain::{Clock, failure::SendFailure};
use postway_trace::context::TRACEPARENT;
use reqwest::{Method, header};

use super::{
    SesSettings,
    answer::SesAnswer,
    credentials::AwsAccessKey,
    sign::{SignableRequest, sha256_hex},
};
use crate::transport::{
    WireGate,
    api_call::{ApiCaller, CallTarget, UnansweredCall},
};

const JSON: &str = "application/json";

/// A client of SES for one account. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct SesClient {
    inner: Arc<SesClientParts>,
}

struct SesClientParts {
    caller: ApiCaller,
    host: String,
    settings: SesSettings,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for SesClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.inner.caller.base().as_str();
        f.debug_struct("SesClient").field("base", &base).finish_non_exhaustive()
    }
}

/// The body of a request with its hash, computed before the wire commit.
pub(super) struct SesPayload {
    pub json: Bytes,
    pub sha256: String,
    /// The header that says where the call belongs in a trace. It is not signed.
    pub traceparent: Option<String>,
}

impl SesPayload {
    pub fn new(json: String) -> Self {
        Self { sha256: sha256_hex(json.as_bytes()), json: json.into(), traceparent: None }
    }
}

impl SesClient {
    /// Makes a client; nothing is sent yet. Fails, as a fault of the account, if the settings cannot be used.
    /// `clock` dates the signatures.
    pub fn new(settings: SesSettings, clock: Arc<dyn Clock>) -> Result<Self, SendFailure> {
        let base = settings.base()?;
        let name = base.host_str().unwrap_or_default();
        let host = base.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let caller = ApiCaller::new(CallTarget {
            base,
            timeouts: settings.timeouts,
            timeout_code: "SES_TIMEOUT",
            extra_roots_pem: settings.extra_roots_pem.as_deref(),
            guard: &settings.guard,
            egress: &settings.egress,
        })?;
        Ok(Self { inner: Arc::new(SesClientParts { caller, host, settings, clock }) })
    }

    /// The host and port calls go to, and the path that they take there, for people.
    pub fn route(&self) -> String {
        self.inner.caller.route()
    }

    /// The host and port calls go to, for the records of attempts.
    pub fn remote(&self) -> String {
        self.inner.caller.remote()
    }

    pub(super) fn settings(&self) -> &SesSettings {
        &self.inner.settings
    }

    /// Signs and sends one request and reads the answer, whatever its status. A body waits for a connection
    /// and then for its gate.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<(SesPayload, &mut dyn WireGate)>,
        key: &AwsAccessKey,
    ) -> Result<SesAnswer, UnansweredCall> {
        let SesClientParts { caller, host, settings, clock } = &*self.inner;
        let empty = sha256_hex(b"");
        let signed = SignableRequest {
            method: method.as_str(),
            host,
            path,
            content_type: body.as_ref().map(|_| JSON),
            payload_sha256: body.as_ref().map_or(&empty, |(payload, _)| &payload.sha256),
        };
        let proof = signed.headers(&settings.region, key, clock.now());
        let mut url = caller.base().clone();
        url.set_path(path);
        let bytes = body.as_ref().map_or(0, |(payload, _)| payload.json.len());
        let mut request = caller.request(method, url, bytes);
        for (name, value) in proof {
            request = request.header(name, value);
        }
        if let Some((payload, _)) = &body {
            request = request.header(header::CONTENT_TYPE, JSON);
            if let Some(traceparent) = &payload.traceparent {
                request = request.header(TRACEPARENT, traceparent);
            }
        }
        let answer = caller.send(request, body.map(|(payload, gate)| (payload.json, gate))).await?;
        Ok(SesAnswer::new(answer.status, &answer.headers, &answer.body))
    }
}
