//! Opens a session: connection, TLS, greeting, login.
//!
//! What the server said in plain text is discarded once TLS is established (RFC 3501 6.2.1). Plain text that
//! follows the answer to STARTTLS ends the attempt, because it would be taken for the server's words under
//! TLS. A server that repeats credentials in its refusal is not quoted.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_net::{CertificateCheck, EgressPath, NetStream, TlsClient, connect_through};
use secrecy::{ExposeSecret, zeroize::Zeroizing};
use tokio::{net::TcpStream, time::Instant};

use super::{
    capability::ImapCapabilities,
    command::ImapCommand,
    connection::{ImapConnection, ImapDeadlines, ImapLogin, ImapTlsMode},
    error::{ImapFault, MailboxError, WORDS_MAX, words},
    response::{ImapResponse, StatusKind, StatusResponse},
    session::{ImapSession, by},
    wire::ImapOctetStream,
};

impl ImapSession {
    /// Connects, establishes TLS and signs in.
    pub async fn open(
        connection: &ImapConnection,
        tls: &TlsClient,
        deadlines: ImapDeadlines,
    ) -> Result<Self, MailboxError> {
        let server = format!("{}:{}", connection.host, connection.port);
        // Boxed: opening is rare, and its state would otherwise enlarge every future that waits for it.
        Box::pin(open(connection, tls, deadlines, &server)).await.map_err(|fault| fault.at(&server))
    }

    async fn ask_capabilities(&mut self) -> Result<(), ImapFault> {
        let mut offered = None;
        self.must("CAPABILITY", ImapCommand::new("CAPABILITY"), |response| {
            if let ImapResponse::Capability(list) = response {
                offered = Some(ImapCapabilities::read(list));
            }
        })
        .await?;
        self.offered = offered.ok_or(ImapFault::Garbled("no list of capabilities"))?;
        Ok(())
    }
}

async fn open(
    connection: &ImapConnection,
    tls: &TlsClient,
    deadlines: ImapDeadlines,
    server: &str,
) -> Result<ImapSession, ImapFault> {
    let deadline = Instant::now() + deadlines.connect;
    let (host, port) = (connection.host.as_str(), connection.port);
    let path = EgressPath::through(connection.proxy.clone());
    let tcp =
        connect_through(&path, host, port, deadline, &connection.guard).await.map_err(ImapFault::Net)?;
    let stream = match connection.tls {
        ImapTlsMode::Implicit => secure(tcp, connection, tls, deadlines).await?,
        ImapTlsMode::Starttls | ImapTlsMode::None => NetStream::Plain(tcp),
    };
    let mut session = ImapSession::over(stream, server, deadlines);
    greet(&mut session).await?;
    if connection.tls == ImapTlsMode::Starttls {
        session = start_tls(session, connection, tls).await?;
    }
    if session.offered == ImapCapabilities::default() {
        session.ask_capabilities().await?;
    }
    sign_in(&mut session, &connection.login).await?;
    Ok(session)
}

async fn secure(
    tcp: TcpStream,
    connection: &ImapConnection,
    tls: &TlsClient,
    deadlines: ImapDeadlines,
) -> Result<NetStream, ImapFault> {
    let verify = match &connection.extra_roots_pem {
        Some(pem) => CertificateCheck::WithRoots(pem.as_bytes()),
        None => CertificateCheck::Platform,
    };
    let deadline = Instant::now() + deadlines.connect;
    tls.handshake(tcp, &connection.host, verify, deadline).await.map_err(ImapFault::Net)
}

async fn greet(session: &mut ImapSession) -> Result<(), ImapFault> {
    let deadline = Instant::now() + session.deadlines.reply;
    let raw = by(deadline, "greeting", session.wire.response(None)).await?;
    let said = words(&raw.line);
    match ImapResponse::read(raw) {
        Ok(ImapResponse::Status(state)) => match state.kind {
            StatusKind::Ok => {
                session.offered = state.capabilities().map(ImapCapabilities::read).unwrap_or_default();
                Ok(())
            }
            StatusKind::Bye => Err(ImapFault::Bye(state.words)),
            StatusKind::Preauth => Err(ImapFault::Preauthenticated),
            StatusKind::No | StatusKind::Bad => Err(ImapFault::NotImap(said)),
        },
        Ok(_) | Err(_) => Err(ImapFault::NotImap(said)),
    }
}

async fn start_tls(
    mut session: ImapSession,
    connection: &ImapConnection,
    tls: &TlsClient,
) -> Result<ImapSession, ImapFault> {
    session.ask_capabilities().await?;
    if !session.offered.starttls {
        return Err(ImapFault::NoStarttls);
    }
    session.must("STARTTLS", ImapCommand::new("STARTTLS"), |_| {}).await?;
    let ImapSession { wire, server, deadlines, .. } = session;
    let stream = plain(wire)?;
    let stream = secure(stream, connection, tls, deadlines).await?;
    Ok(ImapSession::over(stream, &server, deadlines))
}

