//! Programs of installed packages that tests start: where they are, how to run one, and free ports for
//! servers.

use std::{
    collections::hash_map::RandomState,
    env,
    hash::BuildHasher,
    net::TcpListener,
    path::PathBuf,
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// Below what systems give to outgoing connections: a port that was free stays so until its server listens,
/// and while a server is down.
const PORTS: std::ops::Range<u32> = 10_000..20_000;

/// Finds a program; servers are often not on the path of a user.
pub(crate) fn program(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let mut found = folders.map(|folder| folder.join(name)).filter(|file| file.is_file());
    found.next().unwrap_or_else(|| panic!("{name} is missing: ./test installs the packages that tests need"))
}

/// Runs a command and returns what it prints. Panics with its output if it fails.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?} failed: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// A free port of loopback that this process has not returned before.
pub(crate) fn free_port() -> u16 {
    static NEXT: OnceLock<AtomicU32> = OnceLock::new();
    let count = PORTS.end - PORTS.start;
    // Test processes beside this one begin elsewhere.
    let next = NEXT.get_or_init(|| AtomicU32::new(RandomState::new().hash_one(()) as u32 % count));
    (0..count)
        .map(|_| PORTS.start + next.fetch_add(1, Ordering::Relaxed) % count)
        .filter_map(|port| u16::try_from(port).ok())
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("loopback has a free port")
}
