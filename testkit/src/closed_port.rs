//! A port of loopback where nobody listens, and nobody can: it is taken, so that no other test gets it, and
//! every connection to it is refused. Panics where there is no port to take.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// Such a port, closed until it is dropped.
pub struct ClosedPort(TcpSocket);

impl ClosedPort {
    /// Takes one.
    pub fn take() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket can be made");
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("loopback has a free port");
        Self(socket)
    }

    /// Where nobody listens.
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("a bound socket has an address")
    }

    /// Its number.
    pub fn port(&self) -> u16 {
        self.address().port()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::ErrorKind,
        net::{TcpListener, TcpStream},
    };

    use super::ClosedPort;

    #[test]
    fn it_refuses_connections_and_nobody_else_can_have_it() {
        let closed = ClosedPort::take();
        let refused = TcpStream::connect(closed.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let taken = TcpListener::bind(closed.address()).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    }
}
