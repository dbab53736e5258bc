//! An IMAP server for tests that misbehaves on demand; what a good one does is Dovecot's part.
//!
//! It listens on a loopback port of the system's choice and lives until it is dropped. It signs anybody in,
//! has one empty folder, and answers OK to whatever it does not know. Acts are chosen by the start of a
//! command: the first act is done the first time, and so on, and the last one from then on.
//!
//! ```no_run
//! # use postway_testkit::{ImapAct, ImapSink};
//! # async fn example() {
//! let sink = ImapSink::builder()
//!     .on("UID FETCH", ImapAct::say("* 1 FETCH (UID 1 BODY[] {9999999999}\r\n"))
//!     .start()
//!     .await;
//! # }
//! ```

use std::{
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;

use crate::cert::TestCert;

/// What the sink does at a command. `TAG` in its words stands for the tag of the last command.
#[derive(Clone, Debug)]
pub enum ImapAct {
    /// Says this. A last line that starts with `+` makes the next line a command of the name `+`.
    Say(Vec<u8>),
    /// Says this, and closes the connection.
    SayAndCut(Vec<u8>),
    /// Says the first, then the second for ever.
    Flood(Vec<u8>, Vec<u8>),
    /// Says nothing, and keeps the connection.
    Silence,
    /// Consents to TLS and says this right behind it, in plain text; then goes on under TLS.
    StartTls(Vec<u8>),
}

impl ImapAct {
    /// Says this.
    pub fn say(words: impl AsRef<[u8]>) -> Self {
        Self::Say(words.as_ref().to_vec())
    }

    /// Says this, and closes the connection.
    pub fn say_and_cut(words: impl AsRef<[u8]>) -> Self {
        Self::SayAndCut(words.as_ref().to_vec())
    }

    /// Says the first, then the second for ever.
    pub fn flood(first: impl AsRef<[u8]>, again: impl AsRef<[u8]>) -> Self {
        Self::Flood(first.as_ref().to_vec(), again.as_ref().to_vec())
    }
}

/// A running sink. Dropping it closes its port and all its connections.
pub struct ImapSink {
    shared: Arc<Shared>,
    port: u16,
    listening: AbortHandle,
}

/// Describes a sink before it starts.
pub struct ImapSinkBuilder {
    greeting: ImapAct,
    capabilities: String,
    acts: Vec<(String, Vec<ImapAct>)>,
    cert: Option<TestCert>,
    is_implicit: bool,
}

struct Shared {
    greeting: ImapAct,
    capabilities: String,
    acts: Mutex<Vec<(String, Vec<ImapAct>)>>,
    commands: Mutex<Vec<String>>,
    cert: Option<TestCert>,
    is_implicit: bool,
    sent_bytes: AtomicU64,
}

impl ImapSink {
    /// A sink to be described.
    pub fn builder() -> ImapSinkBuilder {
        ImapSinkBuilder {
            greeting: ImapAct::say("* OK at your service\r\n"),
            capabilities: "IMAP4rev1 IDLE AUTH=PLAIN AUTH=XOAUTH2 SASL-IR MOVE UIDPLUS".to_owned(),
            acts: Vec::new(),
            cert: None,
            is_implicit: false,
        }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// All commands so far, without their tags, literals in their place.
    pub fn commands(&self) -> Vec<String> {
        lock(&self.shared.commands).clone()
    }

    /// How many octets it has said, those in the sockets' buffers included.
    pub fn sent_bytes(&self) -> u64 {
        self.shared.sent_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for ImapSink {
    fn drop(&mut self) {
        // The listening task owns the tasks of all connections; they end with it.
        self.listening.abort();
    }
}

impl ImapSinkBuilder {
    /// Greets so.
    pub fn greeting(mut self, act: ImapAct) -> Self {
        self.greeting = act;
        self
    }

    /// Offers these capabilities, STARTTLS with a certificate aside.
    pub fn capabilities(mut self, list: &str) -> Self {
        self.capabilities = list.to_owned();
        self
    }

    /// Offers STARTTLS with this certificate.
    pub fn starttls(mut self, cert: &TestCert) -> Self {
        self.cert = Some(cert.clone());
        self
    }

    /// Speaks TLS from the first octet.
    pub fn implicit_tls(mut self, cert: &TestCert) -> Self {
        self.is_implicit = true;
        self.starttls(cert)
    }

    /// Does this at commands that start with `command`, after the acts that were given for it before.
    pub fn on(mut self, start: &str, act: ImapAct) -> Self {
        match self.acts.iter_mut().find(|(known, _)| known == start) {
            Some((_, acts)) => acts.push(act),
            None => self.acts.push((start.to_owned(), vec![act])),
        }
        self
    }

    /// Starts it.
    pub async fn start(self) -> ImapSink {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("the sink can listen");
        let port = listener.local_addr().expect("a listening socket has an address").port();
        let shared = Arc::new(Shared {
            greeting: self.greeting,
            capabilities: self.capabilities,
            acts: Mutex::new(self.acts),
            commands: Mutex::default(),
            cert: self.cert,
            is_implicit: self.is_implicit,
            sent_bytes: AtomicU64::new(0),
        });
        let serving = shared.clone();
        let listening = tokio::spawn(async move {
            let mut sessions = JoinSet::new();
            while let Ok((tcp, _)) = listener.accept().await {
                sessions.spawn(serve(tcp, serving.clone()));
            }
        });
        ImapSink { shared, port, listening: listening.abort_handle() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

trait Pipe: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Pipe for T {}

/// One connection.
struct Session {
    pipe: BufReader<Box<dyn Pipe>>,
    shared: Arc<Shared>,
    tag: String,
    waits_for_more: bool,
    is_tls: bool,
}

/// Serves a connection until it ends, by either side.
async fn serve(tcp: TcpStream, shared: Arc<Shared>) {
    let (is_implicit, greeting) = (shared.is_implicit, shared.greeting.clone());
    let mut session = Session {
        pipe: BufReader::new(Box::new(tcp)),
        shared,
        tag: "*".to_owned(),
        waits_for_more: false,
        is_tls: false,
    };
    if is_implicit {
        match session.secure().await {
            Some(secured) => session = secured,
            None => return,
        }
    }
    let mut act = greeting;
    while let Some(going_on) = session.act(act).await {
        session = going_on;
        act = match session.command().await {
            Some(command) => session.choose(&command),
            None => return,
        };
    }
}

impl Session {
    async fn secure(mut self) -> Option<Self> {
        let config = self.shared.cert.as_ref()?.config.clone();
        let stream = TlsAcceptor::from(config).accept(self.pipe.into_inner()).await.ok()?;
        self.pipe = BufReader::new(Box::new(stream));
        self.is_tls = true;
        Some(self)
    }

    /// Reads a command, asking for its literals.
    async fn command(&mut self) -> Option<String> {
        let mut command = String::new();
        loop {
            let start = command.len();
            if self.pipe.read_line(&mut command).await.ok()? == 0 {
                return None;
            }
            command.truncate(command.trim_end_matches(['\r', '\n']).len());
            let literal = command[start..].rsplit_once('{').and_then(|(_, rest)| rest.strip_suffix('}'));
            let Some(length) = literal.and_then(|digits| digits.parse::<usize>().ok()) else { break };
            self.pipe.write_all(b"+ go on\r\n").await.ok()?;
            let mut octets = vec![0; length];
            self.pipe.read_exact(&mut octets).await.ok()?;
            command.push_str(&String::from_utf8_lossy(&octets));
        }
        if std::mem::take(&mut self.waits_for_more) {
            command.insert_str(0, "+ ");
        } else {
            let (tag, rest) = command.split_once(' ').unwrap_or((&command, ""));
            (self.tag, command) = (tag.to_owned(), rest.to_owned());
        }
        lock(&self.shared.commands).push(command.clone());
        Some(command)
    }

    /// What was ordered for this command, or what any server does.
    fn choose(&self, command: &str) -> ImapAct {
        let mut acts = lock(&self.shared.acts);
        if let Some((_, acts)) = acts.iter_mut().find(|(start, _)| command.starts_with(start.as_str())) {
            return if acts.len() > 1 { acts.remove(0) } else { acts[0].clone() };
        }
        let capabilities = self.shared.capabilities.as_str();
        let tls = if self.shared.cert.is_some() && !self.is_tls { " STARTTLS" } else { "" };
        match command.split(' ').next().unwrap_or_default() {
            "CAPABILITY" => ImapAct::say(format!("* CAPABILITY {capabilities}{tls}\r\nTAG OK\r\n")),
            "STARTTLS" => ImapAct::StartTls(Vec::new()),
            "SELECT" => ImapAct::say(
                "* 0 EXISTS\r\n* OK [UIDVALIDITY 1] ok\r\n* OK [UIDNEXT 1] ok\r\nTAG OK [READ-WRITE] ok\r\n",
            ),
            "IDLE" => ImapAct::say("+ idling\r\n"),
            "LOGOUT" => ImapAct::say_and_cut("* BYE\r\nTAG OK\r\n"),
            _ => ImapAct::say("TAG OK done\r\n"),
        }
    }

    /// Does it; `None` when the connection is over.
    async fn act(mut self, act: ImapAct) -> Option<Self> {
        match act {
            ImapAct::Say(words) => {
                let words = self.tagged(&words);
                let last = words.trim_ascii_end().rsplit(|&b| b == b'\n').next().unwrap_or_default();
                self.waits_for_more = last.starts_with(b"+");
                self.say(&words).await?;
                Some(self)
            }
            ImapAct::SayAndCut(words) => {
                let words = self.tagged(&words);
                self.say(&words).await?;
                // Without a word of goodbye: under TLS, too, the connection just ends.
                None
            }
            ImapAct::Flood(first, again) => {
                let first = self.tagged(&first);
                self.say(&first).await?;
                // In large pieces, so that it is the reader who sets the pace.
                let again = again.repeat((64 * 1024 / again.len().max(1)).max(1));
                loop {
                    self.say(&again).await?;
                }
            }
            ImapAct::Silence => {
                // Until the other side goes.
                tokio::io::copy(&mut self.pipe, &mut tokio::io::sink()).await.ok()?;
                None
            }
            ImapAct::StartTls(injected) => {
                let words = [self.tagged(b"TAG OK begin\r\n"), injected].concat();
                self.say(&words).await?;
                self.secure().await
            }
        }
    }

    fn tagged(&self, words: &[u8]) -> Vec<u8> {
        let mut parts = words.split(|&b| b == b'\n').map(|line| match line.strip_prefix(b"TAG") {
            Some(rest) => [self.tag.as_bytes(), rest].concat(),
            None => line.to_vec(),
        });
        let first = parts.next().unwrap_or_default();
        parts.fold(first, |said, line| [&said[..], b"\n", &line].concat())
    }

    async fn say(&mut self, words: &[u8]) -> Option<()> {
        self.pipe.write_all(words).await.ok()?;
        self.pipe.flush().await.ok()?;
        self.shared.sent_bytes.fetch_add(words.len() as u64, Ordering::Relaxed);
        Some(())
    }
}
