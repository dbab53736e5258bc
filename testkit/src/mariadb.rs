//! A MariaDB server for tests: started once per test process in a folder of its own, with a fresh database
//! per test.
//!
//! Where the variable `POSTWAY_TEST_MYSQLD` names the `mysqld` of a MySQL, that is started instead.
//!
//! It listens on a Unix socket in that folder, so that no port can be taken. A shell watches over it: when
//! the test process ends, however it ends, the shell's input closes, and it stops the server and removes the
//! folder. Nothing is synced to disk. Panics with a sentence where the server cannot be had: a test that
//! needs it must not pass without.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use crate::package::{program, run};

/// How long the server may take to be ready.
const STARTS_WITHIN: Duration = Duration::from_secs(120);

/// Runs the server given as arguments until the input ends.
const WATCH: &str =
    r#"folder=$1; shift; "$@" & server=$!; read -r _; kill "$server"; wait "$server"; rm -rf "$folder""#;

/// Makes the table `numbers`, whose column `seq` counts from 1 to 5,000: in words that both servers have.
pub const NUMBERS: &str = "CREATE TABLE numbers (PRIMARY KEY (seq)) SELECT seq FROM \
     JSON_TABLE(CONCAT('[0', REPEAT(',0', 4999), ']'), '$[*]' COLUMNS (seq FOR ORDINALITY)) AS counted";

/// A running server.
pub struct MariaDb {
    socket: PathBuf,
    databases: AtomicU32,
    /// Its input is what keeps the server running.
    _watch: Child,
}

impl MariaDb {
    /// The server of this process, started by the first call.
    pub fn shared() -> &'static MariaDb {
        static SERVER: OnceLock<MariaDb> = OnceLock::new();
        SERVER.get_or_init(MariaDb::start)
    }

    fn start() -> Self {
        let folder = env::temp_dir().join(format!("postway-mariadb-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder for MariaDB can be made");
        let user = run(Command::new("id").arg("-un"));
        let user = user.trim();
        let server = install(&folder, user);

        let socket = folder.join("socket");
        let mut watch = Command::new("sh")
            .args(["-c", WATCH, "sh"])
            .arg(&folder)
            .arg(server)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", folder.join("data").display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--user={user}"))
            .arg(format!("--secure-file-priv={}", folder.display()))
            .args([
                "--skip-networking",
                "--skip-name-resolve",
                "--max-connections=500",
                "--innodb-buffer-pool-size=128M",
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-flush-method=nosync",
                "--innodb-file-per-table=0",
                "--sync-binlog=0",
                // What only one of the two servers knows; the other warns and goes on.
                "--loose-innodb-log-file-size=48M",
                "--loose-innodb-redo-log-capacity=48M",
                "--loose-mysqlx=OFF",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C is for the tests; the server ends after them.
            .process_group(0)
            .spawn()
            .expect("a shell can be started");
        wait_until_ready(watch.stderr.take().expect("the server's log is piped"));
        Self { socket, databases: AtomicU32::new(0), _watch: watch }
    }

    /// Makes an empty database and gives its URL.
    pub fn create_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let socket = self.socket.display();
        run(Command::new(program("mariadb"))
            .arg("--no-defaults")
            .arg(format!("--socket={socket}"))
            .arg("--user=root")
            .arg(format!("--execute=CREATE DATABASE {name}")));
        format!("mysql://root@localhost/{name}?socket={socket}")
    }
}

/// Runs statements in a database by the client program and gives what they print, unaligned and without
/// headings.
///
/// Panics where they fail.
pub fn run_in(url: &str, sql: &str) -> String {
    let (place, socket) = url.split_once("?socket=").expect("the address of a database here has a socket");
    let name = place.rsplit('/').next().unwrap_or_default();
    run(Command::new(program("mariadb"))
        .args(["--no-defaults", "--user=root", "--batch", "--skip-column-names"])
        .arg(format!("--socket={socket}"))
        .arg(format!("--execute={sql}"))
        .arg(name))
}

/// Makes the server's data, with a root who needs no password, and gives the program that serves it.
fn install(folder: &Path, user: &str) -> PathBuf {
    let data = format!("--datadir={}", folder.join("data").display());
    let user = format!("--user={user}");
    if let Some(mysqld) = env::var_os("POSTWAY_TEST_MYSQLD") {
        run(Command::new(&mysqld).args(["--no-defaults", "--initialize-insecure", &data, &user]));
        return mysqld.into();
    }
    run(Command::new(program("mariadb-install-db"))
        .args(["--no-defaults", &data, &user])
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"]));
    program("mariadbd")
}

/// Reads the server's log until it says that it is ready, and goes on reading so that it can go on writing.
fn wait_until_ready(log: impl Read + Send + 'static) {
    let (ready, is_ready) = mpsc::channel();
    thread::spawn(move || {
        let mut said = String::new();
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            if line.contains("ready for connections") {
                // Nobody waits any more if it came too late.
                let _ = ready.send(Ok(()));
                said.clear();
            }
            said.push_str(&line);
            said.push('\n');
        }
        let _ = ready.send(Err(said));
    });
    match is_ready.recv_timeout(STARTS_WITHIN) {
        Ok(Ok(())) => {}
        Ok(Err(said)) => panic!("MariaDB did not start:\n{said}"),
        Err(_) => panic!("MariaDB was not ready after {STARTS_WITHIN:?}"),
    }
}
