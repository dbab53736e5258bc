//! A MariaDB Galera cluster for tests: three real nodes on this machine, any of which can be killed, frozen, or cut
//! off from the others, and come back.
//!
//! Clients reach each node by a Unix socket; the nodes reach each other on free ports of loopback. A shell
//! runs the nodes and watches over them: when the cluster is dropped or the test process ends, however it
//! ends, it kills them and removes their folder. Nothing is synced to disk, but what is committed survives
//! the kill of a node, even of all three. A dead node is noticed after two seconds; until then the others'
//! commits wait.
//!
//! Nodes are numbered from 0. Panics, with the node's log, where a node does not come up in time: a test that
//! needs the cluster must not pass without.

use std::{
    collections::hash_map::RandomState,
    fs,
    hash::BuildHasher,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::package::{program, run};

/// How many nodes there are.
pub const NODES: usize = 3;

const GUARD: &str = include_str!("galera.sh");
/// Debian's place first.
const PROVIDERS: [&str; 2] = ["/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so"];
/// How long a node may take to be in step with the others.
const JOINS_WITHIN: Duration = Duration::from_secs(90);
/// How often a node that comes up is asked whether it is there.
const ASKED_EVERY: Duration = Duration::from_millis(50);
/// How often other ports are tried when somebody took those that were free.
const START_TRIES: u32 = 3;
/// Group traffic, and the receiving ends of incremental and of whole state transfers.
const PORTS_PER_NODE: u16 = 3;
/// Below what systems give to outgoing connections: a dead node's port is still free when it comes back.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// Lines of a node's log to show when it fails.
const LOG_LINES: usize = 80;

/// A running cluster.
pub struct GaleraCluster {
    folder: PathBuf,
    databases: AtomicU32,
    guard: Mutex<Guard>,
}

/// The shell that runs the nodes.
struct Guard {
    process: Child,
    /// Open as long as the nodes shall run.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl GaleraCluster {
    /// Starts three nodes and waits until they are in step, some ten seconds.
    pub fn start() -> Self {
        let mut failure = String::new();
        for _ in 0..START_TRIES {
            match Self::try_start() {
                Ok(cluster) => return cluster,
                Err(why) => failure = why,
            }
        }
        panic!("{failure}");
    }

    fn try_start() -> Result<Self, String> {
        let provider = PROVIDERS.iter().find(|file| Path::new(file).exists());
        let provider =
            provider.ok_or("Galera is missing: these tests need Debian's package galera-4 or its like")?;
        let (guard, folder) = Guard::start()?;
        let first_port = free_ports();
        for node in 0..NODES {
            let file = folder.join(format!("{node}.cnf"));
            fs::write(&file, settings(&folder, node, first_port, provider))
                .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
        }
        let cluster = Self { folder, databases: AtomicU32::new(0), guard: Mutex::new(guard) };
        // One after the other: nodes that join at the same time disturb each other and take longer.
        for node in 0..NODES {
            cluster.order(&format!("start {node} {}", if node == 0 { "--wsrep-new-cluster" } else { "" }));
            cluster.wait_until_synced(node)?;
        }
        // Whoever gave its state to the last one has catching up to do.
        (0..NODES).try_for_each(|node| cluster.wait_until_synced(node))?;
        Ok(cluster)
    }

    /// Makes an empty database and gives its URL on each node. All nodes must be up.
    pub fn create_database(&self) -> [String; NODES] {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run(0, &format!("CREATE DATABASE {name}"));
        std::array::from_fn(|node| {
            // Until this node has it too.
            self.run(node, &format!("SET wsrep_sync_wait = 1; USE {name}; SELECT 1"));
            format!("mysql://root@localhost/{name}?socket={}", self.socket(node).display())
        })
    }

    /// Runs statements on a node by the command line client and gives what they print, without headings.
    ///
    /// Panics where they fail.
    pub fn run(&self, node: usize, sql: &str) -> String {
        run(&mut self.client(node, sql)).trim().to_owned()
    }

    /// Kills a node as `kill -9` does, and returns when it is gone. The others notice two seconds later.
    pub fn kill(&self, node: usize) {
        self.order(&format!("kill {node}"));
    }

    /// Lets a node stand still: it keeps its connections and says nothing. The others go on without it after
    /// some four seconds.
    pub fn freeze(&self, node: usize) {
        self.order(&format!("freeze {node}"));
    }

    /// Lets a frozen node go on, and waits until it has caught up.
    pub fn thaw(&self, node: usize) {
        self.order(&format!("thaw {node}"));
        self.wait_until_in_step(node);
    }

    /// Cuts a node off from the other nodes, not from its clients. It takes no writes and answers no reads
    /// once it has noticed; the others go on.
    pub fn cut_off(&self, node: usize) {
        self.run(node, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'");
    }

    /// Connects a node that was cut off, and waits until it has caught up.
    pub fn reconnect(&self, node: usize) {
        self.run(node, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'");
        self.wait_until_in_step(node);
    }

    /// Starts a killed node again and waits until it has caught up.
    ///
    /// It takes two of three nodes to decide anything: where two or all were killed, the first to come back
    /// may wait for the next, so restart them from threads of their own.
    pub fn restart(&self, node: usize) {
        self.order(&format!("start {node}"));
        self.wait_until_in_step(node);
    }

    fn wait_until_in_step(&self, node: usize) {
        if let Err(why) = self.wait_until_synced(node) {
            panic!("{why}");
        }
    }

    fn socket(&self, node: usize) -> PathBuf {
        self.folder.join(format!("{node}.socket"))
    }

    fn client(&self, node: usize, sql: &str) -> Command {
        let mut client = Command::new(program("mariadb"));
        client.args([
            "--no-defaults",
            "--user=root",
            "--batch",
            "--skip-column-names",
            "--connect-timeout=5",
        ]);
        client.arg(format!("--socket={}", self.socket(node).display())).arg(format!("--execute={sql}"));
        client.stdin(Stdio::null());
        client
    }

    fn order(&self, words: &str) {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        guard.order(words).unwrap_or_else(|error| panic!("the shell that runs Galera is gone: {error}"));
    }

    fn wait_until_synced(&self, node: usize) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let status = self.client(node, "SHOW STATUS LIKE 'wsrep_local_state_comment'").output();
            if status.is_ok_and(|answer| answer.stdout.ends_with(b"\tSynced\n")) {
                return Ok(());
            }
            // A missing log is an empty one: the shell has not made it yet.
            let log = fs::read(self.folder.join(format!("{node}.log"))).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let has_ended = log.contains("[ERROR] Aborting") || log.contains("mariadbd: Terminated.");
            if has_ended || began.elapsed() > JOINS_WITHIN {
                let lines: Vec<&str> = log.lines().collect();
                let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
                let after = began.elapsed();
                return Err(format!("Galera's node {node} was not in step after {after:?}:\n{last}"));
            }
            thread::sleep(ASKED_EVERY);
        }
    }
}

impl Guard {
    /// Starts the shell, and gives the folder where it made a database server's data.
    fn start() -> Result<(Self, PathBuf), String> {
        let mut command = shell();
        command.args(["-c", GUARD, "guard"]).arg(program("mariadb-install-db")).arg(program("mariadbd"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for the tests; the nodes end after them. And the folder may be one that the other user
        // cannot read.
        command.process_group(0).current_dir("/");
        let mut process = command.spawn().map_err(|error| format!("{command:?} cannot be run: {error}"))?;
        let orders = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("its output is piped"));
        let mut errors = process.stderr.take().expect("its errors are piped");
        let mut guard = Self { process, orders, answers };
        let folder = guard.answer().map_err(|_| {
            let mut said = String::new();
            match errors.read_to_string(&mut said) {
                Ok(_) => format!("MariaDB cannot be set up:\n{said}"),
                Err(error) => format!("MariaDB cannot be set up, nor does it say why: {error}"),
            }
        })?;
        Ok((guard, folder.into()))
    }

    fn order(&mut self, words: &str) -> std::io::Result<()> {
        let orders = self.orders.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        writeln!(orders, "{words}")?;
        self.answer().map(drop)
    }

    fn answer(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.orders = None;
        // It does not fail for a child that nobody else waits for.
        let _ = self.process.wait();
    }
}

/// A shell, as the user `mysql` where this is root: rsync, which transfers states, gives up root's rights by
/// itself, and could not write.
fn shell() -> Command {
    if run(Command::new("id").arg("-u")).trim() != "0" {
        return Command::new("sh");
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "mysql", "--", "sh"]);
    command
}

fn settings(folder: &Path, node: usize, first_port: u16, provider: &str) -> String {
    let ports: [u16; NODES] = std::array::from_fn(|node| first_port + node as u16 * PORTS_PER_NODE);
    let peers = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
    let folder = folder.display();
    let (group, increments, snapshots) = (ports[node], ports[node] + 1, ports[node] + 2);
    // The log is written at each commit, though not synced: else a killed node would lose its last second.
    format!(
        "[mariadbd]
datadir = {folder}/{node}
socket = {folder}/{node}.socket
pid-file = {folder}/{node}.pid
skip-networking
skip-name-resolve
max-connections = 200
innodb-buffer-pool-size = 64M
innodb-log-file-size = 48M
innodb-flush-log-at-trx-commit = 2
innodb-flush-method = nosync
innodb-file-per-table = 0
innodb-autoinc-lock-mode = 2
binlog-format = ROW
wsrep-on = ON
wsrep-provider = {provider}
wsrep-cluster-name = postway-{first_port}
wsrep-cluster-address = gcomm://{peers}
wsrep-node-name = node-{node}
wsrep-node-address = 127.0.0.1:{group}
wsrep-sst-method = rsync
wsrep-sst-receive-address = 127.0.0.1:{snapshots}
wsrep-provider-options = \"base_port={group};gmcast.listen_addr=tcp://127.0.0.1:{group};\
ist.recv_addr=127.0.0.1:{increments};gcache.size=16M;evs.keepalive_period=PT0.3S;evs.inactive_check_period=PT0.3S;\
evs.join_retrans_period=PT0.3S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S;evs.install_timeout=PT4S\"
"
    )
}

/// The first of as many consecutive free ports as the cluster needs, at a place of chance.
fn free_ports() -> u16 {
    let needed = NODES as u16 * PORTS_PER_NODE;
    let places = u64::from((PORTS.end - PORTS.start) / needed);
    let chance = RandomState::new().hash_one(()) % places;
    (0..places)
        .map(|step| PORTS.start + ((chance + step) % places) as u16 * needed)
        .find(|first| (*first..first + needed).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()))
        .expect("loopback has free ports")
}
