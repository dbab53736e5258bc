//! The filters `date` and `datetime`, which format a time.
//!
//! A time is an RFC 3339 text or a number of seconds since 1970. Without a time zone a text is shown in its
//! own offset, a number in UTC. Formats are those of strftime; names of months and days are English. Time
//! zones come from the compiled-in database, so that every node shows the same.

use std::sync::LazyLock;

use jiff::civil::Time;
use jiff::fmt::strtime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};
use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{Error, State, Value};

use super::{FilterArguments, defined, refused};

const FORMAT_BYTES_MAX: usize = 100;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// `{{ moment|date }}`, `{{ moment|date("%d.%m.%Y", "Europe/Rome") }}`.
pub(super) fn date(state: &State, value: Value, given: Rest<ValueOrKwargs>) -> Result<String, Error> {
    show(state, &value, given, "%Y-%m-%d")
}

/// As `date`, with the time of the day.
pub(super) fn datetime(state: &State, value: Value, given: Rest<ValueOrKwargs>) -> Result<String, Error> {
    show(state, &value, given, "%Y-%m-%d %H:%M")
}

fn show(state: &State, value: &Value, given: Rest<ValueOrKwargs>, default: &str) -> Result<String, Error> {
    let mut arguments = FilterArguments::read(state, given, ["format", "tz"])?;
    let (format, zone) = (arguments.text(0)?, arguments.text(1)?);
    let mut moment = moment(state, value)?;
    if let Some(name) = zone {
        let zone = ZONES.get(&name);
        let zone = zone
            .map_err(|_| refused(format!("there is no time zone \"{name}\": write it like Europe/Rome")))?;
        moment = moment.with_time_zone(zone);
    }
    let format = format.as_deref().unwrap_or(default);
    let shown = if format.len() <= FORMAT_BYTES_MAX { strtime::format(format, &moment).ok() } else { None };
    shown.ok_or_else(|| {
        refused(format!("the date format \"{format}\" cannot be used: write it like %Y-%m-%d"))
    })
}

fn moment(state: &State, value: &Value) -> Result<Zoned, Error> {
    let bad = || refused("a date must be an RFC 3339 text like 2024-05-01T09:30:00Z, or seconds since 1970");
    if value.is_number() {
        let seconds = i64::try_from(value.clone()).map_err(|_| bad())?;
        return Ok(Timestamp::from_second(seconds).map_err(|_| bad())?.to_zoned(TimeZone::UTC));
    }
    defined(state, value)?;
    let pieces = Pieces::parse(value.as_str().ok_or_else(bad)?).map_err(|_| bad())?;
    let offset = pieces.to_numeric_offset().unwrap_or(Offset::UTC);
    let civil = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
    civil.to_zoned(TimeZone::fixed(offset)).map_err(|_| bad())
}
