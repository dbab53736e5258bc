//! The parameters of lists: `count`, `offset`, dates and filters.
//!
//! Names are read in any case, because SDKs differ, and unknown ones are ignored, as there.

use axum::{extract::Query, http::Uri};
use postway_domain::Time;

use super::error::PostmarkFault;
use crate::http::error::ApiError;

/// The largest page, the default page, and how far a list goes.
const COUNT_MAX: usize = 500;
const COUNT_DEFAULT: usize = 100;
pub(super) const LIST_MAX: usize = 10_000;
/// The longest text to search for.
const TEXT_BYTES_MAX: usize = 1_024;

/// The parameters of a list.
pub(super) struct PostmarkQuery(Vec<(String, String)>);

/// The requested items of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PageWindow {
    pub(super) count: usize,
    pub(super) offset: usize,
}

impl PageWindow {
    /// Selects these items of a list.
    pub(super) fn slice<T>(self, list: impl IntoIterator<Item = T>) -> Vec<T> {
        list.into_iter().skip(self.offset).take(self.count).collect()
    }
}

impl PostmarkQuery {
    pub(super) fn from_uri(uri: &Uri) -> Result<Self, ApiError> {
        if uri.query().is_none() {
            return Ok(Self(Vec::new()));
        }
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| PostmarkFault::Query.error("", format!("the query cannot be read: {error}")))?;
        let wanted = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        Ok(Self(wanted.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect()))
    }

    /// The value of a parameter, named in lower case.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        let found = self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
        match found {
            Some(text) if text.len() > TEXT_BYTES_MAX => {
                Err(PostmarkFault::Query.error(name, format!("must have at most {TEXT_BYTES_MAX} bytes")))
            }
            found => Ok(found),
        }
    }

    /// The parameters with this prefix, without it.
    pub(super) fn beginning<'a>(&'a self, start: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(name, value)| Some((name.strip_prefix(start)?, value.as_str())))
    }

    pub(super) fn window(&self) -> Result<PageWindow, ApiError> {
        let count = self.number("count")?.unwrap_or(COUNT_DEFAULT);
        let offset = self.number("offset")?.unwrap_or(0);
        if !(1..=COUNT_MAX).contains(&count) {
            return Err(
                PostmarkFault::Query.error("count", format!("must be a number from 1 to {COUNT_MAX}"))
            );
        }
        match offset.saturating_add(count) > LIST_MAX {
            true => {
                Err(PostmarkFault::Query
                    .error("offset", format!("and count may be {LIST_MAX} together at most")))
            }
            false => Ok(PageWindow { count, offset }),
        }
    }

    fn number(&self, name: &str) -> Result<Option<usize>, ApiError> {
        let wrong = || PostmarkFault::Query.error(name, "must be a number from 0");
        self.text(name)?.map(|text| text.parse().map_err(|_| wrong())).transpose()
    }

    /// The start time: the beginning of the day if it has no time.
    pub(super) fn since(&self) -> Result<Option<Time>, ApiError> {
        Ok(self.moment("fromdate")?.map(|(at, _)| at))
    }

    /// The end time, exclusive: the end of the day if it has no time.
    pub(super) fn until(&self) -> Result<Option<Time>, ApiError> {
        let end = |(at, is_day): (Time, bool)| {
            Time::from_millis(at.as_millis() + if is_day { 86_400_000 } else { 1_000 })
        };
        Ok(self.moment("todate")?.map(end))
    }

    fn moment(&self, name: &str) -> Result<Option<(Time, bool)>, ApiError> {
        let wrong = || {
            PostmarkFault::Query
                .error(name, "must be a date such as 2030-01-31, or 2030-01-31T09:00:00, in UTC")
        };
        self.text(name)?.map(|text| moment(text).ok_or_else(wrong)).transpose()
    }
}

/// Parses a date, perhaps without leading zeros, perhaps with a time; also returns whether it has no time.
fn moment(text: &str) -> Option<(Time, bool)> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time.trim_end_matches('Z'))),
        None => (text, None),
    };
    let mut numbers = date.splitn(3, '-').map(|part| part.parse::<u16>().ok());
    let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let clock = match time {
        Some(time) if time.len() == 5 => format!("{time}:00"),
        Some(time) => time.to_owned(),
        None => "00:00:00".to_owned(),
    };
    let at = format!("{year:04}-{month:02}-{day:02}T{clock}Z").parse().ok()?;
    Some((at, time.is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> PostmarkQuery {
        PostmarkQuery::from_uri(&format!("/x?{query}").parse().unwrap()).ok().unwrap()
    }

    #[test]
    fn names_are_read_in_any_case_and_windows_are_bounded() {
        let some = asked("Count=5&OFFSET=3&fromEmail=a@x&metadata_color=red&empty=");
        assert_eq!(some.window().ok(), Some(PageWindow { count: 5, offset: 3 }));
        assert_eq!(some.text("fromemail").ok().flatten(), Some("a@x"));
        assert_eq!(some.beginning("metadata_").collect::<Vec<_>>(), [("color", "red")]);
        assert!(asked("").window().is_ok() && asked("count=500&offset=9500").window().is_ok());
        for bad in ["count=0", "count=501", "count=-1", "offset=x", "count=500&offset=9501"] {
            assert!(asked(bad).window().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_day_is_whole_and_a_time_is_a_second() {
        let time = |text: &str| text.parse::<Time>().unwrap();
        let some = asked("fromdate=2023-1-5&todate=2023-01-05");
        assert_eq!(some.since().ok().flatten(), Some(time("2023-01-05T00:00:00Z")));
        assert_eq!(some.until().ok().flatten(), Some(time("2023-01-06T00:00:00Z")));
        let exact = asked("fromdate=2023-01-05T10:30&todate=2023-01-05T10:30:07");
        assert_eq!(exact.since().ok().flatten(), Some(time("2023-01-05T10:30:00Z")));
        assert_eq!(exact.until().ok().flatten(), Some(time("2023-01-05T10:30:08Z")));
        for bad in ["yesterday", "2023-13-01", "2023", "2023-01-01T", "-1-1-1"] {
            assert!(asked(&format!("fromdate={bad}")).since().is_err(), "{bad}");
        }
    }
}
