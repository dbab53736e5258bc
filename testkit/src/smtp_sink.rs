//! An SMTP server for tests: takes mail, keeps a ledger of it, and misbehaves on demand.
//!
//! It listens on a loopback port of the system's choice and lives until it is dropped. Faults are rules: each
//! command is shown to them as a [`SinkEvent`], and the first that gives an [`SinkAction`] decides. Rules can
//! be given before the start and changed while it runs.
//!
//! ```no_run
//! # use postway_testkit::{SinkAction, SmtpSink, SinkVerb};
//! # use std::time::Duration;
//! # async fn example() {
//! let sink = SmtpSink::builder()
//!     .rcpt("nobody@", "550 5.1.1 no such user")
//!     .once(SinkVerb::Dot, SinkAction::Cut.recorded())
//!     .start()
//!     .await;
//! // … send to sink.port() …
//! let mails = sink.wait_for(1, Duration::from_secs(5)).await;
//! # }
//! ```

mod ledger;
mod pipe;
mod script;
mod session;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    net::TcpListener,
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::timeout,
};

pub use ledger::{Ledger, ReceivedMail};
pub use script::{SinkAction, SinkEvent, SinkPause, SinkVerb};

use crate::cert::TestCert;
use script::Rule;

/// How the sink behaves before any rule is asked.
#[derive(Clone, Default)]
struct Manner {
    capabilities: Vec<String>,
    starttls: Option<TestCert>,
    implicit_tls: Option<TestCert>,
    auth: Option<(String, String)>,
    auth_mechanisms: String,
}

/// What the sink's tasks share.
struct Shared {
    manner: Manner,
    rules: Mutex<Vec<Rule>>,
    ledger: Mutex<Ledger>,
    changes: watch::Sender<u64>,
}

impl Shared {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the ledger and tells those who wait.
    fn note<T>(&self, change: impl FnOnce(&mut Ledger) -> T) -> T {
        let result = change(&mut self.ledger());
        self.changes.send_modify(|version| *version += 1);
        result
    }

    fn action(&self, event: &SinkEvent<'_>) -> SinkAction {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.iter().find_map(|rule| rule(event)).unwrap_or(SinkAction::Proceed)
    }
}

/// A running sink. Dropping it closes its port and all its connections.
pub struct SmtpSink {
    shared: Arc<Shared>,
    address: SocketAddr,
    listening: AbortHandle,
}

/// Describes a sink before it starts.
pub struct SinkBuilder {
    manner: Manner,
    rules: Vec<Rule>,
    port: u16,
}

