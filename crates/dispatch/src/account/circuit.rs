//! The circuit of an account: it opens when the account itself is at fault, so that its mail waits instead of
//! failing.
//!
//! While the circuit is open, nothing is claimed for the account. When the wait is over, one message is sent
//! as a probe: success closes the circuit, another fault of the account opens it again for longer. Each
//! change is written to the store, so that operators see the reason and other nodes, and this one after a
//! restart, continue from there.

use std::{sync::Arc, time::Duration};

use postway_domain::{SendFailure, Time};
use postway_store::record::{self, AccountKey, DirectoryChange};
use tokio::time::Instant;

use super::AccountSender;
use crate::context::{ClockReading, DispatchContext};

/// The first wait after a fault.
const WAIT_FIRST: Duration = Duration::from_secs(5);
/// The longest wait between probes.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Beyond this many faults in a row the wait grows no more.
const FAULTS_MAX: u32 = 16;

/// The state of an account's circuit in this process.
#[derive(Debug, Default)]
pub(crate) struct AccountCircuit {
    faults: u32,
    open: Option<OpenCircuit>,
    /// The provider asked for a pause until this time. A pause is not a fault: no event reports it and no
    /// fallback account takes over.
    paused_until: Option<Instant>,
}

/// Why and until when a circuit is open: `until` on the clock of this process, the other times on the shared
/// clock.
#[derive(Debug)]
struct OpenCircuit {
    until: Instant,
    code: String,
    reason: String,
    opened_at: Time,
    open_until: Time,
}

impl AccountCircuit {
    /// How many messages may be in flight: `normal` while closed, none while open or paused, one as a probe.
    pub fn capacity(&self, normal: usize, now: Instant) -> usize {
        if self.is_open(now) || self.pause_left(now).is_some() {
            return 0;
        }
        match self.open.is_some() || self.paused_until.is_some() {
            true => 1,
            false => normal,
        }
    }

    /// Whether the circuit is open, so that nothing may be sent.
    pub fn is_open(&self, now: Instant) -> bool {
        self.open.as_ref().is_some_and(|open| now < open.until)
    }

    /// Notes that the peer asks for a pause of this length. The pause that ends last counts.
    pub fn pause(&mut self, wait: Duration, now: Instant) {
        let until = now + wait.min(WAIT_MAX);
        self.paused_until = Some(self.paused_until.map_or(until, |known| known.max(until)));
    }

    /// How long a pause that the peer asked for still lasts.
    pub fn pause_left(&self, now: Instant) -> Option<Duration> {
        self.paused_until.filter(|until| now < *until).map(|until| until - now)
    }

    /// Notes a fault of the account. Returns how long its mail waits, and whether the circuit has just
    /// opened.
    pub fn note_fault(&mut self, failure: &SendFailure, now: ClockReading) -> (Duration, bool) {
        // All connections that were in use when it opened report the same fault; it counts once.
        if let Some(open) = &self.open
            && now.instant < open.until
        {
            return (open.until - now.instant, false);
        }
        let wait = (WAIT_FIRST * 2u32.saturating_pow(self.faults)).min(WAIT_MAX);
        self.faults = (self.faults + 1).min(FAULTS_MAX);
        self.open = Some(OpenCircuit {
            until: now.instant + wait,
            code: failure.code.clone().into_owned(),
            reason: failure.message.clone(),
            opened_at: self.open.as_ref().map_or(now.time, |open| open.opened_at),
            open_until: now.time.plus(wait),
        });
        (wait, true)
    }

    /// Notes a success. Returns whether the circuit was open before. A pause that has not ended stays.
    pub fn note_success(&mut self, now: Instant) -> bool {
        self.faults = 0;
        self.paused_until = self.paused_until.filter(|until| now < *until);
        self.open.take().is_some()
    }

    /// Closes the circuit and forgets its history, because the settings of the account have changed.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Takes over a stored circuit, unless this process has opened its own, which is newer.
    pub fn adopt(&mut self, stored: record::OpenCircuit, now: ClockReading) {
        if self.open.is_some() {
            return;
        }
        self.faults = stored.faults.min(FAULTS_MAX);
        self.open = Some(OpenCircuit {
            // Another node's clock may be wrong, so the wait is capped.
            until: now.instant + stored.open_until.since(now.time).min(WAIT_MAX),
            code: stored.code,
            reason: stored.reason,
            opened_at: stored.opened_at,
            open_until: stored.open_until,
        });
    }

    /// The circuit as the store keeps it; `None` while closed.
    pub fn record(&self, key: &AccountKey) -> Option<record::OpenCircuit> {
        self.open.as_ref().map(|open| record::OpenCircuit {
            key: key.clone(),
            code: open.code.clone(),
            reason: open.reason.clone(),
            opened_at: open.opened_at,
            open_until: open.open_until,
            faults: self.faults,
        })
    }
}

/// How often a write of the circuit is tried, and how long to wait between tries.
const WRITE_TRIES: u32 = 5;
const WRITE_WAIT: Duration = Duration::from_secs(1);

/// Writes an account's circuit to the store in a task of its own, so that the courier does not wait. Only one
/// task writes at a time, so the last write is the current state.
pub(crate) fn store_circuit(context: &Arc<DispatchContext>, sender: &Arc<AccountSender>) {
    if !sender.begin_circuit_write() {
        return;
    }
    let (context, sender) = (context.clone(), sender.clone());
    let tasks = context.tasks.clone();
    tasks.spawn(async move {
        loop {
            write_circuit(&context, &sender).await;
            if !sender.end_circuit_write() {
                break;
            }
        }
    });
}

