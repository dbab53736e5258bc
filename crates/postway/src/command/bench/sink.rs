//! The built-in sink: an SMTP server that takes everything, keeps nothing, and counts Message-IDs.
//!
//! It knows each of our mails by the uid in its Message-ID, so loss and duplicates are counted exactly, and
//! it knows when its 250 went out. It can wait before it answers each mail, as relays do. It runs on a thread
//! of its own, so that the load does not delay it. It offers no TLS and no authentication, and listens on
//! loopback only.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const MAIL_BYTES_MAX: usize = 64 * 1024 * 1024;
const LINE_BYTES_MAX: usize = 4096;
const GREETING: &[u8] = b"220 sink ESMTP\r\n";

/// A running sink.
#[derive(Debug)]
pub struct BuiltinSink {
    address: SocketAddr,
    ledger: Arc<SinkLedger>,
    arrivals: mpsc::UnboundedReceiver<(Uuid, Instant)>,
    stop: CancellationToken,
    thread: std::thread::JoinHandle<()>,
}

/// What arrived: how often each uid, and how many mails that were not ours.
#[derive(Debug, Default)]
pub struct ArrivedMail {
    pub by_uid: HashMap<Uuid, u32>,
    pub foreign: u64,
}

#[derive(Debug)]
struct SinkLedger {
    arrived: Mutex<ArrivedMail>,
    arrivals: mpsc::UnboundedSender<(Uuid, Instant)>,
}

impl BuiltinSink {
    /// Starts a sink on a free port of this machine that answers each mail after `delay`.
    pub fn start(delay: Duration) -> anyhow::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), delay)
    }

    /// Starts a sink at a given address.
    pub fn start_at(listen: SocketAddr, delay: Duration) -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind(listen)
            .with_context(|| format!("the sink cannot listen on {listen}"))?;
        listener.set_nonblocking(true).context("cannot set up the sink's listener")?;
        let address = listener.local_addr().context("cannot read the sink's address")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the sink's runtime")?;
        let (sender, arrivals) = mpsc::unbounded_channel();
        let ledger = Arc::new(SinkLedger { arrived: Mutex::default(), arrivals: sender });
        let stop = CancellationToken::new();
        let (ledger_of_thread, stop_of_thread) = (Arc::clone(&ledger), stop.clone());
        let thread = std::thread::Builder::new()
            .name("sink".to_owned())
            .spawn(move || {
                // Connections end with the runtime: the sink promises nothing to those it cuts.
                runtime.block_on(async {
                    tokio::select! {
                        () = stop_of_thread.cancelled() => {}
                        () = accept(listener, ledger_of_thread, delay) => {}
                    }
                });
            })
            .context("cannot start the sink's thread")?;
        Ok(Self { address, ledger, arrivals, stop, thread })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next mail of ours that was answered with 250; none once the sink has ended.
    pub async fn next_arrival(&mut self) -> Option<Uuid> {
        self.arrivals.recv().await.map(|(uid, _)| uid)
    }

    /// Waits until this mail was answered with 250, and returns when that was.
    pub async fn arrival_of(&mut self, uid: Uuid) -> anyhow::Result<Instant> {
        while let Some((arrived, at)) = self.arrivals.recv().await {
            if arrived == uid {
                return Ok(at);
            }
        }
        anyhow::bail!("the sink ended")
    }

    /// Stops it, and returns what it took.
    pub fn stop(self) -> anyhow::Result<ArrivedMail> {
        self.stop.cancel();
        self.thread.join().map_err(|_| anyhow::anyhow!("the sink's thread panicked"))?;
        let mut arrived = self.ledger.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *arrived))
    }
}

async fn accept(listener: std::net::TcpListener, ledger: Arc<SinkLedger>, delay: Duration) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((stream, _)) = listener.accept().await {
        let ledger = Arc::clone(&ledger);
        tokio::spawn(async move {
            // A client that goes away takes its connection with it; the ledger has what was answered.
            if let Err(error) = serve(stream, &ledger, delay).await {
                tracing::debug!(%error, "a connection to the sink ended");
            }
        });
    }
}

async fn serve(mut stream: TcpStream, ledger: &SinkLedger, delay: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(GREETING).await?;
    let mut dialogue = SmtpDialogue::default();
    let (mut input, mut replies) = (Vec::with_capacity(16 * 1024), Vec::new());
    while !dialogue.ended && stream.read_buf(&mut input).await? > 0 {
        dialogue.feed(&mut input, &mut replies);
        if dialogue.ended && replies.is_empty() {
            break;
        }
        if !dialogue.taken.is_empty() && !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let written = stream.write_all(&replies).await;
        replies.clear();
        // A mail counts as taken even if its client died before the answer.
        if !dialogue.taken.is_empty() {
            ledger.note(&mut dialogue.taken);
        }
        written?;
    }
    Ok(())
}

impl SinkLedger {
    fn note(&self, taken: &mut Vec<Option<Uuid>>) {
        let now = Instant::now();
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        for uid in taken.drain(..) {
            match uid {
                Some(uid) => {
                    *arrived.by_uid.entry(uid).or_default() += 1;
                    // The receiver of arrivals may be gone; the count remains.
                    self.arrivals.send((uid, now)).unwrap_or_default();
                }
                None => arrived.foreign += 1,
            }
        }
    }
}

/// One side of an SMTP dialogue, without I/O: bytes in, replies out.
#[derive(Debug, Default)]
struct SmtpDialogue {
    in_data: bool,
    ended: bool,
    /// How much of the input is known not to hold the end of the mail.
    scanned: usize,
    /// The mails taken since the caller last looked; none for one that is not ours.
    taken: Vec<Option<Uuid>>,
}

