//! Placeholders that a request fills in for each of its recipients, as SendGrid and Mailgun do.
//!
//! All placeholders are looked for at once, in one pass and in bounded memory; what a value says is not looked
//! at again. Values may be longer than their placeholders, so the result has a bound of its own.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// The most placeholders of a mail, and their most bytes together.
const PLACEHOLDERS_MAX: usize = 1_000;
const NAMES_BYTES_MAX: usize = 32 * 1024;

/// Placeholders and their values.
pub(super) struct Placeholders {
    finder: AhoCorasick,
    values: Vec<String>,
}

/// Why placeholders cannot be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceholderFault {
    /// There are too many of them, or they are too long.
    TooMany,
    /// The text would be longer than its bound.
    TooLong,
}

impl Placeholders {
    /// These placeholders, each with its value. Empty ones are passed over.
    pub(super) fn new(
        pairs: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Option<Self>, PlaceholderFault> {
        let (mut names, mut values, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (name, value) in pairs.into_iter().filter(|(name, _)| !name.is_empty()) {
            bytes += name.len();
            if names.len() == PLACEHOLDERS_MAX || bytes > NAMES_BYTES_MAX {
                return Err(PlaceholderFault::TooMany);
            }
            names.push(name);
            values.push(value);
        }
        if names.is_empty() {
            return Ok(None);
        }
        // The longest of those that begin at one place is meant, whatever their order.
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&names)
            .map_err(|_| PlaceholderFault::TooMany)?;
        Ok(Some(Self { finder, values }))
    }

    /// The text with the values in it, at most `bytes_max` bytes.
    pub(super) fn fill<'a>(&self, text: &'a str, bytes_max: usize) -> Result<Cow<'a, str>, PlaceholderFault> {
        let (mut filled, mut done) = (String::new(), 0);
        for found in self.finder.find_iter(text) {
            filled.push_str(&text[done..found.start()]);
            filled.push_str(&self.values[found.pattern().as_usize()]);
            done = found.end();
            if filled.len() > bytes_max {
                return Err(PlaceholderFault::TooLong);
            }
        }
        let whole = match done {
            0 => Cow::Borrowed(text),
            _ => {
                filled.push_str(&text[done..]);
                Cow::Owned(filled)
            }
        };
        if whole.len() > bytes_max { Err(PlaceholderFault::TooLong) } else { Ok(whole) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Placeholders {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Placeholders::new(pairs).ok().flatten().unwrap()
    }

    #[test]
    fn the_longest_is_meant_and_no_value_is_read_again() {
        let some = of(&[("-n-", "-name-"), ("-name-", "Ada"), ("-nam", "x"), ("", "never")]);
        assert_eq!(some.fill("-name- -n- -nam", 100).unwrap(), "Ada -name- x");
        assert_eq!(some.fill("nothing", 7).unwrap(), "nothing");
    }

    #[test]
    fn what_grows_is_bounded() {
        let some = of(&[("x", &"y".repeat(1_000))]);
        assert_eq!(some.fill(&"x".repeat(1_000), 500_000).err(), Some(PlaceholderFault::TooLong));
        assert_eq!(some.fill("zzzz", 3).err(), Some(PlaceholderFault::TooLong));
        assert!(some.fill("xx", 2_000).is_ok());
        let many = (0..=PLACEHOLDERS_MAX).map(|n| (format!("-{n}-"), String::new()));
        assert_eq!(Placeholders::new(many).err(), Some(PlaceholderFault::TooMany));
        let long = [("x".repeat(NAMES_BYTES_MAX + 1), String::new())];
        assert_eq!(Placeholders::new(long).err(), Some(PlaceholderFault::TooMany));
    }
}
