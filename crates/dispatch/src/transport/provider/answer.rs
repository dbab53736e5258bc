//! An answer of a provider, and the pause that it asks for.

use std::time::Duration;

use postway_domain::Time;
use postway_net::http::retry_after;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::transport::api_call::CallAnswer;

/// The longest pause that is granted; after it one message is sent as a probe.
const PAUSE_MAX: Duration = Duration::from_secs(5 * 60);
/// The headers with what is left of a rate window, and with its end.
const RATE_HEADERS: [(&str, &str); 3] = [
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
    ("x-rate-limit-remaining", "x-rate-limit-reset"),
];
/// From this number on, a window's end is a time in seconds and not a number of seconds from now.
const EPOCH_S_MIN: u64 = 1_000_000_000;
/// From this number on, a window's end is a time in milliseconds.
const EPOCH_MS_MIN: u64 = 1_000_000_000_000;

/// An answer of a provider.
#[derive(Debug)]
pub(super) struct ProviderAnswer {
    pub status: u16,
    pub headers: HeaderMap,
    /// The document, if the body is complete JSON.
    pub document: Option<Value>,
}

impl From<CallAnswer> for ProviderAnswer {
    fn from(answer: CallAnswer) -> Self {
        Self {
            status: answer.status,
            document: serde_json::from_slice(&answer.body).ok(),
            headers: answer.headers,
        }
    }
}

impl ProviderAnswer {
    /// True for 2xx.
    pub fn is_success(&self) -> bool {
        self.status / 100 == 2
    }

    /// A text of the document by its JSON pointer, such as `/error/code`.
    pub fn text_at(&self, pointer: &str) -> Option<&str> {
        self.document.as_ref()?.pointer(pointer)?.as_str()
    }

    /// A number of the document.
    pub fn number_at(&self, pointer: &str) -> Option<i64> {
        self.document.as_ref()?.pointer(pointer)?.as_i64()
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    /// The pause that the provider asks for, by `Retry-After` or by a rate window that is used up.
    pub fn pause(&self, now: Time) -> Option<Duration> {
        let asked = retry_after(&self.headers).or_else(|| {
            RATE_HEADERS.iter().find_map(|(left, reset)| {
                let is_spent = self.header(left)?.parse::<u64>().ok()? == 0;
                let at: u64 = self.header(reset)?.parse().ok()?;
                is_spent.then(|| time_until(at, now))
            })
        });
        asked.map(|pause| pause.min(PAUSE_MAX)).filter(|pause| !pause.is_zero())
    }
}

/// The time until `at`, which providers write as seconds from now, or as a time in seconds or milliseconds.
fn time_until(at: u64, now: Time) -> Duration {
    let now_ms = u64::try_from(now.as_millis()).unwrap_or_default();
    match at {
        EPOCH_MS_MIN.. => Duration::from_millis(at.saturating_sub(now_ms)),
        EPOCH_S_MIN.. => Duration::from_millis(at.saturating_mul(1_000).saturating_sub(now_ms)),
        seconds => Duration::from_secs(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(headers: &[(&'static str, &str)]) -> Option<u64> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let answer = ProviderAnswer::from(CallAnswer { status: 200, headers: map, body: Vec::new() });
        answer.pause(Time::from_millis(1_772_368_245_000)).map(|pause| pause.as_secs())
    }

    #[test]
    fn a_pause_is_asked_for_in_seconds_as_a_time_or_by_a_spent_window() {
        assert_eq!(pause(&[("retry-after", "7")]), Some(7));
        assert_eq!(pause(&[("retry-after", "99999")]), Some(300), "no longer than five minutes");
        assert_eq!(pause(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1772368255")]), Some(10));
        assert_eq!(
            pause(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1772368255000")]),
            Some(10)
        );
        assert_eq!(pause(&[("ratelimit-remaining", "0"), ("ratelimit-reset", "1")]), Some(1));
        assert_eq!(pause(&[("ratelimit-remaining", "1"), ("ratelimit-reset", "1")]), None);
        assert_eq!(
            pause(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1772368000")]),
            None,
            "over"
        );
        assert_eq!(pause(&[("retry-after", "soon")]), None);
        assert_eq!(pause(&[]), None);
    }
}
