//! One connection: moves the bytes of a conversation, watches its deadlines, and carries out its steps.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use bytes::BytesMut;
use postway_net::listen::ShownCertificate;
use rand::{Rng, distr::Alphanumeric};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{
    SmtpPurpose, SmtpTimeouts,
    accept::{SmtpSender, accept},
    authenticator::SmtpDenial,
    client_rules::{ClientOrigin, ClientRules, OriginKind},
    command::NamedClient,
    connection_limit::SmtpConnectionSlot,
    conversation::{SessionEnding, SessionStep, SmtpConversation, SubmittedMail},
    reception,
    reply::{NOT_STORED, SubmissionReply},
};

/// How many bytes are read at once.
const READ_BYTES: usize = 16 * 1024;
/// The length of the server's half of a nonce: about 190 bits.
const NONCE_CHARS: usize = 32;
/// The most memory that the output buffer keeps between reads.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// How long, and for how many reads, a disconnected client is still read from, so that it receives the last
/// reply: closing a connection with unread bytes resets it, and the reset overtakes the reply.
const LINGER: std::time::Duration = std::time::Duration::from_secs(2);
const LINGER_READS_MAX: usize = 64;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionOutcome {
    /// The client sent QUIT.
    Quit,
    /// The client went away.
    Gone,
    /// The client was disconnected for what it sent.
    Cut,
    /// The client took too long.
    Timeout,
    /// The TLS handshake failed.
    Tls,
    /// The listener stopped.
    Stopped,
}

impl SessionOutcome {
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

/// Everything that a session needs.
pub(super) struct SmtpSession {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) peer: SocketAddr,
    pub(super) clients: Arc<ClientRules>,
    pub(super) purpose: SmtpPurpose,
    /// How long the client waits for the greeting.
    pub(super) greeting_delay: std::time::Duration,
    pub(super) tls_acceptor: Option<TlsAcceptor>,
    pub(super) timeouts: SmtpTimeouts,
    /// Asks the session to end when no mail is arriving.
    pub(super) stop: CancellationToken,
    /// Asks the session to end now.
    pub(super) cut: CancellationToken,
    pub(super) began: Instant,
    /// Its slot in the connection limit.
    pub(super) slot: SmtpConnectionSlot,
}

/// Why the exchange stopped.
enum SessionHalt {
    StartTls,
    Ended(SessionOutcome),
}

impl From<io::Error> for SessionHalt {
    fn from(_: io::Error) -> Self {
        // A client that disconnected needs no reply, and a mail on its way is not accepted.
        SessionHalt::Ended(SessionOutcome::Gone)
    }
}

