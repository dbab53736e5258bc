//! Fetches a document: follows redirects itself, and streams the body into a [`BodySink`] up to a limit.

use std::{ops::ControlFlow, time::Duration};

use bytes::Bytes;
use reqwest::{
    Method, Response,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION},
};
use url::Url;

use super::{
    client::{ExchangeDeadlines, HttpAuth, HttpClient},
    error::HttpError,
    retry_after::retry_after,
    target::{URL_BYTES_MAX, host},
};

/// How many redirects are followed unless the caller allows fewer.
const REDIRECTS_MAX: u8 = 3;

/// The method of a fetch.
#[derive(Clone, Debug)]
pub enum FetchMethod {
    /// A GET request.
    Get,
    /// A POST request. A redirect is then an error.
    Post {
        /// The request body.
        body: Bytes,
        /// Its media type.
        content_type: String,
    },
}

/// A fetch request with its limits.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The URL.
    pub url: Url,
    /// The method.
    pub method: FetchMethod,
    /// Headers to send. Like `auth`, they are sent only to the URL's own origin, not to the target of a
    /// redirect.
    pub headers: Vec<(String, String)>,
    /// The authentication.
    pub auth: HttpAuth,
    /// The time limit of the whole fetch, redirects included: 60 s.
    pub timeout: Duration,
    /// The longest silence: 30 s.
    pub idle_timeout: Duration,
    /// The longest body.
    pub bytes_max: u64,
    /// The maximum number of redirects: 3.
    pub redirects_max: u8,
}

impl FetchRequest {
    /// A GET of this URL with the default time limits.
    pub fn get(url: Url, bytes_max: u64) -> Self {
        Self {
            url,
            method: FetchMethod::Get,
            headers: Vec::new(),
            auth: HttpAuth::None,
            timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(30),
            bytes_max,
            redirects_max: REDIRECTS_MAX,
        }
    }

    /// A POST to this URL with the default time limits.
    pub fn post(url: Url, body: Bytes, content_type: impl Into<String>, bytes_max: u64) -> Self {
        let method = FetchMethod::Post { body, content_type: content_type.into() };
        Self { method, ..Self::get(url, bytes_max) }
    }
}

/// Receives a body in pieces.
pub trait BodySink: Send {
    /// Called before the body. Its length, if the host sent it, is within the limit.
    fn begin(&mut self, length: Option<u64>);

    /// Takes the next piece. Breaking ends the fetch with [`HttpError::Stopped`].
    fn take(&mut self, piece: &[u8]) -> ControlFlow<()>;
}

impl BodySink for Vec<u8> {
    fn begin(&mut self, length: Option<u64>) {
        self.reserve(length.and_then(|length| usize::try_from(length).ok()).unwrap_or(0));
    }

    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        self.extend_from_slice(piece);
        ControlFlow::Continue(())
    }
}

/// The response without its body.
#[derive(Clone, Debug)]
pub struct FetchedDocument {
    /// The status: 200, 201 or 203.
    pub status: u16,
    /// The length of the body.
    pub bytes: u64,
    headers: HeaderMap,
}

impl FetchedDocument {
    /// The headers of that name that are text.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
    }

    /// The `Content-Type` of the body.
    pub fn content_type(&self) -> Option<&str> {
        self.headers(CONTENT_TYPE.as_str()).next()
    }
}

impl HttpClient {
    /// Fetches a document into `sink`. After an error the content of the sink is incomplete.
    pub async fn fetch(
        &self,
        request: &FetchRequest,
        sink: &mut dyn BodySink,
    ) -> Result<FetchedDocument, HttpError> {
        let deadlines = ExchangeDeadlines::new(request.timeout, request.idle_timeout);
        let mut url = request.url.clone();
        let mut redirects = 0;
        // The target of a redirect is not trusted, and neither are its further redirects, even back to the
        // first origin.
        let mut is_trusted = true;
        loop {
            let response = self.ask(request, &url, is_trusted, &deadlines).await?;
            match response.status().as_u16() {
                200 | 201 | 203 => {
                    return self.receive(response, &url, request.bytes_max, &deadlines, sink).await;
                }
                status @ (301 | 302 | 303 | 307 | 308) => {
                    if matches!(request.method, FetchMethod::Post { .. }) {
                        return Err(HttpError::PostRedirect { host: host(&url), status });
                    }
                    if redirects >= request.redirects_max {
                        return Err(HttpError::Redirects { host: host(&url), max: request.redirects_max });
                    }
                    redirects += 1;
                    url = redirected(&url, response.headers())?;
                    is_trusted &= url.origin() == request.url.origin();
                }
                // 204 and 206 are not documents, either.
                status => {
                    let retry_after = retry_after(response.headers());
                    return Err(HttpError::Status { host: host(&url), status, retry_after });
                }
            }
        }
    }

    async fn ask(
        &self,
        request: &FetchRequest,
        url: &Url,
        is_trusted: bool,
        deadlines: &ExchangeDeadlines,
    ) -> Result<Response, HttpError> {
        let headers: &[_] = if is_trusted { &request.headers } else { &[] };
        let mut asked = match &request.method {
            FetchMethod::Get => self.request(Method::GET, url, headers)?,
            FetchMethod::Post { body, content_type } => self
                .request(Method::POST, url, headers)?
                .header(CONTENT_TYPE, content_type)
                .body(body.clone()),
        };
        if is_trusted {
            asked = request.auth.apply(asked);
        }
        self.exchange(url, asked, deadlines).await
    }

    async fn receive(
        &self,
        mut response: Response,
        url: &Url,
        bytes_max: u64,
        deadlines: &ExchangeDeadlines,
        sink: &mut dyn BodySink,
    ) -> Result<FetchedDocument, HttpError> {
        if let Some(encoding) = encoding(response.headers()) {
            return Err(HttpError::Encoded { host: host(url), encoding });
        }
        let too_large = || HttpError::TooLarge { host: host(url), bytes_max };
        let length = response.content_length();
        if length.is_some_and(|length| length > bytes_max) {
            return Err(too_large());
        }
        sink.begin(length);
        let mut bytes = 0_u64;
        while let Some(piece) = deadlines
            .wait(url, "rest of the answer", response.chunk())
            .await?
            .map_err(|error| self.call_error(url, &error.into()))?
        {
            bytes = bytes.saturating_add(piece.len() as u64);
            if bytes > bytes_max {
                return Err(too_large());
            }
            if sink.take(&piece).is_break() {
                return Err(HttpError::Stopped { host: host(url) });
            }
        }
        Ok(FetchedDocument {
            status: response.status().as_u16(),
            bytes,
            headers: std::mem::take(response.headers_mut()),
        })
    }
}

/// The target of a redirect. The next request checks it like any other URL.
fn redirected(from: &Url, headers: &HeaderMap) -> Result<Url, HttpError> {
    let refused = |what: &str| HttpError::Url { reason: format!("is redirected by {} {what}", host(from)) };
    let to = headers.get(LOCATION).ok_or_else(|| refused("to nowhere"))?;
    let to = to.to_str().ok().filter(|to| to.len() <= URL_BYTES_MAX);
    let to = to.ok_or_else(|| refused("to what is no URL"))?;
    from.join(to).map_err(|error| refused(&format!("to what is no URL: {error}")))
}

/// The encoding of the body, if there is one.
fn encoding(headers: &HeaderMap) -> Option<String> {
    let mut encodings =
        headers.get_all(CONTENT_ENCODING).iter().map(|value| value.to_str().unwrap_or("?").trim());
    let other =
        encodings.find(|encoding| !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity"))?;
    Some(other.chars().take(32).collect())
}