impl SmtpDialogue {
    /// Takes what is complete out of `input`, pipelined or not, and appends the replies.
    fn feed(&mut self, input: &mut Vec<u8>, replies: &mut Vec<u8>) {
        let mut at = 0;
        while !self.ended {
            let rest = &input[at..];
            let step = if self.in_data { self.data(rest, replies) } else { self.command(rest, replies) };
            match step {
                Some(length) => at += length,
                None => break,
            }
        }
        input.drain(..at);
        let bound = if self.in_data { MAIL_BYTES_MAX } else { LINE_BYTES_MAX };
        self.ended |= input.len() > bound;
    }

    fn command(&mut self, input: &[u8], replies: &mut Vec<u8>) -> Option<usize> {
        let end = input.iter().position(|byte| *byte == b'\n')?;
        let verb = input.get(..4).unwrap_or_default().to_ascii_uppercase();
        let reply: &[u8] = match verb.as_slice() {
            b"EHLO" => b"250-sink\r\n250-PIPELINING\r\n250-SIZE 67108864\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n",
            b"DATA" => {
                (self.in_data, self.scanned) = (true, 0);
                b"354 go on\r\n"
            }
            b"QUIT" => {
                self.ended = true;
                b"221 bye\r\n"
            }
            b"HELO" | b"MAIL" | b"RCPT" | b"RSET" | b"NOOP" => b"250 ok\r\n",
            _ => b"500 what?\r\n",
        };
        replies.extend_from_slice(reply);
        Some(end + 1)
    }

    fn data(&mut self, input: &[u8], replies: &mut Vec<u8>) -> Option<usize> {
        let length = match input.starts_with(b".\r\n") {
            true => 3,
            false => match input[self.scanned..].windows(5).position(|window| window == b"\r\n.\r\n") {
                Some(at) => self.scanned + at + 5,
                None => {
                    self.scanned = input.len().saturating_sub(4);
                    return None;
                }
            },
        };
        self.in_data = false;
        self.taken.push(uid_of(&input[..length]));
        replies.extend_from_slice(b"250 2.0.0 taken\r\n");
        Some(length)
    }
}

/// The uid in `Message-ID: <uid@domain>`, folded or not; none for a mail that is not ours.
fn uid_of(mail: &[u8]) -> Option<Uuid> {
    const NAME: &[u8] = b"message-id:";
    let mut rest = mail;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = &rest[..end];
        if line.len() <= 1 {
            return None;
        }
        if line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)) {
            let value = &rest[NAME.len()..];
            let open = value.iter().take(200).position(|byte| *byte == b'<')?;
            let id = value.get(open + 1..)?;
            let at = id.iter().take(200).position(|byte| *byte == b'@')?;
            return Uuid::try_parse_ascii(&id[..at]).ok();
        }
        rest = &rest[end + 1..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn mail() -> String {
        format!("From: a@example.com\r\nMessage-Id:\r\n <{UID}@example.com>\r\n\r\n..\r\nbody\r\n.\r\n")
    }

    #[test]
    fn a_pipelined_dialogue_is_answered_in_order() {
        let mut dialogue = SmtpDialogue::default();
        let mut input =
            format!("EHLO x\r\nMAIL FROM:<a>\r\nRCPT TO:<b>\r\nDATA\r\n{}QUIT\r\n", mail()).into_bytes();
        let mut replies = Vec::new();
        dialogue.feed(&mut input, &mut replies);
        let replies = String::from_utf8(replies).unwrap();
        let codes: Vec<&str> =
            replies.lines().filter(|line| &line[3..4] == " ").map(|line| &line[..3]).collect();
        assert_eq!(codes, ["250", "250", "250", "354", "250", "221"]);
        assert_eq!(dialogue.taken, [Some(UID.parse().unwrap())]);
        assert!(dialogue.ended && input.is_empty());
    }

    #[test]
    fn a_mail_that_comes_byte_by_byte_is_counted_once() {
        let mut dialogue = SmtpDialogue::default();
        let (mut input, mut replies) = (Vec::new(), Vec::new());
        for byte in format!("DATA\r\n{}NOOP\r\n", mail()).bytes() {
            input.push(byte);
            dialogue.feed(&mut input, &mut replies);
        }
        assert_eq!(dialogue.taken.len(), 1);
        assert_eq!(String::from_utf8(replies).unwrap().lines().count(), 3);
    }

    #[test]
    fn mails_that_are_not_ours_have_no_uid() {
        for mail in
            ["Subject: x\r\n\r\nMessage-ID: <a@b>\r\n.\r\n", "Message-ID: <nonsense@b>\r\n\r\n.\r\n", ".\r\n"]
        {
            assert_eq!(uid_of(mail.as_bytes()), None, "{mail}");
        }
    }

    #[tokio::test]
    async fn a_running_sink_counts_every_arrival() {
        let mut sink = BuiltinSink::start(Duration::ZERO).unwrap();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(sink.address()).await.unwrap();
            stream.write_all(format!("HELO x\r\nDATA\r\n{}QUIT\r\n", mail()).as_bytes()).await.unwrap();
            let mut replies = String::new();
            stream.read_to_string(&mut replies).await.unwrap();
            assert!(replies.ends_with("250 2.0.0 taken\r\n221 bye\r\n"), "{replies}");
            sink.arrival_of(UID.parse().unwrap()).await.unwrap();
        }
        let arrived = sink.stop().unwrap();
        assert_eq!(arrived.by_uid[&UID.parse::<Uuid>().unwrap()], 2);
    }
}
