//! Times in words: `in 5 minutes`, `tomorrow at 9am`, `next monday at 10:00 UTC+2`, `friday at 3pm ET`.
//!
//! A small English grammar. A distance counts from now. A day and a time of day are in the named zone, or in
//! UTC if none is named. An ambiguous phrase has one meaning here, which the function that reads it
//! documents. A phrase outside the grammar is refused; nothing is guessed.

use std::time::Duration;

use jiff::{
    SignedDuration, ToSpan,
    civil::{self, Date, DateTime, Weekday},
};

use crate::time::Time;

/// The forms that are understood, for error messages.
pub const SPOKEN_FORMS: &str = "`in 5 minutes`, `tomorrow at 9am`, `today at 17:30`, `friday at 3pm ET` or \
                                `next monday at 10:00 UTC+2`, in UTC where no zone is named";

/// Longer texts are refused unread.
const WORDS_BYTES_MAX: usize = 100;
/// The longest distance in days; a longer one counts as too far ahead, not as unreadable.
const DAYS_MAX: u64 = 366_000;
const EPOCH: DateTime = civil::datetime(1970, 1, 1, 0, 0, 0, 0);
const HOUR: i32 = 60;

/// The time that `words` name, seen from `now`; `None` if they are not understood.
pub fn spoken_time(words: &str, now: Time) -> Option<Time> {
    if words.len() > WORDS_BYTES_MAX {
        return None;
    }
    let lower = words.to_ascii_lowercase().replace(',', " ");
    let words: Vec<&str> = lower.split_whitespace().collect();
    match words.as_slice() {
        ["now"] => Some(now),
        ["in", distance @ ..] | [distance @ .., "from", "now"] => Some(now.plus(read_distance(distance)?)),
        words => SpokenMoment::read(words)?.seen_from(now),
    }
}

/// `5 minutes`, `an hour`, `1 hour and 30 minutes`.
fn read_distance(words: &[&str]) -> Option<Duration> {
    let mut total_s = 0_u64;
    let parts: Vec<&str> = words.iter().copied().filter(|word| *word != "and").collect();
    let (pairs, []) = parts.as_chunks::<2>() else { return None };
    if pairs.is_empty() {
        return None;
    }
    for [count, unit] in pairs {
        let count = match *count {
            "a" | "an" | "one" => 1,
            number => u64::from(number.parse::<u32>().ok()?),
        };
        let unit_s = match unit.strip_suffix('s').unwrap_or(unit) {
            "second" | "sec" => 1,
            "minute" | "min" => 60,
            "hour" | "hr" => 3_600,
            "day" => 86_400,
            "week" => 604_800,
            _ => return None,
        };
        total_s = total_s.saturating_add(count.saturating_mul(unit_s));
    }
    Some(Duration::from_secs(total_s.min(DAYS_MAX * 86_400)))
}

/// A day, a time of day and a zone, in any order but that the zone follows the time.
struct SpokenMoment {
    day: Option<SpokenDay>,
    clock: civil::Time,
    zone: SpokenZone,
}

#[derive(Clone, Copy)]
enum SpokenDay {
    /// This number of days from today.
    Ahead(i32),
    /// The first such weekday whose time of day has not passed.
    Coming(Weekday),
    /// The weekday in the next week; weeks begin with Monday.
    OfNextWeek(Weekday),
    At(Date),
}

impl SpokenMoment {
    fn read(mut words: &[&str]) -> Option<Self> {
        let (mut day, mut clock, mut zone) = (None, None, None);
        while let Some((first, rest)) = words.split_first() {
            if matches!(*first, "at" | "on" | "@") {
                words = rest;
            } else if let (None, Some((found, length))) = (day, read_day(words)) {
                (day, words) = (Some(found), &words[length..]);
            } else if let (None, Some((found, length))) = (clock, read_clock(words)) {
                (clock, words) = (Some(found), &words[length..]);
            } else if let (Some(_), None, Some(found)) = (clock, zone, SpokenZone::read(first)) {
                (zone, words) = (Some(found), rest);
            } else {
                return None;
            }
        }
        Some(Self { day, clock: clock?, zone: zone.unwrap_or(SpokenZone::Fixed(0)) })
    }

