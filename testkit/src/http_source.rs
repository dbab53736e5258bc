//! An HTTP server for tests: gives documents, keeps the requests, and misbehaves on demand.
//!
//! It listens on a loopback address, on a port of the system's choice, and lives until it is dropped. What it
//! answers is set per path as a [`SourceReply`]; a path without one answers 404.
//!
//! ```no_run
//! # use postway_testkit::http_source::{HttpSource, SourceReply};
//! # async fn example() {
//! let source = HttpSource::start().await;
//! source.serve("/a.pdf", SourceReply::ok("%PDF-1.7").header("content-type", "application/pdf"));
//! source.serve("/bomb", SourceReply::Endless);
//! // … fetch source.url("/a.pdf") …
//! assert_eq!(source.requests().len(), 1);
//! # }
//! ```

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpListener,
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use crate::cert::TestCert;

/// Longer than any head a test sends.
const HEAD_BYTES_MAX: u64 = 64 * 1024;
/// What is written at once where the length does not matter.
const FILLER: [u8; 16 * 1024] = [0; 16 * 1024];

/// What the source does with a request.
#[derive(Clone, Debug)]
pub enum SourceReply {
    /// A whole answer with its length.
    Whole {
        /// The status.
        status: u16,
        /// Headers besides Content-Length.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// An answer that says it has this many bytes, and sends zeros until the client leaves.
    Declared(u64),
    /// An answer without a length that never ends.
    Endless,
    /// An answer that comes byte by byte.
    Drip {
        /// The bytes that are sent.
        body: Vec<u8>,
        /// How long between two bytes.
        every: Duration,
    },
    /// An answer that ends before its declared length.
    Cut {
        /// The declared length.
        declared: u64,
        /// The bytes that are sent.
        body: Vec<u8>,
    },
    /// An answer that stops before its declared length, and leaves the client waiting.
    Stalled {
        /// The declared length.
        declared: u64,
        /// The bytes that are sent.
        body: Vec<u8>,
    },
    /// No answer at all, while the client waits.
    Silent,
    /// These bytes, and the end of the connection.
    Raw(Vec<u8>),
    /// The other reply, once the gate is open.
    Held(watch::Receiver<bool>, Box<SourceReply>),
}

impl SourceReply {
    /// A 200 with this body.
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::Whole { status: 200, headers: Vec::new(), body: body.into() }
    }

    /// This status, with a body that says so.
    pub fn status(status: u16) -> Self {
        Self::Whole { status, headers: Vec::new(), body: format!("status {status}").into_bytes() }
    }

    /// A redirect.
    pub fn redirect(status: u16, to: impl Into<String>) -> Self {
        Self::status(status).header("location", to)
    }

    /// The same with one more header. Panics where the reply has no headers of its own.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        let Self::Whole { headers, .. } = &mut self else { panic!("only a whole answer takes headers") };
        headers.push((name.to_owned(), value.into()));
        self
    }

    /// This reply, held back until the gate is sent `true`.
    pub fn held(self) -> (watch::Sender<bool>, Self) {
        let (gate, wait) = watch::channel(false);
        (gate, Self::Held(wait, Box::new(self)))
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Headers in order, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct State {
    replies: HashMap<String, Vec<SourceReply>>,
    requests: Vec<ReceivedRequest>,
}

struct Shared {
    state: Mutex<State>,
    received: watch::Sender<usize>,
    tls: Option<TlsAcceptor>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request and says what to do with it. Of several replies each is used once, and the last for
    /// good.
    fn reply(&self, request: ReceivedRequest) -> SourceReply {
        let mut state = self.state();
        let reply = match state.replies.get_mut(&request.path) {
            Some(replies) if replies.len() > 1 => replies.remove(0),
            Some(replies) => replies.first().cloned().unwrap_or_else(|| SourceReply::status(404)),
            None => SourceReply::status(404),
        };
        state.requests.push(request);
        let count = state.requests.len();
        drop(state);
        self.received.send_replace(count);
        reply
    }
}

/// A running source. Dropping it ends its connections.
pub struct HttpSource {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: AbortHandle,
}

impl HttpSource {
    /// A source on 127.0.0.1.
    pub async fn start() -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), None).await
    }

    /// A source on another address of this machine, such as 127.0.0.2.
    pub async fn start_on(address: impl Into<IpAddr>) -> Self {
        Self::start_at(address.into(), None).await
    }

    /// A source on 127.0.0.1 that speaks HTTPS.
    pub async fn start_tls(cert: &TestCert) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), Some(TlsAcceptor::from(cert.config.clone()))).await
    }

    async fn start_at(address: IpAddr, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind((address, 0)).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared { state: Mutex::default(), received: watch::Sender::new(0), tls });
        let serving = tokio::spawn(serve(listener, shared.clone())).abort_handle();
        Self { address, shared, serving }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address)
    }

    /// From now on, this path (with its query) gets this reply.
    pub fn serve(&self, path: &str, reply: SourceReply) {
        self.serve_in_turn(path, vec![reply]);
    }

    /// From now on, this path gets these replies, one after the other, and then the last for good.
    pub fn serve_in_turn(&self, path: &str, replies: Vec<SourceReply>) {
        self.shared.state().replies.insert(path.to_owned(), replies);
    }

    /// What has been asked so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.state().requests.clone()
    }

    /// Waits until this many requests have come. Panics when they do not.
    pub async fn wait_for(&self, count: usize, within: Duration) {
        let mut received = self.shared.received.subscribe();
        let come = timeout(within, received.wait_for(|received| *received >= count)).await;
        assert!(come.is_ok(), "{} of {count} requests came within {within:?}", self.requests().len());
    }
}

