//! Posts a body and reads the response, whatever its status: for webhooks and API calls.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{
    Method,
    header::{CONTENT_TYPE, HeaderMap},
};
use tokio::time::Instant;
use url::Url;

use super::{
    client::{ExchangeDeadlines, HttpAuth, HttpClient},
    error::{HttpError, is_transient_status},
    retry_after::retry_after,
};

/// A POST request with its limits.
#[derive(Clone, Debug)]
pub struct SendRequest {
    /// The URL.
    pub url: Url,
    /// The request body.
    pub body: Bytes,
    /// Its media type.
    pub content_type: String,
    /// Headers to send.
    pub headers: Vec<(String, String)>,
    /// The authentication.
    pub auth: HttpAuth,
    /// The time limit of the whole exchange.
    pub timeout: Duration,
    /// The maximum of the response body that is kept.
    pub answer_bytes_max: usize,
}

/// The response to a [`SendRequest`].
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    /// The status. A redirect is returned like any other status and not followed.
    pub status: u16,
    /// The body, or the beginning of it.
    pub body: Bytes,
    /// Whether the body is incomplete: it was longer, or the connection broke.
    pub is_cut: bool,
    /// The time from the start to the last byte that was read.
    pub latency: Duration,
    headers: HeaderMap,
}

impl HttpAnswer {
    /// True for a 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// True if the status suggests a retry.
    pub fn is_transient(&self) -> bool {
        is_transient_status(self.status)
    }

    /// How long the host asked to wait, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after(&self.headers)
    }

    /// The header of that name, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl HttpClient {
    /// Posts a body once. Any status is a response; an error means that there was none.
    pub async fn send(&self, request: &SendRequest) -> Result<HttpAnswer, HttpError> {
        let SendRequest { url, timeout, answer_bytes_max, .. } = request;
        let started = Instant::now();
        let deadlines = ExchangeDeadlines::new(*timeout, *timeout);
        let post = self
            .request(Method::POST, url, &request.headers)?
            .header(CONTENT_TYPE, &request.content_type)
            .body(request.body.clone());
        let mut response = self.exchange(url, request.auth.apply(post), &deadlines).await?;
        let mut body = Vec::new();
        // A body that breaks off, stalls or does not end does not invalidate the status.
        let is_cut = loop {
            match deadlines.wait(url, "rest of the answer", response.chunk()).await {
                Ok(Ok(None)) => break false,
                Ok(Ok(Some(piece))) => {
                    let room = answer_bytes_max - body.len();
                    body.extend_from_slice(&piece[..piece.len().min(room)]);
                    if piece.len() > room {
                        break true;
                    }
                }
                Ok(Err(_)) | Err(_) => break true,
            }
        };
        Ok(HttpAnswer {
            status: response.status().as_u16(),
            body: body.into(),
            is_cut,
            latency: started.elapsed(),
            headers: std::mem::take(response.headers_mut()),
        })
    }
}
