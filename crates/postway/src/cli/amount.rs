//! Numbers and spans of time as people read them, short enough for a column.

use indicatif::HumanCount;

/// A count, with commas.
pub fn count(number: i64) -> String {
    HumanCount(number.unsigned_abs()).to_string()
}

/// A rate per second.
pub fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate >= 100.0 => format!("{rate:.0}/s"),
        rate if rate >= 10.0 => format!("{rate:.1}/s"),
        rate => format!("{rate:.2}/s"),
    }
}

/// A span of time by its two largest units.
pub fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// A short wait, in milliseconds.
pub fn wait(millis: i64) -> String {
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{:.1} s", millis as f64 / 1_000.0),
        _ => span(millis.unsigned_abs() / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!([0.126, 12.34, 1234.5].map(rate), ["0.13/s", "12.3/s", "1234/s"]);
        assert_eq!([59, 61, 3_661, 90_000].map(span), ["59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]);
        assert_eq!([7, 2_345, 61_000].map(wait), ["7 ms", "2.3 s", "1 min 1 s"]);
    }
}
