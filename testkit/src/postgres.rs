//! A real PostgreSQL for tests: one server per test process, a fresh database per test.
//!
//! The server is installed software, started in a temporary folder on a free port of loopback. A guard beside
//! it waits for the test process to end, however it ends, then stops the server and removes the folder.
//! Nothing is flushed to disk: what tests prove is what the database says, not what a power cut leaves. Where
//! PostgreSQL is not installed, tests fail and say so.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::package::free_port;

/// Makes a server in a new folder, says `ready`, and ends it when its input ends. PostgreSQL does not run as
/// root.
const GUARD: &str = r#"
bin=$1 port=$2
folder=$(mktemp -d "${TMPDIR:-/tmp}/postway-postgres.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
"$bin/initdb" -D "$folder/data" -U postway -E UTF8 --locale=C.UTF-8 --auth=trust --no-sync >"$folder/log" 2>&1 &&
"$bin/pg_ctl" -D "$folder/data" -w -t 60 -l "$folder/log" -o "-p $port -c listen_addresses=127.0.0.1 \
-c unix_socket_directories=$folder -c max_connections=300 -c fsync=off" start >>"$folder/log" 2>&1 ||
{ cat "$folder/log" >&2; exit 1; }
echo ready
read -r _
"$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1
"#;

/// How often another port is tried when somebody took the one that was free.
const START_TRIES: u32 = 3;

/// A running server.
struct PostgresServer {
    bin: PathBuf,
    port: u16,
    // The guard ends when its standard input does, which this process holds as long as it lives.
    _guard: Child,
}

/// A database of its own, dropped with this value.
pub struct PostgresDatabase {
    server: &'static PostgresServer,
    name: String,
}

static SERVER: OnceLock<PostgresServer> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

impl PostgresDatabase {
    /// A fresh, empty database on this process's server, which the first call starts.
    ///
    /// Panics where PostgreSQL is missing or does not start.
    pub fn create() -> Self {
        let server = SERVER.get_or_init(PostgresServer::start);
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        server.run("postgres", &format!("CREATE DATABASE {name}"));
        Self { server, name }
    }

    /// How to connect to it.
    pub fn url(&self) -> String {
        format!("postgres://postway@127.0.0.1:{}/{}", self.server.port, self.name)
    }

    /// Runs statements in it by `psql` and gives what they print, unaligned and without headings.
    ///
    /// Panics where they fail.
    pub fn run(&self, sql: &str) -> String {
        self.server.run(&self.name, sql)
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        // Best effort: the whole server goes with the process.
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let _ = self.server.psql("postgres", &sql).output();
    }
}

impl PostgresServer {
    fn start() -> Self {
        let bin = binaries().unwrap_or_else(|| {
            panic!(
                "PostgreSQL is not installed: initdb is neither in PATH nor in /usr/lib/postgresql/*/bin; \
                 install Debian's package postgresql"
            )
        });
        let mut failure = String::new();
        for _ in 0..START_TRIES {
            let port = free_port();
            let mut guard = guard(GUARD, &bin, &[port.to_string()]).spawn().expect("a shell can be started");
            let mut said = String::new();
            let output = guard.stdout.take().expect("its output is piped");
            BufReader::new(output).read_line(&mut said).expect("the guard's output can be read");
            if said.trim() == "ready" {
                return Self { bin, port, _guard: guard };
            }
            failure.clear();
            let mut errors = guard.stderr.take().expect("its errors are piped");
            errors.read_to_string(&mut failure).expect("the guard's errors can be read");
            guard.wait().expect("the guard ends");
        }
        panic!("PostgreSQL in {} does not start:\n{failure}", bin.display());
    }

    fn psql(&self, database: &str, sql: &str) -> Command {
        psql(&self.bin, self.port, database, sql)
    }

    fn run(&self, database: &str, sql: &str) -> String {
        let output = self.psql(database, sql).output().expect("psql can be started");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// Statements for a server on this port.
pub(crate) fn psql(bin: &Path, port: u16, database: &str, sql: &str) -> Command {
    let mut psql = Command::new(bin.join("psql"));
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postway"]);
    psql.arg("-p").arg(port.to_string()).args(["-d", database, "-c", sql]).stdin(Stdio::null());
    psql
}

/// A guard, as the user `postgres` where this is root; in a group of its own, so that Ctrl-C leaves it time
/// to tidy up.
pub(crate) fn guard(script: &str, bin: &Path, arguments: &[String]) -> Command {
    use std::os::unix::process::CommandExt;
    let id = Command::new("id").arg("-u").output().expect("id can be started");
    let mut command = if id.stdout.trim_ascii() == b"0" {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", "sh"]);
        command
    } else {
        Command::new("sh")
    };
    command.args(["-c", script, "guard"]).arg(bin).args(arguments);
    command.current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The folder of `initdb` and its like: where that in PATH leads, or the newest that Debian installs.
pub(crate) fn binaries() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path)
        .filter_map(|folder| Some(folder.join("initdb").canonicalize().ok()?.parent()?.to_owned()));
    let mut installed: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    installed.sort();
    let newest_first = installed.into_iter().rev().map(|(_, bin)| bin);
    let has_all = |bin: &PathBuf| ["initdb", "pg_ctl", "psql"].iter().all(|name| bin.join(name).is_file());
    in_path.chain(newest_first).find(has_all)
}
