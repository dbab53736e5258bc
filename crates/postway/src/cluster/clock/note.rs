//! What a node knew of the time, for its next life.
//!
//! The use of limits is dated by the time that nodes agree on, and moves with it when that is set. A clock
//! that is set between two lives of the last node is seen by nobody, so a node notes how far its time is from
//! the kernel's uptime, which cannot be set, in a file of its data folder. The next life of the same boot
//! knows by it what the time would be. After a reboot nothing is known: the use counts by the time that it
//! was dated with.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use postway_domain::Time;

/// Differences below this are nudges of the clock, and no limit's window notices them.
const NEAR_MS: i64 = 500;

/// How long the kernel has run, without the time of day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelUptime {
    /// Names the boot.
    pub boot: String,
    /// Milliseconds since then, sleep included.
    pub ms: i64,
}

impl KernelUptime {
    /// What Linux says; other systems say nothing.
    pub fn read() -> Option<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let seconds: f64 = uptime.split_whitespace().next()?.parse().ok()?;
        Some(Self { boot: boot.trim().to_owned(), ms: (seconds * 1_000.0) as i64 })
    }
}

/// The file that keeps the time of a node from one life to the next.
#[derive(Debug)]
pub struct ClockNote {
    path: PathBuf,
    /// The distance that is in the file.
    written_ms: Mutex<Option<i64>>,
}

impl ClockNote {
    /// The note of the node with this data folder.
    pub fn of(data_dir: &Path) -> Self {
        Self { path: data_dir.join("node.clock"), written_ms: Mutex::default() }
    }

    /// What the time would be now if nobody had set it since the note was written in this boot.
    pub fn expected(&self, uptime: &KernelUptime) -> Option<Time> {
        let text = fs::read_to_string(&self.path).ok()?;
        let (boot, distance_ms) = text.trim().split_once(' ')?;
        let distance_ms: i64 = distance_ms.parse().ok()?;
        (boot == uptime.boot).then(|| Time::from_millis(distance_ms.saturating_add(uptime.ms)))
    }

    /// Notes the time, if it is not as far from the uptime as the file says. The note is a help: what cannot
    /// be written is left.
    pub fn keep(&self, uptime: &KernelUptime, now: Time) {
        let distance_ms = now.as_millis() - uptime.ms;
        let mut written_ms = self.written_ms.lock().unwrap_or_else(PoisonError::into_inner);
        if written_ms.is_some_and(|written_ms| (written_ms - distance_ms).abs() < NEAR_MS) {
            return;
        }
        match self.write(&format!("{} {distance_ms}\n", uptime.boot)) {
            Ok(()) => *written_ms = Some(distance_ms),
            Err(error) => tracing::debug!(%error, "the time could not be noted"),
        }
    }

    /// Whole or not at all.
    fn write(&self, text: &str) -> io::Result<()> {
        let fresh = self.path.with_extension("clock.new");
        fs::write(&fresh, text)?;
        fs::rename(&fresh, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uptime(boot: &str, ms: i64) -> KernelUptime {
        KernelUptime { boot: boot.to_owned(), ms }
    }

    #[test]
    fn a_later_life_of_one_boot_knows_what_the_time_would_be() {
        let folder = tempfile::TempDir::new().unwrap();
        let at = Time::from_millis;
        let note = ClockNote::of(folder.path());
        assert_eq!(note.expected(&uptime("a", 5_000)), None, "nothing was noted");
        note.keep(&uptime("a", 5_000), at(1_000_000));
        let later = ClockNote::of(folder.path());
        assert_eq!(later.expected(&uptime("a", 9_000)), Some(at(1_004_000)));
        assert_eq!(later.expected(&uptime("b", 9_000)), None, "another boot");
        later.keep(&uptime("a", 9_000), at(5_000_000));
        assert_eq!(note.expected(&uptime("a", 9_000)), Some(at(5_000_000)));
        for garbled in ["", "a", "a b", "a 1 2"] {
            fs::write(folder.path().join("node.clock"), garbled).unwrap();
            assert_eq!(later.expected(&uptime("a", 9_000)), None, "{garbled}");
        }
    }

    #[test]
    fn linux_says_how_long_it_runs() {
        if cfg!(target_os = "linux") {
            let first = KernelUptime::read().unwrap();
            let second = KernelUptime::read().unwrap();
            assert!(first.boot == second.boot && first.ms > 0 && second.ms >= first.ms);
        }
    }
}
