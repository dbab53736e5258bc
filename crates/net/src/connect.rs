//! TCP connections to a named host.
//!
//! Addresses are raced in the manner of RFC 8305: each gets a head start before the next is tried beside it,
//! so a dead IPv6 route costs a quarter of a second and not the whole deadline.
//!
//! A connection can leave from one address of this machine. Then only addresses of the same family are tried,
//! and an address that the machine does not have is a fault of the settings.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use tokio::{
    net::{TcpSocket, TcpStream, lookup_host},
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

use crate::{AddressGuard, NetError};

/// How long one address is tried alone before the next one is tried as well.
const HEAD_START: Duration = Duration::from_millis(250);
/// How many addresses of one name are tried.
const ADDRESSES_MAX: usize = 8;

/// Connects to `host` (a name or an address literal) before `deadline`, at an address that the guard allows.
/// Nagle's algorithm is off, because SMTP exchanges small packets.
pub async fn connect(
    host: &str,
    port: u16,
    deadline: Instant,
    guard: &AddressGuard,
) -> Result<TcpStream, NetError> {
    connect_from(None, host, port, deadline, guard).await
}

/// As [`connect`], from this address of the machine if there is one.
pub(crate) async fn connect_from(
    source: Option<IpAddr>,
    host: &str,
    port: u16,
    deadline: Instant,
    guard: &AddressGuard,
) -> Result<TcpStream, NetError> {
    connect_resolved((host, port), source, lookup_host((host, port)), deadline, guard).await
}

/// The addresses of a host that the guard allows, both families in turn. Resolving ends at `deadline`.
pub(crate) async fn resolve_allowed(
    host: &str,
    port: u16,
    deadline: Instant,
    guard: &AddressGuard,
) -> Result<Vec<SocketAddr>, NetError> {
    allowed_addresses((host, port), lookup_host((host, port)), deadline, guard).await
}

async fn allowed_addresses<A: Iterator<Item = SocketAddr>>(
    (host, port): (&str, u16),
    resolved: impl Future<Output = io::Result<A>>,
    deadline: Instant,
    guard: &AddressGuard,
) -> Result<Vec<SocketAddr>, NetError> {
    let timeout = |what| NetError::Timeout { host: host.to_owned(), port, what };
    let addresses = timeout_at(deadline, resolved)
        .await
        .map_err(|_| timeout("answer from the resolver"))?
        .map_err(|source| NetError::Resolve { host: host.to_owned(), source })?;
    let (allowed, private): (Vec<_>, Vec<_>) = addresses.partition(|address| guard.allows(address.ip()));
    if allowed.is_empty() && !private.is_empty() {
        return Err(NetError::Guarded { host: host.to_owned() });
    }
    Ok(alternate_families(allowed.into_iter()))
}

/// Connects to one of the addresses that the resolver returned.
async fn connect_resolved<A: Iterator<Item = SocketAddr>>(
    (host, port): (&str, u16),
    source: Option<IpAddr>,
    resolved: impl Future<Output = io::Result<A>>,
    deadline: Instant,
    guard: &AddressGuard,
) -> Result<TcpStream, NetError> {
    let mut addresses = allowed_addresses((host, port), resolved, deadline, guard).await?;
    if let Some(from) = source {
        check_source(from)?;
        addresses.retain(|address| address.is_ipv4() == from.is_ipv4());
        if addresses.is_empty() {
            return Err(NetError::SourceFamily { host: host.to_owned(), address: from });
        }
    }
    let stream = timeout_at(deadline, race(addresses, source))
        .await
        .map_err(|_| NetError::Timeout { host: host.to_owned(), port, what: "connection" })?
        .map_err(|source| NetError::Connect { host: host.to_owned(), port, source })?;
    stream.set_nodelay(true).map_err(|source| NetError::Connect { host: host.to_owned(), port, source })?;
    Ok(stream)
}

/// Alternates IPv6 and IPv4, in the resolver's order within each.
fn alternate_families(addresses: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let (mut first, mut second): (Vec<_>, Vec<_>) = addresses.partition(SocketAddr::is_ipv6);
    first.reverse();
    second.reverse();
    let mut ordered = Vec::with_capacity(first.len() + second.len());
    while ordered.len() < ADDRESSES_MAX && !(first.is_empty() && second.is_empty()) {
        ordered.extend(first.pop());
        ordered.extend(second.pop());
    }
    ordered.truncate(ADDRESSES_MAX);
    ordered
}

/// Fails if this machine does not have the address. Nothing is sent to find out.
fn check_source(address: IpAddr) -> Result<(), NetError> {
    match std::net::UdpSocket::bind((address, 0)) {
        Ok(_) => Ok(()),
        Err(source) => Err(NetError::Source { address, source }),
    }
}

/// Opens one connection, from the source address if there is one.
async fn open_socket(address: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let Some(source) = source else { return TcpStream::connect(address).await };
    let socket = if source.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind((source, 0).into())?;
    socket.connect(address).await
}

