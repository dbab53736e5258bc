//! Domain patterns: `example.com` matches that domain, `*.example.com` each of its subdomains.
//!
//! A pattern is stored in lower case and as A-labels, like the domain of an address, so that a comparison
//! needs no conversion.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::address::domain_to_ascii;

/// A pattern of domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainPattern {
    /// The domain, in lower case and as A-labels.
    domain: String,
    /// Whether it matches the subdomains of the domain instead.
    is_of_subdomains: bool,
}

/// The text is not a domain pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a domain such as example.com nor a pattern such as *.example.com")]
pub struct InvalidDomainPattern(pub String);

impl DomainPattern {
    /// The longest pattern, in bytes.
    pub const BYTES_MAX: usize = 255;

    /// Whether the pattern matches a domain in lower case and as A-labels.
    pub fn matches(&self, domain: &str) -> bool {
        match self.is_of_subdomains {
            true => {
                domain.strip_suffix(&self.domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            false => domain == self.domain,
        }
    }
}

impl FromStr for DomainPattern {
    type Err = InvalidDomainPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidDomainPattern(text.chars().take(100).collect());
        let text = text.trim();
        let (domain, is_of_subdomains) = match text.strip_prefix("*.") {
            Some(parent) => (parent, true),
            None => (text, false),
        };
        let domain = domain_to_ascii(domain).map_err(|_| invalid())?.to_lowercase();
        let is_domain = domain.contains('.') || domain == "localhost";
        if text.len() > Self::BYTES_MAX || !is_domain || domain.contains(['*', ' ', ',', '<', '>', '@']) {
            return Err(invalid());
        }
        Ok(Self { domain, is_of_subdomains })
    }
}

impl fmt::Display for DomainPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.is_of_subdomains { "*." } else { "" };
        write!(f, "{star}{}", self.domain)
    }
}

impl Serialize for DomainPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DomainPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_its_domain_or_its_subdomains() {
        let matches = |pattern: &str, domain: &str| pattern.parse::<DomainPattern>().unwrap().matches(domain);
        assert!(matches("Example.COM", "example.com"));
        assert!(matches("*.example.com", "a.b.example.com"));
        assert!(matches("münchen.example", "xn--mnchen-3ya.example"));
        for outside in ["example.com", "badexample.com", ".example.com", "example.com.evil.example"] {
            assert!(!matches("*.example.com", outside), "{outside}");
        }
        for wrong in ["", "*", "*.", "a@example.com", "exam*ple.com", "*.*.example.com", "com", "a b.example"]
        {
            assert!(wrong.parse::<DomainPattern>().is_err(), "{wrong}");
        }
    }
}
