//! The circuit of an account: opens when the account itself is at fault, so that its mail waits instead of failing.
//!
//! While open, nothing is claimed for the account. When its time is up one message goes as a probe; success closes it,
//! another fault of the account opens it again for longer. What opened it is written to the store, so that operators see
//! why and other nodes, and this one after a restart, begin where this one stood.

use std::{sync::Arc, time::Duration};

use postway_domain::{Failure, Time};
use postway_store::record::{self, AccountKey, DirectoryChange};
use tokio::time::Instant;

use super::Post;
use crate::context::{ClockReading, Shared};

/// The first wait after a fault.
const WAIT_FIRST: Duration = Duration::from_secs(5);
/// The longest wait between probes.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Beyond this many faults in a row the wait grows no more.
const FAULTS_MAX: u32 = 16;

/// Whether an account may be used.
#[derive(Debug, Default)]
pub(crate) struct Circuit {
    faults: u32,
    open: Option<Open>,
    /// The provider asked for a pause until this time. It is no fault, so no event reports it and no fallback account takes over.
    paused_until: Option<Instant>,
}

/// An open circuit, in the clock of this process and in everybody's.
#[derive(Debug)]
struct Open {
    until: Instant,
    code: String,
    reason: String,
    opened_at: Time,
    open_until: Time,
}

impl Circuit {
    /// How many messages may be in hand at once: `normal` while closed, none while open or paused, one as a probe.
    pub fn room(&self, normal: usize, now: Instant) -> usize {
        if self.is_open(now) || self.pause_left(now).is_some() {
            return 0;
        }
        match self.open.is_some() || self.paused_until.is_some() {
            true => 1,
            false => normal,
        }
    }

    /// Whether the account is at fault and left alone.
    pub fn is_open(&self, now: Instant) -> bool {
        self.open.as_ref().is_some_and(|open| now < open.until)
    }

    /// The peer asks to be sent nothing for this long. The longest such wish counts.
    pub fn pause(&mut self, wait: Duration, now: Instant) {
        let until = now + wait.min(WAIT_MAX);
        self.paused_until = Some(self.paused_until.map_or(until, |known| known.max(until)));
    }

    /// How long the peer is still to be sent nothing.
    pub fn pause_left(&self, now: Instant) -> Option<Duration> {
        self.paused_until.filter(|until| now < *until).map(|until| until - now)
    }

    /// The account is at fault. Returns how long its mail waits, and whether that is news.
    pub fn fault(&mut self, failure: &Failure, now: ClockReading) -> (Duration, bool) {
        // The connections that were in use when it opened all report the same fault: it counts once.
        if let Some(open) = &self.open
            && now.instant < open.until
        {
            return (open.until - now.instant, false);
        }
        let wait = (WAIT_FIRST * 2u32.saturating_pow(self.faults)).min(WAIT_MAX);
        self.faults = (self.faults + 1).min(FAULTS_MAX);
        self.open = Some(Open {
            until: now.instant + wait,
            code: failure.code.clone().into_owned(),
            reason: failure.message.clone(),
            opened_at: self.open.as_ref().map_or(now.time, |open| open.opened_at),
            open_until: now.time.plus(wait),
        });
        (wait, true)
    }

    /// The account works. Returns whether it did not before. A pause that was asked for meanwhile stays.
    pub fn success(&mut self, now: Instant) -> bool {
        self.faults = 0;
        self.paused_until = self.paused_until.filter(|until| now < *until);
        self.open.take().is_some()
    }

    /// Forgets all, because the account is another one now.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Takes over what another process, or this one before its restart, has found. What is known here is newer.
    pub fn adopt(&mut self, found: record::Circuit, now: ClockReading) {
        if self.open.is_some() {
            return;
        }
        self.faults = found.faults.min(FAULTS_MAX);
        self.open = Some(Open {
            // Another node's clock may be off: no wait is longer than the longest.
            until: now.instant + found.open_until.since(now.time).min(WAIT_MAX),
            code: found.code,
            reason: found.reason,
            opened_at: found.opened_at,
            open_until: found.open_until,
        });
    }

    /// As the store keeps it; `None` while closed.
    pub fn record(&self, key: &AccountKey) -> Option<record::Circuit> {
        self.open.as_ref().map(|open| record::Circuit {
            key: key.clone(),
            code: open.code.clone(),
            reason: open.reason.clone(),
            opened_at: open.opened_at,
            open_until: open.open_until,
            faults: self.faults,
        })
    }
}

/// How often writing the state of a circuit is tried, and how long between.
const TELL_TRIES: u32 = 5;
const TELL_WAIT: Duration = Duration::from_secs(1);

/// Tells the store how an account's circuit stands, beside the courier's work. One writes at a time, so that what is
/// written last is what is so.
pub(crate) fn tell(shared: &Arc<Shared>, post: &Arc<Post>) {
    if !post.begin_telling() {
        return;
    }
    let (shared, post) = (shared.clone(), post.clone());
    let tasks = shared.tasks.clone();
    tasks.spawn(async move {
        loop {
            write(&shared, &post).await;
            if !post.end_telling() {
                break;
            }
        }
    });
}

