//! AUTH with a token: XOAUTH2, as Google and Microsoft define it, or OAUTHBEARER (RFC 7628).
//!
//! A server that refuses a token gives the reason in a challenge, which the client must answer before the
//! refusal itself comes. The failure quotes that reason.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::failure::{FailureCategory, FailurePhase, FailureSeverity, SendFailure};
use postway_oauth::{AccessToken, TokenError, TokenErrorKind};
use secrecy::zeroize::Zeroizing;

use super::{capability::RelayExtensions, handshake::send_auth_line, wire::SmtpWire};
use crate::transport::RelayReply;

/// The longest AUTH command with a response in it (RFC 4954 4).
const LINE_BYTES_MAX: usize = 12_288;
/// How much of a challenge is quoted, in characters.
const WORDS_MAX: usize = 300;

/// Signs in and returns the final reply.
pub(super) async fn sign_in(
    wire: &mut SmtpWire,
    offered: &RelayExtensions,
    username: &str,
    token: &AccessToken,
    limit: Duration,
) -> Result<RelayReply, SendFailure> {
    let refused = |code, message| {
        SendFailure::new(
            code,
            FailureCategory::Authentication,
            FailurePhase::Auth,
            FailureSeverity::Account,
            message,
        )
    };
    if username.chars().any(char::is_control) {
        return Err(refused("credentials_invalid", "a user name cannot contain control characters"));
    }
    let secret = token.expose();
    let (mechanism, plain, consent) = if offered.auth_xoauth2 {
        ("XOAUTH2", Zeroizing::new(format!("user={username}\x01auth=Bearer {secret}\x01\x01")), "")
    } else if offered.auth_oauthbearer {
        let name = username.replace('=', "=3D").replace(',', "=2C");
        ("OAUTHBEARER", Zeroizing::new(format!("n,a={name},\x01auth=Bearer {secret}\x01\x01")), "AQ==")
    } else {
        return Err(refused(
            "auth_mechanism_unsupported",
            "the relay offers neither AUTH XOAUTH2 nor AUTH OAUTHBEARER",
        ));
    };
    let response = Zeroizing::new(BASE64_STANDARD.encode(plain.as_bytes()));
    let fits = mechanism.len() + response.len() + "AUTH  \r\n".len() <= LINE_BYTES_MAX;
    let mut reply = match fits {
        true => send_auth_line(wire, &["AUTH ", mechanism, " ", &response], limit).await?,
        false => send_auth_line(wire, &["AUTH ", mechanism], limit).await?,
    };
    // An empty challenge asks for the response, either for the first time or because the server ignored it on
    // the command line.
    if reply.code == 334 && challenge(&reply).is_empty() {
        reply = send_auth_line(wire, &[&response], limit).await?;
    }
    if reply.code != 334 {
        return Ok(reply);
    }
    let reason = challenge(&reply);
    let mut reply = send_auth_line(wire, &[consent], limit).await?;
    // A reason that repeats the token is not quoted.
    if !reason.is_empty() && !reason.contains(secret) {
        reply.text = format!("{} ({reason})", reply.text.trim_end());
    }
    Ok(reply)
}

/// The decoded text of a challenge, bounded.
fn challenge(reply: &RelayReply) -> String {
    let decoded = BASE64_STANDARD.decode(reply.text.trim()).unwrap_or_default();
    let text = String::from_utf8_lossy(&decoded);
    text.trim().chars().filter(|c| !c.is_control()).take(WORDS_MAX).collect()
}

/// The failure of an account that got no token. It is always a fault of the account, so its mail waits.
pub(in crate::transport) fn no_token(error: &TokenError) -> SendFailure {
    let (code, category) = match error.kind {
        TokenErrorKind::Refused => ("oauth_refused", FailureCategory::Authentication),
        TokenErrorKind::Unavailable => ("oauth_unavailable", FailureCategory::Network),
        TokenErrorKind::Settings => ("oauth_settings", FailureCategory::Configuration),
    };
    SendFailure::new(code, category, FailurePhase::Auth, FailureSeverity::Account, error.to_string())
}
