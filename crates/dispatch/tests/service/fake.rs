//! A small HTTP server that plays a script and records the requests.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use postway_testkit::TestCert;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

/// What the server does with a request.
#[derive(Debug, Clone)]
pub enum Play {
    /// Answers with status, extra headers and body, and keeps the connection.
    Answer(u16, &'static str, String),
    /// Writes these bytes and closes.
    Raw(Vec<u8>),
    /// Does not answer, and keeps the connection.
    Silence,
    /// Status 200 and a body without end.
    Endless,
    /// Closes after this many bytes of the request.
    CutAfter(usize),
}

/// A recorded request.
#[derive(Debug, Clone)]
pub struct Heard {
    pub head: String,
    pub body: Vec<u8>,
}

impl Heard {
    pub fn header(&self, name: &str) -> Option<&str> {
        let is = |line: &&str| line.split(':').next().is_some_and(|key| key.eq_ignore_ascii_case(name));
        self.head.lines().find(is)?.split_once(':').map(|(_, value)| value.trim())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("the request is JSON")
    }
}

#[derive(Default)]
pub struct Ledger {
    pub connections: usize,
    pub requests: Vec<Heard>,
}

/// The server; it stops when this value is dropped.
pub struct Fake {
    address: SocketAddr,
    scheme: &'static str,
    ledger: Arc<Mutex<Ledger>>,
    _tasks: JoinSet<()>,
}

impl Fake {
    pub async fn start(play: Play) -> Self {
        Self::serve(play, None).await
    }

    pub async fn start_tls(play: Play, cert: &TestCert) -> Self {
        Self::serve(play, Some(TlsAcceptor::from(cert.config.clone()))).await
    }

    async fn serve(play: Play, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mut tasks = JoinSet::new();
        let shared = ledger.clone();
        tasks.spawn(async move {
            let mut conversations = JoinSet::new();
            while let Ok((tcp, _)) = listener.accept().await {
                shared.lock().unwrap().connections += 1;
                let (play, ledger, tls) = (play.clone(), shared.clone(), tls.clone());
                conversations.spawn(async move {
                    match tls {
                        None => converse(tcp, play, &ledger).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(tcp).await {
                                converse(stream, play, &ledger).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, scheme, ledger, _tasks: tasks }
    }

    pub fn url(&self) -> String {
        format!("{}://localhost:{}", self.scheme, self.address.port())
    }

    pub fn requests(&self) -> Vec<Heard> {
        self.ledger.lock().unwrap().requests.clone()
    }

    pub fn connections(&self) -> usize {
        self.ledger.lock().unwrap().connections
    }
}

async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, play: Play, ledger: &Mutex<Ledger>) {
    if let Play::CutAfter(bytes) = play {
        let mut part = vec![0; bytes];
        // A client may close the connection first.
        let _ = stream.read_exact(&mut part).await;
        return;
    }
    let mut buffer = Vec::new();
    while let Some(heard) = request(&mut stream, &mut buffer).await {
        ledger.lock().unwrap().requests.push(heard);
        let written = match &play {
            Play::Answer(status, headers, body) => {
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).await
            }
            Play::Raw(bytes) => {
                let _ = stream.write_all(bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Play::Silence => std::future::pending().await,
            Play::Endless => endless(&mut stream).await,
            Play::CutAfter(_) => return,
        };
        if written.is_err() {
            return;
        }
    }
}

async fn endless(stream: &mut (impl AsyncWrite + Unpin)) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
    loop {
        stream.write_all(b"400\r\n").await?;
        stream.write_all(&[b'x'; 0x400]).await?;
        stream.write_all(b"\r\n").await?;
    }
}

/// The next request on this connection, if there is one.
async fn request(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Option<Heard> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let mut heard = Heard { head, body: Vec::new() };
            let length: usize = heard.header("content-length").map_or(0, |text| text.parse().unwrap());
            if buffer.len() >= end + 4 + length {
                heard.body = buffer[end + 4..end + 4 + length].to_vec();
                buffer.drain(..end + 4 + length);
                return Some(heard);
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}
