//! Sending something and hearing what the other side says, whatever it is: webhooks and the like.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{
    Method,
    header::{CONTENT_TYPE, HeaderMap},
};
use tokio::time::Instant;
use url::Url;

use super::{
    client::{Auth, ExchangeDeadlines, HttpClient},
    error::{HttpError, is_transient_status},
    retry_after::retry_after,
};

/// What to send, and with how much patience.
#[derive(Clone, Debug)]
pub struct SendRequest {
    /// Where to.
    pub url: Url,
    /// What is sent.
    pub body: Bytes,
    /// What it is.
    pub content_type: String,
    /// Headers to send.
    pub headers: Vec<(String, String)>,
    /// Who sends it.
    pub auth: Auth,
    /// How long everything may take.
    pub timeout: Duration,
    /// How much of the answer is kept.
    pub answer_bytes_max: usize,
}

/// What the other side said.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status. A redirect is an answer like any other, and not followed.
    pub status: u16,
    /// The body, or the beginning of it.
    pub body: Bytes,
    /// Whether there was more than was kept, or the connection broke off within the body.
    pub is_cut: bool,
    /// From the first step to the last byte that was read.
    pub latency: Duration,
    headers: HeaderMap,
}

impl Answer {
    /// True for a 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// True when the other side asks to come back.
    pub fn is_transient(&self) -> bool {
        is_transient_status(self.status)
    }

    /// How long it asked to wait, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after(&self.headers)
    }

    /// The header of that name, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl HttpClient {
    /// Posts a body, once. Any status is an answer; an error means that there was none.
    pub async fn send(&self, request: &SendRequest) -> Result<Answer, HttpError> {
        let SendRequest { url, timeout, answer_bytes_max, .. } = request;
        let started = Instant::now();
        let deadlines = ExchangeDeadlines::new(*timeout, *timeout);
        let post = self
            .request(Method::POST, url, &request.headers)?
            .header(CONTENT_TYPE, &request.content_type)
            .body(request.body.clone());
        let mut response = self.exchange(url, request.auth.apply(post), &deadlines).await?;
        let mut body = Vec::new();
        // What breaks off, stalls or never ends within the body takes nothing from what the status said.
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
        Ok(Answer {
            status: response.status().as_u16(),
            body: body.into(),
            is_cut,
            latency: started.elapsed(),
            headers: std::mem::take(response.headers_mut()),
        })
    }
}