/// Writes the state as it is now. Where the store stays away it is told at the next change: nothing but what operators
/// see depends on it.
async fn write(shared: &Shared, post: &Post) {
    for _ in 0..TELL_TRIES {
        let record = post.circuit().record(&post.key);
        let change = match record {
            Some(circuit) => DirectoryChange::OpenCircuit(circuit),
            None => DirectoryChange::CloseCircuit(post.key.clone()),
        };
        match shared.store.change(change, None).await {
            Ok(_) => return,
            Err(error) => tracing::warn!(%error, "the state of an account's circuit could not be stored yet"),
        }
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(TELL_WAIT) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::failure::{Category, Phase, Severity};

    use super::*;

    fn wrong_password() -> Failure {
        Failure::new("smtp_535", Category::Authentication, Phase::Auth, Severity::Account, "wrong password")
    }

    fn key() -> AccountKey {
        AccountKey { tenant: "default".parse().unwrap(), account: "relay".parse().unwrap() }
    }

    #[test]
    fn a_fault_opens_it_a_probe_closes_it_and_repeats_wait_longer() {
        let start = ClockReading { instant: Instant::now(), time: Time::from_millis(1_000) };
        let after = |by: Duration| ClockReading { instant: start.instant + by, time: start.time.plus(by) };
        let mut circuit = Circuit::default();
        assert_eq!(circuit.room(10, start.instant), 10);
        assert_eq!(circuit.fault(&wrong_password(), start), (WAIT_FIRST, true));
        let later = after(Duration::from_secs(1));
        assert_eq!(circuit.fault(&wrong_password(), later), (Duration::from_secs(4), false), "counted once");
        assert_eq!(circuit.room(10, start.instant), 0);
        let probe = after(WAIT_FIRST);
        assert_eq!(circuit.room(10, probe.instant), 1);
        assert_eq!(circuit.fault(&wrong_password(), probe), (WAIT_FIRST * 2, true));
        let kept = circuit.record(&key()).unwrap();
        assert_eq!((kept.opened_at, kept.faults), (start.time, 2), "open since the first fault");
        assert_eq!(kept.open_until, probe.time.plus(WAIT_FIRST * 2));
        assert!(circuit.success(probe.instant));
        assert_eq!((circuit.room(10, probe.instant), circuit.record(&key())), (10, None));
        assert_eq!(circuit.fault(&wrong_password(), probe), (WAIT_FIRST, true));
        for _ in 0..40 {
            let until = circuit.open.as_ref().unwrap().until;
            assert!(circuit.fault(&wrong_password(), ClockReading { instant: until, ..probe }).0 <= WAIT_MAX);
        }
    }

    #[test]
    fn a_pause_holds_mail_without_opening_the_circuit_and_a_probe_ends_it() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut circuit = Circuit::default();
        circuit.pause(Duration::from_secs(10), start);
        circuit.pause(Duration::from_secs(2), start);
        assert_eq!((circuit.room(10, after(9)), circuit.is_open(after(9))), (0, false));
        assert_eq!(circuit.pause_left(after(9)), Some(Duration::from_secs(1)), "the longest wish counts");
        assert!(!circuit.success(after(9)));
        assert_eq!(circuit.room(10, after(9)), 0, "an answer to an earlier call does not end it");
        assert_eq!((circuit.room(10, after(10)), circuit.record(&key())), (1, None), "then a probe");
        circuit.success(after(10));
        assert_eq!(circuit.room(10, after(10)), 10);
        circuit.pause(Duration::from_secs(86_400), start);
        assert_eq!(circuit.pause_left(start), Some(WAIT_MAX));
    }

    #[test]
    fn what_another_node_found_holds_here_too() {
        let now = ClockReading { instant: Instant::now(), time: Time::from_millis(1_000_000) };
        let found = record::Circuit {
            key: key(),
            code: "smtp_535".to_owned(),
            reason: "wrong password".to_owned(),
            opened_at: Time::from_millis(900_000),
            open_until: Time::from_millis(1_020_000),
            faults: 3,
        };
        let mut circuit = Circuit::default();
        circuit.adopt(found.clone(), now);
        assert_eq!(circuit.record(&key()), Some(found.clone()));
        assert_eq!(circuit.room(10, now.instant), 0);
        assert_eq!(circuit.room(10, now.instant + Duration::from_secs(20)), 1, "then a probe");
        let mut ours = Circuit::default();
        ours.fault(&wrong_password(), now);
        ours.adopt(found.clone(), now);
        assert_eq!(ours.record(&key()).unwrap().faults, 1, "our own finding is newer");
        let far = record::Circuit { open_until: Time::from_millis(i64::MAX), ..found };
        let mut skewed = Circuit::default();
        skewed.adopt(far, now);
        assert_eq!(skewed.room(10, now.instant + WAIT_MAX), 1);
    }
}