/// Writes the current state. If the store stays unavailable, the next change writes it: only what operators
/// and other nodes see depends on it.
async fn write_circuit(context: &DispatchContext, sender: &AccountSender) {
    for _ in 0..WRITE_TRIES {
        let record = sender.circuit().record(&sender.key);
        let change = match record {
            Some(circuit) => DirectoryChange::OpenCircuit(circuit),
            None => DirectoryChange::CloseCircuit(sender.key.clone()),
        };
        match context.store.change(change, None).await {
            Ok(_) => return,
            Err(error) => tracing::warn!(%error, "the state of an account's circuit could not be stored yet"),
        }
        tokio::select! {
            biased;
            () = context.stop.cancelled() => return,
            () = tokio::time::sleep(WRITE_WAIT) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::failure::{FailureCategory, FailurePhase, FailureSeverity};

    use super::*;

    fn wrong_password() -> SendFailure {
        SendFailure::new(
            "smtp_535",
            FailureCategory::Authentication,
            FailurePhase::Auth,
            FailureSeverity::Account,
            "wrong password",
        )
    }

    fn key() -> AccountKey {
        AccountKey { tenant: "default".parse().unwrap(), account: "relay".parse().unwrap() }
    }

    #[test]
    fn a_fault_opens_it_a_probe_closes_it_and_repeats_wait_longer() {
        let start = ClockReading { instant: Instant::now(), time: Time::from_millis(1_000) };
        let after = |by: Duration| ClockReading { instant: start.instant + by, time: start.time.plus(by) };
        let mut circuit = AccountCircuit::default();
        assert_eq!(circuit.capacity(10, start.instant), 10);
        assert_eq!(circuit.note_fault(&wrong_password(), start), (WAIT_FIRST, true));
        let later = after(Duration::from_secs(1));
        assert_eq!(
            circuit.note_fault(&wrong_password(), later),
            (Duration::from_secs(4), false),
            "counted once"
        );
        assert_eq!(circuit.capacity(10, start.instant), 0);
        let probe = after(WAIT_FIRST);
        assert_eq!(circuit.capacity(10, probe.instant), 1);
        assert_eq!(circuit.note_fault(&wrong_password(), probe), (WAIT_FIRST * 2, true));
        let stored = circuit.record(&key()).unwrap();
        assert_eq!((stored.opened_at, stored.faults), (start.time, 2), "open since the first fault");
        assert_eq!(stored.open_until, probe.time.plus(WAIT_FIRST * 2));
        assert!(circuit.note_success(probe.instant));
        assert_eq!((circuit.capacity(10, probe.instant), circuit.record(&key())), (10, None));
        assert_eq!(circuit.note_fault(&wrong_password(), probe), (WAIT_FIRST, true));
        for _ in 0..40 {
            let until = circuit.open.as_ref().unwrap().until;
            assert!(
                circuit.note_fault(&wrong_password(), ClockReading { instant: until, ..probe }).0 <= WAIT_MAX
            );
        }
    }

    #[test]
    fn a_pause_stops_mail_without_opening_the_circuit_and_a_probe_ends_it() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut circuit = AccountCircuit::default();
        circuit.pause(Duration::from_secs(10), start);
        circuit.pause(Duration::from_secs(2), start);
        assert_eq!((circuit.capacity(10, after(9)), circuit.is_open(after(9))), (0, false));
        assert_eq!(circuit.pause_left(after(9)), Some(Duration::from_secs(1)), "the longest pause counts");
        assert!(!circuit.note_success(after(9)));
        assert_eq!(circuit.capacity(10, after(9)), 0, "an answer to an earlier call does not end it");
        assert_eq!((circuit.capacity(10, after(10)), circuit.record(&key())), (1, None), "then a probe");
        circuit.note_success(after(10));
        assert_eq!(circuit.capacity(10, after(10)), 10);
        circuit.pause(Duration::from_secs(86_400), start);
        assert_eq!(circuit.pause_left(start), Some(WAIT_MAX));
    }

    #[test]
    fn a_circuit_that_another_node_stored_is_taken_over() {
        let now = ClockReading { instant: Instant::now(), time: Time::from_millis(1_000_000) };
        let stored = record::OpenCircuit {
            key: key(),
            code: "smtp_535".to_owned(),
            reason: "wrong password".to_owned(),
            opened_at: Time::from_millis(900_000),
            open_until: Time::from_millis(1_020_000),
            faults: 3,
        };
        let mut circuit = AccountCircuit::default();
        circuit.adopt(stored.clone(), now);
        assert_eq!(circuit.record(&key()), Some(stored.clone()));
        assert_eq!(circuit.capacity(10, now.instant), 0);
        assert_eq!(circuit.capacity(10, now.instant + Duration::from_secs(20)), 1, "then a probe");
        let mut ours = AccountCircuit::default();
        ours.note_fault(&wrong_password(), now);
        ours.adopt(stored.clone(), now);
        assert_eq!(ours.record(&key()).unwrap().faults, 1, "the circuit of this process is newer");
        let far = record::OpenCircuit { open_until: Time::from_millis(i64::MAX), ..stored };
        let mut skewed = AccountCircuit::default();
        skewed.adopt(far, now);
        assert_eq!(skewed.capacity(10, now.instant + WAIT_MAX), 1);
    }
}