impl Drop for HttpSource {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((tcp, _)) = listener.accept().await {
        let shared = shared.clone();
        // A connection may end as it likes: that is the test's business, not the source's.
        connections.spawn(async move {
            tcp.set_nodelay(true)?;
            match shared.tls.clone() {
                Some(tls) => converse(tls.accept(tcp).await?, &shared).await,
                None => converse(tcp, &shared).await,
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Shared) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = receive(&mut stream).await? {
        let mut reply = shared.reply(request);
        while let SourceReply::Held(mut gate, held) = reply {
            gate.wait_for(|open| *open).await.map_err(io::Error::other)?;
            reply = *held;
        }
        if !answer(&mut stream, reply).await? {
            break;
        }
    }
    stream.shutdown().await
}

/// The next request, unless the client has left.
async fn receive(stream: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Option<ReceivedRequest>> {
    let mut head = Vec::new();
    let mut limited = stream.take(HEAD_BYTES_MAX);
    while !head.ends_with(b"\r\n\r\n") {
        if limited.read_until(b'\n', &mut head).await? == 0 {
            return Ok(None);
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = ReceivedRequest { method, path, headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    stream.read_exact(&mut request.body).await?;
    Ok(Some(request))
}

/// Does what the reply says, and tells whether the connection can be used again.
async fn answer(
    stream: &mut (impl AsyncWriteExt + AsyncReadExt + Unpin),
    reply: SourceReply,
) -> io::Result<bool> {
    let head = |length: u64| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
    match reply {
        SourceReply::Whole { status, headers, body } => {
            let mut head = format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n", body.len());
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            stream.write_all(format!("{head}\r\n").as_bytes()).await?;
            stream.write_all(&body).await?;
            stream.flush().await?;
            return Ok(true);
        }
        SourceReply::Declared(length) => {
            stream.write_all(head(length).as_bytes()).await?;
            loop {
                stream.write_all(&FILLER).await?;
            }
        }
        SourceReply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await?;
            loop {
                stream.write_all(&FILLER).await?;
            }
        }
        SourceReply::Drip { body, every } => {
            stream.write_all(head(body.len() as u64).as_bytes()).await?;
            for byte in body {
                stream.write_all(&[byte]).await?;
                stream.flush().await?;
                sleep(every).await;
            }
            return Ok(true);
        }
        SourceReply::Cut { declared, body } => {
            stream.write_all(head(declared).as_bytes()).await?;
            stream.write_all(&body).await?;
        }
        SourceReply::Stalled { declared, body } => {
            stream.write_all(head(declared).as_bytes()).await?;
            stream.write_all(&body).await?;
            stream.flush().await?;
            // Ends when the client leaves.
            stream.read_u8().await?;
        }
        SourceReply::Silent => {
            // Ends when the client leaves.
            stream.read_u8().await?;
        }
        SourceReply::Raw(bytes) => stream.write_all(&bytes).await?,
        SourceReply::Held(..) => unreachable!("a held reply has been opened before"),
    }
    stream.flush().await?;
    Ok(false)
}