    /// A time without a day means its next occurrence, and so does a weekday. `today` with a time that has
    /// passed means that past time.
    fn seen_from(&self, now: Time) -> Option<Time> {
        let now = EPOCH.checked_add(SignedDuration::from_millis(now.as_millis())).ok()?;
        let here = self.zone.local(now)?;
        let today = here.date();
        let days_to = |weekday: Weekday| i32::from(today.weekday().until(weekday));
        let has_passed = self.clock <= here.time();
        let date = match self.day {
            None => today.checked_add(i32::from(has_passed).days()),
            Some(SpokenDay::Ahead(days)) => today.checked_add(days.days()),
            Some(SpokenDay::Coming(weekday)) if days_to(weekday) == 0 && has_passed => {
                today.checked_add(7.days())
            }
            Some(SpokenDay::Coming(weekday)) => today.checked_add(days_to(weekday).days()),
            Some(SpokenDay::OfNextWeek(weekday)) => {
                let from_monday = i32::from(weekday.to_monday_zero_offset());
                let to_monday = 7 - i32::from(today.weekday().to_monday_zero_offset());
                today.checked_add((to_monday + from_monday).days())
            }
            Some(SpokenDay::At(date)) => Ok(date),
        };
        let local = date.ok()?.to_datetime(self.clock);
        let utc = local.checked_sub(SignedDuration::from_mins(self.zone.offset_min(local).into())).ok()?;
        let since = EPOCH.duration_until(utc);
        Some(Time::from_millis(i64::try_from(since.as_millis()).ok()?))
    }
}

/// A day, and how many words it took.
fn read_day(words: &[&str]) -> Option<(SpokenDay, usize)> {
    let found = match words {
        ["today", ..] => (SpokenDay::Ahead(0), 1),
        ["tomorrow", ..] => (SpokenDay::Ahead(1), 1),
        ["next", day, ..] => (SpokenDay::OfNextWeek(read_weekday(day)?), 2),
        ["this", day, ..] => (SpokenDay::Coming(read_weekday(day)?), 2),
        [day, ..] => match read_weekday(day) {
            Some(weekday) => (SpokenDay::Coming(weekday), 1),
            None if day.len() == 10 => (SpokenDay::At(day.parse().ok()?), 1),
            None => return None,
        },
        [] => return None,
    };
    Some(found)
}

fn read_weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" | "mon" => Weekday::Monday,
        "tuesday" | "tue" => Weekday::Tuesday,
        "wednesday" | "wed" => Weekday::Wednesday,
        "thursday" | "thu" => Weekday::Thursday,
        "friday" | "fri" => Weekday::Friday,
        "saturday" | "sat" => Weekday::Saturday,
        "sunday" | "sun" => Weekday::Sunday,
        _ => return None,
    })
}

/// `9am`, `9 am`, `9:30pm`, `17:30`, `noon`: a time of day, and how many words it took.
fn read_clock(words: &[&str]) -> Option<(civil::Time, usize)> {
    let (first, rest) = words.split_first()?;
    match *first {
        "noon" => return Some((civil::time(12, 0, 0, 0), 1)),
        "midnight" => return Some((civil::time(0, 0, 0, 0), 1)),
        _ => {}
    }
    let half = |word: &str| matches!(word, "am" | "pm" | "a.m." | "p.m.");
    let attached = ["am", "pm"].into_iter().find(|half| first.ends_with(half));
    let (digits, half, length) = match (attached, rest.first()) {
        (Some(half), _) => (&first[..first.len() - 2], Some(half), 1),
        (None, Some(word)) if half(word) => (*first, Some(*word), 2),
        (None, _) => (*first, None, 1),
    };
    let mut parts = digits.split(':').map(|part| match part.len() {
        1 | 2 if part.bytes().all(|byte| byte.is_ascii_digit()) => part.parse::<i8>().ok(),
        _ => None,
    });
    let hour = parts.next()??;
    let minute = parts.next();
    let second = parts.next();
    // A number alone is not a time.
    if parts.next().is_some() || (half.is_none() && minute.is_none()) {
        return None;
    }
    let hour = match half {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(half) => hour % 12 + if half.starts_with('p') { 12 } else { 0 },
    };
    let clock = civil::Time::new(hour, minute.unwrap_or(Some(0))?, second.unwrap_or(Some(0))?, 0).ok()?;
    Some((clock, length))
}

/// The distance of a local time from UTC.
#[derive(Clone, Copy)]
enum SpokenZone {
    /// A fixed number of minutes.
    Fixed(i32),
    /// This number of minutes in winter, and an hour more during daylight saving time in the United States.
    American(i32),
}

