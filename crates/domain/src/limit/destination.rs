//! How much mail a receiving domain is sent at once: connections and messages per second. Pure; time is an
//! argument.
//!
//! The big mailbox providers have built-in limits: mild enough for a known sender, strict enough that they do
//! not turn a new one away. Any other domain has no limit unless the account sets one. A domain named by the
//! account comes first, then the account's `*`, then the built-in limits.
//!
//! Domains under the account's `*` are counted under one of [`SHARED_NAMES`] names, by a digest: a lane is
//! kept for each name ([`super::destination_room`]), and there is no bound on domains.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use crate::{
    address::{domain_to_ascii, domain_to_unicode},
    time::Time,
};

/// The name for every domain that an account does not name.
pub const ANY_DOMAIN: &str = "*";
/// The number of names under which domains that an account does not name are counted. Those that fall
/// together share a limit.
pub const SHARED_NAMES: usize = 256;

/// The limits of one receiving domain, per node and account; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DestinationLimit {
    /// Mails on the wire at once.
    pub connections: u32,
    /// Mails begun in any second.
    pub per_second: u32,
}

impl DestinationLimit {
    /// The highest of either that may be set.
    pub const MAX: u32 = 10_000;

    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        self.connections == 0 && self.per_second == 0
    }

    /// How many mails may begin at once while none is on its way.
    pub fn at_once(&self) -> u32 {
        self.left(0, 0)
    }

    /// What is left when this many are on the wire, and this many began within a second.
    fn left(&self, on_the_wire: u32, begun: u32) -> u32 {
        let left = |most: u32, used: u32| if most == 0 { u32::MAX } else { most.saturating_sub(used) };
        left(self.connections, on_the_wire).min(left(self.per_second, begun))
    }
}

/// The domains of each big provider, and its limits.
const PROVIDERS: &[(&str, &[&str], DestinationLimit)] = &[
    ("gmail.com", &["gmail.com", "googlemail.com"], limit(20, 50)),
    ("outlook.com", &["outlook.com", "hotmail.com", "live.com", "msn.com"], limit(20, 30)),
    ("yahoo.com", &["yahoo.com", "ymail.com", "aol.com", "rocketmail.com"], limit(10, 20)),
    ("icloud.com", &["icloud.com", "me.com", "mac.com"], limit(10, 20)),
    ("gmx.net", &["gmx.net", "gmx.de", "gmx.com", "gmx.at", "gmx.ch", "web.de"], limit(10, 20)),
    ("libero.it", &["libero.it", "virgilio.it", "iol.it", "inwind.it"], limit(5, 10)),
];

const fn limit(connections: u32, per_second: u32) -> DestinationLimit {
    DestinationLimit { connections, per_second }
}

/// The name that mail to `domain` is counted under, with its limit; `None` if nothing limits it.
pub fn destination_limit<'d>(
    own: &BTreeMap<String, DestinationLimit>,
    domain: &'d str,
) -> Option<(Cow<'d, str>, DestinationLimit)> {
    // Most accounts name no domain, and most mail goes to none of the providers.
    // The account may name it with U-labels.
    let by_unicode = || domain_to_unicode(domain).and_then(|unicode| own.get(&unicode));
    let named = if own.is_empty() { None } else { own.get(domain).or_else(by_unicode) };
    let found = match (named, own.get(ANY_DOMAIN)) {
        (Some(limit), _) => Some((Cow::Borrowed(domain), *limit)),
        (None, Some(limit)) if limit.is_none() => None,
        (None, Some(limit)) => Some((Cow::Owned(shared_name(domain)), *limit)),
        (None, None) => PROVIDERS
            .iter()
            .find_map(|(name, domains, limit)| domains.contains(&domain).then_some((*name, *limit)))
            .map(|(name, limit)| (Cow::Borrowed(name), limit)),
    };
    found.filter(|(_, limit)| !limit.is_none())
}

/// The limit that an account has for a name under which mail was counted, maybe by another account or with
/// earlier limits.
pub fn limit_of_name<'d>(
    own: &BTreeMap<String, DestinationLimit>,
    name: &'d str,
) -> Option<(Cow<'d, str>, DestinationLimit)> {
    match name.starts_with(ANY_DOMAIN) {
        true => own
            .get(ANY_DOMAIN)
            .map(|limit| (Cow::Borrowed(name), *limit))
            .filter(|(_, limit)| !limit.is_none()),
        false => destination_limit(own, name),
    }
}

/// The name that a domain shares with others that the account does not name.
fn shared_name(domain: &str) -> String {
    const _: () = assert!(SHARED_NAMES == 1 << u8::BITS);
    let digest = digest::digest(&digest::SHA256, domain.as_bytes());
    format!("{ANY_DOMAIN}{:02x}", digest.as_ref()[0])
}

