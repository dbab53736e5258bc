//! How calls are made: again where that is safe, with answers checked.

use std::{fmt, time::Duration};

use rand::Rng;
use reqwest::{
    Method, Response,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
    redirect,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use crate::{
    body::{BatchAnswer, EventPage, GatewayMessage, ListPage, MailReceipt, OutgoingMail},
    failure::{CallFailure, failure_of, is_worth_a_repeat},
};

const TRY_S_MAX: u64 = 60;
const RETRIES: u32 = 5;
const WAIT_MS_MIN: u64 = 250;
const WAIT_MS_MAX: u64 = 30_000;

/// Calls one gateway with one key. Clones share their connections.
#[derive(Clone)]
pub struct GatewayClient {
    base: Url,
    http: reqwest::Client,
    retries: u32,
}

/// A request, as every try of it is made.
struct CallRequest<'a> {
    method: Method,
    path: &'a [&'a str],
    query: &'a [(&'a str, &'a str)],
    body: Option<Vec<u8>>,
    body_type: &'static str,
    /// The key by which tries find each other, where the gateway takes one.
    key: Option<String>,
    /// Whether it may be carried out twice.
    repeatable: bool,
}

impl fmt::Debug for GatewayClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GatewayClient").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl GatewayClient {
    /// A client of the gateway at this address.
    pub fn new(url: &str, key: &str) -> Result<Self, CallFailure> {
        Self::with_headers(url, key, HeaderMap::new())
    }

    /// The same for an admin key that works for this tenant.
    pub fn for_tenant(url: &str, key: &str, tenant: &str) -> Result<Self, CallFailure> {
        let name = HeaderName::from_static("x-tenant");
        Self::with_headers(url, key, HeaderMap::from_iter([(name, header(tenant)?)]))
    }

    fn with_headers(url: &str, key: &str, mut headers: HeaderMap) -> Result<Self, CallFailure> {
        let wrong = |reason: &str| CallFailure::WrongArgument(reason.to_owned());
        let base = Url::parse(url).map_err(|error| wrong(&format!("the address cannot be used: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") || base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("the address is `http://` or `https://`, a host, and a path at most"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("the address must not have a password in it"));
        }
        let mut secret = header(&format!("Bearer {key}"))?;
        secret.set_sensitive(true);
        headers.insert(AUTHORIZATION, secret);
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .timeout(Duration::from_secs(TRY_S_MAX))
            .user_agent(concat!("postway-rust/", env!("CARGO_PKG_VERSION")))
            // A redirect would carry the key elsewhere.
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| wrong(&format!("a client cannot be made: {error}")))?;
        Ok(Self { base, http, retries: RETRIES })
    }

    /// The same with another number of repeats than five.
    pub fn with_retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// Hands over a mail. It is durable when this returns.
    pub async fn send(&self, mail: &OutgoingMail) -> Result<MailReceipt, CallFailure> {
        // A message that has an id is found by that.
        let key = mail.id.is_none().then(new_key);
        self.post(&["v1", "messages"], &[], json_bytes(mail)?, "application/json", key, true).await
    }

    /// Hands over up to 1,000 mails. A refused one stops nobody.
    pub async fn send_batch(&self, mails: &[OutgoingMail]) -> Result<BatchAnswer, CallFailure> {
        let body = json_bytes(&json!({ "messages": mails }))?;
        self.post(&["v1", "messages", "batch"], &[], body, "application/json", Some(new_key()), true).await
    }

    /// Hands over a ready-made mail. The query may name `id`, `from`, `to`, `tag` and so on.
    pub async fn send_raw(&self, mail: Vec<u8>, query: &[(&str, &str)]) -> Result<MailReceipt, CallFailure> {
        let path = ["v1", "messages", "raw"];
        self.post(&path, query, mail, "message/rfc822", Some(new_key()), true).await
    }

    /// A message, by its id or uid.
    pub async fn message(&self, id: &str) -> Result<GatewayMessage, CallFailure> {
        self.get(&["v1", "messages", id], &[]).await
    }

    /// Messages, newest first. The query may name `status`, `tag`, `limit`, `cursor` and so on.
    pub async fn messages(&self, query: &[(&str, &str)]) -> Result<ListPage<GatewayMessage>, CallFailure> {
        self.get(&["v1", "messages"], query).await
    }

    /// What holds a message, and when it goes.
    pub async fn explain(&self, id: &str) -> Result<Value, CallFailure> {
        self.get(&["v1", "messages", id, "explain"], &[]).await
    }

    /// Cancels a message that has not left.
    pub async fn cancel(&self, id: &str) -> Result<Value, CallFailure> {
        self.post(&["v1", "messages", id, "cancel"], &[], Vec::new(), "application/json", None, false).await
    }

    /// What happened to messages after this cursor, waiting up to `wait_s` seconds (at most 30) for news.
    /// None begins with the oldest that is kept, `now` with what comes from now on.
    pub async fn events(&self, after: Option<&str>, wait_s: u32) -> Result<EventPage, CallFailure> {
        let wait = wait_s.to_string();
        let mut query = vec![("wait", &*wait)];
        query.extend(after.map(|after| ("after", after)));
        self.get(&["v1", "events"], &query).await
    }

    /// Any other call: the path in its parts, without slashes.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<T, CallFailure> {
        let repeatable = matches!(method, Method::GET | Method::PUT);
        let body = body.map(json_bytes).transpose()?;
        self.made(CallRequest {
            method,
            path,
            query,
            body,
            body_type: "application/json",
            key: None,
            repeatable,
        })
        .await
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<T, CallFailure> {
        self.call(Method::GET, path, query, None).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        body: Vec<u8>,
        body_type: &'static str,
        key: Option<String>,
        repeatable: bool,
    ) -> Result<T, CallFailure> {
        let body = Some(body).filter(|body| !body.is_empty());
        self.made(CallRequest { method: Method::POST, path, query, body, body_type, key, repeatable }).await
    }

    /// Makes a call, again where that is safe.
    async fn made<T: DeserializeOwned>(&self, request: CallRequest<'_>) -> Result<T, CallFailure> {
        let url = self.address(request.path, request.query)?;
        for tried in 0.. {
            let (failure, asked) = match self.tried(&request, url.clone()).await {
                Ok((status, _, body)) if (200..300).contains(&status) => return read(status, &body),
                Ok((status, asked, body)) => {
                    let failure = failure_of(status, asked, &body);
                    if !is_worth_a_repeat(status, request.repeatable) {
                        return Err(failure);
                    }
                    (failure, asked.unwrap_or_default())
                }
                Err(source) => {
                    let may_have_happened = !source.is_connect();
                    let failure = CallFailure::NoAnswer { source, may_have_happened };
                    if may_have_happened && !request.repeatable {
                        return Err(failure);
                    }
                    (failure, Duration::ZERO)
                }
            };
            if tried >= self.retries || asked > Duration::from_millis(WAIT_MS_MAX) {
                return Err(failure);
            }
            tokio::time::sleep(pause(tried).max(asked)).await;
        }
        unreachable!("the last try returns")
    }

    async fn tried(
        &self,
        request: &CallRequest<'_>,
        url: Url,
    ) -> Result<(u16, Option<Duration>, Vec<u8>), reqwest::Error> {
        let mut call = self.http.request(request.method.clone(), url).header(ACCEPT, "application/json");
        if let Some(key) = &request.key {
            call = call.header("idempotency-key", key);
        }
        if let Some(body) = &request.body {
            call = call.header(CONTENT_TYPE, request.body_type).body(body.clone());
        }
        let answer = call.send().await?;
        let (status, asked) = (answer.status().as_u16(), retry_after(&answer));
        Ok((status, asked, answer.bytes().await?.to_vec()))
    }

    fn address(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Url, CallFailure> {
        // Dots alone would name another path, and so would nothing.
        if let Some(part) = path.iter().find(|part| matches!(**part, "" | "." | "..")) {
            return Err(CallFailure::WrongArgument(format!("`{part}` cannot be an id")));
        }
        let mut url = self.base.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }
}

