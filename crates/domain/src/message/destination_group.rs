//! Mail that waits for the same receiving domains: a part of its lane, so that a claim passes over all of it
//! while one of these domains is being sent as much as it may be.
//!
//! A group is made when a message is accepted, of the limits that its account has then (`limit/`). Limits
//! that change later are kept by whoever sends; a message that is turned away for one that its group does not
//! name is moved to another lane.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// Between the names of a group. No domain has it.
const BETWEEN: char = ' ';

/// The names under which the limited receiving domains of a message are counted, in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestinationGroup(Box<str>);

/// What is no group: it has no name, or one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a group of destinations has 1 to {} names with a space between them", DestinationGroup::NAMES_MAX)]
pub struct DestinationGroupError;

impl DestinationGroup {
    /// The most names of a group. Mail to more limited domains than that waits for the first of them.
    pub const NAMES_MAX: usize = 4;

    /// The group of these names, or of the first of them; `None` if there are none.
    pub fn of_names<N: AsRef<str> + Ord>(all: impl Iterator<Item = N>) -> Option<Self> {
        let mut names = BTreeSet::new();
        for name in all {
            names.insert(name);
            if names.len() > Self::NAMES_MAX {
                names.pop_last();
            }
        }
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        (!names.is_empty()).then(|| Self(names.join(" ").into()))
    }

    /// The names as they are stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split(BETWEEN)
    }
}

impl FromStr for DestinationGroup {
    type Err = DestinationGroupError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = text.split(BETWEEN);
        let is_group = names.clone().all(|name| !name.is_empty()) && names.count() <= Self::NAMES_MAX;
        if is_group { Ok(Self(text.into())) } else { Err(DestinationGroupError) }
    }
}

impl fmt::Display for DestinationGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_bounded_and_names_each_domain_once() {
        let of = |names: &[&str]| DestinationGroup::of_names(names.iter());
        assert_eq!(of(&[]), None);
        let both = of(&["b", "a", "b"]).unwrap();
        assert_eq!((both.as_str(), both.names().collect::<Vec<_>>()), ("a b", vec!["a", "b"]));
        assert_eq!(both.as_str().parse(), Ok(both));
        assert_eq!(of(&["f", "e", "d", "c", "b", "a"]).unwrap().as_str(), "a b c d");
        for wrong in ["", " ", "a ", "a  b", "a b c d e"] {
            assert!(wrong.parse::<DestinationGroup>().is_err(), "{wrong:?}");
        }
    }
}
