//! The life of a connection: opened, used for many messages, checked, ended.
//!
//! A connection is owned by one task at a time and is as good as its last transaction: after anything out of
//! step it is not reusable, and dropping it is always safe. A transaction whose future was dropped half-way
//! leaves it not reusable too.

use std::time::Duration;

use postway_domain::failure::{Category, Failure, Phase};
use postway_net::TlsClient;
use tokio::time::Instant;

use super::{
    bearer::no_token,
    capability::Capabilities,
    handshake::{self, Milestones},
    settings::{Credentials, Deadlines, SmtpSettings},
    wire::{Heard, Wire},
};

/// How long the goodbye may take.
const QUIT_MAX: Duration = Duration::from_secs(2);

/// Whether the next transaction can start, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// As after EHLO.
    Ready,
    /// The last transaction met a refusal: RSET comes first.
    NeedsReset,
    /// In use, out of step, or closed.
    Unusable,
}

/// A connection to a relay, greeted, secured and signed in.
#[derive(Debug)]
pub struct SmtpConnection {
    pub(super) wire: Wire,
    pub(super) offered: Capabilities,
    pub(super) deadlines: Deadlines,
    pub(super) state: State,
    pub(super) transactions: u64,
    pub(super) messages_sent: u64,
    pub(super) used_at: Instant,
    opened_at: Instant,
    /// When the token ends that it was signed in with.
    good_until: Option<Instant>,
}

impl SmtpConnection {
    /// Connects, secures and signs in. The failure's phase says how far it came.
    pub async fn open(settings: &SmtpSettings, tls: &TlsClient) -> Result<Self, Failure> {
        Self::open_watched(settings, tls, &mut Milestones::default()).await
    }

    /// The same, telling how far it came.
    pub async fn open_watched(
        settings: &SmtpSettings,
        tls: &TlsClient,
        reached: &mut Milestones,
    ) -> Result<Self, Failure> {
        let Some(Credentials::Token { source, .. }) = &settings.credentials else {
            let (wire, offered) = handshake::open(settings, tls, None, reached).await?;
            return Ok(Self::opened(wire, offered, settings));
        };
        // Before the relay is connected to: it does not wait for another server.
        let mut token = source.token().await.map_err(|error| no_token(&error))?;
        let mut opened = handshake::open(settings, tls, Some(&token), reached).await;
        if let Err(failure) = &opened
            && is_refused_token(failure)
        {
            // A token may be withdrawn before its time: one more is asked for, once.
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
        Ok(Self { good_until, ..Self::opened(wire, offered, settings) })
    }

    fn opened(wire: Wire, offered: Capabilities, settings: &SmtpSettings) -> Self {
        let now = Instant::now();
        Self {
            wire,
            offered,
            deadlines: settings.deadlines,
            state: State::Ready,
            transactions: 0,
            messages_sent: 0,
            used_at: now,
            opened_at: now,
            good_until: None,
        }
    }

    /// True when another message may be sent. Notices, without waiting, a relay that has gone or spoken out
    /// of turn, and a token that has ended: relays refuse what comes after it, each in words of its own.
    pub fn is_reusable(&mut self) -> bool {
        if self.state != State::Unusable && self.wire.listen() != Heard::Nothing {
            self.abandon();
        }
        self.state != State::Unusable && self.good_until.is_none_or(|end| Instant::now() < end)
    }

    /// Whether the relay takes wishes about reports (RFC 3461).
    pub fn offers_dsn(&self) -> bool {
        self.offered.dsn
    }

    /// Time since the connection was opened.
    pub fn age(&self) -> Duration {
        self.opened_at.elapsed()
    }

    /// Time since the connection was last used.
    pub fn idle(&self) -> Duration {
        self.used_at.elapsed()
    }

    /// How many messages the relay has taken on this connection.
    pub fn messages_sent(&self) -> u64 {
        self.messages_sent
    }

    /// True when the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        self.wire.is_tls()
    }

    /// Clears the relay's memory of a transaction. [`SmtpConnection::deliver`] does so by itself where
    /// needed.
    pub async fn rset(&mut self) -> Result<(), Failure> {
        self.simple("RSET").await?;
        self.state = State::Ready;
        Ok(())
    }

    /// Asks whether the relay is still there.
    pub async fn noop(&mut self) -> Result<(), Failure> {
        let state = self.state;
        self.simple("NOOP").await?;
        self.state = state;
        Ok(())
    }

    /// Says goodbye and closes, within two seconds. Nothing depends on whether the relay hears it.
    pub async fn quit(mut self) {
        if self.wire.is_open() && self.state != State::Unusable {
            let deadline = Instant::now() + QUIT_MAX;
            self.wire.command(Phase::Mail, "QUIT", QUIT_MAX).await.ok();
            self.wire.shutdown(deadline).await;
        }
    }

    /// Drops the connection at once, without a word.
    pub(super) fn abandon(&mut self) {
        self.state = State::Unusable;
        self.wire.close();
    }

    /// A command that is answered by 250; leaves the state for the caller to restore.
    async fn simple(&mut self, verb: &str) -> Result<(), Failure> {
        self.state = State::Unusable;
        let reply = self.wire.command(Phase::Mail, verb, self.deadlines.command).await;
        self.used_at = Instant::now();
        match reply {
            Ok(reply) if reply.is_positive() => Ok(()),
            Ok(reply) => {
                self.abandon();
                Err(reply.into_failure(Phase::Mail))
            }
            Err(failure) => {
                self.abandon();
                Err(failure)
            }
        }
    }
}

/// Whether the relay itself has refused the token, so that another one may help.
fn is_refused_token(failure: &Failure) -> bool {
    failure.phase == Phase::Auth
        && failure.smtp_code.is_some()
        && failure.category == Category::Authentication
        && !failure.is_transient()
}
