//! A real Dovecot for tests: IMAP in plain text and under TLS, and LMTP, on free ports of loopback.
//!
//! The server is installed software (Debian's `dovecot-imapd` and `dovecot-lmtpd`), started with a
//! configuration of its own in a temporary folder, where its Maildirs are too. Any user exists, and all have
//! the same password. It never runs as root: where the tests do, it becomes the user that its package made. A
//! shell watches over it: when the test process ends, however it ends, the shell's input closes, and it ends
//! the server and removes the folder. Panics with a sentence where the server cannot be had.

mod client;
mod config;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{self, Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

pub use client::ImapClient;

use crate::{
    cert::TestCert,
    package::{free_port, run},
};
use config::Ports;

/// Everybody's password.
pub const PASSWORD: &str = "open-sesame";

/// How long the server may take to start or to end.
const CHANGES_WITHIN: Duration = Duration::from_secs(60);
/// How often other ports are tried when somebody took those that were free.
const START_TRIES: u32 = 3;

/// Starts, stops and kills the server given as arguments, as its input says, and answers; ends it with its
/// input.
const WATCH: &str = r#"
folder=$1; shift
server=
end() { [ -z "$server" ] || { kill -s "$1" -- "$2$server"; wait "$server"; server=; } 2>/dev/null; }
while read -r word; do
    case $word in
        start) setsid "$@" & server=$! ;;
        stop) end TERM ""; echo "watch: ended" >&2 ;;
        kill) end KILL -; echo "watch: ended" >&2 ;;
    esac
done
end KILL -
rm -rf "$folder"
"#;

/// A running server. Dropping it ends the server and removes all its mail.
pub struct Dovecot {
    folder: PathBuf,
    ports: Ports,
    cert: TestCert,
    /// Its input is what keeps the server running.
    orders: Mutex<Option<ChildStdin>>,
    news: Mutex<Receiver<News>>,
    log: Arc<Mutex<String>>,
    watch: Child,
}

#[derive(PartialEq, Eq)]
enum News {
    Started,
    Ended,
    Failed,
}