/// The fault of an account's own limits, if there is one.
pub fn check_destinations(own: &BTreeMap<String, DestinationLimit>) -> Option<String> {
    /// More than anyone would name by hand.
    const DOMAINS_MAX: usize = 500;
    if own.len() > DOMAINS_MAX {
        return Some(format!("may name at most {DOMAINS_MAX} domains"));
    }
    for (domain, limit) in own {
        // A key in another spelling than these two would never match.
        let is_key = |ascii: String| {
            ascii == *domain || domain_to_unicode(&ascii).is_some_and(|unicode| unicode == *domain)
        };
        if domain != ANY_DOMAIN && !domain_to_ascii(domain).is_ok_and(is_key) {
            let shown: String = domain.chars().take(64).collect();
            return Some(format!(
                "`{shown}` must be a domain in lower case, or `{ANY_DOMAIN}` for all others"
            ));
        }
        if limit.connections.max(limit.per_second) > DestinationLimit::MAX {
            return Some(format!("the limits of `{domain}` must be at most {}", DestinationLimit::MAX));
        }
    }
    None
}

/// Counts what is being sent to one receiving domain.
#[derive(Debug, Default)]
pub struct DestinationMeter {
    /// Claimed for this domain, and not begun yet.
    reserved: u32,
    on_the_wire: u32,
    /// When the mails of the last second began, the oldest first.
    begun: VecDeque<Time>,
    /// Until when future slots are promised to mails that were turned away.
    promised_until: Option<Time>,
}

const SECOND: Duration = Duration::from_secs(1);
/// The longest wait of a mail that was turned away; what it waits for may change.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The wait of a mail while all connections are in use.
const WAIT_FOR_CONNECTION: Duration = Duration::from_millis(500);

impl DestinationMeter {
    /// How long a mail must wait before it may begin; `None` if it may begin now.
    ///
    /// Each mail that is turned away gets a different time, so that a backlog comes back spread out instead
    /// of all at once.
    pub fn wait(&mut self, limit: DestinationLimit, now: Time) -> Option<Duration> {
        self.forget(now);
        if limit.per_second > 0 && self.begun_or_reserved() >= limit.per_second {
            let free_at = self.begun.front().map_or(now, |begun| begun.plus(SECOND));
            let slot = self.promised_until.filter(|until| *until > free_at).unwrap_or(free_at);
            self.promised_until = Some(slot.plus(SECOND / limit.per_second).min(now.plus(WAIT_MAX)));
            return Some(slot.since(now).max(Duration::from_millis(1)));
        }
        let is_full = limit.connections > 0 && self.on_the_wire + self.reserved >= limit.connections;
        is_full.then_some(WAIT_FOR_CONNECTION)
    }

    /// How many more mails may be claimed for this domain now. Whatever is reserved then may begin at any
    /// later time: what began before it counts for less and less.
    pub fn room(&mut self, limit: DestinationLimit, now: Time) -> u32 {
        self.forget(now);
        limit.left(self.on_the_wire + self.reserved, self.begun_or_reserved())
    }

    fn begun_or_reserved(&self) -> u32 {
        u32::try_from(self.begun.len()).unwrap_or(u32::MAX).saturating_add(self.reserved)
    }

    /// Drops what began more than a second ago.
    fn forget(&mut self, now: Time) {
        while self.begun.front().is_some_and(|begun| begun.plus(SECOND) <= now) {
            self.begun.pop_front();
        }
    }

    /// Notes that a mail was claimed for which there is room.
    pub fn reserve(&mut self) {
        self.reserved += 1;
    }

    /// Notes that a mail that was claimed begins, or does not.
    pub fn release(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }

    /// Notes that a mail begins.
    pub fn begin(&mut self, limit: DestinationLimit, now: Time) {
        self.on_the_wire += 1;
        if limit.per_second > 0 {
            self.begun.push_back(now);
        }
    }

    /// Notes that a mail has ended.
    pub fn end(&mut self) {
        self.on_the_wire = self.on_the_wire.saturating_sub(1);
    }

