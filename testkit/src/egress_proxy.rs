//! A proxy for tests: speaks SOCKS5 or HTTP CONNECT, carries what it agrees to, remembers what it was asked
//! for, and misbehaves on demand.
//!
//! It listens on loopback and lives until it is dropped. Panics if it cannot listen.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// How the proxy treats its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyManner {
    /// Carries everything.
    Open,
    /// Carries what comes with this user name and password, and refuses everything else.
    Password(&'static str, &'static str),
    /// Refuses every target.
    Refusing,
    /// Takes connections and says nothing.
    Silent,
    /// Closes every connection at once.
    Closing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Socks5,
    Connect,
}

/// A running proxy.
pub struct EgressProxy {
    protocol: Protocol,
    address: SocketAddr,
    targets: Arc<Mutex<Vec<String>>>,
    serving: AbortHandle,
}

impl EgressProxy {
    /// A SOCKS5 proxy on 127.0.0.1.
    pub async fn socks5(manner: ProxyManner) -> Self {
        Self::start(Protocol::Socks5, manner).await
    }

    /// An HTTP proxy on 127.0.0.1.
    pub async fn connect(manner: ProxyManner) -> Self {
        Self::start(Protocol::Connect, manner).await
    }

    async fn start(protocol: Protocol, manner: ProxyManner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let targets: Arc<Mutex<Vec<String>>> = Arc::default();
        let asked = targets.clone();
        let serving = tokio::spawn(async move {
            let mut tasks = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (manner, asked) = (manner.clone(), asked.clone());
                tasks.spawn(async move {
                    // A client that leaves early, or speaks something else, ends its own connection.
                    let _ = serve(client, protocol, &manner, &asked).await;
                });
            }
        });
        Self { protocol, address, targets, serving: serving.abort_handle() }
    }

    /// Its URL without credentials.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme(), self.address)
    }

    /// Its URL with a user name, as settings have it, and perhaps a password.
    pub fn url_of(&self, user: &str) -> String {
        format!("{}://{user}@{}", self.scheme(), self.address)
    }

    fn scheme(&self) -> &'static str {
        match self.protocol {
            Protocol::Socks5 => "socks5",
            Protocol::Connect => "http",
        }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The targets that it was asked for, as `host:port`, in order.
    pub fn targets(&self) -> Vec<String> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for EgressProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    mut client: TcpStream,
    protocol: Protocol,
    manner: &ProxyManner,
    targets: &Mutex<Vec<String>>,
) -> io::Result<()> {
    match manner {
        ProxyManner::Closing => return Ok(()),
        ProxyManner::Silent => {
            tokio::io::copy(&mut client, &mut tokio::io::sink()).await?;
            return Ok(());
        }
        ProxyManner::Open | ProxyManner::Password(..) | ProxyManner::Refusing => {}
    }
    let asked = match protocol {
        Protocol::Socks5 => read_socks5(&mut client, manner).await?,
        Protocol::Connect => read_connect(&mut client, manner).await?,
    };
    let Some(target) = asked else {
        // What the client may still send is read, so that it sees the refusal and no reset.
        tokio::io::copy(&mut client, &mut tokio::io::sink()).await?;
        return Ok(());
    };
    targets.lock().unwrap_or_else(PoisonError::into_inner).push(target.clone());
    let reached = match manner {
        ProxyManner::Refusing => Err(io::ErrorKind::ConnectionRefused.into()),
        ProxyManner::Open | ProxyManner::Password(..) | ProxyManner::Silent | ProxyManner::Closing => {
            TcpStream::connect(&target).await
        }
    };
    let is_allowed = *manner != ProxyManner::Refusing;
    let answer: &[u8] = match (protocol, &reached) {
        (Protocol::Socks5, Ok(_)) => &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0],
        (Protocol::Socks5, Err(_)) if is_allowed => &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0],
        (Protocol::Socks5, Err(_)) => &[5, 2, 0, 1, 0, 0, 0, 0, 0, 0],
        (Protocol::Connect, Ok(_)) => b"HTTP/1.1 200 Connection established\r\n\r\n",
        (Protocol::Connect, Err(_)) if is_allowed => b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
        (Protocol::Connect, Err(_)) => b"HTTP/1.1 403 Forbidden\r\n\r\n",
    };
    client.write_all(answer).await?;
    match reached {
        Ok(mut server) => copy_bidirectional(&mut client, &mut server).await.map(|_| ()),
        Err(_) => tokio::io::copy(&mut client, &mut tokio::io::sink()).await.map(|_| ()),
    }
}

/// Reads a SOCKS5 request up to its target; `None` after a refused sign-in.
async fn read_socks5(client: &mut TcpStream, manner: &ProxyManner) -> io::Result<Option<String>> {
    let mut head = [0; 2];
    client.read_exact(&mut head).await?;
    let mut methods = vec![0; usize::from(head[1])];
    client.read_exact(&mut methods).await?;
    match manner {
        ProxyManner::Password(user, password) => {
            if !methods.contains(&2) {
                client.write_all(&[5, 255]).await?;
                return Ok(None);
            }
            client.write_all(&[5, 2]).await?;
            client.read_u8().await?;
            let given = [read_counted(client).await?, read_counted(client).await?];
            let is_right = given == [user.as_bytes(), password.as_bytes()];
            client.write_all(&[1, u8::from(!is_right)]).await?;
            if !is_right {
                return Ok(None);
            }
        }
        ProxyManner::Open | ProxyManner::Refusing | ProxyManner::Silent | ProxyManner::Closing => {
            client.write_all(&[5, 0]).await?;
        }
    }
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let host = match request[3] {
        1 => {
            let mut address = [0; 4];
            client.read_exact(&mut address).await?;
            IpAddr::from(address).to_string()
        }
        4 => {
            let mut address = [0; 16];
            client.read_exact(&mut address).await?;
            format!("[{}]", IpAddr::from(address))
        }
        _ => String::from_utf8_lossy(&read_counted(client).await?).into_owned(),
    };
    let port = client.read_u16().await?;
    Ok(Some(format!("{host}:{port}")))
}

async fn read_counted(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut field = vec![0; usize::from(client.read_u8().await?)];
    client.read_exact(&mut field).await?;
    Ok(field)
}

/// Reads the head of a CONNECT request; `None` after refused credentials.
async fn read_connect(client: &mut TcpStream, manner: &ProxyManner) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    if let ProxyManner::Password(user, password) = manner {
        let expected = format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")));
        if !head.lines().any(|line| line == format!("Proxy-Authorization: {expected}")) {
            client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await?;
            return Ok(None);
        }
    }
    let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
    target.map(|target| Some(target.to_owned())).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
