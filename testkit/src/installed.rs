//! Installed programs that tests start: where they are, and running one to its end.

use std::{env, net::TcpListener, path::PathBuf, process::Command};

/// Where a program is; servers are often not on the path of a user.
pub(crate) fn program(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let mut found = folders.map(|folder| folder.join(name)).filter(|file| file.is_file());
    found
        .next()
        .unwrap_or_else(|| panic!("{name} is missing: these tests need MariaDB 10.6 or later installed"))
}

/// Runs a command and gives what it prints. Panics with its words where it fails.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?} failed: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// A port of loopback that nobody has now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound listener has an address").port()
}
