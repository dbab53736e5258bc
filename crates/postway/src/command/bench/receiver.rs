//! The built-in receiver of webhooks: an HTTP server that takes everything at once and counts `webhook-id`s.
//!
//! It keeps connections open and answers 204 as soon as a body is complete, so that what is measured is the
//! sender. It knows each notification by its id, so loss, repeats and order are counted exactly; it verifies
//! no signature. The last piece of the path tells subscribers apart. It runs on a thread of its own and
//! listens on loopback only.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const REQUEST_BYTES_MAX: usize = 1024 * 1024;
const TAKEN: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// A running receiver.
#[derive(Debug)]
pub struct WebhookReceiver {
    address: SocketAddr,
    ledger: Arc<CallLedger>,
    stop: CancellationToken,
    thread: std::thread::JoinHandle<()>,
}

/// What arrived since it was last asked.
#[derive(Debug, Default)]
pub struct HeardCalls {
    /// The positions of the events that a subscriber was notified of, by message, in the order of arrival.
    pub by_message: HashMap<(u32, Uuid), Vec<i64>>,
    /// When each notification came for the first time, and to whom.
    pub arrivals: Vec<(u32, Instant)>,
    /// Repeated notifications.
    pub repeated: u64,
    /// Notifications that came after a later one of the same message.
    pub out_of_order: u64,
    /// Requests that are no notification of ours.
    pub foreign: u64,
}

#[derive(Debug, Default)]
struct CallLedger {
    heard: Mutex<HeardCalls>,
    arrived: Notify,
}

/// One received call.
#[derive(Debug, PartialEq, Eq)]
struct ReceivedCall {
    subscriber: u32,
    uid: Uuid,
    seq: i64,
}

impl WebhookReceiver {
    /// Starts one on a free port of this machine.
    pub fn start() -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").context("cannot listen for webhooks")?;
        listener.set_nonblocking(true).context("cannot set up the receiver's listener")?;
        let address = listener.local_addr().context("cannot read the receiver's address")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the receiver's runtime")?;
        let (ledger, stop) = (Arc::new(CallLedger::default()), CancellationToken::new());
        let (ledger_of_thread, stop_of_thread) = (Arc::clone(&ledger), stop.clone());
        let thread = std::thread::Builder::new()
            .name("receiver".to_owned())
            .spawn(move || {
                // Connections end with the runtime.
                runtime.block_on(async {
                    tokio::select! {
                        () = stop_of_thread.cancelled() => {}
                        () = accept(listener, ledger_of_thread) => {}
                    }
                });
            })
            .context("cannot start the receiver's thread")?;
        Ok(Self { address, ledger, stop, thread })
    }

    /// Where a subscriber of this number is to be called.
    pub fn url(&self, subscriber: u32) -> String {
        format!("http://{}/hook/{subscriber}", self.address)
    }

    /// Waits until `count` distinct notifications have arrived; forever if they do not.
    pub async fn wait_for(&self, notifications: u64) {
        loop {
            let arrived = self.ledger.arrived.notified();
            if self.count() >= notifications {
                return;
            }
            arrived.await;
        }
    }

    /// How many notifications have arrived since the last [`Self::take`], each counted once.
    pub fn count(&self) -> u64 {
        self.ledger.lock().arrivals.len() as u64
    }

    /// What has arrived since it was last asked.
    pub fn take(&self) -> HeardCalls {
        std::mem::take(&mut *self.ledger.lock())
    }

    /// Stops it.
    pub fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.thread.join().map_err(|_| anyhow::anyhow!("the receiver's thread panicked"))
    }
}

impl CallLedger {
    fn lock(&self) -> std::sync::MutexGuard<'_, HeardCalls> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeardCalls {
    fn note(&mut self, call: Option<ReceivedCall>, at: Instant) {
        let Some(ReceivedCall { subscriber, uid, seq }) = call else {
            self.foreign += 1;
            return;
        };
        let positions = self.by_message.entry((subscriber, uid)).or_default();
        if positions.contains(&seq) {
            self.repeated += 1;
            return;
        }
        self.out_of_order += u64::from(positions.last().is_some_and(|last| *last > seq));
        positions.push(seq);
        self.arrivals.push((subscriber, at));
    }
}

