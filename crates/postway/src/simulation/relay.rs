//! The relay: takes mail over pipes, and behaves at each turn as chance decides.
//!
//! It keeps what it took and when each transaction began, which is what the checks compare the store with.
//! Bytes are read as they are written and acted on later, so a life's writes have their own time however long
//! the network holds them.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_dispatch::transport::RelayDialer;
use postway_domain::{MessageUid, Time, liveness::ISOLATED_AFTER};
use postway_net::{AddressGuard, NetError, NetStream};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    sync::mpsc,
    time::Instant,
};

use super::{
    life::{LifePulse, NodeLife},
    world::SimulatedWorld,
};

/// The port of the first account's relay; the others' follow.
pub(super) const FIRST_PORT: u16 = 2_501;
/// What is in the pipe before a writer waits.
const PIPE_BYTES: usize = 64 * 1024;
/// Longer than any deadline of the other side.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);

/// What the relays have recorded.
#[derive(Default)]
pub(super) struct RelayRecord {
    /// When each recipient's mail was taken, by message and address.
    pub taken: BTreeMap<(MessageUid, String), Vec<Time>>,
    /// When each transaction that the relay answered was begun, by account, whatever the time of day was.
    pub begun: BTreeMap<u16, Vec<Instant>>,
    /// Open connections by life and account.
    open: BTreeMap<(String, u16), u32>,
}

/// What a relay does at one of its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RelayBehaviour {
    Well,
    Cut,
    Silent,
    Transient,
    Permanent,
    Closing,
}

/// Connects a life to the relays.
pub(super) struct SimulatedNetwork {
    pub world: Arc<SimulatedWorld>,
    pub life: Arc<NodeLife>,
}

impl std::fmt::Debug for SimulatedNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Network")
    }
}

#[async_trait]
impl RelayDialer for SimulatedNetwork {
    async fn dial(
        &self,
        host: &str,
        port: u16,
        deadline: Instant,
        _: &AddressGuard,
    ) -> Result<NetStream, NetError> {
        let (world, life) = (&self.world, &self.life);
        let unreachable = world.chance.hits(world.rate(world.plan.relay.unreachable));
        let never_answers = unreachable && world.chance.hits(300);
        let wait = if never_answers { FOR_EVER } else { world.latency() };
        let arrives = tokio::time::timeout_at(deadline, async {
            tokio::time::sleep(wait).await;
            life.acts().await;
        });
        if arrives.await.is_err() {
            return Err(NetError::Timeout { host: host.to_owned(), port, what: "connection" });
        }
        if unreachable {
            world.trace.note(format_args!("{} is refused by relay {port}", life.name));
            let source = io::ErrorKind::ConnectionRefused.into();
            return Err(NetError::Connect { host: host.to_owned(), port, source });
        }
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        world.connected(life, port);
        let (reader, writer) = tokio::io::split(theirs);
        let (written, lines) = mpsc::unbounded_channel();
        tokio::spawn(listen(world.clone(), life.clone(), port, reader, written));
        let session = RelayConnection { world: world.clone(), life: life.clone(), port, lines, writer };
        tokio::spawn(async move { session.converse().await });
        Ok(NetStream::Pipe(ours))
    }
}

/// Reads lines in the moment they are written, until the other side hangs up or dies.
async fn listen(
    world: Arc<SimulatedWorld>,
    life: Arc<NodeLife>,
    port: u16,
    reader: ReadHalf<DuplexStream>,
    written: mpsc::UnboundedSender<(Instant, String)>,
) {
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = String::new();
        tokio::select! {
            biased;
            () = life.until(|pulse| pulse == LifePulse::Dead) => break,
            read = reader.read_line(&mut line) => match read {
                Ok(1..) => {
                    if line.starts_with("MAIL FROM:") || line == ".\r\n" {
                        world.check_seen(&life, line.trim_end());
                    }
                    written.send((Instant::now(), line)).ok()
                }
                Ok(0) | Err(_) => break,
            },
        };
    }
    world.disconnected(&life, port);
}

