//! The system's figures of this process, for `/metrics`: processor time, memory, files, threads, and when it
//! began.
//!
//! They are read from `/proc` on request, under the names that Prometheus' own client libraries use, so that
//! dashboards made for them work. Where there is no `/proc`, or a part of it cannot be read, that part is
//! left out: a missing number is better than a wrong one.

use std::{fmt::Write, fs, path::Path};

/// One metric with its help text.
struct ProcessMetric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: f64,
}

/// Ticks of a second and bytes of a page, which the numbers of `/proc` are in.
#[derive(Clone, Copy, Debug)]
struct ProcUnits {
    ticks_per_s: f64,
    page_bytes: f64,
}

impl ProcUnits {
    fn of_system() -> Self {
        // The kernel shows user space 100 ticks a second on every machine that Linux runs on today
        // (`USER_HZ`).
        Self { ticks_per_s: 100.0, page_bytes: page_size() as f64 }
    }
}

/// The metrics in Prometheus' text format.
pub(crate) fn render() -> String {
    let mut text = String::new();
    for metric in read(Path::new("/proc"), ProcUnits::of_system()) {
        let ProcessMetric { name, kind, help, value } = metric;
        // Writing to a text cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
    text
}

fn read(proc: &Path, units: ProcUnits) -> Vec<ProcessMetric> {
    let own = proc.join("self");
    let mut metrics = Vec::new();
    let mut add = |name, kind, help, value: Option<f64>| {
        metrics.extend(value.map(|value| ProcessMetric { name, kind, help, value }));
    };
    let stat = fs::read_to_string(own.join("stat")).unwrap_or_default();
    let stat = ProcStat::parse(&stat);
    let of_stat = |number: usize| stat.as_ref().and_then(|stat| stat.number(number));
    let cpu_ticks = of_stat(14).zip(of_stat(15)).map(|(user, system)| user + system);
    add(
        "process_cpu_seconds_total",
        "counter",
        "Processor time that the process has used, in seconds",
        cpu_ticks.map(|ticks| ticks / units.ticks_per_s),
    );
    add("process_threads", "gauge", "Threads of the process", of_stat(20));
    let boot = fs::read_to_string(proc.join("stat")).ok().and_then(|stat| boot_time(&stat));
    add(
        "process_start_time_seconds",
        "gauge",
        "When the process began, in seconds since 1970",
        boot.zip(of_stat(22)).map(|(boot, ticks)| boot + ticks / units.ticks_per_s),
    );
    add("process_virtual_memory_bytes", "gauge", "Address space of the process, in bytes", of_stat(23));
    add(
        "process_resident_memory_bytes",
        "gauge",
        "Memory that the process holds, in bytes",
        of_stat(24).map(|pages| pages * units.page_bytes),
    );
    // The folder that is read is open meanwhile.
    let open = fs::read_dir(own.join("fd")).ok().map(|files| files.count().saturating_sub(1) as f64);
    add("process_open_fds", "gauge", "Files and connections that the process has open", open);
    let limits = fs::read_to_string(own.join("limits")).unwrap_or_default();
    add("process_max_fds", "gauge", "How many files and connections it may have open", files_max(&limits));
    metrics
}

/// The fields of `/proc/PID/stat`, numbered as proc(5) does. The second is the program's name in brackets,
/// which may contain anything.
struct ProcStat<'a>(Vec<&'a str>);

impl<'a> ProcStat<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        Some(Self(rest.split_ascii_whitespace().collect()))
    }

    fn number(&self, field: usize) -> Option<f64> {
        self.0.get(field.checked_sub(3)?)?.parse().ok()
    }
}

fn boot_time(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn files_max(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => None,
        number => number.parse().ok(),
    }
}

/// Bytes of a page of memory.
fn page_size() -> u64 {
    // `AT_PAGESZ` of the auxiliary vector: pairs of words, as wide as a pointer.
    const AT_PAGESZ: usize = 6;
    const WORD: usize = size_of::<usize>();
    let vector = fs::read("/proc/self/auxv").unwrap_or_default();
    let word = |bytes: &[u8]| bytes.try_into().map(usize::from_ne_bytes).unwrap_or_default();
    let mut pairs = vector.chunks_exact(2 * WORD).map(|pair| (word(&pair[..WORD]), word(&pair[WORD..])));
    pairs.find(|(kind, _)| *kind == AT_PAGESZ).map_or(4_096, |(_, bytes)| bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: ProcUnits = ProcUnits { ticks_per_s: 100.0, page_bytes: 4_096.0 };

    fn value(metrics: &[ProcessMetric], name: &str) -> Option<f64> {
        metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value)
    }

    #[test]
    fn a_name_with_brackets_and_blanks_moves_no_field() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("self");
        fs::create_dir_all(own.join("fd")).unwrap();
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 99 0 0 0 250 50 0 0 20 0 11 0 300 8192 2 18446744073709551615 1";
        fs::write(own.join("stat"), stat).unwrap();
        fs::write(
            own.join("limits"),
            "Limit  Soft  Hard\nMax open files            1024       4096    files\n",
        )
        .unwrap();
        fs::write(folder.path().join("stat"), "cpu 1 2\nbtime 1700000000\n").unwrap();
        for file in ["0", "1", "2"] {
            fs::write(own.join("fd").join(file), "").unwrap();
        }
        let metrics = read(folder.path(), UNITS);
        for (name, expected) in [
            ("process_cpu_seconds_total", 3.0),
            ("process_threads", 11.0),
            ("process_start_time_seconds", 1_700_000_003.0),
            ("process_virtual_memory_bytes", 8_192.0),
            ("process_resident_memory_bytes", 8_192.0),
            ("process_open_fds", 2.0),
            ("process_max_fds", 1_024.0),
        ] {
            assert_eq!(value(&metrics, name), Some(expected), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path(), UNITS).is_empty());
        fs::create_dir_all(folder.path().join("self")).unwrap();
        fs::write(folder.path().join("self/stat"), "7 (cut").unwrap();
        fs::write(folder.path().join("self/limits"), "Max open files unlimited unlimited files\n").unwrap();
        assert!(read(folder.path(), UNITS).is_empty());
    }

    #[test]
    fn this_process_has_memory_threads_files_and_a_past() {
        let text = render();
        for name in [
            "process_cpu_seconds_total",
            "process_threads",
            "process_start_time_seconds",
            "process_virtual_memory_bytes",
            "process_resident_memory_bytes",
            "process_open_fds",
            "process_max_fds",
        ] {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            let value: f64 = line.unwrap_or_else(|| panic!("{name} is missing:\n{text}")).parse().unwrap();
            assert!(value > 0.0 || name == "process_cpu_seconds_total", "{name} {value}");
            assert_eq!(text.matches(&format!("# TYPE {name} ")).count(), 1);
        }
        assert!(page_size().is_power_of_two() && page_size() >= 4_096);
    }
}
