//! Opens a session: greeting, EHLO, STARTTLS, AUTH.
//!
//! Credentials are sent only under TLS with a verified certificate, unless the settings allow otherwise.
//! Opportunistic mode without credentials accepts any certificate, and falls back to plain text if TLS fails
//! (RFC 7435). With credentials it verifies the certificate, because an attacker who can fake one could also
//! remove STARTTLS from the offer.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::{
    RelayTlsMode,
    failure::{FailureCategory, FailurePhase, FailureSeverity, SendFailure},
};
use postway_net::{CertificateCheck, NetError, TlsClient};
use postway_oauth::AccessToken;
use secrecy::{ExposeSecret, zeroize::Zeroizing};
use tokio::time::Instant;

use crate::transport::RelayReply;

use super::{
    bearer,
    capability::RelayExtensions,
    dialogue::OpeningLog,
    settings::{RelayCredentials, RelayProtocol, SmtpSettings},
    wire::SmtpWire,
};

/// How far the opening of a connection came, and when.
#[derive(Debug, Default, Clone)]
pub struct HandshakeMilestones {
    /// When the TCP connection was established.
    pub connected: Option<Instant>,
    /// When the relay had answered EHLO, under TLS if TLS is used.
    pub greeted: Option<Instant>,
    /// What both sides said.
    pub opening: OpeningLog,
}

/// Opens a session as the settings ask, with `token` if they sign in with one.
pub(super) async fn open(
    settings: &SmtpSettings,
    tls: &TlsClient,
    token: Option<&AccessToken>,
    reached: &mut HandshakeMilestones,
) -> Result<(SmtpWire, RelayExtensions), SendFailure> {
    let name = &settings.ehlo_name;
    if name.is_empty() || name.len() > 255 || !name.bytes().all(|b| b.is_ascii_graphic()) {
        let message = format!("the EHLO name {name:?} is neither a domain name nor an address literal");
        return Err(SendFailure::new(
            "ehlo_name_invalid",
            FailureCategory::Protocol,
            FailurePhase::Greeting,
            FailureSeverity::Account,
            message,
        ));
    }
    let (mut wire, offered) = match connect_and_secure(settings, tls, settings.tls, reached).await {
        Err(failure) if failure.phase == FailurePhase::Tls && may_fall_back(settings) => {
            connect_and_secure(settings, tls, RelayTlsMode::None, reached).await?
        }
        other => other?,
    };
    reached.greeted = Some(Instant::now());
    if let Some(credentials) = &settings.credentials {
        let signed_in = authenticate(&mut wire, &offered, settings, credentials, token).await;
        if let RelayCredentials::Password { password, .. } = credentials {
            let password = password.expose_secret();
            reached.opening.hide(password);
            reached.opening.hide(&Zeroizing::new(BASE64_STANDARD.encode(password)));
        }
        if let Some(token) = token {
            reached.opening.hide(token.expose());
        }
        signed_in?;
    }
    wire.stop_noting();
    Ok((wire, offered))
}

fn must_protect_credentials(settings: &SmtpSettings) -> bool {
    settings.credentials.is_some() && !settings.allow_plaintext_auth
}

fn may_fall_back(settings: &SmtpSettings) -> bool {
    settings.tls == RelayTlsMode::Opportunistic && !must_protect_credentials(settings)
}