impl SpokenZone {
    fn read(word: &str) -> Option<Self> {
        Some(match word {
            "utc" | "gmt" | "z" | "wet" => Self::Fixed(0),
            "et" => Self::American(-5 * HOUR),
            "ct" => Self::American(-6 * HOUR),
            "mt" => Self::American(-7 * HOUR),
            "pt" => Self::American(-8 * HOUR),
            "est" => Self::Fixed(-5 * HOUR),
            "edt" => Self::Fixed(-4 * HOUR),
            "cst" => Self::Fixed(-6 * HOUR),
            "cdt" => Self::Fixed(-5 * HOUR),
            "mst" => Self::Fixed(-7 * HOUR),
            "mdt" => Self::Fixed(-6 * HOUR),
            "pst" => Self::Fixed(-8 * HOUR),
            "pdt" => Self::Fixed(-7 * HOUR),
            "cet" | "bst" => Self::Fixed(HOUR),
            "cest" | "eet" => Self::Fixed(2 * HOUR),
            "eest" => Self::Fixed(3 * HOUR),
            "jst" => Self::Fixed(9 * HOUR),
            _ => {
                let offset = word.strip_prefix("utc").or_else(|| word.strip_prefix("gmt")).unwrap_or(word);
                Self::Fixed(read_offset(offset)?)
            }
        })
    }

    fn offset_min(self, local: DateTime) -> i32 {
        match self {
            Self::Fixed(minutes) => minutes,
            Self::American(minutes) => minutes + if is_american_summer(local) { HOUR } else { 0 },
        }
    }

    /// The local time in this zone.
    fn local(self, utc: DateTime) -> Option<DateTime> {
        let shifted = |minutes: i32| utc.checked_add(SignedDuration::from_mins(minutes.into())).ok();
        let standard = match self {
            Self::Fixed(minutes) | Self::American(minutes) => shifted(minutes)?,
        };
        shifted(self.offset_min(standard))
    }
}

/// From two o'clock on the second Sunday of March to two o'clock on the first of November.
fn is_american_summer(local: DateTime) -> bool {
    let sunday = |month: i8, nth: i8| {
        let first = Date::new(local.year(), month, 1).ok()?;
        Some(first.nth_weekday_of_month(nth, Weekday::Sunday).ok()?.at(2, 0, 0, 0))
    };
    let (begins, ends) = (sunday(3, 2), sunday(11, 1));
    begins.zip(ends).is_some_and(|(begins, ends)| begins <= local && local < ends)
}

