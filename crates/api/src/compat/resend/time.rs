//! Times as Resend's users write them.
//!
//! RFC 3339 and words such as `in 5 minutes` are the intake's to read: it knows a repeat by what was said, and not by the time that
//! was meant. A time without a zone, which is one of UTC, is made into RFC 3339 here.

use std::borrow::Cow;

use postway_domain::{
    Time,
    spoken_time::{SPOKEN_FORMS, spoken_time},
};

use crate::http::error::FieldError;

/// The time as the intake reads it.
pub(super) fn zoned(said: &str) -> Cow<'_, str> {
    match has_no_zone(said) {
        true => Cow::Owned(format!("{}Z", said.trim())),
        false => Cow::Borrowed(said),
    }
}

/// The time that is meant, seen from `now`.
pub(super) fn meant(said: &str, now: Time) -> Result<Time, FieldError> {
    let refused =
        |error| FieldError::new("scheduled_at", format!("{error}, or words such as {SPOKEN_FORMS}"));
    zoned(said).parse().or_else(|error| spoken_time(said, now).ok_or_else(|| refused(error)))
}

/// Whether it is a date and a time of day, with nothing after them.
fn has_no_zone(said: &str) -> bool {
    let said = said.trim();
    let is_date = |date: &str| date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let is_clock = |clock: &str| {
        clock.contains(':') && clock.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'))
    };
    said.split_once(['T', 't', ' '])
        .is_some_and(|(date, clock)| date.len() == 10 && is_date(date) && is_clock(clock))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-31T12:00:00Z";

    #[test]
    fn a_time_without_a_zone_is_one_of_utc() {
        for (said, expected) in [
            ("2026-02-01T09:00:00", "2026-02-01T09:00:00Z"),
            ("2026-02-01 09:00:00.123456", "2026-02-01 09:00:00.123456Z"),
            ("2026-02-01T09:00:00+01:00", "2026-02-01T09:00:00+01:00"),
            ("2026-02-01T09:00:00Z", "2026-02-01T09:00:00Z"),
        ] {
            assert_eq!(zoned(said), expected);
            assert!(zoned(said).parse::<Time>().is_ok(), "{said}");
        }
    }

    #[test]
    fn words_are_times_too_and_others_are_told_the_forms() {
        let now = NOW.parse().unwrap();
        assert_eq!(meant("tomorrow at 9am", now).unwrap().to_string(), "2026-02-01T09:00:00.000Z");
        assert_eq!(meant("2026-02-01T09:00:00", now).unwrap().to_string(), "2026-02-01T09:00:00.000Z");
        let fault = meant("in a while", now).unwrap_err();
        assert!(fault.field == "scheduled_at" && fault.message.contains("`tomorrow at 9am`"), "{fault:?}");
    }
}
