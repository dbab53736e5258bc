//! Time as Postway stores it: UTC milliseconds in 64 bits.

pub mod spoken_time;

use std::{fmt, str::FromStr, time::Duration};

use jiff::{
    SignedDuration,
    civil::{self, DateTime},
    fmt::{rfc2822::DateTimeParser, temporal::Pieces},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time, in milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// The source of time. The binary has the real clock; tests and the simulation have their own.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Time;
}

impl Time {
    /// The earliest and latest times that RFC 3339 can write (years 0001 to 9999).
    const RANGE_MS: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

    /// The time `ms` milliseconds after the epoch, clamped to the range of RFC 3339.
    pub fn from_millis(ms: i64) -> Self {
        Self(ms.clamp(*Self::RANGE_MS.start(), *Self::RANGE_MS.end()))
    }

    /// Milliseconds since the epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch.
    pub fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The time `by` later.
    pub fn plus(self, by: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The time `by` earlier.
    pub fn minus(self, by: Duration) -> Self {
        Self::from_millis(self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The time since `earlier`; zero if the clock went backwards.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).max(0) as u64)
    }
}

/// `jiff::Timestamp` ends one day before the last day that RFC 3339 can write, which people use for "never".
/// Times beyond it are counted from here, as dates without a zone.
const EPOCH: DateTime = civil::datetime(1970, 1, 1, 0, 0, 0, 0);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(at) = jiff::Timestamp::from_millisecond(self.0) {
            return write!(f, "{at:.3}");
        }
        match EPOCH.checked_add(SignedDuration::from_millis(self.0)) {
            Ok(at) => write!(f, "{at:.3}Z"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

/// The text is neither an RFC 3339 time nor Unix seconds.
#[derive(Debug, thiserror::Error)]
#[error("not a time: write RFC 3339 such as 2030-01-31T09:00:00Z, or Unix seconds, up to the year 9999")]
pub struct TimeError;

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        if let Ok(seconds) = text.parse::<i64>() {
            return Self::from_seconds(seconds);
        }
        match text.parse::<jiff::Timestamp>() {
            Ok(at) => Self::in_range(at.as_millisecond()),
            Err(_) => last_day(text).ok_or(TimeError).and_then(Self::in_range),
        }
    }
}

/// The milliseconds of a time beyond the range of `jiff::Timestamp`.
fn last_day(text: &str) -> Option<i64> {
    let pieces = Pieces::parse(text).ok()?;
    let offset = pieces.to_numeric_offset()?;
    let at = pieces.date().to_datetime(pieces.time()?);
    let local = i64::try_from(at.duration_since(EPOCH).as_millis()).ok()?;
    Some(local - i64::from(offset.seconds()) * 1_000)
}

impl Time {
    /// Parses a date as mails write it (RFC 2822), such as `Thu, 31 Jan 2030 09:00:00 +0100`. A day of the week
    /// that is wrong is passed over.
    pub fn from_rfc2822(text: &str) -> Result<Self, TimeError> {
        static PARSER: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
        PARSER.parse_timestamp(text).map_err(|_| TimeError).and_then(|at| Self::in_range(at.as_millisecond()))
    }

    fn from_seconds(seconds: i64) -> Result<Self, TimeError> {
        seconds.checked_mul(1000).ok_or(TimeError).and_then(Self::in_range)
    }

    fn in_range(ms: i64) -> Result<Self, TimeError> {
        if Self::RANGE_MS.contains(&ms) { Ok(Self(ms)) } else { Err(TimeError) }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeVisitor;

        impl serde::de::Visitor<'_> for TimeVisitor {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time: RFC 3339 text or Unix seconds")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Time, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Time, E> {
                Time::from_seconds(seconds).map_err(E::custom)
            }

            fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Time, E> {
                self.visit_i64(i64::try_from(seconds).map_err(|_| E::custom(TimeError))?)
            }

            fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Time, E> {
                self.visit_i64(seconds as i64)
            }
        }

        deserializer.deserialize_any(TimeVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3339_and_unix_seconds_name_the_same_moment() {
        let text: Time = serde_json::from_str("\"2024-01-01T00:00:00Z\"").unwrap();
        let seconds: Time = serde_json::from_str("1704067200").unwrap();
        assert_eq!(text, seconds);
        assert_eq!(text.to_string(), "2024-01-01T00:00:00.000Z");
    }

    #[test]
    fn the_date_of_a_mail_is_a_time() {
        for text in
            ["Fri, 14 Oct 2011 23:10:10 +0000", "14 Oct 2011 19:10:10 -0400", "Mon, 14 Oct 2011 23:10:10 GMT"]
        {
            assert_eq!(Time::from_rfc2822(text).ok(), "2011-10-14T23:10:10Z".parse().ok(), "{text}");
        }
        for text in ["", "tomorrow", "2011-10-14T23:10:10Z", "14 Oct 11 99:10"] {
            assert!(Time::from_rfc2822(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_out_of_range_is_refused() {
        assert!(serde_json::from_str::<Time>("99999999999999").is_err());
        assert!("yesterday".parse::<Time>().is_err());
        for beyond in ["9999-12-31T23:59:59-01:00", "+010000-01-01T00:00:00Z", "0000-12-31T23:59:59Z"] {
            assert!(beyond.parse::<Time>().is_err(), "{beyond}");
        }
    }

    #[test]
    fn the_last_moment_that_can_be_written_is_a_time() {
        for (text, shown) in [
            ("9999-12-30T22:00:00Z", "9999-12-30T22:00:00.000Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999Z"),
            ("9999-12-31T23:59:59+02:00", "9999-12-31T21:59:59.000Z"),
            ("253402300799", "9999-12-31T23:59:59.000Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ] {
            let time: Time = text.parse().unwrap();
            assert_eq!(time.to_string(), shown, "{text}");
            assert_eq!(shown.parse::<Time>().unwrap(), time);
        }
        for edge in [Time::RANGE_MS.start(), Time::RANGE_MS.end()] {
            let time = Time::from_millis(*edge);
            assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
        }
    }
}
