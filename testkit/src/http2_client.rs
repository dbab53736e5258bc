//! HTTP/2 by hand, for clients that no library would write: many requests at once, none of them finished.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The largest frame that every server takes.
const FRAME_BYTES_MAX: usize = 16_384;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// A connection.
pub struct Http2Client {
    stream: TlsStream<TcpStream>,
    /// The number of the next request.
    next: u32,
}

/// What a server says: the body of a frame of an answer, and the number of its request.
#[derive(Debug)]
pub struct Http2Answer {
    /// The number of its request, from 1, every second one.
    pub request: u32,
    /// The piece of the body.
    pub data: Vec<u8>,
}

impl Http2Client {
    /// Connects from this address, whatever certificate is shown, and chooses HTTP/2.
    pub async fn connect(from: IpAddr, to: SocketAddr) -> io::Result<Self> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let tcp = socket.connect(to).await?;
        let name = ServerName::IpAddress(to.ip().into());
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
        stream.write_all(PREFACE).await?;
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
        Ok(Self { stream, next: 1 })
    }

    /// Begins a request with these header fields and this much of a body, and leaves it so.
    pub async fn begin(&mut self, fields: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        let mut head = Vec::new();
        for (name, value) in fields {
            // A field that no table keeps.
            head.push(0x10);
            for text in [name, value] {
                push_length(&mut head, text.len());
                head.extend_from_slice(text.as_bytes());
            }
        }
        let request = self.next;
        self.next += 2;
        let pieces: Vec<&[u8]> = head.chunks(FRAME_BYTES_MAX).collect();
        let mut said = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            let kind = if at == 0 { HEADERS } else { CONTINUATION };
            let flags = if at + 1 == pieces.len() { END_HEADERS } else { 0 };
            said.extend(frame(kind, flags, request, piece));
        }
        for piece in body.chunks(FRAME_BYTES_MAX) {
            said.extend(frame(DATA, 0, request, piece));
        }
        self.stream.write_all(&said).await
    }

    /// Waits for the next piece of an answer's body.
    pub async fn answer(&mut self) -> io::Result<Http2Answer> {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let request = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let mut data = vec![0; length];
            self.stream.read_exact(&mut data).await?;
            match (head[3], head[4]) {
                (DATA, _) => return Ok(Http2Answer { request, data }),
                (SETTINGS, flags) if flags & ACK == 0 => {
                    self.stream.write_all(&frame(SETTINGS, ACK, 0, &[])).await?;
                }
                _ => {}
            }
        }
    }
}

fn frame(kind: u8, flags: u8, request: u32, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = vec![high, middle, low, kind, flags];
    frame.extend(request.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A length as RFC 7541 writes it, with a prefix of seven bits.
fn push_length(out: &mut Vec<u8>, length: usize) {
    if length < 127 {
        out.push(length as u8);
        return;
    }
    out.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        out.push((rest % 128) as u8 | 0x80);
        rest /= 128;
    }
    out.push(rest as u8);
}

/// Takes any certificate.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![
            SignatureScheme::ECDSA_NISTP256_SHA256,
            SignatureScheme::ECDSA_NISTP384_SHA384,
            SignatureScheme::ED25519,
            SignatureScheme::RSA_PSS_SHA256,
            SignatureScheme::RSA_PKCS1_SHA256,
        ]
    }
}