/// `+2`, `-05:00`, `+0530`: minutes.
fn read_offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "0"),
    };
    let number = |text: &str, max: i32| {
        let is_number = matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| is_number && *number <= max)
    };
    Some(sign * (number(hours, 14)? * HOUR + number(minutes, 59)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Saturday.
    const NOW: &str = "2026-01-31T12:00:00Z";

    #[track_caller]
    fn means(words: &str, now: &str, time: &str) {
        let said = spoken_time(words, now.parse().unwrap()).map(|time| time.to_string());
        assert_eq!(said.as_deref(), Some(time), "{words}");
    }

    #[test]
    fn a_distance_counts_from_now() {
        for (words, time) in [
            ("now", "2026-01-31T12:00:00.000Z"),
            ("in 1 min", "2026-01-31T12:01:00.000Z"),
            ("In 5 minutes", "2026-01-31T12:05:00.000Z"),
            (" in  90 seconds ", "2026-01-31T12:01:30.000Z"),
            ("in an hour", "2026-01-31T13:00:00.000Z"),
            ("in 2 hrs", "2026-01-31T14:00:00.000Z"),
            ("in 3 days", "2026-02-03T12:00:00.000Z"),
            ("in one week", "2026-02-07T12:00:00.000Z"),
            ("in 1 hour and 30 minutes", "2026-01-31T13:30:00.000Z"),
            ("2 days from now", "2026-02-02T12:00:00.000Z"),
        ] {
            means(words, NOW, time);
        }
    }

    #[test]
    fn a_day_and_a_time_of_day_are_of_utc_unless_a_zone_is_named() {
        for (words, time) in [
            ("tomorrow at 9am", "2026-02-01T09:00:00.000Z"),
            ("Tomorrow at 9:30 PM", "2026-02-01T21:30:00.000Z"),
            ("today at 17:30", "2026-01-31T17:30:00.000Z"),
            ("today at 9am", "2026-01-31T09:00:00.000Z"),
            ("9am tomorrow", "2026-02-01T09:00:00.000Z"),
            ("at 9am", "2026-02-01T09:00:00.000Z"),
            ("17:30", "2026-01-31T17:30:00.000Z"),
            ("tomorrow at noon", "2026-02-01T12:00:00.000Z"),
            ("tomorrow at 12am", "2026-02-01T00:00:00.000Z"),
            ("2026-03-01 at 9am", "2026-03-01T09:00:00.000Z"),
            ("tomorrow at 9am UTC+2", "2026-02-01T07:00:00.000Z"),
            ("tomorrow at 9am +05:30", "2026-02-01T03:30:00.000Z"),
            ("tomorrow at 9am GMT-0330", "2026-02-01T12:30:00.000Z"),
            ("tomorrow at 9am CET", "2026-02-01T08:00:00.000Z"),
        ] {
            means(words, NOW, time);
        }
    }

    #[test]
    fn a_day_of_the_week_is_the_coming_one_and_next_is_of_the_week_after() {
        for (words, now, time) in [
            ("friday at 3pm", NOW, "2026-02-06T15:00:00.000Z"),
            ("saturday at 3pm", NOW, "2026-01-31T15:00:00.000Z"),
            ("saturday at 9am", NOW, "2026-02-07T09:00:00.000Z"),
            ("next monday at 10:00", NOW, "2026-02-02T10:00:00.000Z"),
            ("next saturday at 10:00", NOW, "2026-02-07T10:00:00.000Z"),
            ("next sunday at 10:00", NOW, "2026-02-08T10:00:00.000Z"),
            ("next friday at 10:00", "2026-02-04T12:00:00Z", "2026-02-13T10:00:00.000Z"),
            ("next monday at 10:00", "2026-02-01T12:00:00Z", "2026-02-02T10:00:00.000Z"),
            ("on friday, at 10:00", "2026-02-04T12:00:00Z", "2026-02-06T10:00:00.000Z"),
        ] {
            means(words, now, time);
        }
    }

    #[test]
    fn american_zones_have_their_summer() {
        for (words, now, time) in [
            ("friday at 3pm ET", NOW, "2026-02-06T20:00:00.000Z"),
            ("friday at 3pm EST", NOW, "2026-02-06T20:00:00.000Z"),
            ("friday at 3pm ET", "2026-07-01T12:00:00Z", "2026-07-03T19:00:00.000Z"),
            ("friday at 3pm EST", "2026-07-01T12:00:00Z", "2026-07-03T20:00:00.000Z"),
            ("friday at 3pm PT", "2026-07-01T12:00:00Z", "2026-07-03T22:00:00.000Z"),
            ("today at 1am ET", "2026-03-08T12:00:00Z", "2026-03-08T06:00:00.000Z"),
            ("today at 3am ET", "2026-03-08T12:00:00Z", "2026-03-08T07:00:00.000Z"),
            // It is still the day before in New York.
            ("today at 11pm ET", "2026-02-01T03:00:00Z", "2026-02-01T04:00:00.000Z"),
        ] {
            means(words, now, time);
        }
    }

    #[test]
    fn what_the_grammar_does_not_have_is_no_time() {
        for words in [
            "",
            "tomorrow",
            "friday",
            "in a while",
            "in minutes",
            "in -1 min",
            "in 1 min or so",
            "in",
            "2026-02-01",
            "tomorrow at 25:00",
            "tomorrow at 13pm",
            "tomorrow at 9",
            "tomorrow at 9am at 10am",
            "tomorrow at 9am NOWHERE",
            "ET tomorrow at 9am",
            "tomorrow at 9am +99",
            "tomorrow at é:00",
            "tomorrow at 9am tomorrow",
            "in 18446744073709551615 weeks",
        ] {
            assert_eq!(spoken_time(words, NOW.parse().unwrap()), None, "{words}");
        }
        assert_eq!(spoken_time(&format!("in 1 {}", "m".repeat(200)), NOW.parse().unwrap()), None);
        let far = spoken_time("in 4294967295 weeks", NOW.parse().unwrap()).unwrap();
        assert!(far > "2999-01-01T00:00:00Z".parse().unwrap(), "far ahead, and no overflow");
    }
}
