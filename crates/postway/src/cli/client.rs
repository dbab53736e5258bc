//! The HTTP client of the commands: sends the key, bounds the time, and turns errors into exit codes.
//!
//! The address and the key come from the flags, else from the configuration that the server itself would
//! read. Proxies of the environment are ignored for loopback addresses, which no proxy can reach.

use std::path::Path;
use std::time::Duration;

use reqwest::{Method, StatusCode, Url};
use serde_json::Value;

use crate::cli::failure::CommandFailure;
use crate::config::{self, ConfigSecret, ServerConfig};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
const KEY_FILE_BYTES_MAX: u64 = 8 * 1024;

/// The server and the identity that the command line names.
#[derive(Clone, Debug, Default)]
pub struct ServerTarget {
    /// The server's address; none: as configured.
    pub url: Option<String>,
    /// The key; none: the admin key as configured or from the data folder.
    pub key: Option<String>,
    /// The tenant an admin key works for.
    pub tenant: Option<String>,
}

/// A request's body.
#[derive(Debug)]
pub enum RequestBody<'a> {
    /// No body.
    Empty,
    /// A JSON document.
    Json(&'a Value),
    /// A ready-made mail.
    Mail(Vec<u8>),
}

/// A connection to one server, for one key and tenant.
#[derive(Clone, Debug)]
pub struct ApiClient {
    http: reqwest::Client,
    base: Url,
    key: Option<ConfigSecret>,
    tenant: Option<String>,
    request_id: Option<String>,
}

impl ApiClient {
    /// Prepares a client; reads the configuration only if the flags do not name both address and key.
    pub fn prepare(target: &ServerTarget, config_file: Option<&Path>) -> Result<Self, CommandFailure> {
        let config = match (&target.url, &target.key) {
            (Some(_), Some(_)) => None,
            _ => Some(config::load(config_file)?.config),
        };
        let url = match (&target.url, &config) {
            (Some(url), _) => url.clone(),
            (None, Some(config)) => local_url(config),
            (None, None) => unreachable!("the configuration is loaded when no url is given"),
        };
        let key = match (&target.key, &config) {
            (Some(key), _) => Some(ConfigSecret::new(key.clone())),
            (None, Some(config)) => key_of(config)?,
            (None, None) => None,
        };
        Self::new(&url, key, target.tenant.clone())
    }

    /// A client for a known address and key.
    pub fn new(url: &str, key: Option<ConfigSecret>, tenant: Option<String>) -> Result<Self, CommandFailure> {
        let usage =
            |reason: &str| CommandFailure::Usage(format!("`{url}` is not a server's address: {reason}"));
        let base = Url::parse(url).map_err(|_| usage("write one like http://127.0.0.1:8520"))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(usage("use http:// or https://"));
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("postway/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&base) {
            builder = builder.no_proxy();
        }
        let http =
            builder.build().map_err(|error| anyhow::Error::new(error).context("cannot set up HTTP"))?;
        Ok(Self { http, base, key, tenant, request_id: None })
    }

    /// The server's address.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// The same server and key, for another tenant.
    pub fn for_tenant(&self, tenant: &str) -> Self {
        Self {
            http: self.http.clone(),
            base: self.base.clone(),
            key: self.key.clone(),
            tenant: Some(tenant.to_owned()),
            request_id: self.request_id.clone(),
        }
    }

    /// Whether it sends the tenant's key with this id.
    pub fn has_key_of(&self, id: &str) -> bool {
        let own = self.key.as_ref().and_then(|key| key.expose().strip_prefix("pw_"));
        !id.is_empty() && own.and_then(|key| key.strip_prefix(id)).is_some_and(|rest| rest.starts_with('_'))
    }

    /// The same client, with this request id on every request.
    pub fn for_request(mut self, request_id: Option<String>) -> Self {
        // An id that no header can carry did not come from a header, so it is dropped.
        self.request_id = request_id.filter(|id| reqwest::header::HeaderValue::from_str(id).is_ok());
        self
    }

    /// Whether the server is on this machine, as far as its address says.
    pub fn is_local(&self) -> bool {
        is_loopback(&self.base)
    }

    /// The headers of the key and the tenant, as lines of HTTP/1.1; for the bench, which writes its requests
    /// itself.
    pub fn identity_lines(&self) -> String {
        let key = self.key.as_ref().map(|key| format!("Authorization: Bearer {}\r\n", key.expose()));
        let tenant = self.tenant.as_ref().map(|tenant| format!("X-Tenant: {tenant}\r\n"));
        key.into_iter().chain(tenant).collect()
    }

    /// `GET` a JSON document.
    pub async fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Value, CommandFailure> {
        self.call(Method::GET, path, query, RequestBody::Empty).await
    }