impl Dovecot {
    /// The server of this process, started by the first call. Tests that share it take users of their own.
    pub fn shared() -> &'static Dovecot {
        static SERVER: OnceLock<Dovecot> = OnceLock::new();
        SERVER.get_or_init(Dovecot::start)
    }

    /// A server of one's own, to be restarted or killed.
    pub fn start() -> Self {
        Self::start_as(None)
    }

    /// One that takes tokens, too (XOAUTH2, OAUTHBEARER), and asks there whether they are good (RFC 7662).
    pub fn start_with_tokens(introspection_url: &str) -> Self {
        Self::start_as(Some(introspection_url))
    }

    fn start_as(introspection_url: Option<&str>) -> Self {
        let mut failure = String::new();
        for _ in 0..START_TRIES {
            match Self::try_start(introspection_url) {
                Ok(server) => return server,
                Err(said) => failure = said,
            }
        }
        panic!("Dovecot does not start:\n{failure}");
    }

    fn try_start(introspection_url: Option<&str>) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("postway-dovecot-{}-{count}", process::id()));
        let owner = Owner::find();
        let (cert, ports) =
            (TestCert::localhost(), Ports { imap: free_port(), imaps: free_port(), lmtp: free_port() });
        let config = folder.join("dovecot.conf");
        for (name, content) in [
            ("cert.pem", cert.cert_pem.clone()),
            ("key.pem", cert.key_pem.clone()),
            ("dovecot.conf", config::write(&folder, ports, &owner.name, introspection_url)),
            ("oauth2.conf", introspection_url.map(config::introspection).unwrap_or_default()),
        ] {
            owner.folder(&folder);
            fs::write(folder.join(name), content).expect("a file for Dovecot can be written");
            owner.owns(&folder.join(name));
        }
        for name in ["run", "state", "mail"] {
            owner.folder(&folder.join(name));
        }
        let mut command = Command::new("sh");
        command.args(["-c", WATCH, "sh"]).arg(&folder).args(&owner.become_it);
        command.arg(config::program("dovecot")).arg("-F").arg("-c").arg(&config);
        // Ctrl-C is for the tests; the server ends after them.
        command.current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut watch = command.spawn().expect("a shell can be started");
        let orders = Mutex::new(watch.stdin.take());
        let (news, log) = listen(watch.stderr.take().expect("the server's log is piped"));
        let server = Self { folder, ports, cert, orders, news: Mutex::new(news), log, watch };
        match server.order("start", News::Started) {
            true => Ok(server),
            false => Err(server.log()),
        }
    }

    /// The port of IMAP in plain text, with STARTTLS.
    pub fn port(&self) -> u16 {
        self.ports.imap
    }

    /// The port of IMAP under TLS.
    pub fn tls_port(&self) -> u16 {
        self.ports.imaps
    }

    /// The port of LMTP, for an MTA to deliver to. A recipient's whole address is the name of the user.
    pub fn lmtp_port(&self) -> u16 {
        self.ports.lmtp
    }

    /// The certificate to trust, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.cert.ca_pem
    }

    /// A session of that user's, for what a test does to a mailbox.
    pub fn client(&self, user: &str) -> ImapClient {
        ImapClient::sign_in(self.port(), user)
    }

    /// Puts a mail into a folder, which is made if it is not there.
    pub fn append(&self, user: &str, folder: &str, raw: &[u8]) {
        self.append_all(user, folder, &[raw]);
    }

    /// Puts many mails into a folder, in this order, some thousands in a second.
    pub fn append_all(&self, user: &str, folder: &str, mails: &[impl AsRef<[u8]>]) {
        self.client(user).append(folder, None, mails);
    }

    /// Makes the folder forget its UIDs, as one that was rebuilt does: UIDVALIDITY is another, and all mails
    /// have new UIDs.
    pub fn bump_uid_validity(&self, user: &str, folder: &str) {
        let mut maildir = self.folder.join("mail").join(user).join("Maildir");
        if !folder.eq_ignore_ascii_case("INBOX") {
            maildir.push(format!(".{folder}"));
        }
        let before = self.uid_validity(user, folder);
        for entry in fs::read_dir(&maildir).expect("the folder has a Maildir") {
            let entry = entry.expect("a Maildir can be read");
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name == "dovecot-uidlist" || name.starts_with("dovecot.index") {
                fs::remove_file(entry.path()).expect("an index can be removed");
            }
        }
        assert_ne!(self.uid_validity(user, folder), before, "UIDVALIDITY is another");
    }

    fn uid_validity(&self, user: &str, folder: &str) -> String {
        let lines = self.client(user).run(&format!("STATUS \"{folder}\" (UIDVALIDITY)"));
        lines.into_iter().find(|line| line.contains("UIDVALIDITY")).expect("STATUS tells UIDVALIDITY")
    }

    /// Ends the server in good order, with a goodbye to its sessions.
    pub fn stop(&self) {
        assert!(self.order("stop", News::Ended), "Dovecot does not end");
        self.wait_until_silent();
    }

    /// Kills the server and all its sessions.
    pub fn kill(&self) {
        assert!(self.order("kill", News::Ended), "Dovecot does not die");
        self.wait_until_silent();
    }

    /// Starts the server again, on the same ports and with the same mail.
    pub fn start_again(&self) {
        assert!(self.order("start", News::Started), "Dovecot does not start again:\n{}", self.log());
    }

    /// Stops the server and starts it again.
    pub fn restart(&self) {
        self.stop();
        self.start_again();
    }

    /// Waits until nothing listens on its ports: its processes end one by one, and nobody tells of the last.
    fn wait_until_silent(&self) {
        let began = Instant::now();
        for port in [self.ports.imap, self.ports.imaps, self.ports.lmtp] {
            while TcpListener::bind(("127.0.0.1", port)).is_err() {
                assert!(began.elapsed() < CHANGES_WITHIN, "Dovecot still listens on port {port}");
                thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// What the server has said about itself so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives an order to the watch and waits for what is to come of it.
    fn order(&self, word: &str, expected: News) -> bool {
        let news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        // What an earlier order left.
        while news.try_recv().is_ok() {}
        {
            let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
            let orders = orders.as_mut().expect("its input is piped");
            writeln!(orders, "{word}").expect("the watch listens");
        }
        loop {
            match news.recv_timeout(CHANGES_WITHIN) {
                Ok(told) if told == expected => return true,
                Ok(News::Started | News::Ended) => {}
                Ok(News::Failed) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return false;
                }
            }
        }
    }
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        // Closing its input would do; to wait is to leave nothing behind that a next test could meet.
        self.orders.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let _ = self.watch.wait();
    }
}

/// Reads the log as long as there is one, and tells of what matters in it.
fn listen(log: impl Read + Send + 'static) -> (Receiver<News>, Arc<Mutex<String>>) {
    let (tell, news) = mpsc::channel();
    let kept = Arc::new(Mutex::new(String::new()));
    let said = kept.clone();
    thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            let news = if line.contains("starting up for") {
                Some(News::Started)
            } else if line == "watch: ended" {
                Some(News::Ended)
            } else if line.contains("Fatal: ") && line.contains("master: ") {
                Some(News::Failed)
            } else {
                None
            };
            {
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                said.push_str(&line);
                said.push('\n');
            }
            // Nobody waits any more if it came too late.
            let _ = news.map(|news| tell.send(news));
        }
    });
    (news, kept)
}

/// Who the server runs as.
struct Owner {
    name: String,
    ids: Option<(u32, u32)>,
    /// What makes a command run as them.
    become_it: Vec<String>,
}

impl Owner {
    fn find() -> Self {
        let id = |arguments: &[&str]| run(Command::new("id").args(arguments)).trim().to_owned();
        if id(&["-u"]) != "0" {
            return Self { name: id(&["-un"]), ids: None, become_it: Vec::new() };
        }
        let (user, group) = (id(&["-u", "dovecot"]), id(&["-g", "dovecot"]));
        let become_it = ["setpriv", "--reuid", "dovecot", "--regid", "dovecot", "--init-groups"];
        let number = |id: String| id.parse().expect("an id is a number");
        Self {
            name: "dovecot".to_owned(),
            ids: Some((number(user), number(group))),
            become_it: become_it.map(str::to_owned).to_vec(),
        }
    }

    fn folder(&self, path: &Path) {
        fs::create_dir_all(path).expect("a folder for Dovecot can be made");
        self.owns(path);
    }

    fn owns(&self, path: &Path) {
        if let Some((user, group)) = self.ids {
            chown(path, Some(user), Some(group)).expect("root can give files away");
        }
    }
}
