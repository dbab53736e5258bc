//! How a test tells the sink to misbehave.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::sync::watch;

/// A rule: looks at an event and may decide what happens.
pub(super) type Rule = Box<dyn Fn(&SinkEvent<'_>) -> Option<SinkAction> + Send + Sync>;

/// The moments at which rules are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SinkVerb {
    /// A connection was accepted; the greeting is due.
    Connect,
    /// A TLS handshake is about to start.
    Tls,
    /// EHLO, HELO or LHLO.
    Ehlo,
    /// STARTTLS.
    StartTls,
    /// AUTH; the credentials were read.
    Auth,
    /// MAIL.
    Mail,
    /// RCPT.
    Rcpt,
    /// DATA.
    Data,
    /// A part of the body came, but not yet the final dot. Proceeding reads on; a reply is given out of turn.
    Body,
    /// The final dot came.
    Dot,
    /// LMTP: the answer for one recipient is due, after the dot was answered with "proceed".
    Answer,
    /// RSET.
    Rset,
    /// NOOP.
    Noop,
    /// QUIT.
    Quit,
}

/// What a rule is shown.
#[derive(Debug)]
pub struct SinkEvent<'a> {
    /// The moment.
    pub verb: SinkVerb,
    /// The address at MAIL, RCPT and Answer, the whole command otherwise.
    pub argument: &'a str,
    /// Which connection, from 1.
    pub connection: usize,
    /// Which transaction of this connection, from 1; 0 before the first MAIL.
    pub message: usize,
    /// At RCPT: how often this recipient was offered, this time included.
    pub tries: usize,
    /// At Body and Dot: the mail so far, without dot-stuffing at Dot.
    pub body: &'a [u8],
}

/// What the sink does instead of its usual answer.
#[derive(Debug, Clone)]
pub enum SinkAction {
    /// The usual.
    Proceed,
    /// Give this reply (CR LF is added). The command took effect if it starts with 2 or 3.
    Reply(String),
    /// Give this reply and hang up.
    ReplyThenCut(String),
    /// Send these bytes, as they are; the command has no effect.
    Raw(Vec<u8>),
    /// Hang up.
    Cut,
    /// Say nothing until the client leaves.
    Silence,
    /// Give this reply, but a byte at a time.
    Drip(String, Duration),
    /// Send a line that never ends, until the client leaves.
    Endless,
    /// Proceed when the test says so.
    Hold(SinkPause),
    /// Proceed after a while.
    Delay(Duration),
    /// At Dot: enter the mail into the ledger, then do this.
    Recorded(Box<SinkAction>),
}

impl SinkAction {
    /// A reply.
    pub fn reply(text: &str) -> Self {
        Self::Reply(text.to_owned())
    }

    /// The same at Dot, after the mail has been entered into the ledger.
    pub fn recorded(self) -> Self {
        Self::Recorded(Box::new(self))
    }
}

/// A point where the sink waits for the test.
#[derive(Debug, Clone)]
pub struct SinkPause {
    reached: watch::Sender<bool>,
    released: watch::Sender<bool>,
}

impl Default for SinkPause {
    fn default() -> Self {
        Self::new()
    }
}

impl SinkPause {
    /// A point that nobody has reached.
    pub fn new() -> Self {
        Self { reached: watch::Sender::new(false), released: watch::Sender::new(false) }
    }

    /// Waits until the sink has come to this point.
    pub async fn reached(&self) {
        wait(&self.reached).await;
    }

    /// Lets the sink go on, now and at every later time.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    pub(super) async fn pass(&self) {
        self.reached.send_replace(true);
        wait(&self.released).await;
    }
}

async fn wait(flag: &watch::Sender<bool>) {
    flag.subscribe().wait_for(|set| *set).await.expect("the flag's sender is borrowed here");
}

/// Does `action` at the first `count` times of `verb`.
pub(super) fn first(count: usize, verb: SinkVerb, action: SinkAction) -> Rule {
    let left = AtomicUsize::new(count);
    Box::new(move |event| {
        let mine = event.verb == verb
            && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        mine.then(|| action.clone())
    })
}
