//! A TCP proxy between a program and its database that a test can cut and mend.
//!
//! It listens on loopback and carries bytes to the server, over TCP or to a Unix socket. Cutting it ends
//! every connection at once, whatever is on its way; until it is mended, new connections are closed at once,
//! as by a server that is going down. It can also go silent: its clients hear nothing any more, not even
//! that, while the server sees them gone, as when a machine loses its power behind an address that another
//! takes over. Panics if it cannot listen or if the URL names no server: then the test itself is wrong.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{self, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
    task::AbortHandle,
};

/// The server behind the proxy.
#[derive(Debug, PartialEq, Eq)]
enum Server {
    Tcp(String),
    Unix(PathBuf),
}

/// The state that the proxy's connections share.
struct State {
    whole: watch::Sender<bool>,
    cut_after: Mutex<Option<&'static [u8]>>,
    silence: watch::Sender<Silence>,
    silent_after: Mutex<Option<[&'static [u8]; 2]>>,
}

/// How often the proxy went silent, and whether new connections are silent as well.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    times: u32,
    is_for_all: bool,
}

impl State {
    fn cut_if_met(&self, asked: &[u8]) {
        let mut words = self.cut_after.lock().unwrap_or_else(PoisonError::into_inner);
        if words.take_if(|words| asked.windows(words.len()).any(|window| window == *words)).is_some() {
            self.whole.send_replace(false);
        }
    }

    fn fall_silent(&self, is_for_all: bool) {
        self.silence.send_modify(|silence| *silence = Silence { times: silence.times + 1, is_for_all });
    }

    /// Whether a connection has said the first of the words, with which it may say the second.
    fn fall_silent_if_met(&self, asked: &[u8], has_said: &mut bool) {
        let said = |words: &[u8]| asked.windows(words.len()).any(|window| window == words);
        let mut words = self.silent_after.lock().unwrap_or_else(PoisonError::into_inner);
        let Some([first, second]) = *words else { return };
        if *has_said && said(second) {
            *words = None;
            self.fall_silent(true);
        }
        *has_said |= said(first);
    }
}

/// A running proxy. Dropping it ends its connections.
pub struct TcpProxy {
    url: String,
    state: Arc<State>,
    carrying: AbortHandle,
}

impl TcpProxy {
    /// Starts a proxy to the server of a database URL, `scheme://user@host:port/name`, or with `?socket=` and
    /// a path.
    pub async fn to(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let near = listener.local_addr().expect("a bound listener has an address");
        let (server, url) = through(url, near).unwrap_or_else(|| panic!("{url} names no server"));
        let state = Arc::new(State {
            whole: watch::Sender::new(true),
            cut_after: Mutex::default(),
            silence: watch::Sender::default(),
            silent_after: Mutex::default(),
        });
        let carrying = tokio::spawn(carry(listener, Arc::new(server), state.clone())).abort_handle();
        Self { url, state, carrying }
    }

    /// The database's URL by way of this cable.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends every connection, and lets none through.
    pub fn cut(&self) {
        self.state.whole.send_replace(false);
    }

    /// Cuts it when a client says these words: they still reach the server, but its answer is lost. Returns
    /// once that has happened.
    pub async fn cut_after(&self, words: &'static [u8]) {
        *self.state.cut_after.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
        let mut is_whole = self.state.whole.subscribe();
        is_whole.wait_for(|whole| !whole).await.expect("the cable outlives those who wait for it");
    }

    /// Goes silent for all connections there are; new ones go through.
    pub fn silence_present(&self) {
        self.state.fall_silent(false);
    }

    /// Goes silent for all, also for those who connect.
    pub fn silence(&self) {
        self.state.fall_silent(true);
    }

