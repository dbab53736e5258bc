//! How much mail may be claimed for each receiving domain, as the node that asks counts it. Pure.
//!
//! A lane names the limited domains of its mail ([`DestinationGroup`]). A claim takes from a lane only as
//! much as all of them have room for, and passes over it when one of them has none.

use std::{collections::BTreeMap, sync::Arc};

use super::destination::{DestinationLimit, destination_limit, limit_of_name};
use crate::message::DestinationGroup;

/// The group of mail to these domains; `None` if nothing limits them.
pub fn destination_group<'d>(
    own: &BTreeMap<String, DestinationLimit>,
    domains: impl Iterator<Item = &'d str>,
) -> Option<DestinationGroup> {
    DestinationGroup::of_names(
        domains.filter_map(|domain| destination_limit(own, domain)).map(|(name, _)| name),
    )
}

/// How much more mail the limited receiving domains of one account may be sent now, as its node counts. By
/// default nothing is limited.
#[derive(Clone, Debug, Default)]
pub struct DestinationRoom {
    /// The limits of the account that sends.
    own: Option<Arc<BTreeMap<String, DestinationLimit>>>,
    /// What is left under the names that were counted.
    left: BTreeMap<Box<str>, u32>,
}

impl DestinationRoom {
    /// The room of an account with these limits of its own, of which `left` remains under these names, and
    /// everything under all others.
    pub fn new(own: Arc<BTreeMap<String, DestinationLimit>>, left: BTreeMap<Box<str>, u32>) -> Self {
        Self { own: Some(own), left }
    }

    /// How many messages of a group may be claimed.
    pub fn of(&self, group: Option<&DestinationGroup>) -> u32 {
        let names = group.into_iter().flat_map(DestinationGroup::names);
        names.filter_map(|name| self.counted(name)).map(|(_, left)| left).min().unwrap_or(u32::MAX)
    }

    /// Notes that this many messages of a group were claimed.
    pub fn take(&mut self, group: Option<&DestinationGroup>, messages: u32) {
        for name in group.into_iter().flat_map(DestinationGroup::names) {
            if let Some((name, left)) = self.counted(name) {
                self.left.insert(name, left.saturating_sub(messages));
            }
        }
    }

    /// Closes a group: there is mail that waits for it, which newer mail must not overtake.
    pub fn close(&mut self, group: Option<&DestinationGroup>) {
        self.take(group, u32::MAX);
    }

    /// Whether there is no room under some name: mail may wait for it.
    pub fn is_full_somewhere(&self) -> bool {
        self.left.values().any(|left| *left == 0)
    }

    /// The name under which this account counts a name of a group, and what is left of its limit.
    fn counted(&self, name: &str) -> Option<(Box<str>, u32)> {
        let (name, limit) = limit_of_name(self.own.as_ref()?, name)?;
        let left = self.left.get(name.as_ref()).copied().unwrap_or_else(|| limit.at_once());
        Some((name.into(), left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(of: &[(&str, u32)]) -> BTreeMap<String, DestinationLimit> {
        let limit = |per_second| DestinationLimit { connections: 0, per_second };
        of.iter().map(|(domain, per_second)| ((*domain).to_owned(), limit(*per_second))).collect()
    }

    fn group(own: &[(&str, u32)], domains: &[&str]) -> Option<DestinationGroup> {
        destination_group(&limits(own), domains.iter().copied())
    }

    #[test]
    fn a_group_names_each_limited_domain_once_and_in_order() {
        assert_eq!(group(&[], &["example.net"]), None);
        let both = group(&[], &["hotmail.com", "example.net", "googlemail.com", "gmail.com"]).unwrap();
        assert_eq!(both.as_str(), "gmail.com outlook.com");
    }

    #[test]
    fn a_group_has_the_room_of_its_fullest_domain() {
        let both = group(&[], &["gmail.com", "yahoo.com"]).unwrap();
        let gmail = group(&[], &["gmail.com"]).unwrap();
        let mut room = DestinationRoom::new(Arc::default(), BTreeMap::from([("gmail.com".into(), 9)]));
        assert_eq!((room.of(None), room.of(Some(&gmail)), room.of(Some(&both))), (u32::MAX, 9, 9));
        room.take(Some(&both), 4);
        assert_eq!((room.of(Some(&gmail)), room.of(Some(&both))), (5, 5));
        room.close(Some(&gmail));
        assert_eq!((room.of(Some(&gmail)), room.of(Some(&both))), (0, 0));
        assert_eq!(DestinationRoom::default().of(Some(&both)), u32::MAX, "nothing is limited by default");
    }

    #[test]
    fn a_limit_that_the_account_no_longer_has_holds_nothing_back() {
        let named = group(&[("example.net", 3)], &["example.net"]).unwrap();
        let other = group(&[("*", 3)], &["example.net"]).unwrap();
        let room = |own: &[(&str, u32)]| DestinationRoom::new(Arc::new(limits(own)), BTreeMap::new());
        assert_eq!(room(&[("example.net", 3)]).of(Some(&named)), 3);
        assert_eq!(room(&[]).of(Some(&named)), u32::MAX);
        assert_eq!((room(&[("*", 7)]).of(Some(&other)), room(&[]).of(Some(&other))), (7, u32::MAX));
    }
}
