//! Asks clamd whether bytes are infected (INSTREAM), over TCP or a unix socket.
//!
//! The exchange is one command, the bytes in pieces, and one line. It is bounded: by a deadline for the whole of
//! it, a size, a number of scans at once, and the length of the line. clamd may answer before it has heard
//! everything, if a stream is too long for it, so the answer is read also when writing fails. The address is the
//! operator's, so the guard against private addresses does not apply.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    sync::Semaphore,
    time::timeout,
};

/// The pieces in which bytes are sent.
const PIECE_BYTES: usize = 64 * 1024;
/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 4 * 1024;
/// The most scans at once.
const AT_ONCE_MAX: usize = 16;
/// The longest name of a signature that is kept.
const NAME_CHARS_MAX: usize = 200;

/// Where clamd listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScannerAddress {
    /// A host and a port.
    Tcp(String),
    /// A unix socket.
    Unix(PathBuf),
}

impl FromStr for ScannerAddress {
    type Err = String;

    /// `127.0.0.1:3310`, or `/run/clamav/clamd.ctl`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with('/') {
            return Ok(Self::Unix(PathBuf::from(text)));
        }
        let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
        match port.and_then(|port| port.parse::<u16>().ok()) {
            Some(1..) => Ok(Self::Tcp(text.to_owned())),
            Some(0) | None => Err("must be HOST:PORT or the path of a unix socket".to_owned()),
        }
    }
}

impl fmt::Display for ScannerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Why bytes could not be scanned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the virus scanner at {address} did not scan it: {reason}")]
pub struct VirusScanError {
    /// The scanner.
    pub address: String,
    /// What went wrong.
    pub reason: String,
}

/// A clamd.
#[derive(Debug)]
pub struct VirusScanner {
    address: ScannerAddress,
    patience: Duration,
    bytes_max: usize,
    places: Semaphore,
}

impl VirusScanner {
    /// The clamd at this address, which may take `patience` for a scan of at most `bytes_max` bytes.
    pub fn new(address: ScannerAddress, patience: Duration, bytes_max: usize) -> Self {
        Self { address, patience, bytes_max, places: Semaphore::new(AT_ONCE_MAX) }
    }

    /// The name of the signature that the bytes match; `None` if they match none.
    pub async fn scan(&self, bytes: &[u8]) -> Result<Option<String>, VirusScanError> {
        let failed = |reason: String| VirusScanError { address: self.address.to_string(), reason };
        if bytes.len() > self.bytes_max {
            return Err(failed(format!("it has more than {} bytes", self.bytes_max)));
        }
        let scan = async {
            let _place = self.places.acquire().await;
            match &self.address {
                ScannerAddress::Tcp(address) => exchange(TcpStream::connect(address).await?, bytes).await,
                ScannerAddress::Unix(path) => exchange(UnixStream::connect(path).await?, bytes).await,
            }
        };
        let answer = match timeout(self.patience, scan).await {
            Ok(answer) => answer.map_err(|error: std::io::Error| failed(error.to_string()))?,
            Err(_) => return Err(failed(format!("no answer came within {} s", self.patience.as_secs()))),
        };
        judge(&answer).map_err(failed)
    }
}

async fn exchange<S>(mut stream: S, bytes: &[u8]) -> std::io::Result<Vec<u8>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let written = async {
        stream.write_all(b"zINSTREAM\0").await?;
        for piece in bytes.chunks(PIECE_BYTES) {
            // A piece has far fewer bytes than 2³².
            stream.write_all(&u32::try_from(piece.len()).unwrap_or(u32::MAX).to_be_bytes()).await?;
            stream.write_all(piece).await?;
        }
        stream.write_all(&[0; 4]).await?;
        stream.flush().await
    };
    let written = written.await;
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await;
    match (written, read) {
        // What it said before it stopped listening says more than the broken connection.
        _ if !answer.is_empty() => Ok(answer),
        (Err(error), _) | (Ok(()), Err(error)) => Err(error),
        (Ok(()), Ok(_)) => Ok(answer),
    }
}

/// Reads the answer: `stream: OK`, `stream: NAME FOUND`, or an error.
fn judge(answer: &[u8]) -> Result<Option<String>, String> {
    let text = String::from_utf8_lossy(answer);
    let line = text.trim_matches(['\0', '\r', '\n', ' ']);
    let said = line.strip_prefix("stream: ").unwrap_or(line);
    let shown =
        |text: &str| text.replace(|c: char| c.is_control(), " ").chars().take(NAME_CHARS_MAX).collect();
    match said.strip_suffix(" FOUND") {
        Some(name) if !name.is_empty() => Ok(Some(shown(name))),
        _ if said == "OK" => Ok(None),
        _ if said.is_empty() => Err("it closed the connection without an answer".to_owned()),
        _ => Err(shown(said)),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn only_ok_is_clean() {
        assert_eq!(judge(b"stream: OK\0"), Ok(None));
        assert_eq!(judge(b"stream: Eicar-Test FOUND\0"), Ok(Some("Eicar-Test".to_owned())));
        for wrong in [
            &b""[..],
            b"OK FOUND OK",
            b"stream: ",
            b"INSTREAM size limit exceeded. ERROR",
            b"stream:  FOUND",
            b"\xff",
        ] {
            assert!(judge(wrong).is_err(), "{wrong:?}");
        }
        let long = judge(&[&b"stream: "[..], &[b'a'; 4_000], b"\n FOUND"].concat()).unwrap().unwrap();
        assert_eq!(long.len(), NAME_CHARS_MAX);
    }

    #[test]
    fn an_address_is_a_host_with_its_port_or_a_path() {
        assert_eq!("127.0.0.1:3310".parse(), Ok(ScannerAddress::Tcp("127.0.0.1:3310".to_owned())));
        assert_eq!("/run/clamd.ctl".parse(), Ok(ScannerAddress::Unix("/run/clamd.ctl".into())));
        for wrong in ["", "clamd", ":3310", "host:", "host:0", "host:70000"] {
            assert!(wrong.parse::<ScannerAddress>().is_err(), "{wrong}");
        }
    }

    /// A scanner that is silent, endless, or hangs up.
    #[tokio::test]
    async fn a_scanner_that_misbehaves_is_no_verdict_and_takes_bounded_time() {
        for answer in [None, Some(b"x".repeat(1 << 20)), Some(Vec::new())] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string().parse().unwrap();
            let serving = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                match answer {
                    Some(answer) => drop(stream.write_all(&answer).await),
                    None => std::future::pending().await,
                }
            });
            let scanner = VirusScanner::new(address, Duration::from_millis(300), 1024);
            let error = scanner.scan(b"bytes").await.unwrap_err();
            assert!(error.reason.len() < 300, "{error}");
            serving.abort();
        }
        let away = VirusScanner::new("127.0.0.1:1".parse().unwrap(), Duration::from_secs(1), 1);
        assert!(away.scan(b"x").await.is_err());
        assert!(away.scan(b"xx").await.unwrap_err().reason.contains("more than 1 bytes"));
    }
}