    /// Whether the meter can be dropped, because nothing in it matters any more.
    pub fn is_idle(&self, now: Time) -> bool {
        let newest = self.begun.back().copied().max(self.promised_until);
        self.on_the_wire + self.reserved == 0 && newest.is_none_or(|at| at.plus(SECOND) <= now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn a_named_domain_comes_before_the_star_and_the_star_before_what_is_built_in() {
        let mut own = BTreeMap::new();
        assert_eq!(destination_limit(&own, "example.net"), None);
        let name_and_limit =
            |own: &_, domain| destination_limit(own, domain).map(|(name, limit)| (name.into_owned(), limit));
        let counted = |name: &str, limit| Some((name.to_owned(), limit));
        assert_eq!(name_and_limit(&own, "googlemail.com"), counted("gmail.com", limit(20, 50)));
        own.insert("*".to_owned(), limit(0, 3));
        own.insert("gmail.com".to_owned(), limit(1, 1));
        own.insert("free.example".to_owned(), limit(0, 0));
        assert_eq!(name_and_limit(&own, "gmail.com"), counted("gmail.com", limit(1, 1)));
        let shared = shared_name("googlemail.com");
        assert!(shared.starts_with('*') && shared.len() == 3, "{shared}");
        assert_eq!(name_and_limit(&own, "googlemail.com"), counted(&shared, limit(0, 3)));
        assert_eq!(destination_limit(&own, "free.example"), None);
    }

    #[test]
    fn limits_of_what_is_no_domain_are_refused() {
        let own = |domain: &str, per_second| BTreeMap::from([(domain.to_owned(), limit(1, per_second))]);
        assert_eq!(check_destinations(&own("example.net", 5)), None);
        assert_eq!(check_destinations(&own("*", 5)), None);
        for wrong in ["Example.net", "a b", "", "*.example.net", "a@b"] {
            assert!(check_destinations(&own(wrong, 5)).is_some(), "{wrong:?}");
        }
        assert!(check_destinations(&own("example.net", DestinationLimit::MAX + 1)).is_some());
    }

    #[test]
    fn connections_are_counted_until_they_end() {
        let (mut meter, two) = (DestinationMeter::default(), limit(2, 0));
        for _ in 0..2 {
            assert_eq!(meter.wait(two, at(0)), None);
            meter.begin(two, at(0));
        }
        assert_eq!(meter.wait(two, at(0)), Some(WAIT_FOR_CONNECTION));
        meter.end();
        assert_eq!(meter.wait(two, at(0)), None);
        meter.end();
        assert!(meter.is_idle(at(0)));
    }

    #[test]
    fn mails_that_are_turned_away_come_back_one_after_the_other() {
        let (mut meter, two) = (DestinationMeter::default(), limit(0, 2));
        for _ in 0..2 {
            meter.begin(two, at(0));
        }
        let waits: Vec<_> =
            (0..4).filter_map(|_| meter.wait(two, at(100))).map(|wait| wait.as_millis()).collect();
        assert_eq!(waits, [900, 1_400, 1_900, 2_400]);
        for _ in 0..1_000 {
            assert!(meter.wait(two, at(100)).is_some_and(|wait| wait <= WAIT_MAX));
        }
        assert_eq!(meter.wait(two, at(1_000)), None);
    }

    proptest! {
        #[test]
        fn no_second_has_more_than_its_limit(steps in prop::collection::vec(0i64..400, 1..200), rate in 1u32..6) {
            let (mut meter, limit) = (DestinationMeter::default(), limit(0, rate));
            let (mut now, mut begun) = (0, Vec::new());
            for step in steps {
                now += step;
                if meter.wait(limit, at(now)).is_none() {
                    meter.begin(limit, at(now));
                    begun.push(now);
                }
            }
            for (first, from) in begun.iter().enumerate() {
                let within = begun[first..].iter().take_while(|one| **one < from + 1_000).count();
                prop_assert!(within <= rate as usize);
            }
        }

        /// Claims reserve what there is room for, and what was reserved begins whenever its courier comes to
        /// it.
        #[test]
        fn what_is_reserved_may_begin_at_any_time(
            steps in prop::collection::vec((0i64..400, 0u32..3), 1..200),
            rate in 1u32..6,
            connections in 0u32..4,
        ) {
            let (mut meter, limit) = (DestinationMeter::default(), limit(connections, rate));
            let (mut now, mut begun, mut waiting, mut sending) = (0, Vec::new(), 0, 0u32);
            for (step, deed) in steps {
                now += step;
                match deed {
                    0 => (0..meter.room(limit, at(now))).for_each(|_| {
                        meter.reserve();
                        waiting += 1;
                    }),
                    1 if waiting > 0 => {
                        waiting -= 1;
                        meter.release();
                        meter.begin(limit, at(now));
                        begun.push(now);
                        sending += 1;
                    }
                    _ if sending > 0 => {
                        meter.end();
                        sending -= 1;
                    }
                    _ => {}
                }
                prop_assert!(connections == 0 || sending <= connections);
            }
            for (first, from) in begun.iter().enumerate() {
                let within = begun[first..].iter().take_while(|one| **one < from + 1_000).count();
                prop_assert!(within <= rate as usize);
            }
        }
    }
}
