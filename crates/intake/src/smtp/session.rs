//! One connection: moves the bytes of a conversation, keeps its deadlines, and does what it asks for.

use std::{io, net::SocketAddr, sync::Arc};

use bytes::BytesMut;
use rand::{Rng, distr::Alphanumeric};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    Patience, Service,
    accept::{Sender, accept},
    authenticator::Denied,
    certificate::Certificate,
    connection_limit::Seat,
    conversation::{Conversation, Ending, Step},
    reply::Reply,
};

/// How much is read at once.
const READ_BYTES: usize = 16 * 1024;
/// Characters of the server's half of a nonce: about 190 bits.
const NONCE_CHARS: usize = 32;
/// Room that replies may keep between reads.
const KEPT_BYTES_MAX: usize = 16 * 1024;
/// How long, and for how many reads, a client that was cut off is listened to, so that it can hear why: a connection closed
/// with unread bytes is reset, and a reset overtakes the last words.
const LINGER: std::time::Duration = std::time::Duration::from_secs(2);
const LINGER_READS_MAX: usize = 64;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The client said goodbye.
    Quit,
    /// The client went away.
    Gone,
    /// The client was cut off for what it said.
    Cut,
    /// The client took too long.
    Timeout,
    /// There was no handshake.
    Tls,
    /// The listener stopped.
    Stopped,
}

impl Outcome {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Quit => "quit",
            Self::Gone => "gone",
            Self::Cut => "cut",
            Self::Timeout => "timeout",
            Self::Tls => "tls",
            Self::Stopped => "stopped",
        }
    }
}

/// What a session works with.
pub(super) struct Session {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) peer: SocketAddr,
    pub(super) service: Service,
    pub(super) certificate: Option<Arc<Certificate>>,
    pub(super) patience: Patience,
    /// Says: end when nothing is under way.
    pub(super) stop: CancellationToken,
    /// Says: end.
    pub(super) cut: CancellationToken,
    pub(super) began: Instant,
    /// Its place among the connections.
    pub(super) seat: Seat,
}

/// Why moving bytes stopped.
enum Halt {
    StartTls,
    Ended(Outcome),
}

impl From<io::Error> for Halt {
    fn from(_: io::Error) -> Self {
        // Whoever went away wants no answer, and what was on the way is not taken.
        Halt::Ended(Outcome::Gone)
    }
}

impl Session {
    /// Serves a connection to its end.
    pub(super) async fn serve(
        &self,
        mut tcp: TcpStream,
        mut conversation: Conversation,
        mut secure: bool,
    ) -> Outcome {
        if !secure {
            match self.converse(&mut tcp, &mut conversation).await {
                Halt::StartTls => secure = true,
                Halt::Ended(outcome) => return outcome,
            }
            conversation.secured();
        }
        let Some(certificate) = self.certificate.as_ref().filter(|_| secure) else { return Outcome::Tls };
        // What the client said before the handshake was in a buffer that is gone.
        let handshake = timeout(self.patience.handshake, certificate.acceptor().accept(tcp));
        let handshake = tokio::select! {
            biased;
            handshake = handshake => handshake,
            () = self.seat.wanted() => return Outcome::Cut,
        };
        match handshake {
            Ok(Ok(mut tls)) => match self.converse(&mut tls, &mut conversation).await {
                Halt::StartTls => Outcome::Cut,
                Halt::Ended(outcome) => outcome,
            },
            Ok(Err(error)) => {
                tracing::debug!(%error, peer = %self.peer.ip(), "a TLS handshake of SMTP failed");
                Outcome::Tls
            }
            Err(_) => Outcome::Timeout,
        }
    }

