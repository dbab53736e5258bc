//! Requests a connection from a SOCKS5 proxy (RFC 1928), with a user name and password if it requires them
//! (RFC 1929).

use std::io;

use secrecy::{ExposeSecret, zeroize::Zeroizing};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use url::Host;

use super::{FIELD_BYTES_MAX, OutboundProxy, denied, garbled};

/// Requests a connection to the target. The next octets on the connection are from the target.
pub(super) async fn request_connection(
    tcp: &mut TcpStream,
    proxy: &OutboundProxy,
    target: &Host,
    port: u16,
) -> io::Result<()> {
    const NO_AUTH: u8 = 0;
    const BY_PASSWORD: u8 = 2;
    let methods: &[u8] =
        if proxy.credentials.is_some() { &[5, 2, NO_AUTH, BY_PASSWORD] } else { &[5, 1, NO_AUTH] };
    tcp.write_all(methods).await?;
    let mut choice = [0; 2];
    tcp.read_exact(&mut choice).await?;
    match (choice, &proxy.credentials) {
        ([5, NO_AUTH], _) => {}
        ([5, BY_PASSWORD], Some((username, password))) => {
            let password = password.expose_secret();
            let mut sign_in = Zeroizing::new(Vec::with_capacity(3 + username.len() + password.len()));
            sign_in.push(1);
            push_counted(&mut sign_in, username.as_bytes());
            push_counted(&mut sign_in, password.as_bytes());
            tcp.write_all(&sign_in).await?;
            let mut verdict = [0; 2];
            tcp.read_exact(&mut verdict).await?;
            if verdict[1] != 0 {
                return Err(denied("it refuses the user name and password"));
            }
        }
        ([5, _], _) => return Err(denied("it wants another kind of sign-in")),
        _ => return Err(garbled("it does not speak SOCKS5")),
    }
    let mut request = vec![5, 1, 0];
    match target {
        Host::Ipv4(address) => {
            request.push(1);
            request.extend(address.octets());
        }
        Host::Ipv6(address) => {
            request.push(4);
            request.extend(address.octets());
        }
        Host::Domain(name) => {
            request.push(3);
            push_counted(&mut request, name.as_bytes());
        }
    }
    request.extend(port.to_be_bytes());
    tcp.write_all(&request).await?;
    let mut head = [0; 4];
    tcp.read_exact(&mut head).await?;
    if head[0] != 5 {
        return Err(garbled("it does not speak SOCKS5"));
    }
    if head[1] != 0 {
        return Err(refused(head[1]));
    }
    // The address that the proxy connects from follows. It is not used.
    let bound = match head[3] {
        1 => 4,
        4 => 16,
        3 => usize::from(tcp.read_u8().await?),
        _ => return Err(garbled("it answers with an unknown kind of address")),
    };
    let mut rest = [0; FIELD_BYTES_MAX + 2];
    tcp.read_exact(&mut rest[..bound + 2]).await?;
    Ok(())
}

/// Adds a field and its length. Longer fields were refused when they were parsed; one that is passed here is
/// cut.
fn push_counted(request: &mut Vec<u8>, field: &[u8]) {
    let length = u8::try_from(field.len()).unwrap_or(u8::MAX);
    request.push(length);
    request.extend_from_slice(&field[..usize::from(length)]);
}

fn refused(code: u8) -> io::Error {
    let (kind, why) = match code {
        2 => (io::ErrorKind::PermissionDenied, "it does not allow this connection"),
        3 => (io::ErrorKind::NetworkUnreachable, "the network is unreachable"),
        4 => (io::ErrorKind::HostUnreachable, "the host is unreachable or unknown"),
        5 => (io::ErrorKind::ConnectionRefused, "the connection was refused"),
        6 => (io::ErrorKind::TimedOut, "the connection timed out"),
        _ => (io::ErrorKind::Other, "it failed to connect"),
    };
    io::Error::new(kind, why)
}
