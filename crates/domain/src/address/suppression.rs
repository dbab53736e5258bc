//! The addresses that a suppression covers: one address, or a pattern.
//!
//! A pattern has a star for all local parts (`*@example.org`), for all subdomains (`*@*.example.org`) or for
//! all domains (`postmaster@*`). An address can match only as many patterns as its domain has labels, so all
//! of them are looked up by name: a list of a million patterns costs a message no more than a list of ten.

use std::str::FromStr;

use crate::address::EmailAddress;

/// The most labels of a domain that patterns can name.
const LABELS_MAX: usize = 10;
const ANY: &str = "*";

/// An address or a pattern of addresses, in lower case, with domains as A-labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SuppressionPattern(String);

/// Why a text is refused as a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuppressionPatternError {
    /// It is neither an address nor a pattern.
    #[error(
        "is neither an address nor a pattern: use ada@example.org, *@example.org, *@*.example.org or postmaster@*"
    )]
    Malformed,
    /// It would match every address.
    #[error("matches every address: suspend the tenant instead")]
    Everything,
}

impl SuppressionPattern {
    /// The canonical text, as it is stored and compared.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is one address.
    pub fn is_address(&self) -> bool {
        self.0.rsplit_once('@').is_none_or(|(local, domain)| local != ANY && !domain.starts_with(ANY))
    }

    /// Every pattern that matches this address, itself included. The address is in lower case.
    pub fn matching(address: &str) -> Vec<String> {
        let Some((local, domain)) = address.rsplit_once('@') else { return vec![address.to_owned()] };
        let mut domains = vec![domain.to_owned()];
        let mut rest = domain;
        while let Some((_, parent)) = rest.split_once('.') {
            if parent.split('.').count() <= LABELS_MAX {
                domains.push(format!("{ANY}.{parent}"));
            }
            rest = parent;
        }
        domains.push(ANY.to_owned());
        let locals = if local == ANY { vec![ANY] } else { vec![local, ANY] };
        let pair =
            |domain: &String| locals.iter().map(move |local| format!("{local}@{domain}")).collect::<Vec<_>>();
        let everything = format!("{ANY}@{ANY}");
        domains.iter().flat_map(pair).filter(|pattern| *pattern != everything).collect()
    }
}

impl FromStr for SuppressionPattern {
    type Err = SuppressionPatternError;

    fn from_str(text: &str) -> Result<Self, SuppressionPatternError> {
        let text = text.trim();
        let (local, domain) = text.rsplit_once('@').ok_or(SuppressionPatternError::Malformed)?;
        if local == ANY && domain == ANY {
            return Err(SuppressionPatternError::Everything);
        }
        // The star is replaced by a sample, and the result must be an address.
        let parent = domain.strip_prefix("*.");
        let filled_local = if local == ANY { "x" } else { local };
        let filled_domain = match (parent, domain) {
            (Some(parent), _) => parent,
            (None, ANY) => "example.org",
            (None, domain) => domain,
        };
        let address: EmailAddress = format!("{filled_local}@{filled_domain}")
            .parse()
            .map_err(|_| SuppressionPatternError::Malformed)?;
        let canonical = address.as_str().to_lowercase();
        let (_, canonical_domain) = canonical.rsplit_once('@').ok_or(SuppressionPatternError::Malformed)?;
        if parent.is_some()
            && (canonical_domain.starts_with('[') || canonical_domain.split('.').count() > LABELS_MAX)
        {
            return Err(SuppressionPatternError::Malformed);
        }
        let local = local.to_lowercase();
        Ok(Self(match (parent, domain) {
            (Some(_), _) => format!("{local}@{ANY}.{canonical_domain}"),
            (None, ANY) => format!("{local}@{ANY}"),
            (None, _) => format!("{local}@{canonical_domain}"),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_matches_patterns_of_its_local_part_and_of_its_domains() {
        let found = SuppressionPattern::matching("ada@mail.example.org");
        for pattern in [
            "ada@mail.example.org",
            "*@mail.example.org",
            "*@*.example.org",
            "*@*.org",
            "ada@*",
            "ada@*.example.org",
        ] {
            let parsed: SuppressionPattern = pattern.parse().unwrap();
            assert_eq!(parsed.as_str(), pattern);
            assert!(found.iter().any(|one| one == pattern), "{pattern} in {found:?}");
        }
        for other in ["*@example.org", "*@*.mail.example.org", "bob@*", "*@*"] {
            assert!(!found.iter().any(|one| one == other), "{other}");
        }
        let deep = format!("ada@{}org", "a.".repeat(100));
        assert!(SuppressionPattern::matching(&deep).len() <= 2 * (LABELS_MAX + 2), "bounded");
    }

    #[test]
    fn patterns_are_kept_in_one_spelling_and_nonsense_is_refused() {
        for (given, kept) in [
            (" Ada@Example.ORG ", "ada@example.org"),
            ("*@EXÄMPLE.org", "*@xn--exmple-cua.org"),
            ("*@*.Example.org", "*@*.example.org"),
            ("NoReply@*", "noreply@*"),
        ] {
            assert_eq!(given.parse::<SuppressionPattern>().unwrap().as_str(), kept, "{given}");
        }
        assert_eq!("*@*".parse::<SuppressionPattern>(), Err(SuppressionPatternError::Everything));
        let long = format!("*@*.{}org", "a.".repeat(20));
        for bad in ["", "@", "example.org", "*", "a*@", "*@a*.org", "*@*.*.org", "*@.", "a b@*", &long] {
            assert_eq!(bad.parse::<SuppressionPattern>(), Err(SuppressionPatternError::Malformed), "{bad}");
        }
        assert!("ada@example.org".parse::<SuppressionPattern>().unwrap().is_address());
        for pattern in ["*@example.org", "*@*.example.org", "ada@*"] {
            assert!(!pattern.parse::<SuppressionPattern>().unwrap().is_address());
        }
    }
}
