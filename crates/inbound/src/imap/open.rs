//! From a name to a session that is signed in: connection, TLS, greeting, login.
//!
//! What was said in plain text is forgotten once TLS stands (RFC 3501 6.2.1), and text that follows the go-ahead for TLS
//! in the clear ends the attempt: it would be taken for the server's words under TLS. A server that repeats credentials
//! in its refusal is not quoted.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_net::{Stream, TlsClient, Verify, connect_through};
use secrecy::{ExposeSecret, zeroize::Zeroizing};
use tokio::{net::TcpStream, time::Instant};

use super::{
    capability::Capabilities,
    command::Command,
    connection::{Connection, Deadlines, Login, TlsMode},
    error::{Fault, MailboxError, WORDS_MAX, words},
    response::{Kind, Response, State},
    session::{Session, by},
    wire::Wire,
};

impl Session {
    /// Connects, secures and signs in.
    pub async fn open(
        connection: &Connection,
        tls: &TlsClient,
        deadlines: Deadlines,
    ) -> Result<Self, MailboxError> {
        let server = format!("{}:{}", connection.host, connection.port);
        // Boxed: opening is rare, and its state would otherwise be part of everything that waits for it.
        Box::pin(open(connection, tls, deadlines, &server)).await.map_err(|fault| fault.at(&server))
    }

    async fn ask_capabilities(&mut self) -> Result<(), Fault> {
        let mut offered = None;
        self.must("CAPABILITY", Command::new("CAPABILITY"), |response| {
            if let Response::Capability(list) = response {
                offered = Some(Capabilities::read(list));
            }
        })
        .await?;
        self.offered = offered.ok_or(Fault::Garbled("no list of capabilities"))?;
        Ok(())
    }
}

async fn open(
    connection: &Connection,
    tls: &TlsClient,
    deadlines: Deadlines,
    server: &str,
) -> Result<Session, Fault> {
    let deadline = Instant::now() + deadlines.connect;
    let (host, port) = (connection.host.as_str(), connection.port);
    let tcp = connect_through(connection.proxy.as_ref(), host, port, deadline, &connection.guard)
        .await
        .map_err(Fault::Net)?;
    let stream = match connection.tls {
        TlsMode::Implicit => secure(tcp, connection, tls, deadlines).await?,
        TlsMode::Starttls | TlsMode::None => Stream::Plain(tcp),
    };
    let mut session = Session::over(stream, server, deadlines);
    greet(&mut session).await?;
    if connection.tls == TlsMode::Starttls {
        session = start_tls(session, connection, tls).await?;
    }
    if session.offered == Capabilities::default() {
        session.ask_capabilities().await?;
    }
    sign_in(&mut session, &connection.login).await?;
    Ok(session)
}

async fn secure(
    tcp: TcpStream,
    connection: &Connection,
    tls: &TlsClient,
    deadlines: Deadlines,
) -> Result<Stream, Fault> {
    let verify = match &connection.extra_roots_pem {
        Some(pem) => Verify::WithRoots(pem.as_bytes()),
        None => Verify::Platform,
    };
    let deadline = Instant::now() + deadlines.connect;
    tls.handshake(tcp, &connection.host, verify, deadline).await.map_err(Fault::Net)
}

async fn greet(session: &mut Session) -> Result<(), Fault> {
    let deadline = Instant::now() + session.deadlines.reply;
    let raw = by(deadline, "greeting", session.wire.response(None)).await?;
    let said = words(&raw.line);
    match Response::read(raw) {
        Ok(Response::State(state)) => match state.kind {
            Kind::Ok => {
                session.offered = state.capabilities().map(Capabilities::read).unwrap_or_default();
                Ok(())
            }
            Kind::Bye => Err(Fault::Bye(state.words)),
            Kind::Preauth => Err(Fault::Preauthenticated),
            Kind::No | Kind::Bad => Err(Fault::NotImap(said)),
        },
        Ok(_) | Err(_) => Err(Fault::NotImap(said)),
    }
}

async fn start_tls(mut session: Session, connection: &Connection, tls: &TlsClient) -> Result<Session, Fault> {
    session.ask_capabilities().await?;
    if !session.offered.starttls {
        return Err(Fault::NoStarttls);
    }
    session.must("STARTTLS", Command::new("STARTTLS"), |_| {}).await?;
    let Session { wire, server, deadlines, .. } = session;
    let stream = plain(wire)?;
    let stream = secure(stream, connection, tls, deadlines).await?;
    Ok(Session::over(stream, &server, deadlines))
}

