//! A real PostgreSQL with a streaming standby, to be promoted.
//!
//! Both are installed software in a temporary folder, on free ports of loopback, under a guard that ends with
//! the test.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout},
};

use crate::{
    package::free_port,
    postgres::{binaries, guard, psql},
};

/// Makes both servers, says `ready`, and promotes the second at the word `promote`.
const GUARD: &str = r#"
bin=$1 first=$2 second=$3
folder=$(mktemp -d "${TMPDIR:-/tmp}/postway-postgres.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
start() {
    "$bin/pg_ctl" -D "$folder/$1" -w -t 60 -l "$folder/log" -o "-p $2 -c listen_addresses=127.0.0.1 \
-c unix_socket_directories=$folder -c max_connections=100 -c fsync=off" start
}
{
    "$bin/initdb" -D "$folder/first" -U postway -E UTF8 --locale=C.UTF-8 --auth=trust --no-sync &&
    start first "$first" &&
    "$bin/pg_basebackup" -h 127.0.0.1 -p "$first" -U postway -D "$folder/second" -R -X stream -c fast --no-sync &&
    start second "$second"
} >"$folder/out" 2>&1 || { cat "$folder/out" "$folder/log" >&2; exit 1; }
echo ready
while read -r word; do
    "$bin/pg_ctl" -D "$folder/first" -m immediate stop >/dev/null 2>&1
    "$bin/pg_ctl" -D "$folder/second" -w -t 60 "$word" >/dev/null 2>&1 && echo promoted || echo failed
done
for one in first second; do "$bin/pg_ctl" -D "$folder/$one" -m immediate stop >/dev/null 2>&1; done
"#;

/// A primary and its standby, ended with this value.
pub struct PostgresPair {
    ports: [u16; 2],
    said: BufReader<ChildStdout>,
    // Before the guard: it ends when its input does.
    told: Option<ChildStdin>,
    guard: Child,
}

impl PostgresPair {
    /// Starts both. Panics where PostgreSQL is missing or does not start.
    pub fn start() -> Self {
        let bin = binaries().expect("PostgreSQL is installed: Debian's package postgresql");
        let ports = [free_port(), free_port()];
        let arguments = ports.map(|port| port.to_string());
        let mut guard = guard(GUARD, &bin, &arguments).spawn().expect("a shell can be started");
        let (told, said) = (guard.stdin.take(), guard.stdout.take());
        let mut pair = Self { ports, said: BufReader::new(said.expect("its output is piped")), told, guard };
        assert_eq!(pair.hear(), "ready", "PostgreSQL and its standby start");
        pair
    }

    /// Ends the primary without a word, and has the standby take its place.
    pub fn promote(&mut self) {
        let told = self.told.as_mut().expect("the guard runs");
        writeln!(told, "promote").expect("the guard runs");
        assert_eq!(self.hear(), "promoted");
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("the guard's output can be read");
        line.trim().to_owned()
    }

    /// Where the first or the second listens.
    pub fn address(&self, which: usize) -> String {
        format!("127.0.0.1:{}", self.ports[which])
    }

    /// Runs statements on one of them, and gives what they print.
    pub fn run(&self, which: usize, sql: &str) -> String {
        let bin = binaries().expect("it was found before");
        let output = psql(&bin, self.ports[which], "postgres", sql).output().expect("psql can be started");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for PostgresPair {
    fn drop(&mut self) {
        drop(self.told.take());
        // Best effort: it has seen the end of its input.
        let _ = self.guard.wait();
    }
}