impl SmtpSink {
    /// A sink that takes everything, in plain text.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// A sink to be described.
    pub fn builder() -> SinkBuilder {
        let capabilities = ["PIPELINING", "SIZE 52428800", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"];
        SinkBuilder {
            manner: Manner {
                capabilities: capabilities.map(str::to_owned).to_vec(),
                auth_mechanisms: "PLAIN LOGIN".to_owned(),
                ..Manner::default()
            },
            rules: Vec::new(),
            port: 0,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Adds a rule, asked after those already there.
    pub fn add_rule(&self, rule: impl Fn(&SinkEvent<'_>) -> Option<SinkAction> + Send + Sync + 'static) {
        self.shared.rules.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(rule));
    }

    /// Takes the next mail and holds its answer back, whatever the rules say.
    pub fn hold_next_dot(&self, hold: &SinkPause) {
        let rule = script::first(1, SinkVerb::Dot, SinkAction::Hold(hold.clone()).recorded());
        self.shared.rules.lock().unwrap_or_else(PoisonError::into_inner).insert(0, rule);
    }

    /// Forgets every rule: from now on the sink takes everything.
    pub fn clear_rules(&self) {
        self.shared.rules.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The ledger as it is now.
    pub fn ledger(&self) -> Ledger {
        self.shared.ledger().clone()
    }

    /// The mails received so far.
    pub fn mails(&self) -> Vec<ReceivedMail> {
        self.shared.ledger().mails.clone()
    }

    /// Waits until at least `count` mails were received, and returns all of them. Panics after `limit`.
    pub async fn wait_for(&self, count: usize, limit: Duration) -> Vec<ReceivedMail> {
        self.wait_until(&format!("{count} mails"), limit, |ledger| ledger.mails.len() >= count).await;
        self.mails()
    }

    /// Waits until the ledger satisfies `done`. Panics after `limit`, saying `what` was waited for.
    pub async fn wait_until(&self, what: &str, limit: Duration, done: impl Fn(&Ledger) -> bool) {
        let mut changes = self.shared.changes.subscribe();
        let wait = async {
            while !done(&self.shared.ledger()) {
                changes.changed().await.expect("the sink outlives those who wait for it");
            }
        };
        if timeout(limit, wait).await.is_err() {
            panic!("the sink waited {limit:?} in vain for {what}; its ledger: {:?}", self.shared.ledger());
        }
    }
}

impl Drop for SmtpSink {
    fn drop(&mut self) {
        // The listening task owns the tasks of all connections; they end with it.
        self.listening.abort();
    }
}

impl SinkBuilder {
    /// Offers STARTTLS with this certificate.
    pub fn starttls(mut self, cert: &TestCert) -> Self {
        self.manner.starttls = Some(cert.clone());
        self
    }

    /// Speaks TLS from the first byte.
    pub fn implicit_tls(mut self, cert: &TestCert) -> Self {
        self.manner.implicit_tls = Some(cert.clone());
        self
    }

    /// Demands this sign-in before MAIL.
    pub fn auth(mut self, user: &str, password: &str) -> Self {
        self.manner.auth = Some((user.to_owned(), password.to_owned()));
        self
    }

    /// Offers these AUTH mechanisms instead of `PLAIN LOGIN`.
    pub fn auth_mechanisms(mut self, mechanisms: &str) -> Self {
        self.manner.auth_mechanisms = mechanisms.to_owned();
        self
    }

    /// Offers these EHLO keywords instead of the usual ones (STARTTLS and AUTH come by themselves).
    pub fn capabilities(mut self, lines: &[&str]) -> Self {
        self.manner.capabilities = lines.iter().map(|line| (*line).to_owned()).collect();
        self
    }

    /// Does not offer this EHLO keyword.
    pub fn without(mut self, keyword: &str) -> Self {
        self.manner.capabilities.retain(|line| line.split(' ').next() != Some(keyword));
        self
    }

    /// Listens on this port, as a restarted sink must.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Adds a rule.
    pub fn rule(
        mut self,
        rule: impl Fn(&SinkEvent<'_>) -> Option<SinkAction> + Send + Sync + 'static,
    ) -> Self {
        self.rules.push(Box::new(rule));
        self
    }

    /// Does `action` at every `verb`.
    pub fn on(self, verb: SinkVerb, action: SinkAction) -> Self {
        self.times(usize::MAX, verb, action)
    }

    /// Does `action` at the first `verb`.
    pub fn once(self, verb: SinkVerb, action: SinkAction) -> Self {
        self.times(1, verb, action)
    }

    /// Does `action` at the first `count` times of `verb`, over all connections.
    pub fn times(mut self, count: usize, verb: SinkVerb, action: SinkAction) -> Self {
        self.rules.push(script::first(count, verb, action));
        self
    }

    /// Answers RCPT for every recipient whose address contains `pattern`.
    pub fn rcpt(self, pattern: &str, reply: &str) -> Self {
        let (pattern, action) = (pattern.to_owned(), SinkAction::reply(reply));
        self.rule(move |event| {
            (event.verb == SinkVerb::Rcpt && event.argument.contains(&pattern)).then(|| action.clone())
        })
    }

    /// Defers each recipient's first `tries` offers.
    pub fn greylist(self, tries: usize) -> Self {
        self.rule(move |event| {
            (event.verb == SinkVerb::Rcpt && event.tries <= tries)
                .then(|| SinkAction::reply("450 4.2.0 Greylisted, please come back"))
        })
    }

    /// Starts it.
    pub async fn start(self) -> SmtpSink {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await.expect("the sink can listen");
        let address = listener.local_addr().expect("a listening socket has an address");
        let shared = Arc::new(Shared {
            manner: self.manner,
            rules: Mutex::new(self.rules),
            ledger: Mutex::default(),
            changes: watch::Sender::new(0),
        });
        let listening = tokio::spawn(listen(listener, shared.clone())).abort_handle();
        SmtpSink { shared, address, listening }
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut sessions = JoinSet::new();
    while let Ok((tcp, _)) = listener.accept().await {
        while sessions.try_join_next().is_some() {}
        sessions.spawn(session::run(tcp, shared.clone()));
    }
}
