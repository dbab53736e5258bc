//! Address patterns: the senders or recipients that a tenant or a key is restricted to.
//!
//! `shop@example.com` matches one address, `example.com` and `*@example.com` every address of that domain,
//! `*.example.com` every address of its subdomains, `news-*@example.com` those with that prefix. Case does
//! not matter, and both spellings of an internationalised domain match.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use super::domain_pattern::{DomainPattern, InvalidDomainPattern};
use crate::address::domain_to_ascii;

/// A pattern of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPattern {
    /// The part before the `@`, in lower case, with `*` for any characters.
    local: String,
    /// The domain, or the parent of the domains.
    domain: DomainPattern,
}

/// The text is not an address pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address, nor a domain such as example.com, nor a pattern such as *.example.com")]
pub struct InvalidAddressPattern(pub String);

impl AddressPattern {
    /// The most patterns in one list.
    pub const LIST_MAX: usize = 200;
    /// The longest pattern, in bytes.
    pub const BYTES_MAX: usize = 320;

    /// Whether the pattern matches an address.
    pub fn matches(&self, address: &str) -> bool {
        let Some((local, domain)) = address.trim().rsplit_once('@') else { return false };
        self.domain.matches(&ascii_domain(domain))
            && (self.local == "*" || is_like(&local.to_lowercase(), &self.local))
    }

    /// Whether a list allows an address. An empty list allows all.
    pub fn allow(list: &[Self], address: &str) -> bool {
        list.is_empty() || list.iter().any(|pattern| pattern.matches(address))
    }
}

fn ascii_domain(domain: &str) -> String {
    domain_to_ascii(domain).unwrap_or_else(|_| domain.to_owned()).to_lowercase()
}

/// Whether `text` matches `pattern`, in which `*` matches any characters, as few as possible.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

impl FromStr for AddressPattern {
    type Err = InvalidAddressPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidAddressPattern(text.chars().take(100).collect());
        let text = text.trim();
        let (local, domain) = match text.rsplit_once('@') {
            Some(("", domain)) => ("*", domain),
            Some((local, domain)) => (local, domain),
            None => ("*", text),
        };
        let is_local = !local.chars().any(|c| c.is_control() || c.is_whitespace() || c == '@');
        if text.len() > Self::BYTES_MAX || !is_local {
            return Err(invalid());
        }
        let domain = domain.parse().map_err(|_: InvalidDomainPattern| invalid())?;
        Ok(Self { local: local.to_lowercase(), domain })
    }
}

impl fmt::Display for AddressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.local.as_str() {
            "*" => write!(f, "{}", self.domain),
            local => write!(f, "{local}@{}", self.domain),
        }
    }
}

impl Serialize for AddressPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AddressPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_what_it_says_and_nothing_that_only_looks_like_it() {
        for (pattern, inside, outside) in [
            (
                "shop@example.com",
                &["shop@example.com", "SHOP@Example.COM"][..],
                &["ashop@example.com", "shop@example.com.evil.example"][..],
            ),
            (
                "example.com",
                &["a@example.com"],
                &["a@mail.example.com", "a@notexample.com", "example.com", "\"x@example.com\"@evil.example"],
            ),
            ("@example.com", &["a@example.com"], &["a@example.org"]),
            (
                "*.example.com",
                &["a@mail.example.com", "a@b.c.example.com"],
                &["a@example.com", "a@.example.com", "a@mailexample.com"],
            ),
            (
                "news-*@example.com",
                &["news-1@example.com", "NEWS-@example.com"],
                &["news@example.com", "xnews-1@example.com"],
            ),
            (
                "a*b*c@example.com",
                &["abc@example.com", "axxbyyc@example.com"],
                &["acb@example.com", "ab@example.com"],
            ),
            ("ops@*.example.com", &["ops@eu.example.com"], &["dev@eu.example.com", "ops@example.com"]),
            ("münchen.example", &["a@xn--mnchen-3ya.example", "a@MÜNCHEN.example"], &["a@munchen.example"]),
        ] {
            let read: AddressPattern = pattern.parse().unwrap();
            for address in inside {
                assert!(read.matches(address), "{pattern} should match {address}");
            }
            for address in outside {
                assert!(!read.matches(address), "{pattern} should not match {address}");
            }
            assert_eq!(read.to_string().parse::<AddressPattern>().unwrap(), read, "{pattern}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_and_no_list_allows_all() {
        let long = format!("{}@example.com", "x".repeat(320));
        for wrong in ["", "*", "@", "a b@example.com", "a@", "*.com*", "a@b@c@*", "exam*ple.com", &long] {
            assert!(wrong.parse::<AddressPattern>().is_err(), "{wrong}");
        }
        assert!(AddressPattern::allow(&[], "anybody@anywhere.example"));
        let list = ["example.com".parse().unwrap()];
        assert!(!AddressPattern::allow(&list, "anybody@anywhere.example"));
    }
}