/// Connects, reads the greeting and, if `mode` asks for it, starts TLS.
async fn connect_and_secure(
    settings: &SmtpSettings,
    tls: &TlsClient,
    mode: RelayTlsMode,
    reached: &mut HandshakeMilestones,
) -> Result<(SmtpWire, RelayExtensions), SendFailure> {
    let deadline = Instant::now() + settings.deadlines.connect;
    let stream = settings
        .dial
        .dial(&settings.egress, &settings.host, settings.port, deadline, &settings.guard)
        .await
        .map_err(|e| net_failure(FailurePhase::Connect, &e))?;
    reached.connected = Some(Instant::now());
    let mut wire = match mode {
        RelayTlsMode::Implicit => {
            let tcp = stream.into_tcp().ok_or_else(not_tcp)?;
            start_tls(tcp, settings, tls).await?
        }
        RelayTlsMode::Starttls | RelayTlsMode::Opportunistic | RelayTlsMode::None => SmtpWire::new(stream),
    };
    wire.note_in(&reached.opening);
    let greeting = wire.reply(FailurePhase::Greeting, Instant::now() + settings.deadlines.greeting).await?;
    if greeting.code != 220 {
        return Err(greeting.into_failure(FailurePhase::Greeting));
    }
    let offered = send_ehlo(&mut wire, settings).await?;
    match mode {
        RelayTlsMode::None | RelayTlsMode::Implicit => return Ok((wire, offered)),
        RelayTlsMode::Opportunistic if !offered.starttls => return Ok((wire, offered)),
        RelayTlsMode::Starttls if !offered.starttls => {
            return Err(SendFailure::new(
                "starttls_not_offered",
                FailureCategory::Tls,
                FailurePhase::Tls,
                FailureSeverity::Account,
                format!(
                    "{} does not offer STARTTLS; change the account's TLS mode or its port",
                    settings.host
                ),
            ));
        }
        RelayTlsMode::Starttls | RelayTlsMode::Opportunistic => {}
    }
    let reply = wire.command(FailurePhase::Tls, "STARTTLS", settings.deadlines.command).await?;
    if reply.code != 220 {
        return Err(reply.into_failure(FailurePhase::Tls));
    }
    // Plain text after the go-ahead would be read as if it had come under TLS: an attacker may have injected
    // it.
    if wire.has_unread() {
        return Err(SendFailure::new(
            "starttls_injection",
            FailureCategory::Tls,
            FailurePhase::Tls,
            FailureSeverity::Transient,
            "plain text followed the answer to STARTTLS; the connection was dropped",
        ));
    }
    let tcp = wire.into_plain().ok_or_else(not_tcp)?;
    let mut wire = start_tls(tcp, settings, tls).await?;
    reached.opening.remark("TLS is established");
    wire.note_in(&reached.opening);
    // Extensions offered in plain text must not be trusted after TLS started (RFC 3207 4.2).
    let offered = send_ehlo(&mut wire, settings).await?;
    Ok((wire, offered))
}

/// The failure of starting TLS on a connection that is not plain TCP.
fn not_tcp() -> SendFailure {
    SendFailure::protocol(FailurePhase::Tls, "TLS can only begin on a plain TCP connection")
}

async fn start_tls(
    tcp: tokio::net::TcpStream,
    settings: &SmtpSettings,
    tls: &TlsClient,
) -> Result<SmtpWire, SendFailure> {
    let verify = match (&settings.tls, &settings.extra_roots_pem) {
        (RelayTlsMode::Opportunistic, _) if !must_protect_credentials(settings) => {
            CertificateCheck::Unverified
        }
        (_, Some(pem)) => CertificateCheck::WithRoots(pem.as_bytes()),
        (_, None) => CertificateCheck::Platform,
    };
    let deadline = Instant::now() + settings.deadlines.tls;
    let stream = tls
        .handshake(tcp, &settings.host, verify, deadline)
        .await
        .map_err(|error| net_failure(FailurePhase::Tls, &error))?;
    Ok(SmtpWire::new(stream))
}

/// Sends EHLO, and HELO to relays that do not know it; LHLO to a server that speaks LMTP.
async fn send_ehlo(wire: &mut SmtpWire, settings: &SmtpSettings) -> Result<RelayExtensions, SendFailure> {
    let limit = settings.deadlines.command;
    let hello = format!("{} {}", settings.protocol.hello(), settings.ehlo_name);
    let reply = wire.command(FailurePhase::Greeting, &hello, limit).await?;
    match reply.code {
        250 => Ok(RelayExtensions::read(&reply)),
        500..=599 if settings.protocol == RelayProtocol::Lmtp => Err(not_lmtp(reply)),
        500..=599 => {
            let reply =
                wire.command(FailurePhase::Greeting, &format!("HELO {}", settings.ehlo_name), limit).await?;
            if reply.code == 250 {
                Ok(RelayExtensions::default())
            } else {
                Err(reply.into_failure(FailurePhase::Greeting))
            }
        }
        _ => Err(reply.into_failure(FailurePhase::Greeting)),
    }
}

/// The failure of a server that does not know LHLO: mail must not go to it as if it spoke LMTP.
fn not_lmtp(reply: RelayReply) -> SendFailure {
    let mut failure = reply.into_failure(FailurePhase::Greeting);
    failure.category = FailureCategory::Configuration;
    failure.severity = FailureSeverity::Account;
    failure.message = format!(
        "the server does not speak LMTP; use an smtp account, or its LMTP port ({})",
        failure.message
    );
    failure
}

