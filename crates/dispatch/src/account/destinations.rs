//! What one account is sending to which destinations, on this node.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use postway_domain::{
    Time,
    destination::{DestinationLimit, Meter, limit_of},
};

/// How many destinations are remembered before the idle ones are forgotten.
const METERS_MAX: usize = 10_000;

/// The destinations of one account.
#[derive(Debug, Default)]
pub(crate) struct Destinations(Mutex<HashMap<Box<str>, Meter>>);

/// One mail's leave to be on the wire. Ends when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Leave {
    destinations: Option<Arc<Destinations>>,
    taken: Vec<Box<str>>,
}

impl Destinations {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Meter>> {
        // Every critical section leaves the meters whole, so a poisoned lock is still good.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leave for a mail to all these domains, or how long it must wait for one of them.
    pub fn ask<'d>(
        self: &Arc<Self>,
        own: &BTreeMap<String, DestinationLimit>,
        domains: impl Iterator<Item = &'d str>,
        now: Time,
    ) -> Result<Leave, Duration> {
        let mut limited: Vec<(&str, DestinationLimit)> =
            domains.filter_map(|domain| limit_of(own, domain)).collect();
        if limited.is_empty() {
            return Ok(Leave::default());
        }
        limited.sort_unstable_by_key(|(name, _)| *name);
        limited.dedup_by_key(|(name, _)| *name);
        let mut meters = self.lock();
        if meters.len() >= METERS_MAX {
            meters.retain(|_, meter| !meter.is_idle(now));
        }
        // All or none: one that is full keeps the mail, and the others must not count it.
        let waits = limited.iter().filter_map(|(name, limit)| meters.get_mut(*name)?.wait(*limit, now));
        if let Some(wait) = waits.max() {
            return Err(wait);
        }
        let taken = limited.into_iter().map(|(name, limit)| {
            meters.entry(name.into()).or_default().begin(limit, now);
            name.into()
        });
        Ok(Leave { taken: taken.collect(), destinations: Some(self.clone()) })
    }
}

impl Drop for Leave {
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
        let destinations = Arc::new(Destinations::default());
        let own = BTreeMap::from(
            ["a.example", "b.example"]
                .map(|domain| (domain.to_owned(), DestinationLimit { connections: 1, per_second: 0 })),
        );
        let ask = |domains: &[&'static str]| destinations.ask(&own, domains.iter().copied(), now());
        let first = ask(&["a.example", "a.example", "free.example"]).unwrap();
        assert!(ask(&["b.example", "a.example"]).is_err());
        let other = ask(&["b.example"]).expect("the mail that was turned away does not count");
        assert!(ask(&["free.example"]).is_ok());
        drop(first);
        assert!(ask(&["a.example"]).is_ok());
        drop(other);
        assert!(ask(&["b.example", "a.example"]).is_ok());
    }
}
