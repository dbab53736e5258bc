//! The sink's end of a connection, plain or under TLS.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::cert::TestCert;

/// Room made for each read.
const READ_BYTES: usize = 8 * 1024;

/// The plain connection can be turned to TLS, an encrypted one cannot.
pub(super) enum Pipe {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Gone,
}

impl Pipe {
    pub(super) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Takes a plain connection through the handshake; it is gone when that fails.
    pub(super) async fn secure(&mut self, cert: &TestCert) -> io::Result<()> {
        let Self::Plain(tcp) = std::mem::replace(self, Self::Gone) else {
            return Err(ended());
        };
        let stream = TlsAcceptor::from(cert.config.clone()).accept(tcp).await?;
        *self = Self::Tls(Box::new(stream));
        Ok(())
    }

    /// Waits until a plain connection has something to read, and leaves it there.
    pub(super) async fn wait_for_input(&self) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.readable().await,
            Self::Tls(_) | Self::Gone => Ok(()),
        }
    }

    /// Reads at least a byte; the end of the stream is an error.
    pub(super) async fn read(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        into.reserve(READ_BYTES);
        let read = match self {
            Self::Plain(tcp) => tcp.read_buf(into).await?,
            Self::Tls(tls) => tls.read_buf(into).await?,
            Self::Gone => 0,
        };
        if read == 0 { Err(ended()) } else { Ok(()) }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.write_all(bytes).await,
            Self::Tls(tls) => {
                tls.write_all(bytes).await?;
                tls.flush().await
            }
            Self::Gone => Err(ended()),
        }
    }
}

/// The connection is at its end.
pub(super) fn ended() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