/// One connection, from the relay's side.
struct RelayConnection {
    world: Arc<SimulatedWorld>,
    life: Arc<NodeLife>,
    port: u16,
    lines: mpsc::UnboundedReceiver<(Instant, String)>,
    writer: WriteHalf<DuplexStream>,
}

impl RelayConnection {
    /// Speaks until one side hangs up, which is `None`.
    async fn converse(mut self) -> Option<()> {
        match self.whim() {
            RelayBehaviour::Well | RelayBehaviour::Permanent => self.say("220 relay.example").await?,
            RelayBehaviour::Transient | RelayBehaviour::Closing => {
                return self.say("421 4.3.2 not now").await;
            }
            RelayBehaviour::Silent => return self.hold().await,
            RelayBehaviour::Cut => return None,
        }
        let (mut sender, mut recipients) = (None, Vec::new());
        loop {
            let (written_at, line) = self.hear().await?;
            let line = line.trim_end();
            let verb = line.get(..4).unwrap_or(line);
            match verb {
                "EHLO" if self.world.plan.relay.pipelining => {
                    self.say("250-relay.example\r\n250 PIPELINING").await?;
                }
                "EHLO" | "RSET" => {
                    (sender, recipients) = (None, Vec::new());
                    self.say("250 ok").await?;
                }
                "QUIT" => return self.say("221 bye").await,
                "MAIL" => {
                    recipients.clear();
                    let named =
                        between(line, '<', '@').and_then(|label| label.strip_prefix('m')?.parse().ok());
                    sender = self.answer("250 2.1.0 ok", written_at, named).await?.then_some(named).flatten();
                }
                "RCPT" if sender.is_none() => self.say("503 5.5.1 no sender").await?,
                "RCPT" => {
                    if self.answer("250 2.1.5 ok", written_at, None).await? {
                        recipients.extend(between(line, '<', '>').map(str::to_owned));
                    }
                }
                "DATA" if recipients.is_empty() => self.say("554 5.5.1 no recipients").await?,
                "DATA" => {
                    if self.answer("354 go ahead", written_at, None).await? {
                        self.take(sender.take()?, std::mem::take(&mut recipients)).await?;
                    }
                }
                _ => self.say("500 5.5.1 what").await?,
            }
        }
    }

    /// Answers a command: well, in which case it returns true, or not.
    async fn answer(&mut self, well: &str, written_at: Instant, begins: Option<usize>) -> Option<bool> {
        let whim = self.whim();
        match whim {
            RelayBehaviour::Cut => return None,
            RelayBehaviour::Silent => return self.hold().await.map(|()| false),
            RelayBehaviour::Closing => return self.say("421 4.3.2 closing").await.and(None),
            RelayBehaviour::Well | RelayBehaviour::Transient | RelayBehaviour::Permanent => {}
        }
        if let Some(label) = begins {
            self.world
                .trace
                .note(format_args!("{} begins m{label} with relay {}", self.life.name, self.port));
            self.world.seen().begun.entry(self.port).or_default().push(written_at);
        }
        match whim {
            RelayBehaviour::Transient => self.say("451 4.3.0 later").await?,
            RelayBehaviour::Permanent => self.say("550 5.1.1 never").await?,
            _ => self.say(well).await?,
        }
        Some(whim == RelayBehaviour::Well)
    }

    /// Reads a body to its dot, and takes it or not, and says so or not.
    async fn take(&mut self, label: usize, recipients: Vec<String>) -> Option<()> {
        while self.next_line().await?.1 != ".\r\n" {}
        self.arrive().await;
        let Some(uid) = self.world.uid_of(label) else { return self.say("554 5.6.0 unknown").await };
        self.world.ledger().dotted(&self.life.name, uid, &self.world.trace);
        let whim = self.whim();
        let takes = match whim {
            RelayBehaviour::Well => true,
            // It may have it and not say so.
            RelayBehaviour::Cut | RelayBehaviour::Silent | RelayBehaviour::Closing => {
                self.world.chance.hits(500)
            }
            RelayBehaviour::Transient | RelayBehaviour::Permanent => false,
        };
        if takes {
            self.world.taken(&self.life, uid, label, &recipients).await;
        } else {
            self.world.trace.note(format_args!("relay {} leaves m{label} of {}", self.port, self.life.name));
        }
        match whim {
            RelayBehaviour::Well => self.say(&format!("250 2.0.0 queued as m{label}")).await,
            RelayBehaviour::Transient => self.say("451 4.3.0 later").await,
            RelayBehaviour::Permanent => self.say("554 5.6.0 never").await,
            RelayBehaviour::Silent => self.hold().await,
            RelayBehaviour::Cut | RelayBehaviour::Closing => None,
        }
    }

