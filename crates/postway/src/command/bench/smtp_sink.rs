//! The SMTP server that takes the mail of a bench: the built-in sink, Postfix's `smtp-sink`, or another one.
//!
//! `smtp-sink` is what others measure with, and cheap; it counts mails but not their ids. The built-in sink
//! knows every id. A sink given as HOST:PORT reports nothing: loss is then known from the store alone.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::sink::{ArrivedMail, BuiltinSink};

const START_MAX: Duration = Duration::from_secs(5);

/// What `--sink` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkChoice {
    /// `smtp-sink` if it is installed, else the built-in one.
    Auto,
    /// Postfix's `smtp-sink`.
    SmtpSink,
    /// Our own.
    Builtin,
    /// One that already runs.
    Other(String, u16),
}

impl FromStr for SinkChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "smtp-sink" => Ok(Self::SmtpSink),
            "builtin" => Ok(Self::Builtin),
            _ => match text.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
                Some((host, Ok(port))) if !host.is_empty() => Ok(Self::Other(host.to_owned(), port)),
                _ => Err("use auto, smtp-sink, builtin, or HOST:PORT".to_owned()),
            },
        }
    }
}

/// The sink of a bench, running.
#[derive(Debug)]
pub enum BenchRelay {
    /// Our own.
    Builtin(BuiltinSink),
    /// A process of Postfix's `smtp-sink`.
    Process { child: Child, port: u16, mails: Arc<AtomicU64>, reader: JoinHandle<()> },
    /// Somebody's own.
    Other(String, u16),
}

/// What the sink took, according to itself.
#[derive(Debug)]
pub struct SinkCount {
    /// The sink's name in the report.
    pub name: String,
    /// How many mails, if it counts.
    pub mails: Option<u64>,
    /// The mails themselves, if it knows them.
    pub arrived: Option<ArrivedMail>,
}

impl BenchRelay {
    /// Starts the chosen sink.
    pub async fn start(choice: &SinkChoice) -> anyhow::Result<Self> {
        match (choice, find_smtp_sink()) {
            (SinkChoice::Other(host, port), _) => Ok(Self::Other(host.clone(), *port)),
            (SinkChoice::Auto | SinkChoice::SmtpSink, Some(program)) => start_process(program).await,
            (SinkChoice::SmtpSink, None) => {
                anyhow::bail!("smtp-sink is not found; install postfix, or use --sink builtin")
            }
            (SinkChoice::Auto | SinkChoice::Builtin, _) => {
                Ok(Self::Builtin(BuiltinSink::start(Duration::ZERO)?))
            }
        }
    }

    /// The host to send to.
    pub fn host(&self) -> &str {
        match self {
            Self::Builtin(_) | Self::Process { .. } => "127.0.0.1",
            Self::Other(host, _) => host,
        }
    }

    /// The port to send to.
    pub fn port(&self) -> u16 {
        match self {
            Self::Builtin(sink) => sink.address().port(),
            Self::Process { port, .. } | Self::Other(_, port) => *port,
        }
    }

    /// Stops it, and returns what it took.
    pub async fn stop(self) -> anyhow::Result<SinkCount> {
        match self {
            Self::Builtin(sink) => {
                let arrived = sink.stop()?;
                let mails =
                    arrived.foreign + arrived.by_uid.values().map(|count| u64::from(*count)).sum::<u64>();
                Ok(SinkCount { name: "builtin".to_owned(), mails: Some(mails), arrived: Some(arrived) })
            }
            Self::Process { mut child, mails, reader, .. } => {
                child.kill().await.context("cannot stop smtp-sink")?;
                reader.await.context("the reader of smtp-sink's counter ended badly")?;
                Ok(SinkCount {
                    name: "smtp-sink".to_owned(),
                    mails: Some(mails.load(Ordering::Relaxed)),
                    arrived: None,
                })
            }
            Self::Other(host, port) => {
                Ok(SinkCount { name: format!("{host}:{port}"), mails: None, arrived: None })
            }
        }
    }
}

/// On the PATH, or where Debian puts it for administrators.
fn find_smtp_sink() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join("smtp-sink")).find(|program| program.is_file())
}

async fn start_process(program: PathBuf) -> anyhow::Result<BenchRelay> {
    let port = super::server::free_port()?;
    let mut command = Command::new(program);
    // It wants to drop privileges when it has them.
    if std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0) {
        command.args(["-u", "nobody"]);
    }
    command.args(["-c", "-m", "2000", &format!("inet:127.0.0.1:{port}"), "1024"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
    let mut child = command.spawn().context("cannot start smtp-sink")?;
    let counter = child.stdout.take().context("smtp-sink has no output")?;
    let mails = Arc::new(AtomicU64::new(0));
    let reader = tokio::spawn(follow_counter(counter, Arc::clone(&mails)));
    let listening = async {
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            if let Some(status) = child.try_wait().context("cannot ask for smtp-sink")? {
                anyhow::bail!("smtp-sink ended at once: {status}");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    };
    tokio::time::timeout(START_MAX, listening).await.context("smtp-sink does not listen")??;
    Ok(BenchRelay::Process { child, port, mails, reader })
}

/// Follows `sess=1 quit=0 mesg=17\r…` until the process ends.
async fn follow_counter(mut output: ChildStdout, mails: Arc<AtomicU64>) {
    let mut buffer = Vec::with_capacity(8192);
    while let Ok(1..) = output.read_buf(&mut buffer).await {
        if let Some(count) = last_count(&buffer) {
            mails.store(count, Ordering::Relaxed);
        }
        // What follows the last line break may be half a line.
        let kept = buffer.iter().rposition(|byte| *byte == b'\r').map_or(0, |at| at + 1);
        buffer.drain(..kept);
    }
}

fn last_count(output: &[u8]) -> Option<u64> {
    let end = output.iter().rposition(|byte| *byte == b'\r')?;
    let text = std::str::from_utf8(&output[..end]).ok()?;
    text.rsplit_once("mesg=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_is_a_name_or_an_address() {
        assert_eq!("auto".parse(), Ok(SinkChoice::Auto));
        assert_eq!("mx.example:25".parse(), Ok(SinkChoice::Other("mx.example".into(), 25)));
        for bad in ["", "mx.example", ":25", "mx.example:x"] {
            assert!(bad.parse::<SinkChoice>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_last_whole_counter_counts() {
        assert_eq!(
            last_count(b"sess=1 quit=0 mesg=16\rsess=1 quit=0 mesg=17\rsess=1 quit=0 mesg=1"),
            Some(17)
        );
        assert_eq!(last_count(b"sess=1 qu"), None);
    }
}
