//! What a run costs: CPU time and memory of the servers' processes, and their own counters, summed.
//!
//! CPU time and memory are read from `/proc`, so on Linux only; elsewhere, or where the process is not known,
//! they are left out of the report.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;

use super::server::BenchServer;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;

/// `/proc/PID/stat` counts in these; fixed at 100 for user space on every Linux platform that we build for.
const TICKS_PER_SECOND: f64 = 100.0;

/// How long and how often the servers are watched to see whether they are idle.
const REST_LOOK: Duration = Duration::from_millis(250);
const REST_LOOKS_MAX: u32 = 40;
/// The share of a core up to which a server counts as idle.
const REST_SHARE: f64 = 0.1;

/// Readings at one moment; `None` if they are not available.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceMeter {
    pub cpu_seconds: Option<f64>,
    pub resident_mib: Option<f64>,
    pub peak_resident_mib: Option<f64>,
    /// Bytes that the processes had the kernel write to a disk.
    pub written_kib: Option<f64>,
    pub commits: Option<f64>,
    pub in_doubt: Option<f64>,
    /// Notifications that their receivers took.
    pub acknowledged: Option<f64>,
}

impl ResourceMeter {
    /// Reads every server, and adds them up.
    pub async fn read(nodes: &[BenchServer]) -> Result<Self, CommandFailure> {
        let mut sum: Option<Self> = None;
        for node in nodes {
            let one = Self::read_one(node).await?;
            sum = Some(sum.map_or(one.clone(), |sum| sum.plus(&one)));
        }
        Ok(sum.unwrap_or_default())
    }

    /// Reads once the servers are idle, so that a load is charged with all of its work and with no other.
    /// Waits a few seconds at most.
    pub async fn read_at_rest(nodes: &[BenchServer]) -> Result<Self, CommandFailure> {
        let mut last = Self::read(nodes).await?;
        for _ in 0..REST_LOOKS_MAX {
            tokio::time::sleep(REST_LOOK).await;
            let now = Self::read(nodes).await?;
            let busy = now.cpu_seconds.zip(last.cpu_seconds).map_or(0.0, |(now, last)| now - last);
            last = now;
            if busy < REST_LOOK.as_secs_f64() * REST_SHARE {
                break;
            }
        }
        Ok(last)
    }

    async fn read_one(node: &BenchServer) -> Result<Self, CommandFailure> {
        let metrics =
            match node.client.call_for_bytes(Method::GET, &["metrics"], &[], RequestBody::Empty).await {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                // Switched off in the configuration, or closed to this key.
                Err(CommandFailure::NotFound(_) | CommandFailure::Refused(_)) => String::new(),
                Err(failure) => return Err(failure),
            };
        let of_process =
            |file: &str| node.pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok());
        let status = of_process("status").unwrap_or_default();
        // A counter that never counted is not rendered at all.
        let counted = |name| (!metrics.is_empty()).then(|| counter(&metrics, name).unwrap_or(0.0));
        Ok(Self {
            cpu_seconds: of_process("stat").and_then(|stat| cpu_seconds(&stat)),
            resident_mib: mib(&status, "VmRSS:"),
            peak_resident_mib: mib(&status, "VmHWM:"),
            written_kib: of_process("io").and_then(|io| written_kib(&io)),
            commits: counter(&metrics, "postway_store_commits_total"),
            in_doubt: counted("postway_in_doubt_total"),
            acknowledged: counted("postway_notifications_total{outcome=\"acknowledged\"}"),
        })
    }

    /// Both together; what is not known of one is not known of the sum.
    fn plus(&self, other: &Self) -> Self {
        let sum = |one: Option<f64>, other: Option<f64>| Some(one? + other?);
        Self {
            cpu_seconds: sum(self.cpu_seconds, other.cpu_seconds),
            resident_mib: sum(self.resident_mib, other.resident_mib),
            peak_resident_mib: sum(self.peak_resident_mib, other.peak_resident_mib),
            written_kib: sum(self.written_kib, other.written_kib),
            commits: sum(self.commits, other.commits),
            in_doubt: sum(self.in_doubt, other.in_doubt),
            acknowledged: sum(self.acknowledged, other.acknowledged),
        }
    }
}

/// User and system time. The name in parentheses may contain anything, so fields are counted after it.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

fn written_kib(io: &str) -> Option<f64> {
    let bytes: f64 = io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()?;
    Some(bytes / 1024.0)
}

fn mib(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kib: f64 = line[name.len()..].trim().split(' ').next()?.parse().ok()?;
    Some(kib / 1024.0)
}

/// The sum of a counter over its labels.
fn counter(metrics: &str, name: &str) -> Option<f64> {
    let values = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = match rest.starts_with('{') {
            true => rest.rsplit_once('}')?.1,
            false => rest.strip_prefix(' ')?,
        };
        value.trim().parse::<f64>().ok()
    });
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

/// A percentile (nearest rank), as in 0.99; sorts what it is given; zero for nothing.
pub fn percentile(values: &mut [u64], share: f64) -> f64 {
    values.sort_unstable();
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).map_or(0.0, |value| *value as f64)
}

/// Whether a folder lies in memory, where fsync is free and figures flatter.
pub fn is_in_memory(folder: &Path) -> bool {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    file_system(&mounts, &folder).is_some_and(|kind| matches!(kind, "tmpfs" | "ramfs"))
}

fn file_system<'a>(mounts: &'a str, folder: &Path) -> Option<&'a str> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let above = mounts.filter(|(point, _)| folder.starts_with(point));
    above.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_past_a_name_with_parentheses() {
        let stat = "12 (a (b) c) S 1 1 1 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 100 0 0";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("nonsense"), None);
    }

    #[test]
    fn what_was_written_is_read_without_what_was_taken_back() {
        let io = "rchar: 1\nwchar: 4096\nwrite_bytes: 2048\ncancelled_write_bytes: 512\n";
        assert_eq!((written_kib(io), written_kib("")), (Some(2.0), None));
    }

    #[test]
    fn memory_is_read_in_mebibytes() {
        assert_eq!(mib("Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n", "VmHWM:"), Some(2.0));
        assert_eq!(mib("", "VmRSS:"), None);
    }

    #[test]
    fn a_counter_is_summed_over_its_labels_and_its_namesakes_left_out() {
        let metrics = "# HELP a x\n# TYPE a counter\na{k=\"1\"} 2\na{k=\"2\"} 3\na_b 100\n";
        assert_eq!(counter(metrics, "a"), Some(5.0));
        assert_eq!(counter("c 4\n", "c"), Some(4.0));
        assert_eq!(counter(metrics, "b"), None);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let mut values: Vec<u64> = (1..=100).rev().collect();
        assert_eq!((percentile(&mut values, 0.50), percentile(&mut values, 0.99)), (50.0, 99.0));
        assert_eq!((percentile(&mut [7], 0.50), percentile(&mut [], 0.99)), (7.0, 0.0));
    }

    #[test]
    fn readings_of_many_servers_add_up_where_all_are_known() {
        let one = ResourceMeter { cpu_seconds: Some(1.5), commits: Some(10.0), ..ResourceMeter::default() };
        let other = ResourceMeter { cpu_seconds: Some(0.5), ..ResourceMeter::default() };
        let sum = one.plus(&other);
        assert_eq!((sum.cpu_seconds, sum.commits), (Some(2.0), None));
    }

    #[test]
    fn the_nearest_mount_says_what_a_folder_is() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n";
        assert_eq!(file_system(mounts, Path::new("/tmp/x")), Some("tmpfs"));
        assert_eq!(file_system(mounts, Path::new("/srv/x")), Some("ext4"));
    }
}