/// Returns the first connection that succeeds, or the error of the last that failed.
async fn race(addresses: Vec<SocketAddr>, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    // The common case is one address: no task is needed for it.
    if waiting.len() == 1
        && let Some(address) = waiting.next()
    {
        return open_socket(address, source).await;
    }
    let mut trying = JoinSet::new();
    loop {
        if let Some(address) = waiting.next() {
            trying.spawn(open_socket(address, source));
        } else if trying.is_empty() {
            return Err(failed);
        }
        tokio::select! {
            Some(done) = trying.join_next() => match done {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failed = error,
                Err(error) => failed = io::Error::other(error),
            },
            () = sleep(HEAD_START), if waiting.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use postway_testkit::ClosedPort;
    use tokio::net::TcpListener;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    #[tokio::test]
    async fn a_refused_connection_names_the_host_and_port() {
        let closed = ClosedPort::take();
        let port = closed.port();
        let error = connect("127.0.0.1", port, soon(), &AddressGuard::with_loopback()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_resolver_that_does_not_answer_is_given_up_at_the_deadline() {
        let (began, within) = (Instant::now(), Duration::from_secs(30));
        let guard = AddressGuard::with_loopback();
        let silent = std::future::pending::<io::Result<std::vec::IntoIter<SocketAddr>>>();
        let host = ("mx.example", 25);
        let error = connect_resolved(host, None, silent, began + within, &guard).await.unwrap_err();
        assert_eq!((error.kind(), began.elapsed()), (io::ErrorKind::TimedOut, within));
        assert!(error.to_string().contains("resolver"), "{error}");
        // One that is slow leaves what is left of the deadline, and no more.
        let slow = async {
            sleep(within - Duration::from_secs(1)).await;
            Ok(Vec::<SocketAddr>::new().into_iter())
        };
        let began = Instant::now();
        assert!(connect_resolved(host, None, slow, began + within, &guard).await.is_err());
        assert!(began.elapsed() <= within);
    }

    #[tokio::test]
    async fn a_guarded_connection_never_reaches_a_private_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "localhost"] {
            let error = connect(host, port, soon(), &AddressGuard::default()).await.unwrap_err();
            assert!(
                error.is_setup() && error.to_string().contains("POSTWAY_ALLOW_PRIVATE_TARGETS=127.0.0.1/32"),
                "{error}"
            );
        }
        // The very network that the error names, for a name that may have an address of the other family as
        // well.
        let allowed = AddressGuard::new(vec![("127.0.0.1".parse().unwrap(), 32)]);
        assert!(connect("localhost", port, soon(), &allowed).await.is_ok());
    }

    #[tokio::test]
    async fn a_dead_address_does_not_hide_a_living_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let living = listener.local_addr().unwrap();
        let dead = ClosedPort::take();
        let stream = race(vec![dead.address(), living], None).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), living);
    }

    #[tokio::test]
    async fn a_host_that_does_not_answer_is_a_timeout() {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let port = listener.local_addr().unwrap().port();
        // Nobody accepts: once the backlog is full, the kernel leaves further attempts without an answer.
        let mut waiting = Vec::new();
        let error = loop {
            assert!(waiting.len() < 64, "the backlog never filled");
            let deadline = Instant::now() + Duration::from_millis(100);
            match connect("127.0.0.1", port, deadline, &AddressGuard::with_loopback()).await {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert!(error.to_string().contains(&port.to_string()), "{error}");
    }

    #[tokio::test]
    async fn a_connection_leaves_from_the_address_that_was_chosen_and_from_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let guard = AddressGuard::with_loopback();
        let from =
            |source: &str| connect_from(Some(source.parse().unwrap()), "127.0.0.1", port, soon(), &guard);
        let stream = from("127.0.0.9").await.unwrap();
        assert_eq!(stream.local_addr().unwrap().ip().to_string(), "127.0.0.9");
        assert_eq!(listener.accept().await.unwrap().1.ip().to_string(), "127.0.0.9");
        // A documentation address is no address of this machine.
        let error = from("192.0.2.1").await.unwrap_err();
        assert!(matches!(error, NetError::Source { .. }) && error.is_setup(), "{error}");
        assert!(error.to_string().contains("192.0.2.1 is no address of this machine"), "{error}");
        // A host without an address of that family cannot be reached from it.
        if std::net::UdpSocket::bind("[::1]:0").is_ok() {
            let error = from("::1").await.unwrap_err();
            assert!(matches!(error, NetError::SourceFamily { .. }) && error.is_setup(), "{error}");
        }
    }

    #[test]
    fn families_alternate_and_are_bounded() {
        let six: SocketAddr = "[::1]:25".parse().unwrap();
        let four: SocketAddr = "127.0.0.1:25".parse().unwrap();
        assert_eq!(alternate_families([four, four, six].into_iter()), [six, four, four]);
        assert_eq!(alternate_families(std::iter::repeat_n(four, 50)).len(), ADDRESSES_MAX);
    }
}
