//! A relay over pipes. It records when each mail begins and when it is accepted, and can answer slowly or
//! close the connection on demand.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use postway_dispatch::transport::RelayDialer;
use postway_net::{AddressGuard, EgressPath, NetError, NetStream};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    time::Instant,
};

/// What is in the pipe before a writer waits.
const PIPE_BYTES: usize = 4 * 1024 * 1024;

/// How the relay behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelayManners {
    /// How long the relay waits before it greets on its second connection.
    pub greets_after: Duration,
    /// How long the relay waits before it accepts a recipient.
    pub rcpt_after: Duration,
    /// The most mails that the relay takes over one connection. It answers the next MAIL with 421 and closes
    /// the connection; with 0 there is no bound.
    pub mails_max: u32,
    /// How many mails of a connection have all their recipients refused, from the first on.
    pub refused: u32,
    /// How long the relay waits before it answers RSET.
    pub rset_after: Duration,
}

/// What the relay saw, and when.
#[derive(Debug, Default)]
pub struct RelayRecord {
    /// When it accepted each MAIL.
    pub begun: Mutex<Vec<Instant>>,
    /// When it read each final dot.
    pub taken: Mutex<Vec<Instant>>,
    connections: AtomicU32,
}

#[derive(Default)]
pub struct PipeRelay {
    pub manners: RelayManners,
    pub record: Arc<RelayRecord>,
}

impl fmt::Debug for PipeRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PipeRelay")
    }
}

impl PipeRelay {
    pub fn with(manners: RelayManners) -> Self {
        Self { manners, record: Arc::default() }
    }

    pub fn begun(&self) -> Vec<Instant> {
        self.record.begun.lock().expect("no test panics while it has the lock").clone()
    }

    pub fn taken(&self) -> Vec<Instant> {
        self.record.taken.lock().expect("no test panics while it has the lock").clone()
    }
}

#[async_trait]
impl RelayDialer for PipeRelay {
    async fn dial(
        &self,
        _: &EgressPath,
        _: &str,
        _: u16,
        _: Instant,
        _: &AddressGuard,
    ) -> Result<NetStream, NetError> {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        tokio::spawn(serve(far, self.manners, self.record.clone()));
        Ok(NetStream::Pipe(near))
    }
}

async fn serve(pipe: DuplexStream, manners: RelayManners, record: Arc<RelayRecord>) -> std::io::Result<()> {
    let (read, mut write) = tokio::io::split(pipe);
    let mut lines = BufReader::new(read).lines();
    if record.connections.fetch_add(1, Ordering::Relaxed) == 1 {
        tokio::time::sleep(manners.greets_after).await;
    }
    write.write_all(b"220 relay.example\r\n").await?;
    let (mut mails, mut in_body) = (0, false);
    while let Some(line) = lines.next_line().await? {
        let reply: &[u8] = match line.split([' ', ':']).next().unwrap_or_default() {
            "." if in_body => {
                in_body = false;
                record.taken.lock().expect("no test panics while it has the lock").push(Instant::now());
                b"250 taken\r\n"
            }
            _ if in_body => continue,
            "EHLO" => b"250 relay.example\r\n",
            "MAIL" if manners.mails_max > 0 && mails == manners.mails_max => {
                return write.write_all(b"421 enough for one connection\r\n").await;
            }
            "MAIL" => {
                mails += 1;
                record.begun.lock().expect("no test panics while it has the lock").push(Instant::now());
                b"250 go on\r\n"
            }
            "RCPT" if mails <= manners.refused => b"550 5.1.1 nobody here\r\n",
            "RSET" => {
                tokio::time::sleep(manners.rset_after).await;
                b"250 go on\r\n"
            }
            "RCPT" => {
                tokio::time::sleep(manners.rcpt_after).await;
                b"250 go on\r\n"
            }
            "DATA" => {
                in_body = true;
                b"354 go on\r\n"
            }
            "QUIT" => return write.write_all(b"221 bye\r\n").await,
            _ => b"250 as you like\r\n",
        };
        write.write_all(reply).await?;
    }
    Ok(())
}
