//! Reads `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3).
//!
//! A date is relative to the `Date` of the same response, so that only the host's clock counts.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// The longest wait that is accepted.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a response asks to wait, a day at most.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text(RETRY_AFTER)?;
    let wait = match asked.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let at = |date| jiff::fmt::rfc2822::parse(date).ok().map(|at| at.timestamp());
            let seconds = at(asked)?.as_second().saturating_sub(at(text(DATE)?)?.as_second());
            Duration::from_secs(seconds.try_into().unwrap_or(0))
        }
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(retry_after: &'static str, date: Option<&'static str>) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry_after.parse().unwrap());
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        super::retry_after(&headers)
    }

    #[test]
    fn seconds_and_dates_are_read_and_nonsense_is_not() {
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(asked("120", None), Some(Duration::from_secs(120)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:51:37 GMT", date), Some(Duration::from_secs(120)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:00:00 GMT", date), Some(Duration::ZERO));
        assert_eq!(asked("Sun, 06 Nov 1994 08:51:37 GMT", None), None);
        assert_eq!(asked("99999999999", None), Some(RETRY_AFTER_MAX));
        for nonsense in ["", "-5", "soon", "1e9"] {
            assert_eq!(asked(nonsense, date), None, "{nonsense}");
        }
        assert_eq!(super::retry_after(&HeaderMap::new()), None);
    }
}
