//! How much mail one account is sending to each receiving domain, on this node.
//!
//! A claim asks for the room of each domain and takes no more, so what it leases has its slots reserved until
//! a courier begins it. Mail that was claimed although there is no room waits and is given back: it was
//! accepted under other limits, or handed over while another claim was under way.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use postway_domain::{
    DestinationRoom, Lane, Time,
    destination::{DestinationLimit, DestinationMeter, destination_limit, limit_of_name},
    destination_room::destination_group,
};
use postway_store::record::ClaimedMessage;

/// The domains of a message's recipients.
pub(crate) fn domains_of(job: &ClaimedMessage) -> impl Iterator<Item = &str> {
    job.recipients.iter().map(|recipient| recipient.address.domain())
}

/// The lane of a message by the limits that its account has now, if it waits in another one. A fallback's
/// limits say nothing about the lane.
pub(crate) fn limited_lane(job: &ClaimedMessage, own: &OwnLimits) -> Option<Lane> {
    let lane = job.lane.clone().to_destination(destination_group(own, domains_of(job)));
    Some(lane).filter(|lane| *lane != job.lane && job.via.is_none())
}

/// The limits of its own that an account has.
pub(crate) type OwnLimits = Arc<BTreeMap<String, DestinationLimit>>;

/// The meters of the domains that one account sends to.
#[derive(Debug, Default)]
pub(crate) struct DestinationMeters(Mutex<HashMap<Box<str>, DestinationMeter>>);

/// The slots that one message has at its receiving domains, until they are dropped.
#[derive(Debug, Default)]
pub(crate) struct DestinationSlots {
    destinations: Option<Arc<DestinationMeters>>,
    taken: Vec<(Box<str>, DestinationLimit)>,
    /// Whether the mail has begun, or only has its slots reserved.
    has_begun: bool,
}

impl DestinationMeters {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, DestinationMeter>> {
        // Every critical section leaves the meters consistent, so a poisoned lock can still be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much more may be claimed for each domain now.
    pub fn room(&self, own: &OwnLimits, now: Time) -> DestinationRoom {
        let mut left = BTreeMap::new();
        self.lock().retain(|name, meter| {
            if let Some((_, limit)) = limit_of_name(own, name) {
                left.insert(name.clone(), meter.room(limit, now));
            }
            !meter.is_idle(now)
        });
        DestinationRoom::new(own.clone(), left)
    }

    /// Reserves a slot at each of these domains for a message that was claimed, or says how long it must
    /// wait.
    pub fn reserve<'d>(
        self: &Arc<Self>,
        own: &OwnLimits,
        domains: impl Iterator<Item = &'d str>,
        now: Time,
    ) -> Result<DestinationSlots, Duration> {
        let mut limited: Vec<(Box<str>, DestinationLimit)> = domains
            .filter_map(|domain| destination_limit(own, domain))
            .map(|(name, limit)| (name.into(), limit))
            .collect();
        if limited.is_empty() {
            return Ok(DestinationSlots::default());
        }
        limited.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        limited.dedup_by(|(one, _), (other, _)| one == other);
        let mut meters = self.lock();
        // All or none: if one domain is full, the message waits and the others must not count it.
        let waits = limited.iter().filter_map(|(name, limit)| meters.get_mut(name)?.wait(*limit, now));
        if let Some(wait) = waits.max() {
            return Err(wait);
        }
        limited.iter().for_each(|(name, _)| meters.entry(name.clone()).or_default().reserve());
        Ok(DestinationSlots { taken: limited, destinations: Some(self.clone()), has_begun: false })
    }
}

impl DestinationSlots {
    /// Notes that the mail begins.
    pub fn begin(mut self, now: Time) -> Self {
        if let Some(destinations) = &self.destinations {
            let mut meters = destinations.lock();
            for (name, limit) in &self.taken {
                if let Some(meter) = meters.get_mut(name) {
                    meter.release();
                    meter.begin(*limit, now);
                }
            }
        }
        self.has_begun = true;
        self
    }
}

impl Drop for DestinationSlots {
    fn drop(&mut self) {
        let Some(destinations) = &self.destinations else { return };
        let mut meters = destinations.lock();
        for (name, _) in &self.taken {
            match meters.get_mut(name) {
                Some(meter) if self.has_begun => meter.end(),
                Some(meter) => meter.release(),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Time {
        Time::from_millis(1_000)
    }

    fn one_connection(domains: &[&str]) -> OwnLimits {
        let limit = DestinationLimit { connections: 1, per_second: 0 };
        Arc::new(domains.iter().map(|domain| ((*domain).to_owned(), limit)).collect())
    }

    #[test]
    fn a_mail_gets_leave_for_all_its_domains_or_for_none() {
        let destinations = Arc::new(DestinationMeters::default());
        let own = one_connection(&["a.example", "b.example"]);
        let take = |domains: &[&'static str]| {
            destinations.reserve(&own, domains.iter().copied(), now()).map(|slots| slots.begin(now()))
        };
        let first = take(&["a.example", "a.example", "free.example"]).unwrap();
        assert!(take(&["b.example", "a.example"]).is_err());
        let other = take(&["b.example"]).expect("the mail that was turned away does not count");
        assert!(take(&["free.example"]).is_ok());
        drop(first);
        assert!(take(&["a.example"]).is_ok());
        drop(other);
        assert!(take(&["b.example", "a.example"]).is_ok());
    }

    #[test]
    fn what_is_reserved_counts_until_it_is_sent_or_given_back() {
        let destinations = Arc::new(DestinationMeters::default());
        let own = one_connection(&["a.example"]);
        let lane = "a.example".parse().unwrap();
        let room = || destinations.room(&own, now()).of(Some(&lane));
        assert_eq!(room(), 1);
        let reserved = destinations.reserve(&own, ["a.example"].into_iter(), now()).unwrap();
        assert_eq!(room(), 0);
        let begun = reserved.begin(now());
        assert_eq!(room(), 0);
        drop(begun);
        assert_eq!(room(), 1);
        drop(destinations.reserve(&own, ["a.example"].into_iter(), now()).unwrap());
        assert_eq!(room(), 1);
        assert!(destinations.lock().is_empty(), "idle meters are dropped");
    }
}