    /// The same when a client has said the first words and, later, the second: these
    /// still reach the server. Returns once that has happened.
    pub async fn silence_after(&self, words: [&'static [u8]; 2]) {
        let mut silence = self.state.silence.subscribe();
        silence.mark_unchanged();
        *self.state.silent_after.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
        silence.changed().await.expect("the cable outlives those who wait for it");
    }

    /// Lets connections through again; those that went silent stay so.
    pub fn mend(&self) {
        self.state.silence.send_if_modified(|silence| {
            silence.is_for_all = false;
            false
        });
        self.state.whole.send_replace(true);
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.cut();
        self.carrying.abort();
    }
}

/// Where a URL leads, and the same URL by way of `near`: without TLS, which MySQL would offer, so that words
/// can be met.
fn through(url: &str, near: SocketAddr) -> Option<(Server, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let (place, name) = rest.split_once('/')?;
    let (user, host) = match place.rsplit_once('@') {
        Some((user, host)) => (format!("{user}@"), host),
        None => (String::new(), place),
    };
    let (server, name) = match name.split_once("?socket=") {
        Some((name, socket)) => (Server::Unix(socket.into()), format!("{name}?ssl-mode=disabled")),
        None => (Server::Tcp(host.to_owned()), name.to_owned()),
    };
    Some((server, format!("{scheme}://{user}{near}/{name}")))
}

async fn carry(listener: TcpListener, server: Arc<Server>, state: Arc<State>) {
    while let Ok((client, _)) = listener.accept().await {
        let mut is_whole = state.whole.subscribe();
        if !*is_whole.borrow_and_update() {
            continue;
        }
        let (server, state, mut client) = (server.clone(), state.clone(), client);
        let mut silence = state.silence.subscribe();
        let is_silent = silence.borrow_and_update().is_for_all;
        tokio::spawn(async move {
            let carried = async {
                if !is_silent {
                    tokio::select! {
                        biased;
                        _ = silence.changed() => {}
                        // Either side may end it as it likes: that is the test's business, not the cable's.
                        _ = join(&mut client, &server, &state) => return,
                    }
                }
                // What it says is taken and goes nowhere.
                let _ = io::copy(&mut client, &mut io::sink()).await;
            };
            tokio::select! {
                biased;
                _ = is_whole.wait_for(|whole| !whole) => {}
                () = carried => {}
            }
        });
    }
}

async fn join(client: &mut TcpStream, server: &Server, state: &State) -> io::Result<()> {
    client.set_nodelay(true)?;
    match server {
        Server::Tcp(address) => {
            let far = TcpStream::connect(address).await?;
            far.set_nodelay(true)?;
            pass(client, far, state).await
        }
        Server::Unix(path) => pass(client, UnixStream::connect(path).await?, state).await,
    }
}

async fn pass(near: &mut TcpStream, far: impl AsyncRead + AsyncWrite, state: &State) -> io::Result<()> {
    let (mut from_near, mut to_near) = io::split(near);
    let (mut from_far, mut to_far) = io::split(far);
    let there = async {
        let (mut asked, mut has_said) = (vec![0; 65_536], false);
        loop {
            let count = from_near.read(&mut asked).await?;
            if count == 0 {
                return to_far.shutdown().await;
            }
            to_far.write_all(&asked[..count]).await?;
            state.cut_if_met(&asked[..count]);
            state.fall_silent_if_met(&asked[..count], &mut has_said);
        }
    };
    let back = async {
        io::copy(&mut from_far, &mut to_near).await?;
        to_near.shutdown().await
    };
    tokio::try_join!(there, back).map(drop)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn urls_lead_through_the_cable() {
        let near = SocketAddr::from(([127, 0, 0, 1], 7));
        let lead = |url| through(url, near).unwrap();
        let tcp = lead("postgres://postway@127.0.0.1:5433/test_1");
        assert_eq!(
            tcp,
            (Server::Tcp("127.0.0.1:5433".into()), "postgres://postway@127.0.0.1:7/test_1".into())
        );
        let unix = lead("mysql://root@localhost/test_0?socket=/run/my/socket");
        let plain = "mysql://root@127.0.0.1:7/test_0?ssl-mode=disabled";
        assert_eq!(unix, (Server::Unix("/run/my/socket".into()), plain.into()));
    }

    #[tokio::test]
    async fn a_cut_ends_connections_and_mending_lets_new_ones_through() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let cable = TcpProxy::to(&format!("test://{}/name", server.local_addr().unwrap())).await;
        let near = cable.url().split('/').nth(2).unwrap().to_owned();
        let echo = async |client: &mut TcpStream| {
            let (mut far, _) = server.accept().await.unwrap();
            client.write_all(b"ping").await.unwrap();
            let mut heard = [0; 4];
            far.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"ping");
            far
        };
        let mut client = TcpStream::connect(&near).await.unwrap();
        let mut far = echo(&mut client).await;
        cable.cut();
        assert_eq!(client.read(&mut [0; 4]).await.unwrap_or(0), 0);
        assert_eq!(far.read(&mut [0; 4]).await.unwrap_or(0), 0);
        let mut refused = TcpStream::connect(&near).await.unwrap();
        assert_eq!(refused.read(&mut [0; 4]).await.unwrap_or(0), 0);
        cable.mend();
        let mut client = TcpStream::connect(&near).await.unwrap();
        tokio::join!(cable.cut_after(b"ping"), echo(&mut client));
        assert_eq!(client.read(&mut [0; 4]).await.unwrap_or(0), 0);
    }

    #[tokio::test]
    async fn a_silent_cable_ends_the_server_s_side_and_tells_clients_nothing() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let cable = TcpProxy::to(&format!("test://{}/name", server.local_addr().unwrap())).await;
        let near = cable.url().split('/').nth(2).unwrap().to_owned();
        let mut client = TcpStream::connect(&near).await.unwrap();
        let (mut far, _) = server.accept().await.unwrap();
        let speaking = async {
            client.write_all(b"first").await.unwrap();
            far.read_exact(&mut [0; 5]).await.unwrap();
            client.write_all(b"second").await.unwrap();
            let mut heard = [0; 6];
            far.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"second");
            assert_eq!(far.read(&mut [0; 1]).await.unwrap_or(0), 0, "the server sees it gone");
        };
        tokio::join!(cable.silence_after([b"first", b"second"]), speaking);
        let brief = std::time::Duration::from_millis(100);
        let mut late = TcpStream::connect(&near).await.unwrap();
        for client in [&mut client, &mut late] {
            client.write_all(b"hello").await.unwrap();
            assert!(tokio::time::timeout(brief, client.read(&mut [0; 1])).await.is_err(), "nothing at all");
        }
        cable.mend();
        let mut fresh = TcpStream::connect(&near).await.unwrap();
        let (mut far, _) = server.accept().await.unwrap();
        fresh.write_all(b"hello").await.unwrap();
        far.read_exact(&mut [0; 5]).await.unwrap();
    }
}
