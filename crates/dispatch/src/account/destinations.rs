//! How much mail one account is sending to each receiving domain, on this node.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use postway_domain::{
    Time,
    destination::{DestinationLimit, DestinationMeter, destination_limit},
};

/// How many meters are kept before idle ones are dropped.
const METERS_MAX: usize = 10_000;

/// The meters of the domains that one account sends to.
#[derive(Debug, Default)]
pub(crate) struct DestinationMeters(Mutex<HashMap<Box<str>, DestinationMeter>>);

/// The slots that one message occupies at its receiving domains, until they are dropped.
#[derive(Debug, Default)]
pub(crate) struct DestinationSlots {
    destinations: Option<Arc<DestinationMeters>>,
    taken: Vec<Box<str>>,
}

impl DestinationMeters {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, DestinationMeter>> {
        // Every critical section leaves the meters consistent, so a poisoned lock can still be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot at each of these domains, or says how long the message must wait.
    pub fn take_slots<'d>(
        self: &Arc<Self>,
        account_limits: &BTreeMap<String, DestinationLimit>,
        domains: impl Iterator<Item = &'d str>,
        now: Time,
    ) -> Result<DestinationSlots, Duration> {
        let mut limited: Vec<(&str, DestinationLimit)> =
            domains.filter_map(|domain| destination_limit(account_limits, domain)).collect();
        if limited.is_empty() {
            return Ok(DestinationSlots::default());
        }
        limited.sort_unstable_by_key(|(name, _)| *name);
        limited.dedup_by_key(|(name, _)| *name);
        let mut meters = self.lock();
        if meters.len() >= METERS_MAX {
            meters.retain(|_, meter| !meter.is_idle(now));
        }
        // All or none: if one domain is full, the message waits and the others must not count it.
        let waits = limited.iter().filter_map(|(name, limit)| meters.get_mut(*name)?.wait(*limit, now));
        if let Some(wait) = waits.max() {
            return Err(wait);
        }
        let taken = limited.into_iter().map(|(name, limit)| {
            meters.entry(name.into()).or_default().begin(limit, now);
            name.into()
        });
        Ok(DestinationSlots { taken: taken.collect(), destinations: Some(self.clone()) })
    }
}

impl Drop for DestinationSlots {
    fn drop(&mut self) {
        let Some(destinations) = &self.destinations else { return };
        let mut meters = destinations.lock();
        for name in &self.taken {
            if let Some(meter) = meters.get_mut(name) {
                meter.end();
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

    #[test]
    fn a_mail_gets_leave_for_all_its_domains_or_for_none() {
        let destinations = Arc::new(DestinationMeters::default());
        let account_limits = BTreeMap::from(
            ["a.example", "b.example"]
                .map(|domain| (domain.to_owned(), DestinationLimit { connections: 1, per_second: 0 })),
        );
        let take = |domains: &[&'static str]| {
            destinations.take_slots(&account_limits, domains.iter().copied(), now())
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
}