async fn accept(listener: std::net::TcpListener, ledger: Arc<CallLedger>) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((stream, _)) = listener.accept().await {
        let ledger = Arc::clone(&ledger);
        tokio::spawn(async move {
            // A sender that goes away takes its connection with it; the ledger has what was answered.
            if let Err(error) = serve(stream, &ledger).await {
                tracing::debug!(%error, "a connection to the receiver ended");
            }
        });
    }
}

async fn serve(mut stream: TcpStream, ledger: &CallLedger) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = Vec::with_capacity(16 * 1024);
    while input.len() < REQUEST_BYTES_MAX && stream.read_buf(&mut input).await? > 0 {
        while let Some((length, call)) = read_request(&input) {
            input.drain(..length);
            ledger.lock().note(call, Instant::now());
            stream.write_all(TAKEN).await?;
            ledger.arrived.notify_one();
        }
    }
    Ok(())
}

/// The length of the first request and what it tells, once it is complete.
fn read_request(input: &[u8]) -> Option<(usize, Option<ReceivedCall>)> {
    let end = input.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&input[..end]).unwrap_or_default();
    let mut lines = head.lines();
    let target = lines.next().and_then(|line| line.split(' ').nth(1));
    let (mut length, mut id) = (0, None);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        match value.trim() {
            value if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap_or(0),
            value if name.eq_ignore_ascii_case("webhook-id") => id = Some(value),
            _ => {}
        }
    }
    (input.len() >= end + length).then(|| (end + length, read_call(target, id)))
}

fn read_call(target: Option<&str>, id: Option<&str>) -> Option<ReceivedCall> {
    let (uid, seq) = id?.strip_prefix("evt_")?.split_once('_')?;
    Some(ReceivedCall {
        subscriber: target?.rsplit_once('/')?.1.parse().ok()?,
        uid: uid.parse().ok()?,
        seq: seq.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "01890a5dac96774bbcceb302099a8057";

    fn request(seq: i64) -> String {
        format!("POST /hook/7 HTTP/1.1\r\nWebhook-Id: evt_{UID}_{seq}\r\nContent-Length: 5\r\n\r\n{{\"a\"}}")
    }

    #[test]
    fn a_request_is_read_when_its_body_is_complete() {
        let whole = request(3);
        assert_eq!(read_request(&whole.as_bytes()[..whole.len() - 1]), None);
        let (length, call) = read_request(format!("{whole}POST").as_bytes()).unwrap();
        assert_eq!(length, whole.len());
        assert_eq!(call, Some(ReceivedCall { subscriber: 7, uid: UID.parse().unwrap(), seq: 3 }));
    }

    #[test]
    fn what_is_no_notification_is_counted_apart() {
        let (_, call) = read_request(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut heard = HeardCalls::default();
        heard.note(call, Instant::now());
        assert_eq!((heard.foreign, heard.arrivals.len()), (1, 0));
    }

    #[tokio::test]
    async fn a_running_receiver_counts_repeats_and_what_comes_too_late() {
        let receiver = WebhookReceiver::start().unwrap();
        let mut stream = TcpStream::connect(receiver.address).await.unwrap();
        for seq in [1, 4, 4, 2] {
            stream.write_all(request(seq).as_bytes()).await.unwrap();
            let mut answer = [0; TAKEN.len()];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, TAKEN);
        }
        receiver.wait_for(3).await;
        let heard = receiver.take();
        assert_eq!((heard.arrivals.len(), heard.repeated, heard.out_of_order), (3, 1, 1));
        assert_eq!(receiver.count(), 0);
        receiver.stop().unwrap();
    }
}