async fn authenticate(
    wire: &mut SmtpWire,
    offered: &RelayExtensions,
    settings: &SmtpSettings,
    credentials: &RelayCredentials,
    token: Option<&AccessToken>,
) -> Result<(), SendFailure> {
    let refused = |code, message| {
        SendFailure::new(
            code,
            FailureCategory::Authentication,
            FailurePhase::Auth,
            FailureSeverity::Account,
            message,
        )
    };
    if !wire.is_tls() && !settings.allow_plaintext_auth {
        return Err(refused(
            "plaintext_auth_refused",
            "the connection is not encrypted; use TLS, or allow plain-text sign-in for this account",
        ));
    }
    if !offered.auth {
        return Err(refused(
            "auth_not_offered",
            "the relay offers no sign-in; remove the credentials or check the port",
        ));
    }
    let limit = settings.deadlines.command;
    let (username, password) = match (credentials, token) {
        (RelayCredentials::Password { username, password }, _) => {
            (username.as_str(), password.expose_secret())
        }
        (RelayCredentials::Token { username, .. }, Some(token)) => {
            let done = bearer::sign_in(wire, offered, username, token, limit).await?;
            return if done.code == 235 { Ok(()) } else { Err(done.into_failure(FailurePhase::Auth)) };
        }
        (RelayCredentials::Token { .. }, None) => return Err(refused("oauth_settings", "there is no token")),
    };
    if username.contains('\0') || password.contains('\0') {
        return Err(refused("credentials_invalid", "a user name or password cannot contain NUL"));
    }
    let done = if offered.auth_plain {
        let plain = Zeroizing::new(format!("\0{username}\0{password}"));
        let response = Zeroizing::new(BASE64_STANDARD.encode(plain.as_bytes()));
        let reply = send_auth_line(wire, &["AUTH PLAIN ", &response], limit).await?;
        // 334 asks for the response once more: some servers ignore it on the command line.
        if reply.code == 334 { send_auth_line(wire, &[&response], limit).await? } else { reply }
    } else if offered.auth_login {
        let mut reply = send_auth_line(wire, &["AUTH LOGIN"], limit).await?;
        for secret in [username, password] {
            if reply.code != 334 {
                break;
            }
            let response = Zeroizing::new(BASE64_STANDARD.encode(secret));
            reply = send_auth_line(wire, &[&response], limit).await?;
        }
        reply
    } else {
        return Err(refused(
            "auth_mechanism_unsupported",
            "the relay offers neither AUTH PLAIN nor AUTH LOGIN; if it wants OAuth 2, give the account a grant",
        ));
    };
    if done.code == 235 { Ok(()) } else { Err(done.into_failure(FailurePhase::Auth)) }
}

/// Sends one line of a sign-in from a buffer that is wiped afterwards, and reads the reply.
pub(super) async fn send_auth_line(
    wire: &mut SmtpWire,
    parts: &[&str],
    limit: std::time::Duration,
) -> Result<RelayReply, SendFailure> {
    let deadline = Instant::now() + limit;
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut line = Zeroizing::new(Vec::with_capacity(length + 2));
    for part in parts {
        line.extend_from_slice(part.as_bytes());
    }
    line.extend_from_slice(b"\r\n");
    if let Some(opening) = wire.opening() {
        // A line of a sign-in shows its mechanism and nothing else.
        match parts {
            ["AUTH LOGIN"] => opening.command("AUTH LOGIN"),
            [words @ .., _] => opening.command(format!("{} ***", words.concat().trim_end()).trim_start()),
            [] => {}
        }
    }
    wire.write(FailurePhase::Auth, &line, deadline).await?;
    wire.reply(FailurePhase::Auth, deadline).await
}

fn net_failure(phase: FailurePhase, error: &NetError) -> SendFailure {
    let setup = |code| {
        SendFailure::new(
            code,
            FailureCategory::Tls,
            FailurePhase::Tls,
            FailureSeverity::Account,
            error.to_string(),
        )
    };
    match error {
        NetError::Resolve { .. } => SendFailure::new(
            "connect_dns",
            FailureCategory::Network,
            FailurePhase::Connect,
            FailureSeverity::Transient,
            error.to_string(),
        ),
        NetError::Guarded { .. } => SendFailure::new(
            "target_private",
            FailureCategory::Configuration,
            FailurePhase::Connect,
            FailureSeverity::Account,
            error.to_string(),
        ),
        NetError::Certificate { .. } => setup("tls_certificate"),
        NetError::TlsSetup(_) => setup("tls_setup"),
        NetError::Source { .. } | NetError::SourceFamily { .. } => SendFailure::new(
            "source_address",
            FailureCategory::Configuration,
            FailurePhase::Connect,
            FailureSeverity::Account,
            error.to_string(),
        ),
        // A proxy that refuses the credentials or the target, or a firewall here: waiting does not help.
        NetError::Connect { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            SendFailure::new(
                "connect_denied",
                FailureCategory::Configuration,
                FailurePhase::Connect,
                FailureSeverity::Account,
                error.to_string(),
            )
        }
        NetError::Connect { .. } | NetError::Timeout { .. } | NetError::Handshake { .. } => {
            SendFailure::io(phase, error.kind(), error.to_string())
        }
    }
}
