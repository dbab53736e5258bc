//! One call: a POST, what came of it, and how the delivery log tells of it.
//!
//! The log has what was sent and what was answered, both shortened. It never has headers or URLs, where credentials are.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::{Clock, Time};
use postway_net::http::{Answer, Auth, HttpClient, HttpError, SendRequest};
use postway_store::record;
use tokio::time::Instant;
use url::Url;

use crate::crash::crash_point;

/// How much of an answer is read.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How much of a request or an answer the log keeps.
pub(crate) const LOGGED_BYTES_MAX: usize = 4 * 1024;
/// The same of an answer that many notifications have in common.
pub(crate) const LOGGED_SHARED_BYTES_MAX: usize = 512;
/// How this program names itself.
const USER_AGENT: &str = concat!("Postway/", env!("CARGO_PKG_VERSION"));

/// What came of a call.
pub(crate) struct Called {
    /// When it began.
    pub at: Time,
    /// How long it took.
    pub latency: Duration,
    /// The answer, or why there is none.
    pub heard: Result<Answer, HttpError>,
}

/// Posts JSON, once, within this time.
pub(crate) async fn post(
    http: &HttpClient,
    clock: &dyn Clock,
    (url, auth): (&Url, &Auth),
    mut headers: Vec<(String, String)>,
    body: Bytes,
    timeout: Duration,
) -> Called {
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
    let heard = http.send(&request).await;
    crash_point("notify_after_answer");
    let latency = started.elapsed();
    metrics::histogram!("postway_notification_seconds").record(latency.as_secs_f64());
    Called { at, latency, heard }
}

impl Called {
    /// The status, if an answer came.
    pub(crate) fn status(&self) -> Option<u16> {
        self.heard.as_ref().ok().map(|answer| answer.status)
    }

    /// How long the subscriber asked to wait.
    pub(crate) fn asked(&self) -> Option<Duration> {
        self.heard.as_ref().ok().and_then(Answer::retry_after)
    }

    /// How long it asked to be left alone altogether: too many calls, or not at work.
    pub(crate) fn asked_for_quiet(&self) -> Option<Duration> {
        self.asked().filter(|_| matches!(self.status(), Some(429 | 503)))
    }

    /// As the log keeps it, with at most this much of the answer.
    pub(crate) fn logged(&self, request: &str, answer_bytes_max: usize) -> record::Call {
        let answer = match &self.heard {
            Ok(answer) => clipped(&String::from_utf8_lossy(&answer.body), answer_bytes_max),
            Err(error) => clipped(&error.to_string(), answer_bytes_max),
        };
        record::Call {
            at: self.at,
            latency_ms: i64::try_from(self.latency.as_millis()).unwrap_or(i64::MAX),
            status: self.status(),
            request: clipped(request, LOGGED_BYTES_MAX),
            answer,
        }
    }
}

/// A call that could not even be made.
pub(crate) fn unmade(at: Time, reason: &str) -> record::Call {
    record::Call { at, latency_ms: 0, status: None, request: String::new(), answer: reason.to_owned() }
}

/// The beginning of a text, as every database can keep it.
fn clipped(text: &str, bytes_max: usize) -> String {
    let end = text.floor_char_boundary(bytes_max);
    let mut kept = text[..end].replace('\0', "\u{fffd}");
    if end < text.len() {
        kept.push('…');
    }
    kept
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