impl SmtpSession {
    /// Serves a connection to its end.
    pub(super) async fn serve(
        &self,
        mut tcp: TcpStream,
        mut conversation: SmtpConversation,
        mut secure: bool,
    ) -> SessionOutcome {
        if !secure {
            if let Some(early) = self.delay_greeting(&mut tcp).await {
                return early;
            }
            match self.converse(&mut tcp, &mut conversation).await {
                SessionHalt::StartTls => secure = true,
                SessionHalt::Ended(outcome) => return outcome,
            }
            conversation.secured();
        }
        let Some(acceptor) = self.tls_acceptor.as_ref().filter(|_| secure) else {
            return SessionOutcome::Tls;
        };
        // Plain text that arrived before the handshake was dropped with its buffer.
        let handshake = timeout(self.timeouts.handshake, acceptor.accept(tcp));
        let handshake = tokio::select! {
            biased;
            handshake = handshake => handshake,
            () = self.slot.wanted() => return SessionOutcome::Cut,
        };
        match handshake {
            Ok(Ok(mut tls)) => {
                if let SmtpPurpose::Submission(service) = &self.purpose
                    && let Some(shown) = ShownCertificate::of(tls.get_ref().1.peer_certificates())
                {
                    let now_s = service.door.now().as_seconds().unsigned_abs();
                    if let Some(client) = self.clients.recognize(&shown, now_s) {
                        self.slot.admit();
                        conversation.recognize(client);
                    }
                }
                match self.converse(&mut tls, &mut conversation).await {
                    SessionHalt::StartTls => SessionOutcome::Cut,
                    SessionHalt::Ended(outcome) => outcome,
                }
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, peer = %self.peer.ip(), "a TLS handshake of SMTP failed");
                SessionOutcome::Tls
            }
            Err(_) => SessionOutcome::Timeout,
        }
    }

    /// Keeps a client waiting for its greeting. One that speaks first is no mail server, and is cut off.
    async fn delay_greeting(&self, tcp: &mut TcpStream) -> Option<SessionOutcome> {
        if self.greeting_delay.is_zero() {
            return None;
        }
        let mut first = [0; 1];
        let spoken = tokio::select! {
            biased;
            () = self.cut.cancelled() => return Some(SessionOutcome::Stopped),
            () = self.slot.wanted() => return Some(SessionOutcome::Cut),
            spoken = tcp.peek(&mut first) => spoken,
            () = sleep(self.greeting_delay) => return None,
        };
        if !matches!(spoken, Ok(1..)) {
            return Some(SessionOutcome::Gone);
        }
        let mut line = Vec::new();
        SubmissionReply::new(554, "5.5.1", "wait for the greeting").write(&mut line);
        if timeout(LINGER, tcp.write_all(&line)).await.is_ok() {
            close_after_reply(tcp).await;
        }
        Some(SessionOutcome::Cut)
    }

    async fn converse<S>(&self, stream: &mut S, conversation: &mut SmtpConversation) -> SessionHalt
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        match self.exchange(stream, conversation).await {
            Ok(halt) | Err(halt) => halt,
        }
    }

    async fn exchange<S>(
        &self,
        stream: &mut S,
        conversation: &mut SmtpConversation,
    ) -> Result<SessionHalt, SessionHalt>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut input = BytesMut::with_capacity(READ_BYTES);
        let mut mail_began = None;
        // The reason for the end, if the conversation does not know it.
        let mut outcome = None;
        loop {
            match conversation.advance(&mut input) {
                SessionStep::Read => {
                    self.flush(stream, conversation).await?;
                    mail_began = conversation.is_receiving().then(|| mail_began.unwrap_or_else(Instant::now));
                    let deadline = self.deadline(conversation, mail_began);
                    input.reserve(READ_BYTES);
                    let ended = tokio::select! {
                        biased;
                        // A client that never stops sending would never be waited for, and must end too.
                        () = std::future::ready(()), if deadline <= Instant::now() => SessionOutcome::Timeout,
                        () = self.cut.cancelled() => SessionOutcome::Stopped,
                        // This applies even if a key was accepted since: the slot belongs to another
                        // connection.
                        () = self.slot.wanted() => SessionOutcome::Cut,
                        () = self.stop.cancelled(), if mail_began.is_none() => SessionOutcome::Stopped,
                        read = stream.read_buf(&mut input) => match read? {
                            0 => return Ok(SessionHalt::Ended(SessionOutcome::Gone)),
                            _ => continue,
                        },
                        () = sleep_until(deadline) => SessionOutcome::Timeout,
                    };
                    conversation.end(match ended {
                        SessionOutcome::Timeout => SubmissionReply::new(421, "4.4.2", "that took too long"),
                        SessionOutcome::Cut => SubmissionReply::new(
                            421,
                            "4.7.0",
                            "there are too many connections: log in sooner",
                        ),
                        _ => SubmissionReply::new(421, "4.3.2", "this server stops: connect again"),
                    });
                    outcome = Some(ended);
                }
                SessionStep::StartTls => {
                    self.flush(stream, conversation).await?;
                    return Ok(SessionHalt::StartTls);
                }
                SessionStep::NewClient => {
                    let peer = SocketAddr::new(self.client(conversation), self.peer.port());
                    let privileges = |kind| self.clients.privileges(&ClientOrigin { peer, kind });
                    let privileges = match conversation.named_client() {
                        NamedClient::Address(_) => Some(privileges(OriginKind::Proxied)),
                        NamedClient::Unknown => Some(privileges(OriginKind::Unnamed)),
                        NamedClient::Nobody => None,
                    };
                    conversation.change_client(privileges);
                }
                SessionStep::LookUp => {
                    let SmtpPurpose::Submission(service) = &self.purpose else {
                        return Ok(SessionHalt::Ended(SessionOutcome::Cut));
                    };
                    let username = conversation.scram_name().unwrap_or_default();
                    let peer = self.client(conversation);
                    let offer = service.gatekeeper.scram_offer(username, peer).await;
                    let nonce: String =
                        rand::rng().sample_iter(Alphanumeric).take(NONCE_CHARS).map(char::from).collect();
                    conversation.set_scram_offer(offer, &nonce);
                }
                SessionStep::CheckKey => self.check_key(stream, conversation).await?,
                SessionStep::AdmitRecipient => self.admit_recipient(stream, conversation).await?,
                SessionStep::Store(submission) => {
                    let answer = self.store(conversation, submission).await;
                    conversation.stored(&answer);
                    // The next mail may have begun already, and has its own deadline.
                    mail_began = None;
                }
                SessionStep::Close(ending) => {
                    self.flush(stream, conversation).await?;
                    let ended = outcome.unwrap_or(match ending {
                        SessionEnding::Quit => SessionOutcome::Quit,
                        SessionEnding::Cut => SessionOutcome::Cut,
                    });
                    close_after_reply(stream).await;
                    return Ok(SessionHalt::Ended(ended));
                }
            }
        }
    }

    /// Stores a mail, for whatever purpose this listener has.
    async fn store(&self, conversation: &SmtpConversation, submission: SubmittedMail) -> SubmissionReply {
        match (&self.purpose, conversation.credentials()) {
            (SmtpPurpose::Submission(service), Some(credentials)) => {
                let sender = SmtpSender {
                    credentials,
                    greeted_as: conversation.greeted_as(),
                    peer: self.client(conversation),
                    session: &self.id,
                    by: &self.name,
                    secure: conversation.is_secure(),
                };
                accept(service, &sender, submission).await
            }
            // A mail begins only after the login.
            (SmtpPurpose::Submission(_), None) => NOT_STORED,
            (SmtpPurpose::Reception(desk), _) => {
                let client = reception::client(conversation, self.peer, &self.id);
                reception::keep(&**desk, client, submission).await
            }
        }
    }

    /// Asks the desk about a recipient. The answer to an unknown one is delayed, as that to a wrong key.
    async fn admit_recipient<S>(
        &self,
        stream: &mut S,
        conversation: &mut SmtpConversation,
    ) -> Result<(), SessionHalt>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let verdict = match (&self.purpose, conversation.asked_recipient()) {
            (SmtpPurpose::Reception(desk), Some(to)) => {
                let client = reception::client(conversation, self.peer, &self.id);
                desk.admit_recipient(&client, conversation.sender(), to).await
            }
            (SmtpPurpose::Reception(_) | SmtpPurpose::Submission(_), _) => Err(NOT_STORED),
        };
        match &verdict {
            // The connection is that of a server with mail for us: no other takes its place.
            Ok(()) => self.slot.admit(),
            Err(reply) if reply.is_error() => {
                self.flush(stream, conversation).await?;
                tokio::select! {
                    () = sleep(self.timeouts.wrong_key) => {}
                    () = self.stop.cancelled() => {}
                }
            }
            Err(_) => {}
        }
        conversation.recipient_judged(verdict);
        Ok(())
    }

    /// The address of the client: the one that XCLIENT named, or the other end of the connection.
    fn client(&self, conversation: &SmtpConversation) -> IpAddr {
        match conversation.named_client() {
            NamedClient::Address(address) => address,
            NamedClient::Nobody | NamedClient::Unknown => self.peer.ip().to_canonical(),
        }
    }

    /// The deadline for the next bytes.
    fn deadline(&self, conversation: &SmtpConversation, mail_began: Option<Instant>) -> Instant {
        let idle = Instant::now() + self.timeouts.idle;
        match mail_began {
            _ if !conversation.is_admitted() => idle.min(self.began + self.timeouts.login),
            Some(began) => idle.min(began + self.timeouts.mail),
            None => idle,
        }
    }

    /// Checks the credentials. The answer to a wrong key is delayed.
    async fn check_key<S>(
        &self,
        stream: &mut S,
        conversation: &mut SmtpConversation,
    ) -> Result<(), SessionHalt>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.flush(stream, conversation).await?;
        let peer = self.client(conversation);
        let verdict = match (&self.purpose, conversation.credentials()) {
            (SmtpPurpose::Submission(service), Some(shown)) => {
                shown.check_key(&*service.gatekeeper, peer).await
            }
            (SmtpPurpose::Submission(_) | SmtpPurpose::Reception(_), _) => {
                Err(SmtpDenial::Refused("no key was shown".to_owned()))
            }
        };
        if let Err(denied) = &verdict {
            tracing::info!(%peer, reason = %denied, "a login over SMTP was refused");
        }
        if let Err(SmtpDenial::Refused(_) | SmtpDenial::Later(_)) = verdict {
            tokio::select! {
                () = sleep(self.timeouts.wrong_key) => {}
                () = self.stop.cancelled() => {}
            }
        }
        if verdict.is_ok() {
            self.slot.admit();
        }
        conversation.key_checked(verdict.map(drop));
        Ok(())
    }

    /// Writes the collected replies.
    async fn flush<S>(&self, stream: &mut S, conversation: &mut SmtpConversation) -> Result<(), SessionHalt>
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
        let written = timeout(self.timeouts.idle, write).await;
        output.clear();
        output.shrink_to(OUTPUT_BYTES_MAX);
        match written {
            Ok(written) => Ok(written?),
            Err(_) => Err(SessionHalt::Ended(SessionOutcome::Timeout)),
        }
    }
}

/// Closes a connection so that its last reply arrives.
pub(super) async fn close_after_reply<S>(stream: &mut S)
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
    // It does not matter whether the client read to the end.
    let _ = timeout_at(deadline, end).await;
}