    fn whim(&self) -> RelayBehaviour {
        let (ills, chance) = (&self.world.plan.relay, &self.world.chance);
        let rates = [
            (ills.cut, RelayBehaviour::Cut),
            (ills.silent, RelayBehaviour::Silent),
            (ills.transient, RelayBehaviour::Transient),
            (ills.permanent, RelayBehaviour::Permanent),
            (ills.closing, RelayBehaviour::Closing),
        ];
        let of_one = |rate| chance.hits(self.world.rate(rate) / 4);
        rates.into_iter().find(|(rate, _)| of_one(*rate)).map_or(RelayBehaviour::Well, |(_, whim)| whim)
    }

    /// The next line, once the network has brought it.
    async fn hear(&mut self) -> Option<(Instant, String)> {
        let heard = self.next_line().await?;
        self.arrive().await;
        Some(heard)
    }

    /// Something that the other side did reaches the relay.
    async fn arrive(&self) {
        self.world.strike_in_the_act(&self.life);
        self.travel().await;
    }

    async fn next_line(&mut self) -> Option<(Instant, String)> {
        let (is_dead, loses) = (|pulse| pulse == LifePulse::Dead, self.life.loses_bytes);
        if loses && is_dead(self.life.pulse()) {
            return None;
        }
        tokio::select! {
            biased;
            line = self.lines.recv() => line,
            () = self.life.until(is_dead) => None,
        }
    }

    async fn say(&mut self, words: &str) -> Option<()> {
        self.travel().await;
        self.writer.write_all(format!("{words}\r\n").as_bytes()).await.ok()
    }

    /// The time on the way; a frozen life neither sends nor hears.
    async fn travel(&self) {
        if self.world.chance.hits(self.world.rate(self.world.plan.relay.slow)) {
            tokio::time::sleep(self.world.latency()).await;
        }
        self.life.until(|pulse| pulse != LifePulse::Frozen).await;
    }

    /// Says nothing, until the other side gives up.
    async fn hold(&mut self) -> Option<()> {
        while self.next_line().await.is_some() {}
        None
    }
}

fn between(line: &str, open: char, close: char) -> Option<&str> {
    let rest = line.split_once(open)?.1;
    Some(rest.split_once(close)?.0)
}

impl SimulatedWorld {
    fn connected(&self, life: &NodeLife, port: u16) {
        let mut seen = self.seen();
        let open = seen.open.entry((life.name.clone(), port)).or_default();
        *open += 1;
        let (open, max) = (*open, self.account(port).connections);
        drop(seen);
        if open > max {
            self.trace.violation(format_args!("{} has {open} connections to {port}, of {max}", life.name));
        }
    }

    /// Checks a life that writes the first or the last line of a mail: others must have seen its heartbeat
    /// lately, or they may have sent the mail themselves.
    fn check_seen(&self, life: &NodeLife, word: &str) {
        let unbeaten = life.unbeaten_for().unwrap_or(Duration::MAX);
        if self.plan.nodes > 1 && unbeaten > ISOLATED_AFTER {
            let word = word.get(..4).unwrap_or(word);
            let name = &life.name;
            self.trace.violation(format_args!("{name} writes {word}, and did not beat for {unbeaten:?}"));
        }
    }

    fn disconnected(&self, life: &NodeLife, port: u16) {
        if let Some(open) = self.seen().open.get_mut(&(life.name.clone(), port)) {
            *open -= 1;
        }
    }
}
