//! The life of a connection: opened, used for many messages, checked, closed.
//!
//! A connection is owned by one task at a time. After any error that leaves commands and replies out of step
//! it is not reusable. A transaction whose future was dropped half-way leaves it not reusable as well.
//! Dropping it is always safe.

use std::time::Duration;

use postway_domain::failure::{FailureCategory, FailurePhase, SendFailure};
use postway_net::TlsClient;
use tokio::time::Instant;

use super::{
    bearer::no_token,
    capability::RelayExtensions,
    dialogue::OpeningLog,
    handshake::{self, HandshakeMilestones},
    settings::{RelayCredentials, RelayProtocol, SmtpDeadlines, SmtpSettings},
    wire::{SmtpWire, UnaskedInput},
};

/// How long QUIT may take.
const QUIT_MAX: Duration = Duration::from_secs(2);

/// Whether and how the next transaction can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// Ready for MAIL, as after EHLO.
    Ready,
    /// The last transaction had a refusal: RSET comes first.
    NeedsReset,
    /// In use, out of step, or closed.
    Unusable,
}

/// A connection to a relay, greeted, secured and signed in.
#[derive(Debug)]
pub struct SmtpConnection {
    pub(super) wire: SmtpWire,
    pub(super) offered: RelayExtensions,
    /// What was said when it was opened.
    pub(super) opening: OpeningLog,
    pub(super) deadlines: SmtpDeadlines,
    pub(super) protocol: RelayProtocol,
    pub(super) state: ConnectionState,
    pub(super) transactions: u64,
    pub(super) messages_sent: u64,
    opened_at: Instant,
    /// When the token that it signed in with expires.
    good_until: Option<Instant>,
}

impl SmtpConnection {
    /// Connects, starts TLS and signs in. The phase of the failure says how far it came.
    pub async fn open(settings: &SmtpSettings, tls: &TlsClient) -> Result<Self, SendFailure> {
        Self::open_watched(settings, tls, &mut HandshakeMilestones::default()).await
    }

    /// Like [`SmtpConnection::open`], and records in `reached` when each milestone was passed.
    pub async fn open_watched(
        settings: &SmtpSettings,
        tls: &TlsClient,
        reached: &mut HandshakeMilestones,
    ) -> Result<Self, SendFailure> {
        let Some(RelayCredentials::Token { source, .. }) = &settings.credentials else {
            let (wire, offered) = handshake::open(settings, tls, None, reached).await?;
            return Ok(Self::opened((wire, offered), settings, reached));
        };
        // The token is fetched before connecting, because the relay does not wait for another server.
        let mut token = source.token().await.map_err(|error| no_token(&error))?;
        let mut opened = handshake::open(settings, tls, Some(&token), reached).await;
        if let Err(failure) = &opened
            && is_refused_token(failure)
        {
            // A token may be revoked before it expires, so another one is requested, once.
            match source.another(&token).await {
                Ok(Some(another)) => {
                    token = another;
                    opened = handshake::open(settings, tls, Some(&token), reached).await;
                }
                Ok(None) => {}
                Err(error) => {
                    let mut both = no_token(&error);
                    both.message = format!("{}; then {}", failure.message, both.message);
                    return Err(both);
                }
            }
        }
        let (wire, offered) = opened?;
        let good_until = Instant::now().checked_add(source.left(&token));
        Ok(Self { good_until, ..Self::opened((wire, offered), settings, reached) })
    }

    fn opened(
        (wire, offered): (SmtpWire, RelayExtensions),
        settings: &SmtpSettings,
        reached: &HandshakeMilestones,
    ) -> Self {
        let now = Instant::now();
        Self {
            wire,
            offered,
            opening: reached.opening.clone(),
            deadlines: settings.deadlines,
            protocol: settings.protocol,
            state: ConnectionState::Ready,
            transactions: 0,
            messages_sent: 0,
            opened_at: now,
            good_until: None,
        }
    }

    /// True if another message may be sent. Notices, without waiting, that the relay has closed the
    /// connection or sent something unasked, and that the token has expired, after which relays refuse mail.
    pub fn is_reusable(&mut self) -> bool {
        if self.state != ConnectionState::Unusable && self.wire.listen() != UnaskedInput::Nothing {
            self.abandon();
        }
        self.state != ConnectionState::Unusable && self.good_until.is_none_or(|end| Instant::now() < end)
    }

    /// Whether the relay offers DSN (RFC 3461).
    pub fn offers_dsn(&self) -> bool {
        self.offered.dsn
    }

    /// Time since the connection was opened.
    pub fn age(&self) -> Duration {
        self.opened_at.elapsed()
    }

    /// How many messages the relay has taken on this connection.
    pub fn messages_sent(&self) -> u64 {
        self.messages_sent
    }

    /// True when the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        self.wire.is_tls()
    }

    /// Sends RSET. [`SmtpConnection::deliver`] does so by itself when needed.
    pub async fn rset(&mut self) -> Result<(), SendFailure> {
        self.send_simple_command("RSET").await?;
        self.state = ConnectionState::Ready;
        Ok(())
    }

    /// Sends NOOP, to see whether the relay still answers.
    pub async fn noop(&mut self) -> Result<(), SendFailure> {
        let state = self.state;
        self.send_simple_command("NOOP").await?;
        self.state = state;
        Ok(())
    }

    /// Sends QUIT and closes, within two seconds. Nothing depends on whether the relay receives it.
    pub async fn quit(mut self) {
        if self.wire.is_open() && self.state != ConnectionState::Unusable {
            let deadline = Instant::now() + QUIT_MAX;
            self.wire.command(FailurePhase::Mail, "QUIT", QUIT_MAX).await.ok();
            self.wire.shutdown(deadline).await;
        }
    }

    /// Drops the connection at once, without QUIT.
    pub(super) fn abandon(&mut self) {
        self.state = ConnectionState::Unusable;
        self.wire.close();
    }

    /// Sends a command that expects a positive reply. The caller restores the state.
    async fn send_simple_command(&mut self, verb: &str) -> Result<(), SendFailure> {
        self.state = ConnectionState::Unusable;
        let reply = self.wire.command(FailurePhase::Mail, verb, self.deadlines.command).await;
        match reply {
            Ok(reply) if reply.is_positive() => Ok(()),
            Ok(reply) => {
                self.abandon();
                Err(reply.into_failure(FailurePhase::Mail))
            }
            Err(failure) => {
                self.abandon();
                Err(failure)
            }
        }
    }
}

/// Whether the relay refused the token, so that another one may help.
fn is_refused_token(failure: &SendFailure) -> bool {
    failure.phase == FailurePhase::Auth
        && failure.smtp_code.is_some()
        && failure.category == FailureCategory::Authentication
        && !failure.is_transient()
}