fn header(value: &str) -> Result<HeaderValue, CallFailure> {
    let refused =
        |_| CallFailure::WrongArgument("a key or tenant has characters that no header may have".to_owned());
    HeaderValue::from_str(value).map_err(refused)
}

fn json_bytes(body: &impl serde::Serialize) -> Result<Vec<u8>, CallFailure> {
    serde_json::to_vec(body)
        .map_err(|error| CallFailure::WrongArgument(format!("the body cannot be written: {error}")))
}

fn new_key() -> String {
    uuid::Builder::from_random_bytes(rand::rng().random()).into_uuid().to_string()
}

/// Chance keeps the clients of a gateway that was away from coming back all at once.
fn pause(tried: u32) -> Duration {
    let most = 500_u64.saturating_mul(1 << tried.min(16)).clamp(WAIT_MS_MIN * 2, WAIT_MS_MAX);
    Duration::from_millis(rand::rng().random_range(WAIT_MS_MIN..=most))
}

fn retry_after(answer: &Response) -> Option<Duration> {
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn read<T: DeserializeOwned>(status: u16, body: &[u8]) -> Result<T, CallFailure> {
    // An answer without a body is JSON's nothing.
    let body = if body.is_empty() { b"null" } else { body };
    serde_json::from_slice(body)
        .map_err(|error| CallFailure::UnreadableAnswer { status, reason: error.to_string() })
}