/// The TCP connection under a wire on which nothing is left unread.
fn plain(wire: Wire<Stream>) -> Result<TcpStream, Fault> {
    if wire.has_unread() {
        return Err(Fault::StarttlsInjected);
    }
    wire.into_stream().into_tcp().ok_or(Fault::Garbled("STARTTLS under TLS"))
}

async fn sign_in(session: &mut Session, login: &Login) -> Result<(), Fault> {
    let offered = session.offered;
    let (command, secret) = match login {
        Login::Password { username, password } => {
            let secret = password.expose_secret();
            if username.contains('\0') || secret.contains('\0') {
                return Err(Fault::Unwritable("a user name or password cannot contain NUL"));
            }
            let by_plain = || {
                let plain = Zeroizing::new(format!("\0{username}\0{secret}"));
                Zeroizing::new(BASE64_STANDARD.encode(plain.as_bytes()))
            };
            if offered.auth_plain && (offered.sasl_ir || offered.login_disabled) {
                (Command::sign_in("PLAIN", &by_plain(), offered.sasl_ir), secret)
            } else if !offered.login_disabled {
                (Command::new("LOGIN").string(username).string(secret), secret)
            } else {
                return Err(Fault::LoginUnsupported(
                    "the server takes no password on this connection; use TLS, or OAuth2 if the server wants that",
                ));
            }
        }
        Login::OAuth2 { username, token } => {
            let secret = token.expose_secret();
            if username.contains('\x01') || secret.contains('\x01') {
                return Err(Fault::Unwritable("a user name or token cannot contain control characters"));
            }
            let (mechanism, bearer) = if offered.auth_xoauth2 {
                ("XOAUTH2", Zeroizing::new(format!("user={username}\x01auth=Bearer {secret}\x01\x01")))
            } else if offered.auth_oauthbearer {
                let name = username.replace('=', "=3D").replace(',', "=2C");
                ("OAUTHBEARER", Zeroizing::new(format!("n,a={name},\x01auth=Bearer {secret}\x01\x01")))
            } else {
                return Err(Fault::LoginUnsupported(
                    "the server offers neither XOAUTH2 nor OAUTHBEARER; use a password, or check host and port",
                ));
            };
            let response = Zeroizing::new(BASE64_STANDARD.encode(bearer.as_bytes()));
            (Command::sign_in(mechanism, &response, offered.sasl_ir), secret)
        }
    };
    let sent = command.chunks.clone();
    let (mut told, mut reasons) = (None, None);
    let done = session
        .run(command, |response| match response {
            Response::Capability(list) => told = Some(Capabilities::read(list)),
            Response::GoAhead(challenge) => reasons = BASE64_STANDARD.decode(challenge).ok(),
            _ => {}
        })
        .await;
    let done = match done {
        Ok(state) if state.kind == Kind::Ok => state,
        Ok(state) => {
            let said = discreet(state.words.clone(), secret, &sent);
            // Why a token is refused: more than the refusal itself says.
            let reasons = reasons.filter(|reasons| !reasons.is_empty()).map(|reasons| words(&reasons));
            let words = match reasons.map(|reasons| discreet(reasons, secret, &sent)) {
                Some(reasons) => format!("{said} ({reasons})"),
                None => said,
            };
            return Err(refusal(State { words, ..state }));
        }
        Err(Fault::Bye(words)) => return Err(Fault::Bye(discreet(words, secret, &sent))),
        Err(fault) => return Err(fault),
    };
    // Most servers offer more once they know who asks, and tell so along with their consent.
    match done.capabilities().map(Capabilities::read).or(told) {
        Some(offered) => session.offered = offered,
        None => session.ask_capabilities().await?,
    }
    Ok(())
}

fn refusal(done: State) -> Fault {
    if done.is_passing() || done.kind != Kind::No {
        done.refused("the login")
    } else {
        Fault::LoginRefused(done.words)
    }
}

/// The server's words, unless they repeat the secret or what was sent for it, or were cut, where nobody can tell.
fn discreet(words: String, secret: &str, sent: &[Zeroizing<Vec<u8>>]) -> String {
    // The last word of a line is the password in some form; one that is very short could be any word.
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
