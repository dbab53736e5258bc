//! Times as Resend's users write them.
//!
//! RFC 3339 is the intake's to read. Two forms of theirs are made into it here: a distance, `in 5 minutes`, and a time
//! without a zone, which is one of UTC. Other words, such as `tomorrow at 9am`, are not understood: whose morning it is, is
//! not known here. What is no time in either form is left as it is, for the intake to refuse.

use std::{borrow::Cow, time::Duration};

use postway_domain::Time;

use crate::error::FieldError;

/// What a distance of `in an hour` counts.
const ONE: [&str; 3] = ["a", "an", "one"];

/// The time as the intake reads it. A distance counts from `now`; where there is none, as in a request that may be repeated
/// under a key, it would be another time at each try, and so another email.
pub(super) fn exact(said: &str, now: Option<Time>) -> Result<Cow<'_, str>, FieldError> {
    match (distance(said), now) {
        (Some(distance), Some(now)) => Ok(Cow::Owned(now.plus(distance).to_string())),
        (Some(_), None) => {
            let message = "with an Idempotency-Key, give the time itself, such as 2030-01-31T09:00:00Z: this would be \
                           another one at each try";
            Err(FieldError::new("scheduled_at", message))
        }
        (None, _) if has_no_zone(said) => Ok(Cow::Owned(format!("{}Z", said.trim()))),
        (None, _) => Ok(Cow::Borrowed(said)),
    }
}

/// `in 5 minutes`.
fn distance(said: &str) -> Option<Duration> {
    let said = said.to_ascii_lowercase();
    let mut words = said.split_whitespace();
    let (Some("in"), Some(count), Some(unit), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return None;
    };
    let count = if ONE.contains(&count) { 1 } else { u64::from(count.parse::<u32>().ok()?) };
    let unit_s = match unit.strip_suffix('s').unwrap_or(unit) {
        "second" | "sec" => 1,
        "minute" | "min" => 60,
        "hour" | "hr" => 3_600,
        "day" => 86_400,
        "week" => 604_800,
        _ => return None,
    };
    Some(Duration::from_secs(count * unit_s))
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

    fn at(said: &str) -> String {
        let now: Time = "2026-01-31T12:00:00Z".parse().unwrap();
        exact(said, Some(now)).unwrap().into_owned()
    }

    #[test]
    fn a_distance_counts_from_now() {
        for (said, exact) in [
            ("in 1 min", "2026-01-31T12:01:00.000Z"),
            ("In 5 minutes", "2026-01-31T12:05:00.000Z"),
            (" in  90 seconds ", "2026-01-31T12:01:30.000Z"),
            ("in an hour", "2026-01-31T13:00:00.000Z"),
            ("in 2 hrs", "2026-01-31T14:00:00.000Z"),
            ("in 3 days", "2026-02-03T12:00:00.000Z"),
            ("in one week", "2026-02-07T12:00:00.000Z"),
        ] {
            assert_eq!(at(said), exact, "{said}");
        }
        let fault = exact("in 1 min", None).unwrap_err();
        assert!(fault.field == "scheduled_at" && fault.message.contains("Idempotency-Key"), "{fault:?}");
    }

    #[test]
    fn a_time_without_a_zone_is_one_of_utc() {
        for (said, expected) in [
            ("2026-02-01T09:00:00", "2026-02-01T09:00:00Z"),
            ("2026-02-01 09:00:00.123456", "2026-02-01 09:00:00.123456Z"),
            ("2026-02-01T09:00:00+01:00", "2026-02-01T09:00:00+01:00"),
            ("2026-02-01T09:00:00Z", "2026-02-01T09:00:00Z"),
        ] {
            assert_eq!(at(said), expected);
            assert!(at(said).parse::<Time>().is_ok(), "{said}");
        }
    }

    #[test]
    fn other_words_are_left_to_be_refused() {
        for said in
            ["tomorrow at 9am", "in a while", "in minutes", "in -1 min", "in 1 min or so", "2026-02-01", ""]
        {
            assert_eq!(at(said), said);
            assert!(said.parse::<Time>().is_err(), "{said}");
        }
    }
}
