//! Times in Resend's formats.
//!
//! RFC 3339 and words such as `in 5 minutes` are left to the intake: it recognises a repeated request by the
//! text, not by the time it means. A time without a zone, which is UTC, is turned into RFC 3339 here.

use std::borrow::Cow;

use postway_domain::{
    Time,
    spoken_time::{SPOKEN_FORMS, spoken_time},
};

use crate::http::error::FieldError;

/// The time in a form that the intake reads.
pub(super) fn with_zone(said: &str) -> Cow<'_, str> {
    match has_no_zone(said) {
        true => Cow::Owned(format!("{}Z", said.trim())),
        false => Cow::Borrowed(said),
    }
}

/// The time that a text means at `now`.
pub(super) fn parse_time(said: &str, now: Time) -> Result<Time, FieldError> {
    let refused =
        |error| FieldError::new("scheduled_at", format!("{error}, or words such as {SPOKEN_FORMS}"));
    with_zone(said).parse().or_else(|error| spoken_time(said, now).ok_or_else(|| refused(error)))
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
            assert_eq!(with_zone(said), expected);
            assert!(with_zone(said).parse::<Time>().is_ok(), "{said}");
        }
    }

    #[test]
    fn words_are_times_too_and_others_are_told_the_forms() {
        let now = NOW.parse().unwrap();
        assert_eq!(parse_time("tomorrow at 9am", now).unwrap().to_string(), "2026-02-01T09:00:00.000Z");
        assert_eq!(parse_time("2026-02-01T09:00:00", now).unwrap().to_string(), "2026-02-01T09:00:00.000Z");
        let fault = parse_time("in a while", now).unwrap_err();
        assert!(fault.field == "scheduled_at" && fault.message.contains("`tomorrow at 9am`"), "{fault:?}");
    }
}
