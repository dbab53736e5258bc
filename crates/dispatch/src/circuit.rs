//! The circuit of an account: opens when the account itself is at fault, so that its mail waits instead of failing.
//!
//! While open, nothing is claimed for the account. When its time is up one message goes as a probe; success closes it,
//! another fault of the account opens it again for longer.

use std::time::Duration;

use tokio::time::Instant;

/// The first wait after a fault.
const WAIT_FIRST: Duration = Duration::from_secs(5);
/// The longest wait between probes.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// Whether an account may be used.
#[derive(Debug, Default)]
pub(crate) struct Circuit {
    faults: u32,
    open_until: Option<Instant>,
}

impl Circuit {
    /// How many messages may be in hand at once: `normal` while closed, none while open, one as a probe.
    pub fn room(&self, normal: usize, now: Instant) -> usize {
        match self.open_until {
            None => normal,
            Some(until) if now < until => 0,
            Some(_) => 1,
        }
    }

    /// The account is at fault. Returns how long its mail waits.
    pub fn fault(&mut self, now: Instant) -> Duration {
        // The connections that were in use when it opened all report the same fault: it counts once.
        if let Some(until) = self.open_until
            && now < until
        {
            return until - now;
        }
        let wait = (WAIT_FIRST * 2u32.saturating_pow(self.faults)).min(WAIT_MAX);
        self.faults = (self.faults + 1).min(16);
        self.open_until = Some(now + wait);
        wait
    }

    /// The account works. Returns whether it did not before.
    pub fn success(&mut self) -> bool {
        self.faults = 0;
        self.open_until.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_opens_it_a_probe_closes_it_and_repeats_wait_longer() {
        let start = Instant::now();
        let mut circuit = Circuit::default();
        assert_eq!(circuit.room(10, start), 10);
        assert_eq!(circuit.fault(start), WAIT_FIRST);
        assert_eq!(circuit.fault(start + Duration::from_secs(1)), Duration::from_secs(4), "counted once");
        assert_eq!(circuit.room(10, start), 0);
        let probe = start + WAIT_FIRST;
        assert_eq!(circuit.room(10, probe), 1);
        assert_eq!(circuit.fault(probe), WAIT_FIRST * 2);
        assert!(circuit.success());
        assert_eq!(circuit.room(10, probe), 10);
        assert_eq!(circuit.fault(probe), WAIT_FIRST);
        for _ in 0..40 {
            let until = circuit.open_until.unwrap();
            assert!(circuit.fault(until) <= WAIT_MAX);
        }
    }
}
