//! One call: a POST, its answer, and its entry in the delivery log.
//!
//! The log has the request body and the answer, both shortened. It never has headers or URLs, which hold
//! credentials.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::{Clock, Time};
use postway_net::http::{HttpAnswer, HttpAuth, HttpClient, HttpError, SendRequest};
use postway_store::record;
use tokio::time::Instant;
use url::Url;

use crate::crash::crash_point;

/// The most bytes of an answer that are read.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of a request or an answer that the log keeps.
pub(crate) const LOGGED_BYTES_MAX: usize = 4 * 1024;
/// The most bytes that the log keeps of an answer that many notifications share.
pub(crate) const LOGGED_SHARED_BYTES_MAX: usize = 512;
/// The user agent of all calls.
const USER_AGENT: &str = concat!("Postway/", env!("CARGO_PKG_VERSION"));

/// A call that has ended.
pub(crate) struct FinishedCall {
    /// When the call began.
    pub at: Time,
    /// How long the call took.
    pub latency: Duration,
    /// The answer, or the reason why there is no answer.
    pub answer: Result<HttpAnswer, HttpError>,
}

/// Posts JSON once, within `timeout`.
pub(crate) async fn post(
    http: &HttpClient,
    clock: &dyn Clock,
    (url, auth): (&Url, &HttpAuth),
    mut headers: Vec<(String, String)>,
    body: Bytes,
    timeout: Duration,
) -> FinishedCall {
    headers.push(("user-agent".to_owned(), USER_AGENT.to_owned()));
    let request = SendRequest {
        url: url.clone(),
        body,
        content_type: "application/json".to_owned(),
        headers,
        auth: auth.clone(),
        timeout,
        answer_bytes_max: ANSWER_BYTES_MAX,
    };
    let (at, started) = (clock.now(), Instant::now());
    crash_point("notify_before_call");
    let answer = http.send(&request).await;
    crash_point("notify_after_answer");
    let latency = started.elapsed();
    metrics::histogram!("postway_notification_seconds").record(latency.as_secs_f64());
    FinishedCall { at, latency, answer }
}

impl FinishedCall {
    /// The status of the answer, if there is one.
    pub(crate) fn status(&self) -> Option<u16> {
        self.answer.as_ref().ok().map(|answer| answer.status)
    }

    /// The wait that the subscriber asked for.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.answer.as_ref().ok().and_then(HttpAnswer::retry_after)
    }

    /// How long the subscriber wants no calls at all: it has had too many, or is unavailable.
    pub(crate) fn requested_quiet(&self) -> Option<Duration> {
        self.retry_after().filter(|_| matches!(self.status(), Some(429 | 503)))
    }

    /// The log entry of this call, with at most `answer_bytes_max` bytes of its answer.
    pub(crate) fn logged(&self, request: &str, answer_bytes_max: usize) -> record::NotificationCall {
        let answer = match &self.answer {
            Ok(answer) => clipped(&String::from_utf8_lossy(&answer.body), answer_bytes_max),
            Err(error) => clipped(&error.to_string(), answer_bytes_max),
        };
        record::NotificationCall {
            at: self.at,
            latency_ms: i64::try_from(self.latency.as_millis()).unwrap_or(i64::MAX),
            status: self.status(),
            request: clipped(request, LOGGED_BYTES_MAX),
            answer,
        }
    }
}

/// The log entry of a call that could not be made.
pub(crate) fn call_not_made(at: Time, reason: &str) -> record::NotificationCall {
    record::NotificationCall {
        at,
        latency_ms: 0,
        status: None,
        request: String::new(),
        answer: reason.to_owned(),
    }
}

/// The first `bytes_max` bytes of a text, without NUL, which not every database can store.
fn clipped(text: &str, bytes_max: usize) -> String {
    let end = text.floor_char_boundary(bytes_max);
    let mut clip = text[..end].replace('\0', "\u{fffd}");
    if end < text.len() {
        clip.push('…');
    }
    clip
}

#[cfg(test)]
mod tests {
    use super::clipped;

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        assert_eq!(clipped("aéb", 2), "a…");
        assert_eq!(clipped("aéb", 4), "aéb");
        assert_eq!(clipped("a\0b", 4), "a\u{fffd}b");
    }
}