/// The TCP connection under a wire without unread input.
fn plain(wire: ImapOctetStream<NetStream>) -> Result<TcpStream, ImapFault> {
    if wire.has_unread() {
        return Err(ImapFault::StarttlsInjected);
    }
    wire.into_stream().into_tcp().ok_or(ImapFault::Garbled("STARTTLS under TLS"))
}

async fn sign_in(session: &mut ImapSession, login: &ImapLogin) -> Result<(), ImapFault> {
    let offered = session.offered;
    let (command, secret) = match login {
        ImapLogin::Password { username, password } => {
            let secret = password.expose_secret();
            if username.contains('\0') || secret.contains('\0') {
                return Err(ImapFault::Unwritable("a user name or password cannot contain NUL"));
            }
            let by_plain = || {
                let plain = Zeroizing::new(format!("\0{username}\0{secret}"));
                Zeroizing::new(BASE64_STANDARD.encode(plain.as_bytes()))
            };
            if offered.auth_plain && (offered.sasl_ir || offered.login_disabled) {
                (ImapCommand::sign_in("PLAIN", &by_plain(), offered.sasl_ir), secret)
            } else if !offered.login_disabled {
                (ImapCommand::new("LOGIN").string(username).string(secret), secret)
            } else {
                return Err(ImapFault::LoginUnsupported(
                    "the server takes no password on this connection; use TLS, or OAuth2 if the server wants that",
                ));
            }
        }
        ImapLogin::OAuth2 { username, token } => {
            let secret = token.expose_secret();
            if username.contains('\x01') || secret.contains('\x01') {
                return Err(ImapFault::Unwritable("a user name or token cannot contain control characters"));
            }
            let (mechanism, bearer) = if offered.auth_xoauth2 {
                ("XOAUTH2", Zeroizing::new(format!("user={username}\x01auth=Bearer {secret}\x01\x01")))
            } else if offered.auth_oauthbearer {
                let name = username.replace('=', "=3D").replace(',', "=2C");
                ("OAUTHBEARER", Zeroizing::new(format!("n,a={name},\x01auth=Bearer {secret}\x01\x01")))
            } else {
                return Err(ImapFault::LoginUnsupported(
                    "the server offers neither XOAUTH2 nor OAUTHBEARER; use a password, or check host and port",
                ));
            };
            let response = Zeroizing::new(BASE64_STANDARD.encode(bearer.as_bytes()));
            (ImapCommand::sign_in(mechanism, &response, offered.sasl_ir), secret)
        }
    };
    let sent = command.chunks.clone();
    let (mut announced, mut reasons) = (None, None);
    let done = session
        .run(command, |response| match response {
            ImapResponse::Capability(list) => announced = Some(ImapCapabilities::read(list)),
            ImapResponse::GoAhead(challenge) => reasons = BASE64_STANDARD.decode(challenge).ok(),
            _ => {}
        })
        .await;
    let done = match done {
        Ok(state) if state.kind == StatusKind::Ok => state,
        Ok(state) => {
            let said = discreet(state.words.clone(), secret, &sent);
            // The server's reasons for refusing a token say more than the refusal itself.
            let reasons = reasons.filter(|reasons| !reasons.is_empty()).map(|reasons| words(&reasons));
            let words = match reasons.map(|reasons| discreet(reasons, secret, &sent)) {
                Some(reasons) => format!("{said} ({reasons})"),
                None => said,
            };
            return Err(refusal(StatusResponse { words, ..state }));
        }
        Err(ImapFault::Bye(words)) => return Err(ImapFault::Bye(discreet(words, secret, &sent))),
        Err(fault) => return Err(fault),
    };
    // Most servers offer more after the login, and list it in their answer.
    match done.capabilities().map(ImapCapabilities::read).or(announced) {
        Some(offered) => session.offered = offered,
        None => session.ask_capabilities().await?,
    }
    Ok(())
}

fn refusal(done: StatusResponse) -> ImapFault {
    if done.is_passing() || done.kind != StatusKind::No {
        done.refused("the login")
    } else {
        ImapFault::LoginRefused(done.words)
    }
}

/// The server's text, unless it repeats the secret or what was sent for it, or was cut so that this cannot be
/// seen.
fn discreet(words: String, secret: &str, sent: &[Zeroizing<Vec<u8>>]) -> String {
    // The last word of a line is the password in some form; a very short one could be any word.
    let repeats = |line: &[u8]| {
        let last = line.rsplit(|&b| b == b' ').next().unwrap_or_default();
        last.len() >= 8 && std::str::from_utf8(last).is_ok_and(|last| words.contains(last))
    };
    let is_cut = words.chars().count() >= WORDS_MAX;
    match is_cut || (!secret.is_empty() && words.contains(secret)) || sent.iter().any(|line| repeats(line)) {
        true => "(its words are not repeated: they may hold credentials)".to_owned(),
        false => words,
    }
}