    /// Sends a request and returns the JSON answer; `null` for an answer without a body.
    pub async fn call(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: RequestBody<'_>,
    ) -> Result<Value, CommandFailure> {
        let bytes = self.call_for_bytes(method, path, query, body).await?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            let context = format!("the server at {} did not answer with JSON; is it Postway?", self.base);
            CommandFailure::Failed(anyhow::Error::new(error).context(context))
        })
    }

    /// Sends a request and returns the answer's bytes.
    pub async fn call_for_bytes(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: RequestBody<'_>,
    ) -> Result<Vec<u8>, CommandFailure> {
        let (status, bytes) = self.answer(method, path, query, body).await?;
        if status.is_success() { Ok(bytes) } else { Err(refusal(status, &bytes)) }
    }

    /// Sends a request and returns the answer, whatever its status.
    pub async fn answer(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: RequestBody<'_>,
    ) -> Result<(StatusCode, Vec<u8>), CommandFailure> {
        let mut request = self.http.request(method, self.url(path)?).query(query);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        if let Some(tenant) = &self.tenant {
            request = request.header("X-Tenant", tenant);
        }
        if let Some(id) = &self.request_id {
            request = request.header("X-Request-Id", id);
        }
        request = match body {
            RequestBody::Empty => request,
            RequestBody::Json(value) => request.json(value),
            RequestBody::Mail(bytes) => request.header("Content-Type", "message/rfc822").body(bytes),
        };
        let unreachable = |error: reqwest::Error| CommandFailure::Unreachable {
            url: self.base.to_string(),
            reason: match root_cause(&error) {
                cause if self.base.scheme() == "https" && speaks_no_tls(&cause) => {
                    "what answers there speaks no TLS; write http:// unless a proxy with TLS stands before it"
                        .to_owned()
                }
                cause => cause,
            },
        };
        let answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(unreachable)?;
        Ok((status, bytes.into()))
    }

    fn url(&self, path: &[&str]) -> Result<Url, CommandFailure> {
        // A URL cannot carry these two as a step of its path: they mean "here" and "above".
        if let Some(step) = path.iter().find(|step| matches!(**step, "" | "." | "..")) {
            return Err(CommandFailure::Usage(format!(
                "`{step}` cannot be asked for by its id; use the uid"
            )));
        }
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(path);
            }
            Err(()) => {
                return Err(CommandFailure::Usage(format!("`{}` is not a server's address", self.base)));
            }
        }
        Ok(url)
    }
}

/// The URL under which a server with this configuration is reached from its own machine.
fn local_url(config: &ServerConfig) -> String {
    let mut address = config.http.listen;
    if address.ip().is_unspecified() {
        address.set_ip(match address.is_ipv4() {
            true => std::net::Ipv4Addr::LOCALHOST.into(),
            false => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}

/// The configured admin key, else the one that the server left in its data folder; none if there is neither.
fn key_of(config: &ServerConfig) -> Result<Option<ConfigSecret>, CommandFailure> {
    if let Some(key) = &config.admin_key {
        return Ok(Some(key.clone()));
    }
    let path = config.admin_key_file();
    let read = std::fs::File::open(&path).and_then(|file| {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut std::io::Read::take(file, KEY_FILE_BYTES_MAX), &mut text)?;
        Ok(text)
    });
    match read {
        Ok(text) => Ok(Some(ConfigSecret::new(text.trim()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let context = format!("cannot read the admin key from {}; give one with --key", path.display());
            Err(CommandFailure::Failed(anyhow::Error::new(error).context(context)))
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let address = host.trim_start_matches('[').trim_end_matches(']');
            address.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
        None => false,
    }
}

/// The failure for an error of the server, with each field that failed on its own line.
pub fn refusal(status: StatusCode, body: &[u8]) -> CommandFailure {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let error = parsed.as_ref().and_then(|body| body.get("error"));
    let text = |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str);
    let mut message = format!("{} ({status})", text("message").unwrap_or("the server gave no reason"));
    for detail in error.and_then(|error| error.get("details")).and_then(Value::as_array).into_iter().flatten()
    {
        let of = |name: &str| detail.get(name).and_then(Value::as_str).unwrap_or("?");
        message.push_str(&format!("\n  {}: {}", of("field"), of("message")));
    }
    if let Some(id) = text("request_id") {
        message.push_str(&format!("\n  request id: {id}"));
    }
    if status == StatusCode::UNAUTHORIZED {
        message.push_str(
            "\n  give a key with --key or POSTWAY_API_KEY, or run where the server's data folder is",
        );
    }
    match status {
        StatusCode::NOT_FOUND => CommandFailure::NotFound(message),
        status if status.is_client_error() => CommandFailure::Refused(message),
        _ => CommandFailure::Failed(anyhow::anyhow!(message)),
    }
}

/// Whether a handshake failed because the other side does not speak TLS.
fn speaks_no_tls(cause: &str) -> bool {
    cause.contains("InvalidContentType") || cause.contains("corrupt message")
}

/// The innermost cause: `connection refused` says more than `error sending request`.
fn root_cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests;