    async fn converse<S>(&self, stream: &mut S, conversation: &mut Conversation) -> Halt
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        match self.exchange(stream, conversation).await {
            Ok(halt) | Err(halt) => halt,
        }
    }

    async fn exchange<S>(&self, stream: &mut S, conversation: &mut Conversation) -> Result<Halt, Halt>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut input = BytesMut::with_capacity(READ_BYTES);
        let mut mail_began = None;
        // Why it ends, where the conversation does not know.
        let mut outcome = None;
        loop {
            match conversation.advance(&mut input) {
                Step::Read => {
                    self.flush(stream, conversation).await?;
                    mail_began = conversation.is_receiving().then(|| mail_began.unwrap_or_else(Instant::now));
                    let deadline = self.deadline(conversation, mail_began);
                    input.reserve(READ_BYTES);
                    let ended = tokio::select! {
                        biased;
                        // Whoever never stops sending is never waited for, and must end all the same.
                        () = std::future::ready(()), if deadline <= Instant::now() => Outcome::Timeout,
                        () = self.cut.cancelled() => Outcome::Stopped,
                        // Also where a key has opened since: its place is another's.
                        () = self.seat.wanted() => Outcome::Cut,
                        () = self.stop.cancelled(), if mail_began.is_none() => Outcome::Stopped,
                        read = stream.read_buf(&mut input) => match read? {
                            0 => return Ok(Halt::Ended(Outcome::Gone)),
                            _ => continue,
                        },
                        () = sleep_until(deadline) => Outcome::Timeout,
                    };
                    conversation.end(match ended {
                        Outcome::Timeout => Reply::new(421, "4.4.2", "that took too long"),
                        Outcome::Cut => {
                            Reply::new(421, "4.7.0", "there are too many connections: log in sooner")
                        }
                        _ => Reply::new(421, "4.3.2", "this server stops: connect again"),
                    });
                    outcome = Some(ended);
                }
                Step::StartTls => {
                    self.flush(stream, conversation).await?;
                    return Ok(Halt::StartTls);
                }
                Step::LookUp => {
                    let username = conversation.scram_name().unwrap_or_default();
                    let peer = self.peer.ip().to_canonical();
                    let offer = self.service.gatekeeper.scram_offer(username, peer).await;
                    let nonce: String =
                        rand::rng().sample_iter(Alphanumeric).take(NONCE_CHARS).map(char::from).collect();
                    conversation.looked_up(offer, &nonce);
                }
                Step::Judge => self.judge(stream, conversation).await?,
                Step::Store(submission) => {
                    let Some(credentials) = conversation.credentials() else {
                        return Ok(Halt::Ended(Outcome::Cut));
                    };
                    let sender = Sender {
                        credentials,
                        greeted_as: conversation.greeted_as(),
                        peer: self.peer.ip().to_canonical(),
                        session: &self.id,
                        by: &self.name,
                        secure: conversation.is_secure(),
                    };
                    let answer = accept(&self.service, &sender, submission).await;
                    conversation.stored(&answer);
                    // The next one may be there already, and has its own time.
                    mail_began = None;
                }
                Step::Close(ending) => {
                    self.flush(stream, conversation).await?;
                    let ended = outcome.unwrap_or(match ending {
                        Ending::Quit => Outcome::Quit,
                        Ending::Cut => Outcome::Cut,
                    });
                    part(stream).await;
                    return Ok(Halt::Ended(ended));
                }
            }
        }
    }

    /// Until when the next bytes must have come.
    fn deadline(&self, conversation: &Conversation, mail_began: Option<Instant>) -> Instant {
        let idle = Instant::now() + self.patience.idle;
        match mail_began {
            _ if !conversation.is_admitted() => idle.min(self.began + self.patience.login),
            Some(began) => idle.min(began + self.patience.mail),
            None => idle,
        }
    }

    /// Has a key judged. Whoever shows a wrong one waits for the answer.
    async fn judge<S>(&self, stream: &mut S, conversation: &mut Conversation) -> Result<(), Halt>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.flush(stream, conversation).await?;
        let peer = self.peer.ip().to_canonical();
        let verdict = match conversation.credentials() {
            Some(shown) => shown.judge(&*self.service.gatekeeper, peer).await,
            None => Err(Denied::Refused("no key was shown".to_owned())),
        };
        if let Err(denied) = &verdict {
            tracing::info!(%peer, reason = %denied, "a login over SMTP was refused");
        }
        if let Err(Denied::Refused(_) | Denied::Later(_)) = verdict {
            tokio::select! {
                () = sleep(self.patience.wrong_key) => {}
                () = self.stop.cancelled() => {}
            }
        }
        if verdict.is_ok() {
            self.seat.admit();
        }
        conversation.judged(verdict.map(drop));
        Ok(())
    }

    /// Writes the replies that have gathered.
    async fn flush<S>(&self, stream: &mut S, conversation: &mut Conversation) -> Result<(), Halt>
    where
        S: AsyncWrite + Unpin,
    {
        let output = conversation.output();
        if output.is_empty() {
            return Ok(());
        }
        let write = async {
            stream.write_all(output).await?;
            stream.flush().await
        };
        let written = timeout(self.patience.idle, write).await;
        output.clear();
        output.shrink_to(KEPT_BYTES_MAX);
        match written {
            Ok(written) => Ok(written?),
            Err(_) => Err(Halt::Ended(Outcome::Timeout)),
        }
    }
}

/// Ends a connection so that its last words arrive.
pub(super) async fn part<S>(stream: &mut S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let deadline = Instant::now() + LINGER;
    let mut unread = BytesMut::with_capacity(READ_BYTES);
    let end = async {
        stream.shutdown().await?;
        for _ in 0..LINGER_READS_MAX {
            unread.clear();
            if stream.read_buf(&mut unread).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    };
    // Whether the client listened to the end is its own business.
    let _ = timeout_at(deadline, end).await;
}
